package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/windrow-go/windrow/handler"
	"github.com/windrow-go/windrow/model"
)

// each is shell that does something with every row: $line is its request, $id its
// id.
func each(do string) string {
	return `while IFS= read -r line; do id=${line#*:}; id=${id%%,*}; ` + do + `; done`
}

// say is shell that answers $id with members such as "result":1.
func say(members string) string {
	return fmt.Sprintf(`printf '{"id":%%s,%%s}\n' "$id" '%s'`, members)
}

// count is shell that answers with how many rows this child has had.
const count = `n=$((n+1)); printf '{"id":%s,"result":[%s,%s]}\n' "$id" $n $$`

func newStream(t *testing.T, options handler.StreamOptions) *handler.Stream {
	t.Helper()
	stream, err := handler.NewStream(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	})
	return stream
}

func numbered(id int64, data string) model.Dataset {
	r := row(data)
	r.ID = id
	return r
}

// send handles a row beside the test.
func send(ctx context.Context, stream *handler.Stream, row model.Dataset) <-chan answer {
	answers := make(chan answer, 1)
	go func() {
		result, err := stream.Handle(ctx, row)
		answers <- answer{result, err}
	}()
	return answers
}

// python finds the interpreter itself: what is in PATH may be a script that looks
// for it each time.
func python(t *testing.T) string {
	t.Helper()
	path, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("there is no python3")
	}
	return strings.TrimSpace(string(path))
}

// text is that of a result.
func text(result any) string {
	raw, _ := result.(json.RawMessage)
	return string(raw)
}

// mustHandle returns the text of the result.
func mustHandle(t *testing.T, stream *handler.Stream, row model.Dataset) string {
	t.Helper()
	got, err := stream.Handle(t.Context(), row)
	if err != nil {
		t.Fatalf("row %d: %v", row.ID, err)
	}
	return text(got)
}

func observed() (*zap.Logger, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	return zap.New(core), logs
}

