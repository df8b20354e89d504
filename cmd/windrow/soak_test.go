package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// soakVariable makes this test binary a child of --stream; its value is a folder
// that the children have in common. It is looked at before anything else is done,
// in the program that windrow starts.
const soakVariable = "HANDLERS_SOAK_CHILD"

func init() {
	if folder, is := os.LookupEnv(soakVariable); is {
		soakChild(folder)
	}
}

// The tries of a row that is never done, and how long one may take.
const (
	soakAttempts = 3
	soakTimeout  = 4 * time.Second
)

// soaked is what must become of a row.
type soaked struct {
	attempts int
	fails    string // how the error begins; "" = the row is done
}

// streamKinds are what a child may do with a row, and what must become of it.
var streamKinds = map[string]soaked{
	"good":        {attempts: 1},
	"garbage":     {attempts: 1}, // a line that is no answer, then the answer
	"unknown":     {attempts: 1}, // an answer to a row that it has not, then the answer
	"flood":       {attempts: 1}, // much on stderr, then the answer
	"unavailable": {attempts: 1}, // once: can't serve now
	"exit":        {attempts: 2}, // the others misbehave at the first try
	"partial":     {attempts: 2},
	"error":       {attempts: 2},
	"silent":      {attempts: 2},
	"permanent":   {attempts: 1, fails: "never "},
	"always":      {attempts: soakAttempts, fails: "always "},
	"dies":        {attempts: soakAttempts, fails: "the child ended: exit status 4"},
}

// httpKinds are the same of a service.
var httpKinds = map[string]soaked{
	"good":      {attempts: 1},
	"slow":      {attempts: 1},
	"503":       {attempts: 1}, // once, with Retry-After: 0
	"429":       {attempts: 1},
	"500":       {attempts: 2},
	"truncated": {attempts: 2},
	"dropped":   {attempts: 2},
	"silent":    {attempts: 2},
	"404":       {attempts: 1, fails: "404 Not Found: never "},
	"always":    {attempts: soakAttempts, fails: "500 Internal Server Error: always "},
	"cuts":      {attempts: soakAttempts, fails: "127.0.0.1:"},
}

// soakRow is a row's data.
type soakRow struct {
	N  int    `json:"n"`
	Do string `json:"do"`
}

func TestEveryRowOfALongStreamEndsAsItMust(t *testing.T) {
	soak(t, streamKinds, func(t *testing.T, p *place) []string {
		p.env = append(p.env, soakVariable+"="+p.path("seen"))
		return []string{"--stream", "exec '" + os.Args[0] + "'"}
	})
}

func TestEveryRowOfAServiceEndsAsItMust(t *testing.T) {
	soak(t, httpKinds, func(t *testing.T, _ *place) []string {
		server := httptest.NewServer(&soakService{seen: map[int]bool{}})
		t.Cleanup(server.Close)
		return []string{"--http", server.URL}
	})
}

// soak works many rows with a handler that misbehaves at 5 % of them, and checks each
// row and what is left. It is not parallel to others, since it counts what the test
// process has open.
func soak(t *testing.T, kinds map[string]soaked, handlerOf func(*testing.T, *place) []string) {
	rows, engines := 3_000, []func(*testing.T) *place{newPlace}
	if os.Getenv("WINDROW_SOAK") != "" {
		rows, engines = 100_000, append(engines, newFleet)
		template(t) // starts the server, which stays
	}
	for _, newOne := range engines {
		before := opened()
		t.Run("", func(t *testing.T) {
			p := marked(newOne(t))
			soakIn(t, p, kinds, rows, handlerOf(t, p))
		})
		eventually(t, "the test process has no more open than before", func() bool {
			now := opened()
			return now.goroutines <= before.goroutines && now.files <= before.files
		})
	}
}

// openedThings counts what a process that leaks has more and more of.
type openedThings struct{ goroutines, files int }

func opened() openedThings {
	files, _ := os.ReadDir("/proc/self/fd") // none elsewhere than on Linux
	return openedThings{runtime.NumGoroutine(), len(files)}
}

