package handler

import (
	"context"
	"errors"
	"os"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/windrow-go/windrow/model"
)

// Stream handles rows by children that live for many rows and speak JSON Lines.
// There is one child for each row that is worked at the same time, or one for all
// of them ([StreamOptions].Shared). A child is started when a row needs one.
//
// # Requests and answers
//
// A child reads a line for each row,
//
//	{"id":7,"key":"a","attempt":1,"idempotency_key":"…","data":{…}}
//
// where key is null if the row has none, and writes a line for each, one of
//
//	{"id":7,"result":{…}}
//	{"id":7,"error":"no such city"}
//
// A result is any JSON value, null too, and is taken as it stands. An error is
// usually a string; of another value the JSON text is the error's, and an empty
// string counts only where there is no result. An error is tried again, except with
// "permanent":true ([model.Permanent]); "retry_after", in seconds or as a string
// like "90s", says when ([model.RetryAfter], a day at most); "unavailable":true says
// that the child can't serve now, whatever the row ([model.Unavailable]). "cost" may
// stand in both kinds of answer ([model.Answer]). A member that is null counts as
// absent, except a result without an error. Other members are ignored.
//
// A line is an answer if it is an object whose id is that of a row that the child
// has been given and has not answered; the id may be a string. If such a line is
// no JSON (NaN is none), has neither a result nor an error or both, or a member that
// counts makes no sense, that is an error of its row, which names it, and the child
// stays. The row is tried again, but for a cost that makes no sense, which fails it
// for good: other tries might cost as much, uncounted.
// An answer larger than MaxOutput fails its row for good and ends the child.
// Every other line, so also a second answer to a row, and a late one, goes to the
// log. The last line of a child that ends need not have a newline.
//
// Standard error is read always, and its end (2 KiB) is a part of the errors
// below.
//
// # When a child ends, or is silent
//
// A child that ends, or closes standard input or output, while it has a row: that
// is an error of the row, whatever the exit status, and the row is tried again.
// If the child had not yet begun to read the row (known on Linux only), it is not
// the row's fault: another child gets it at once, or, if this one had never
// answered, it is [model.Unavailable]. So is a child that can't be started. When
// children die one after the other before their first answer, starting is held
// up, for longer each time (30 s at most); then Handle waits for half a second at
// most, and else returns [model.Unavailable]. A child that ends between rows is replaced.
//
// When a shared child ends with several rows that it had begun to read, it can't
// be known whose fault it was: all of them are [model.Unavailable], and each is
// worked alone in the child the next time, until it has been answered.
//
// At the timeout the child is ended, and the row's error says so. A shared child
// goes on with the other rows, unless it is silent: if it has answered nothing in
// the second half of that row's time, it is ended as well, and the above holds for
// all of its rows. A cancel ends the child, too, but not a shared one. When Handle
// returns, nobody works on the row any more, except in a shared child.
//
// A child gets the environment that a [Command] gets, without the row's
// variables. It leads a process group, and all that [Command] says of that holds
// here.
type Stream struct {
	options     StreamOptions
	program     string
	environment environment
	fingerprint string
	log         *childLog
	pace        *pace
	// turns are the places at a shared child: a row takes one, and all of them
	// if it has to be alone.
	turns *semaphore.Weighted

	mu       sync.Mutex
	closed   bool
	children map[*child]struct{}
	idle     []*child           // not shared: those without a row
	shared   *child             // or nil
	suspects map[int64]struct{} // rows to be worked alone in the shared child
	running  sync.WaitGroup     // the goroutines of all children
}

var errClosed = errors.New("the stream is closed")

// NewStream finds the program, takes in the environment and the scripts'
// contents, and checks the options. Nothing is run yet.
func NewStream(options StreamOptions) (*Stream, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}
	program, err := options.commandLine().program()
	if err != nil {
		return nil, err
	}
	environment, err := newEnvironment(os.Environ(), options.Env)
	if err != nil {
		return nil, err
	}
	return &Stream{
		options:     options,
		program:     program,
		environment: environment,
		fingerprint: options.fingerprint(program),
		log:         &childLog{logger: options.Logger},
		pace:        newPace(),
		turns:       semaphore.NewWeighted(allTurns),
		children:    map[*child]struct{}{},
		suspects:    map[int64]struct{}{},
	}, nil
}

// Fingerprint identifies the command line and the contents of the scripts in it,
// as [Command.Fingerprint] does.
func (s *Stream) Fingerprint() string { return s.fingerprint }

// Handle gives the row to a child and returns its answer: a json.RawMessage, or
// a [model.Answer] if there is a cost.
func (s *Stream) Handle(ctx context.Context, row model.Dataset) (any, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		try := s.tryAlone
		if s.options.Shared {
			try = s.tryShared
		}
		// It ends: a child that leaves a row to another has answered others, or
		// has died before it was given any, and the pace holds up the next.
		if r := try(ctx, row); !r.again {
			return r.result, r.err
		}
	}
}

// Close closes the standard input of all children and waits until they are gone.
// What is left after two seconds gets SIGTERM and, two seconds later, SIGKILL,
// with its whole group. Rows that are still being worked are then
// [model.Unavailable], as are all later ones. The error is always nil.
func (s *Stream) Close() error {
	s.mu.Lock()
	s.closed = true
	var closing sync.WaitGroup
	for c := range s.children {
		closing.Go(c.close)
	}
	s.mu.Unlock()
	closing.Wait()
	s.running.Wait()
	s.log.close()
	return nil
}