func TestStreamChildGetsTheRowOnOneLine(t *testing.T) {
	stream := newStream(t, handler.StreamOptions{Shell: each(`printf '{"id":%s,"result":%s}\n' "$id" "$line"`)})
	key := "a<\"\\\n\u2028é"
	for _, tt := range []struct {
		row  model.Dataset
		want string
	}{
		{
			model.Dataset{ID: 7, Attempts: 2, Round: 3, Job: "job", Data: json.RawMessage(`{"a": 1e400}`)},
			`{"id":7,"key":null,"attempt":2,"idempotency_key":"job/7/3","data":{"a": 1e400}}`,
		},
		{
			model.Dataset{ID: 1 << 60, Key: &key, Data: json.RawMessage("{\r\n \"a\": [1,\n2]}")},
			`{"id":1152921504606846976,"key":"a\u003c\"\\\n\u2028é","attempt":0,"idempotency_key":"/1152921504606846976/0","data":{"a":[1,2]}}`,
		},
		{
			model.Dataset{ID: -1, Data: json.RawMessage("\"\u2028é\u2029\"")},
			`{"id":-1,"key":null,"attempt":0,"idempotency_key":"/-1/0","data":"\u2028é\u2029"}`,
		},
		{
			model.Dataset{},
			`{"id":0,"key":null,"attempt":0,"idempotency_key":"/0/0","data":null}`,
		},
	} {
		if got := mustHandle(t, stream, tt.row); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	_, err := stream.Handle(t.Context(), row("{\n"))
	if !model.IsPermanent(err) || !strings.Contains(err.Error(), "not JSON") {
		t.Errorf("no JSON: got %v", err)
	}
}

func TestStreamAnswersAreTaken(t *testing.T) {
	stream := newStream(t, handler.StreamOptions{Shell: each(`case $line in
		*perm*) ` + say(`"error":"bad","permanent":true,"cost":2`) + `;;
		*later*) ` + say(`"error":"busy","retry_after":90,"unavailable":true`) + `;;
		*odd*) ` + say(`"result":NaN`) + `;;
		*cost*) ` + say(`"result":{"a":1},"cost":0.5`) + `;;
		*) ` + count + `;; esac`)})
	first := mustHandle(t, stream, row(`1`))
	got, err := stream.Handle(t.Context(), row(`"perm"`))
	if a, _ := got.(model.Answer); err == nil || err.Error() != "bad" || !model.IsPermanent(err) || a.Cost != 2 {
		t.Errorf("perm: got %v, %v", got, err)
	}
	_, err = stream.Handle(t.Context(), row(`"later"`))
	if after, _ := model.RetryDelay(err); after != 90*time.Second || !model.IsUnavailable(err) {
		t.Errorf("later: got %v", err)
	}
	_, err = stream.Handle(t.Context(), row(`"odd"`))
	if err == nil || !strings.Contains(err.Error(), `it begins "{\"id\":7,\"result\":NaN}"`) || model.IsPermanent(err) || model.IsUnavailable(err) {
		t.Errorf("odd: got %v", err)
	}
	got, err = stream.Handle(t.Context(), row(`"cost"`))
	if a, _ := got.(model.Answer); err != nil || string(a.Result.(json.RawMessage)) != `{"a":1}` || a.Cost != 0.5 {
		t.Errorf("cost: got %v, %v", got, err)
	}
	// None of that has ended the child.
	if want := strings.Replace(first, "[1,", "[2,", 1); mustHandle(t, stream, row(`1`)) != want {
		t.Errorf("it is another child than the one that answered %s", first)
	}
}

func TestStreamHasAChildForEachRowAtWork(t *testing.T) {
	// A child answers when three have a row at once.
	dir := t.TempDir()
	stream := newStream(t, handler.StreamOptions{
		Args: []string{"sh", "-c", each(`: >"$0/$$"; until test -e "$0/all"; do set -- "$0"/*; test $# -lt 3 || : >"$0/all"; done; ` + count), dir},
	})
	var all []<-chan answer
	for id := range int64(3) {
		all = append(all, send(t.Context(), stream, numbered(id, "{}")))
	}
	for _, answers := range all {
		if got := <-answers; got.err != nil {
			t.Error(got.err)
		}
	}
	for id := range int64(20) { // one after the other
		mustHandle(t, stream, numbered(id, "{}"))
	}
	if children, _ := filepath.Glob(dir + "/[0-9]*"); len(children) != 3 {
		t.Errorf("there have been %d children", len(children))
	}
}

func TestOtherLinesAreLoggedAtALimitedRate(t *testing.T) {
	logger, logs := observed()
	stream := newStream(t, handler.StreamOptions{
		Logger: logger,
		Shell:  each(`printf '\n  \nloading \377\n{"level":"info"}\n'; i=0; while test $i -lt 1000; do echo noise; i=$((i+1)); done; ` + count),
	})
	if got := mustHandle(t, stream, row("1")); !strings.HasPrefix(got, "[1,") {
		t.Errorf("got %s", got)
	}
	stream.Close()
	var lines []string
	skipped := 0
	for _, entry := range logs.All() {
		fields := entry.ContextMap()
		if line, ok := fields["line"]; ok {
			lines = append(lines, line.(string))
		}
		if n, ok := fields["skipped"]; ok {
			skipped += int(n.(int64))
		}
	}
	if len(lines) < 10 || len(lines) > 200 || lines[0] != "loading \uFFFD" || lines[1] != `{"level":"info"}` || len(lines)+skipped != 1002 {
		t.Errorf("%d lines, %d skipped, begun by %q", len(lines), skipped, lines[:min(len(lines), 3)])
	}
}

func TestAnswersToNobodyAreLogged(t *testing.T) {
	logger, logs := observed()
	stream := newStream(t, handler.StreamOptions{
		Logger: logger,
		Shell:  each(`printf '{"id":999,"result":0}\n{"id":%s,"result":"first"}\n{"id":%s,"result":"second"}\n' "$id" "$id"`),
	})
	for id := range int64(3) {
		if got := mustHandle(t, stream, numbered(id, "{}")); got != `"first"` {
			t.Errorf("row %d: got %s", id, got)
		}
	}
	stream.Close()
	if n := logs.FilterMessageSnippet("no answer to a row in flight").Len(); n != 6 {
		t.Errorf("%d lines were logged", n)
	}
}

func TestStreamEnvironmentLeadsToNoDatabase(t *testing.T) {
	t.Setenv("WINDROW_DATABASE_URL", "postgres://secret")
	t.Setenv("PGPASSWORD", "secret")
	t.Setenv("MINE", "yes")
	stream := newStream(t, handler.StreamOptions{
		Env:   []string{"PGHOST=given"},
		Shell: each(`printf '{"id":%s,"result":"%s"}\n' "$id" "$MINE $PGHOST $(env | grep -c -e ^WINDROW_ -e ^PGPASS)"`),
	})
	if got := mustHandle(t, stream, row("1")); got != `"yes given 0"` {
		t.Errorf("got %s", got)
	}
}

func TestStreamOptionsAreChecked(t *testing.T) {
	for _, tt := range []struct {
		options handler.StreamOptions
		want    string
	}{
		{handler.StreamOptions{}, "stream: there is none to run"},
		{handler.StreamOptions{Shell: " "}, "stream: there is none to run"},
		{handler.StreamOptions{Shell: "cat", Args: []string{"cat"}}, "stream: give either"},
		{handler.StreamOptions{Args: []string{"cat", "a\x00"}}, "stream: argument 1 has a NUL"},
		{handler.StreamOptions{Args: []string{"no-such-program"}}, "no-such-program"},
		{handler.StreamOptions{Shell: "cat", Timeout: -1}, "stream timeout"},
		{handler.StreamOptions{Shell: "cat", MaxOutput: -1}, "stream output limit"},
		{handler.StreamOptions{Shell: "cat", Env: []string{"A"}}, "NAME=VALUE"},
	} {
		if _, err := handler.NewStream(tt.options); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.options, err, tt.want)
		}
	}
}