func soakIn(t *testing.T, p *place, kinds map[string]soaked, n int, handler []string) {
	for _, folder := range []string{"seen", "tmp"} {
		if err := os.Mkdir(p.path(folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.env = append(p.env, "TMPDIR="+p.path("tmp"))
	rows := soakRows(t, kinds, n)
	var input strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&input, "{\"n\":%d,\"do\":%q}\n", r.N, r.Do)
	}
	p.write("rows.jsonl", input.String())
	p.ok("load", "rows.jsonl")
	args := append([]string{"work", "--until-empty", "-j", "4", "--max-attempts", strconv.Itoa(soakAttempts), "--retry-delay", "1ms..50ms",
		"--timeout", soakTimeout.String()}, handler...)
	work := p.start(args...)
	limit := patience * time.Duration(1+n/5_000)
	within(t, limit, "all rows are worked", work.over)
	work.end().wants(3)
	p.wantsAlone()
	if left := p.files("tmp/*"); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	checkSoaked(t, p.table().rows("true"), rows, kinds)
}

// soakRows says what is to be done with each row. What takes long, a silence or new
// children after deaths without an answer, is rarer than the others, and not left to
// the end.
func soakRows(t *testing.T, kinds map[string]soaked, n int) []soakRow {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var bad []string
	for kind := range kinds {
		if kind != "good" && kind != "silent" && kind != "dies" {
			bad = append(bad, kind)
		}
	}
	rows := make([]soakRow, n)
	for i := range rows {
		rows[i] = soakRow{N: i + 1, Do: "good"}
		switch {
		case i%1_500 == 300:
			rows[i].Do = "silent"
		case i%1_000 == 400 && kinds["dies"].fails != "":
			rows[i].Do = "dies"
		case random.IntN(20) == 0:
			rows[i].Do = bad[random.IntN(len(bad))]
		}
	}
	return rows
}

func checkSoaked(t *testing.T, got []row, rows []soakRow, kinds map[string]soaked) {
	if len(got) != len(rows) {
		t.Fatalf("%d rows, want %d", len(got), len(rows))
	}
	wrong := 0
	for i, r := range got {
		kind := kinds[rows[i].Do]
		result, fails := strconv.Itoa(2*rows[i].N), kind.fails
		if strings.HasSuffix(fails, " ") {
			fails += strconv.Itoa(rows[i].N)
		}
		is := r.IsProcessed && r.Attempts == kind.attempts && r.Losses == 0
		if fails == "" {
			is = is && r.Error == nil && text(r.Result) == result
		} else {
			is = is && r.Error != nil && r.Result == nil && strings.HasPrefix(*r.Error, fails)
		}
		if is {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Errorf("row %d, %q: processed %t, result %q, error %q after %q, %d attempts, %d losses; want %+v",
				r.ID, rows[i].Do, r.IsProcessed, text(r.Result), clip(text(r.Error)), clip(text(r.LastError)), r.Attempts, r.Losses, kind)
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d rows did not end as they must", wrong, len(rows))
	}
}

// soakChild answers rows until its input ends, or its data has it misbehave.
func soakChild(folder string) {
	input := bufio.NewReader(os.Stdin)
	for {
		line, err := input.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		var r struct {
			ID      int64
			Attempt int
			Data    soakRow
		}
		if err := json.Unmarshal(line, &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(5)
		}
		failing := func(rest string) { fmt.Printf("{\"id\":%d,\"error\":\"%s %d\"%s}\n", r.ID, r.Data.Do, r.Data.N, rest) }
		first := r.Attempt == 1
		switch do := r.Data.Do; {
		case do == "always":
			failing("")
			continue
		case do == "dies":
			os.Exit(4)
		case do == "permanent":
			r.Data.Do = "never"
			failing(`,"permanent":true`)
			continue
		case do == "unavailable" && !seenIn(folder, r.Data.N):
			failing(`,"unavailable":true,"retry_after":0`)
			continue
		case do == "error" && first:
			failing("")
			continue
		case do == "silent" && first:
			time.Sleep(time.Hour)
		case do == "exit" && first:
			os.Exit(3)
		case do == "partial" && first:
			fmt.Printf(`{"id":%d,"resu`, r.ID)
			os.Exit(0)
		case do == "flood":
			_, _ = os.Stderr.Write(bytes.Repeat([]byte("x"), 300_000)) // all that counts is that it does not block
		case do == "garbage":
			fmt.Println(`loading the model … {"id":`)
		case do == "unknown":
			fmt.Printf("{\"id\":%d,\"result\":0}\n", r.ID+1_000_000_000)
		}
		fmt.Printf("{\"id\":%d,\"result\":%d}\n", r.ID, 2*r.Data.N)
	}
}

// seenIn tells whether it has been asked for n before.
func seenIn(folder string, n int) bool {
	file, err := os.OpenFile(filepath.Join(folder, strconv.Itoa(n)), os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		file.Close()
	}
	return err != nil
}

// soakService is a service that misbehaves where a row's data says so.
type soakService struct {
	mu   sync.Mutex
	seen map[int]bool
}

func (s *soakService) seenBefore(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.seen[n]
	s.seen[n] = true
	return before
}

func (s *soakService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var row soakRow
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &row); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	first := r.Header.Get("Windrow-Attempt") == "1"
	switch do := row.Do; {
	case do == "404":
		http.Error(w, fmt.Sprint("never ", row.N), http.StatusNotFound)
		return
	case do == "always":
		http.Error(w, fmt.Sprint("always ", row.N), http.StatusInternalServerError)
		return
	case do == "500" && first:
		http.Error(w, "not yet", http.StatusInternalServerError)
		return
	case (do == "503" || do == "429") && !s.seenBefore(row.N):
		status, _ := strconv.Atoi(do)
		w.Header().Set("Retry-After", "0")
		http.Error(w, "not now", status)
		return
	case do == "cuts", do == "dropped" && first:
		panic(http.ErrAbortHandler)
	case do == "truncated" && first:
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("1"))
		panic(http.ErrAbortHandler)
	case do == "silent" && first:
		<-r.Context().Done()
		return
	case do == "slow":
		time.Sleep(50 * time.Millisecond) // it is what is tested
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, 2*row.N)
}
