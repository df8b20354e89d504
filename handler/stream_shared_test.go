package handler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

func newShared(t *testing.T, options handler.StreamOptions) *handler.Stream {
	t.Helper()
	options.Shared = true
	return newStream(t, options)
}

// pairs is shell that answers each two rows in the opposite order.
const pairs = `while read -r a && read -r b; do a=${a#*:}; b=${b#*:}; printf '{"id":%s,"result":%s}\n' "${b%%,*}" "${b%%,*}" "${a%%,*}" "${a%%,*}"; done`

func TestSharedChildAnswersInAnyOrder(t *testing.T) {
	stream := newShared(t, handler.StreamOptions{Shell: pairs})
	var slots sync.WaitGroup
	for slot := range int64(2) {
		slots.Go(func() {
			for i := range int64(100) {
				id := 2*i + slot
				got, err := stream.Handle(t.Context(), numbered(id, "{}"))
				if want := fmt.Sprint(id); err != nil || text(got) != want {
					t.Errorf("row %d: got %s, %v", id, text(got), err)
				}
			}
		})
	}
	slots.Wait()
}

// tries handles a row until it is neither unavailable nor, more than most times,
// charged; it returns the charged errors, and the result if there is one.
func tries(t *testing.T, stream *handler.Stream, row model.Dataset, most int) (result string, charged []error) {
	late := time.Now().Add(30 * time.Second)
	for len(charged) < most {
		got, err := stream.Handle(t.Context(), row)
		switch {
		case err == nil:
			return text(got), charged
		case model.IsUnavailable(err):
			if time.Now().After(late) {
				t.Errorf("row %d is unavailable all the time: %v", row.ID, err)
				return "", charged
			}
			time.Sleep(time.Millisecond) // a worker would slow down, too
		default:
			charged = append(charged, err)
		}
	}
	return "", charged
}

// many reads all rows that are there, and answers them; one that says die ends it
// when it has read others, too.
const many = `
import os, sys, json
while True:
    lines = os.read(0, 1 << 20).decode().splitlines()
    if not lines:
        break
    rows = [json.loads(line) for line in lines]
    if any(row["data"] == "die" for row in rows):
        os._exit(3)
    for row in rows:
        print(json.dumps({"id": row["id"], "result": row["id"]}), flush=True)
`

func TestRowThatKillsTheSharedChildIsFound(t *testing.T) {
	stream := newShared(t, handler.StreamOptions{Args: []string{python(t), "-c", many}})
	var rows sync.WaitGroup
	for id := range int64(40) {
		data := "1"
		if id%13 == 5 {
			data = `"die"`
		}
		rows.Go(func() {
			result, charged := tries(t, stream, numbered(id, data), 2)
			if data == "1" && (result != fmt.Sprint(id) || len(charged) > 0) {
				t.Errorf("innocent row %d: got %s, charged with %v", id, result, charged)
			}
			if data != "1" && (len(charged) != 2 || charged[1].Error() != "the child ended: exit status 3") {
				t.Errorf("guilty row %d: got %s, charged with %v", id, result, charged)
			}
		})
	}
	rows.Wait()
}

// swallow is shell that answers all rows but those that say swallow; a row that
// says release has the swallowed one answered first.
var swallow = each(`case $line in
	*swallow*) late=$id; echo why >&2;;
	*release*) printf '{"id":%s,"result":"late"}\n' "$late"; ` + count + `;;
	*) ` + count + `;; esac`)

func TestTimeoutInASharedChildLeavesItToOthers(t *testing.T) {
	t.Parallel()
	logger, logs := observed()
	stream := newShared(t, handler.StreamOptions{Shell: swallow, Timeout: 2 * time.Second, Logger: logger})
	first := mustHandle(t, stream, numbered(1, "1"))
	slow := send(t.Context(), stream, numbered(2, `"swallow"`))
	var got answer
	for waiting := true; waiting; {
		select {
		case got = <-slow:
			waiting = false
		default:
			mustHandle(t, stream, numbered(3, "1"))
		}
	}
	if !isCharged(got.err) || got.err.Error() != "timed out after 2s: why" {
		t.Errorf("got %v, %v", got.result, got.err)
	}
	last := mustHandle(t, stream, numbered(4, `"release"`))
	if pid := first[strings.Index(first, ","):]; !strings.HasSuffix(last, pid) {
		t.Errorf("it is another child: first %s, then %s", first, last)
	}
	stream.Close()
	if logs.FilterField(zap.String("line", `{"id":2,"result":"late"}`)).Len() != 1 {
		t.Error("the late answer is not logged")
	}
}

