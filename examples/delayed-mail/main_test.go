package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/internal/database"
	"github.com/windrow-go/windrow/model"
)

// The test's own binary is the program, if it is told so.
func TestMain(m *testing.M) {
	if os.Getenv("DELAYED_MAIL") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// post is a database file, an outbox, and the program that works on them.
type post struct {
	t      *testing.T
	store  *checkout.SQLite
	file   string
	outbox string
}

func newPost(t *testing.T) *post {
	t.Helper()
	dir := t.TempDir()
	p := &post{t: t, file: filepath.Join(dir, "mail.db"), outbox: filepath.Join(dir, "outbox")}
	var err error
	p.store, err = checkout.OpenSQLite(t.Context(), p.file, true, checkout.Options{})
	check(t, err)
	t.Cleanup(func() { check(t, p.store.Close()) })
	check(t, os.Mkdir(p.outbox, 0o777))
	return p
}

// add enters n mails, from the number first on, that come due one after the other
// within d.
func (p *post) add(first, n int, d time.Duration) {
	p.t.Helper()
	now, err := p.store.Now(p.t.Context())
	check(p.t, err)
	for i := range n {
		key := fmt.Sprintf("mail-%d", first+i)
		_, _, err := p.store.Add(p.t.Context(), checkout.NewRow{
			Key:         &key,
			Data:        fmt.Appendf(nil, `{"to": "reader-%d@example.org", "text": "number %d"}`, first+i, first+i),
			AvailableAt: now.Add(d * time.Duration(i) / time.Duration(n)),
		})
		check(p.t, err)
	}
}

// start starts the program.
func (p *post) start(args ...string) *exec.Cmd {
	p.t.Helper()
	self, err := os.Executable()
	check(p.t, err)
	program := exec.Command(self, append(args, p.file, p.outbox)...)
	program.Env = append(os.Environ(), "DELAYED_MAIL=1", "GORACE=atexit_sleep_ms=0")
	program.Stdout, program.Stderr = os.Stderr, os.Stderr
	check(p.t, program.Start())
	p.t.Cleanup(func() { kill(program) })
	return program
}

// kill ends the program by SIGKILL.
func kill(program *exec.Cmd) {
	_ = program.Process.Kill() // it may be over
	_ = program.Wait()
}

// sent counts the mails that have arrived, by their idempotency keys.
func (p *post) sent() map[string]int {
	p.t.Helper()
	files, err := filepath.Glob(filepath.Join(p.outbox, "*.mail"))
	check(p.t, err)
	sent := map[string]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		check(p.t, err)
		var key string
		_, err = fmt.Sscanf(string(text), "Message-ID: %s\n", &key)
		check(p.t, err)
		sent[strings.Trim(key, "<>")]++
	}
	return sent
}

// unmarked are the mails that have arrived and whose mark is not stored.
func (p *post) unmarked() map[string]bool {
	p.t.Helper()
	out := map[string]bool{}
	for key := range p.sent() {
		var uuid string
		var m model.Mark
		parts := strings.Split(strings.TrimSuffix(key, "@windrow"), "/")
		_, err := fmt.Sscan(strings.Join(parts, " "), &uuid, &m.ID, &m.Round)
		check(p.t, err)
		m.Name = "mail"
		marked, err := p.store.Marked(p.t.Context(), m)
		check(p.t, err)
		if !marked {
			out[key] = true
		}
	}
	return out
}

func TestMailsArriveOnceThoughTheProgramIsKilledTimeAndAgain(t *testing.T) {
	const kills = 50
	const mails = 3 * kills
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	p := newPost(t)
	gaps := map[string]int{} // how many of a mail had arrived when the program had died without storing its mark
	for life := range kills {
		p.add(3*life, 3, 200*time.Millisecond)
		program := p.start()
		p.eventually("it is at work", func() bool {
			workers, _, err := p.store.Workers(t.Context())
			check(t, err)
			return slices.ContainsFunc(workers, func(w model.Worker) bool { return w.PID == program.Process.Pid })
		})
		time.Sleep(time.Duration(chance.IntN(150)) * time.Millisecond) // at any moment of its work
		kill(program)
		for key := range p.unmarked() {
			gaps[key] = p.sent()[key]
		}
	}
	p.finish(mails)
	twice := 0
	for key, n := range p.sent() {
		if n != 1+gaps[key] {
			t.Errorf("mail %s arrived %d times; its mark was missing after %d of them", key, n, gaps[key])
		}
		twice += n - 1
	}
	if p.losses() == 0 {
		t.Error("no mail was in hand when the program was killed: the kills hit nothing")
	}
	t.Logf("%d mails, %d kills, %d second mails, all in the gap between mail and mark", mails, kills, twice)
}

// losses counts how often a mail was in hand when the program was killed.
func (p *post) losses() (n int32) {
	p.t.Helper()
	for key := range p.sent() {
		var uuid string
		var id int64
		_, err := fmt.Sscan(strings.ReplaceAll(key, "/", " "), &uuid, &id)
		check(p.t, err)
		row, _, err := p.store.ByID(p.t.Context(), id)
		check(p.t, err)
		n += row.Losses
	}
	return n
}

// finish lets the program work to the end, undisturbed, and wants every mail there.
func (p *post) finish(mails int) {
	p.t.Helper()
	check(p.t, p.start("-until-empty").Wait())
	counts, err := p.store.Counts(p.t.Context())
	check(p.t, err)
	if counts[model.Done] != int64(mails) || counts.Total() != int64(mails) {
		p.t.Fatalf("rows: %v, want %d done", counts, mails)
	}
	if n := len(p.sent()); n != mails {
		p.t.Fatalf("%d mails have arrived, want %d", n, mails)
	}
}

// The gap that remains: a program that dies after the mail and before its mark sends it
// again. Whoever gets both can tell by their Message-ID.
func TestAMailWhoseMarkWasNotStoredArrivesTwice(t *testing.T) {
	p := newPost(t)
	p.add(0, 1, 0)
	other, err := database.OpenSQLite(p.file, false, nil)
	check(t, err)
	defer database.Close(other)
	program := p.start("-takes", "500ms")
	p.eventually("the mail is in hand", func() bool {
		counts, err := p.store.Counts(t.Context())
		check(t, err)
		return counts[model.InFlight] == 1
	})
	// As long as somebody else writes, the mark can't be stored.
	tx := other.WithContext(context.WithoutCancel(t.Context())).Begin()
	check(t, tx.Error)
	p.eventually("the mail has arrived", func() bool { return len(p.sent()) == 1 })
	kill(program)
	check(t, tx.Rollback().Error)
	if n := len(p.unmarked()); n != 1 {
		t.Fatal("its mark was stored: this was not the gap")
	}
	p.finish(1)
	for key, n := range p.sent() {
		if n != 2 {
			t.Errorf("%s arrived %d times, want twice", key, n)
		}
	}
	// Once the mark is there, no later try sends it.
	if n := len(p.unmarked()); n != 0 {
		t.Error("its mark is missing still")
	}
}

func (p *post) eventually(what string, yes func() bool) {
	p.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !yes() {
		if time.Now().After(deadline) {
			p.t.Fatalf("not within 20 s: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