func TestStreamFingerprintIsThatOfWhatIsRun(t *testing.T) {
	script := writeFile(t, t.TempDir()+"/script.sh", "one", 0o600)
	print := func(options handler.StreamOptions) string { return newStream(t, options).Fingerprint() }
	one := print(handler.StreamOptions{Shell: "sh " + script})
	if got := print(handler.StreamOptions{Shell: "sh " + script, Shared: true, Timeout: 1, MaxOutput: 1}); got != one {
		t.Errorf("options that change no result: %s and %s", got, one)
	}
	if got := print(handler.StreamOptions{Args: []string{"sh", script}}); got == one {
		t.Errorf("arguments and a line have the fingerprint %s", got)
	}
	writeFile(t, script, "two", 0o600)
	if got := print(handler.StreamOptions{Shell: "sh " + script}); got == one {
		t.Errorf("two scripts have the fingerprint %s", got)
	}
	if got := print(handler.StreamOptions{Shell: "cat"}); got != "99644384600e" || got == shellPrint(t, "cat") {
		t.Errorf("cat: got %s", got)
	}
}

func TestCloseLetsChildrenEndByThemselves(t *testing.T) {
	mark := t.TempDir() + "/mark"
	stream := newStream(t, handler.StreamOptions{Shell: each(count) + "; echo tidy >" + mark})
	mustHandle(t, stream, row("1"))
	var closing sync.WaitGroup
	for range 3 {
		closing.Go(func() {
			stream.Close()
			if text, err := os.ReadFile(mark); string(text) != "tidy\n" {
				t.Errorf("got %q, %v", text, err)
			}
		})
	}
	closing.Wait()
	_, err := stream.Handle(t.Context(), row("1"))
	if !model.IsUnavailable(err) || err.Error() != "the stream is closed" {
		t.Errorf("after Close: got %v", err)
	}
}

func TestCloseLeavesNobodyBehind(t *testing.T) {
	for _, line := range []string{
		each(count) + "; sleep 1000",
		"sleep 1000 & " + each(count),
		"trap '' TERM; " + each(count) + "; sleep 1000 & sleep 1000",
	} {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			life := newLifeline(t)
			stream := newStream(t, handler.StreamOptions{Shell: life.hold() + line})
			first := send(t.Context(), stream, row("1"))
			life.watch(t, func() {
				if got := <-first; got.err != nil {
					t.Error(got.err)
				}
				stream.Close()
			})
		})
	}
}

func TestCloseEndsRowsAtWork(t *testing.T) {
	t.Parallel()
	life := newLifeline(t)
	stream := newStream(t, handler.StreamOptions{Shell: "read -r line; " + life.hold() + "exec sleep 1000"})
	answers := send(t.Context(), stream, row("1"))
	life.watch(t, func() { stream.Close() })
	if got := <-answers; !model.IsUnavailable(got.err) || !strings.Contains(got.err.Error(), "the stream is closed") {
		t.Errorf("got %v, %v", got.result, got.err)
	}
}

func TestCancelEndsTheChild(t *testing.T) {
	gone := errors.New("the claim is lost")
	life := newLifeline(t)
	stream := newStream(t, handler.StreamOptions{Shell: "read -r line; " + life.hold() + "sleep 1000 & sleep 1000"})
	ctx, cancel := context.WithCancelCause(t.Context())
	answers := send(ctx, stream, row("1"))
	life.watch(t, func() { cancel(gone) })
	if got := <-answers; got.err != gone {
		t.Errorf("got %v, %v", got.result, got.err)
	}
	if _, err := stream.Handle(ctx, row("1")); err != gone {
		t.Errorf("a row that comes too late: got %v", err)
	}
}

func BenchmarkStream(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprint("shared=", shared), func(b *testing.B) {
			stream, err := handler.NewStream(handler.StreamOptions{Shell: "exec python3 ../examples/stream.py", Shared: shared})
			if err != nil {
				b.Fatal(err)
			}
			defer stream.Close()
			var next atomic.Int64
			var slots sync.WaitGroup
			b.ReportAllocs()
			for range 2 {
				slots.Go(func() {
					for id := next.Add(1); id <= int64(b.N); id = next.Add(1) {
						if _, err := stream.Handle(b.Context(), numbered(id, `{"name":"some text","n":1}`)); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			slots.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