func TestSilentSharedChildIsReplaced(t *testing.T) {
	t.Parallel()
	stream := newShared(t, handler.StreamOptions{Shell: swallow, Timeout: 2 * time.Second})
	// With several rows, nobody is charged; then each of them is alone.
	var rows sync.WaitGroup
	mustHandle(t, stream, numbered(1, "1"))
	var mu sync.Mutex
	blamed := 0
	for id := range int64(3) {
		rows.Go(func() {
			_, err := stream.Handle(t.Context(), numbered(10+id, `"swallow"`))
			mu.Lock()
			defer mu.Unlock()
			if !model.IsUnavailable(err) || !strings.HasPrefix(err.Error(), "timed out after 2s: why") {
				blamed++
				t.Logf("row %d: %v", id, err)
			}
		})
	}
	rows.Wait()
	// A row that comes when the child is being ended is alone already.
	if blamed > 1 {
		t.Errorf("%d rows are charged", blamed)
	}
	if _, err := stream.Handle(t.Context(), numbered(10, `"swallow"`)); !isCharged(err) || err.Error() != "timed out after 2s: why" {
		t.Errorf("alone: got %v", err)
	}
	if got := mustHandle(t, stream, numbered(1, "1")); !strings.HasPrefix(got, "[1,") {
		t.Errorf("the child is not replaced: %s", got)
	}
}

func TestCancelLeavesTheSharedChild(t *testing.T) {
	gone := errors.New("the claim is lost")
	fifo := newLifeline(t)
	stream := newShared(t, handler.StreamOptions{Shell: strings.Replace(swallow, "late=$id;", "late=$id; echo started >'"+fifo.path+"';", 1)})
	first := mustHandle(t, stream, numbered(1, "1"))
	ctx, cancel := context.WithCancelCause(t.Context())
	answers := send(ctx, stream, numbered(2, `"swallow"`))
	fifo.watch(t, func() { cancel(gone) })
	if got := <-answers; got.err != gone {
		t.Errorf("got %v, %v", got.result, got.err)
	}
	if got := mustHandle(t, stream, numbered(3, "1")); got[strings.Index(got, ","):] != first[strings.Index(first, ","):] {
		t.Errorf("it is another child: first %s, then %s", first, got)
	}
}

// A row that was given up may be what kills the child later.
func TestAbandonedRowMayBeTheGuiltyOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stream := newShared(t, handler.StreamOptions{Timeout: time.Second, Shell: each(`case $line in
		*swallow*) ;;
		*once*) test -e ` + dir + `/once && { ` + count + `; continue; }; : >` + dir + `/once; exit 3;;
		*) ` + count + `;; esac`)})
	slow := send(t.Context(), stream, numbered(2, `"swallow"`))
	for waiting := true; waiting; {
		mustHandle(t, stream, numbered(1, "1"))
		select {
		case got := <-slow:
			if !isCharged(got.err) {
				t.Fatal(got.err)
			}
			waiting = false
		default:
		}
	}
	_, err := stream.Handle(t.Context(), numbered(3, `"once"`))
	if !model.IsUnavailable(err) || !strings.Contains(err.Error(), "alone next time") {
		t.Errorf("got %v", err)
	}
	mustHandle(t, stream, numbered(3, `"once"`))
}

func TestTooLargeAnswerEndsTheSharedChild(t *testing.T) {
	for _, answer := range []string{
		`'{"id":%d,"result":"%s"}' % (row["id"], "x" * 3000000)`,
		`'{"result":"%s","id":%d}' % ("x" * 3000000, row["id"])`,
	} {
		program := strings.Replace(many, "        os._exit(3)\n", "        print("+answer+", flush=True)\n", 1)
		program = strings.Replace(program, "if any(", "for row in (row for row in rows if ", 1)
		program = strings.Replace(program, " for row in rows):", "):", 1)
		stream := newShared(t, handler.StreamOptions{MaxOutput: 1 << 20, Args: []string{python(t), "-c", program}})
		var rows sync.WaitGroup
		for id := range int64(8) {
			rows.Go(func() {
				if id != 3 {
					if got, charged := tries(t, stream, numbered(id, "1"), 1); got != fmt.Sprint(id) {
						t.Errorf("row %d: got %s, %v", id, got, charged)
					}
					return
				}
				_, charged := tries(t, stream, numbered(id, `"die"`), 1)
				if len(charged) != 1 || !model.IsPermanent(charged[0]) {
					t.Errorf("row %d: got %v", id, charged)
				}
			})
		}
		rows.Wait()
	}
}

func TestSameRowTwiceInASharedChild(t *testing.T) {
	fifo := newLifeline(t)
	stream := newShared(t, handler.StreamOptions{Shell: strings.Replace(swallow, "late=$id;", "late=$id; echo started >'"+fifo.path+"';", 1)})
	ctx, cancel := context.WithCancel(t.Context())
	answers := send(ctx, stream, numbered(2, `"swallow"`))
	fifo.watch(t, func() {})
	if _, err := stream.Handle(t.Context(), numbered(2, "1")); !model.IsUnavailable(err) || !strings.Contains(err.Error(), "already") {
		t.Errorf("got %v", err)
	}
	cancel()
	<-answers
}
