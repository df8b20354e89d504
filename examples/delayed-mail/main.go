// Command delayed-mail sends mails at their time, each once, however often it is
// stopped or killed. A mail is a row of an SQLite file; "sending" it writes a file into
// an outbox. README.md tells how to try it.
//
//	go run ./cmd/windrow add '{"to": "ann@example.org", "text": "Tea is ready"}' --key tea --in 5s --database mail.db
//	go run ./examples/delayed-mail mail.db outbox
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/model"
	"github.com/windrow-go/windrow/processor"
)

// mail is what a row's data looks like.
type mail struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// mailer hands mails over to an outbox.
type mailer struct {
	outbox string
	takes  time.Duration // how long a server takes to accept one
}

// handle sends the row's mail unless its mark says that it has been sent.
func (m *mailer) handle(ctx context.Context, row model.Dataset) (any, error) {
	var letter mail
	if err := json.Unmarshal(row.Data, &letter); err != nil {
		return nil, processor.Permanent(err) // no further try would help
	}
	if letter.To == "" {
		return nil, processor.Permanent(fmt.Errorf("there is nobody to send it to"))
	}
	err := processor.Once(ctx, row, "mail", func(ctx context.Context) error {
		return m.send(ctx, letter, row.IdempotencyKey())
	})
	return map[string]any{"to": letter.To}, err
}

// send writes the mail as a new file, whole or not at all. A real server would be given
// the idempotency key, such as in a Message-ID, so that it can drop a second one.
func (m *mailer) send(ctx context.Context, letter mail, key string) error {
	select {
	case <-time.After(m.takes):
	case <-ctx.Done():
		return ctx.Err()
	}
	file, err := os.CreateTemp(m.outbox, ".mail-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // which is gone if all went well
	name := fmt.Sprintf("%s_%d_%d.mail", strings.ReplaceAll(key, "/", "-"), os.Getpid(), time.Now().UnixNano())
	_, err = fmt.Fprintf(file, "Message-ID: <%s@windrow>\nTo: %s\n\n%s\n", key, letter.To, letter.Text)
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return err
	}
	return os.Rename(file.Name(), filepath.Join(m.outbox, name))
}

func main() {
	log.SetFlags(0)
	takes := flag.Duration("takes", 20*time.Millisecond, "how long sending a mail takes")
	untilEmpty := flag.Bool("until-empty", false, "end when no mail is due")
	flag.Parse()
	if flag.NArg() != 2 {
		log.Fatal("usage: delayed-mail [-takes D] [-until-empty] DATABASE-FILE OUTBOX-FOLDER")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, flag.Arg(0), &mailer{outbox: flag.Arg(1), takes: *takes}, *untilEmpty); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, file string, m *mailer, untilEmpty bool) error {
	if err := os.MkdirAll(m.outbox, 0o777); err != nil {
		return err
	}
	store, err := checkout.OpenSQLite(ctx, file, true, checkout.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	// This is the only program that works on the file: what is held was held by a
	// former process, which is gone. Otherwise its lease would be waited for.
	if _, err := store.PutBackHeld(ctx); err != nil {
		return err
	}
	return processor.New(store, processor.HandlerFunc(m.handle), processor.Options{
		Concurrency: 2,
		MaxBatch:    4,   // few are held, and have to be worked alone, if the process is killed
		MaxAttempts: 100, // that a process was killed is not the mail's fault
		UntilEmpty:  untilEmpty,
	}).Run(ctx)
}
