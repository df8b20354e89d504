package checkout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Run is one named pass over the table, such as a reprocess: a row of runs.
type Run struct {
	ID        int64
	Selection string
	CreatedBy string
	State     RunState
	// PutBack and Deferred are as in Reprocessed; Restored counts the rows that a
	// cancel has put back as they were.
	PutBack, Deferred, Restored int64
	KeepHistory                 bool
	CreatedAt                   time.Time
	FinishedAt                  *time.Time // all rows have been put back, or it was cancelled
	// SeenAt is when the command that puts rows back has last done so.
	SeenAt time.Time
	// Left is how many of its rows are still to be worked; nil: too many to be
	// counted in time. Only Runs tells it.
	Left *int64 `gorm:"-"`

	position int64 // of the last id, or how many keys, that have been dealt with
}

// RunState is where a run stands.
type RunState string

// The states of a run.
const (
	RunRunning   RunState = "running"   // rows are being put back
	RunCutOff    RunState = "cut_off"   // the same, but nobody is at it: the same reprocess goes on with it
	RunDone      RunState = "done"      // all have been put back
	RunCancelled RunState = "cancelled" // those that had not been worked were put back as they were
)

var (
	// ErrRunBusy says that another process does the same reprocess just now.
	ErrRunBusy = errors.New("another process puts the same rows back just now")
	// ErrRunOver says that a run was cancelled.
	ErrRunOver = errors.New("the run was cancelled")
)

// standing is where a run stands that is busy, or not.
func (s RunState) standing(busy bool) RunState {
	if s == RunRunning && !busy {
		return RunCutOff
	}
	return s
}

// runBusy is how long after its last chunk a run may be taken for cut off.
const runBusy = 30 * time.Second

// ReprocessOptions say how rows are put back.
type ReprocessOptions struct {
	// By says who asks for it.
	By string
	// KeepHistory keeps the outcomes that will be replaced, in the table history.
	KeepHistory bool
	// Sample puts back only so many rows of the selection, chosen at random; 0: all.
	Sample int
	// Progress, if set, is told after each transaction how long that took and how many
	// ids, of about how many, have been looked at. It may sleep, to leave the database
	// to others; an error of its ends the reprocess, which may be gone on with later.
	Progress func(took time.Duration, done Reprocessed, looked, of int64) error
}

// reprocessor is a store as a reprocess sees it. Each call is a transaction or a few
// short ones.
type reprocessor interface {
	// beginRun enters a run, or finds one of the same selection that was cut off.
	beginRun(ctx context.Context, selection string, opts ReprocessOptions) (run Run, resumed bool, err error)
	// look looks at the next rows after an id, some thousand at most, and returns those
	// that the selection selects, and the last id that was looked at, if there was any.
	look(ctx context.Context, sel Selection, run *Run, after int64) (ids []int64, upTo int64, found bool, err error)
	// among returns those of the rows ids that the selection's other conditions select.
	among(ctx context.Context, sel Selection, run *Run, ids []int64) ([]int64, error)
	// idBounds are the least and the greatest id.
	idBounds(ctx context.Context) (least, greatest int64, err error)
	idsOf(ctx context.Context, keys []string) (map[string]int64, error)
	// putBack puts those of the rows back that still meet the condition, marks those
	// that are held, and moves the run on.
	putBack(ctx context.Context, sel Selection, run *Run, ids []int64, position int64) error
	endRun(ctx context.Context, run *Run) error
	// seeRun says that somebody is at the run.
	seeRun(ctx context.Context, run *Run) error
	// leaveRun says that nobody is putting the run's rows back any more.
	leaveRun(ctx context.Context, run *Run) error
}

// reprocessing is one reprocess under way.
type reprocessing struct {
	s    reprocessor
	sel  Selection
	opts ReprocessOptions
	run  Run
	out  Reprocessed
	of   int64     // about how many ids, or keys, there are to look at
	seen time.Time // when the run's row was last touched
}

// reprocess puts rows back, chunk by chunk.
func reprocess(ctx context.Context, s reprocessor, sel Selection, opts ReprocessOptions) (Reprocessed, error) {
	if err := sel.validate(); err != nil {
		return Reprocessed{}, err
	}
	if sel.Where != "" { // a faulty condition is found before anything is begun
		if _, _, _, err := s.look(ctx, sel, &Run{}, math.MaxInt64); err != nil {
			return Reprocessed{}, err
		}
	}
	text := sel.String()
	if opts.Sample > 0 {
		text += fmt.Sprintf("; a sample of %d", opts.Sample)
	}
	run, resumed, err := s.beginRun(ctx, text, opts)
	if err != nil {
		return Reprocessed{}, err
	}
	r := &reprocessing{s: s, sel: sel, opts: opts, run: run, out: Reprocessed{Run: run.ID, Resumed: resumed}, seen: time.Now()}
	r.tally()
	err = r.all(ctx)
	if err == nil {
		err = s.endRun(ctx, &r.run)
	}
	if err != nil {
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = s.leaveRun(left, &r.run) // else it counts as busy for a while
	}
	return r.out, err
}

func (r *reprocessing) all(ctx context.Context) error {
	switch {
	case r.opts.Sample > 0:
		return r.sample(ctx)
	case r.sel.byKeys():
		return r.keys(ctx, r.putBack)
	default:
		return r.scan(ctx, r.run.position, r.putBack)
	}
}

// batch deals with some rows; upTo is where the run stands after them.
type batch func(ctx context.Context, ids []int64, upTo int64) error

// putBack puts rows back in transactions of a bounded size. A run that is cut off
// between them looks at all of ids again, which finds the first ones put back.
func (r *reprocessing) putBack(ctx context.Context, ids []int64, upTo int64) error {
	for first := 0; first == 0 || first < len(ids); first += chunk {
		part := ids[first:min(first+chunk, len(ids))]
		position := r.run.position
		if first+chunk >= len(ids) {
			position = upTo
		}
		began := time.Now()
		if err := r.s.putBack(ctx, r.sel, &r.run, part, position); err != nil {
			return err
		}
		r.tally()
		r.seen = time.Now()
		if err := r.tell(ctx, time.Since(began), upTo); err != nil {
			return err
		}
	}
	return nil
}

func (r *reprocessing) tally() { r.out.PutBack, r.out.Deferred = r.run.PutBack, r.run.Deferred }

// tell reports progress. Where nothing is put back for long, the run is kept from
// looking cut off.
func (r *reprocessing) tell(ctx context.Context, took time.Duration, looked int64) error {
	if r.run.ID != 0 && time.Since(r.seen) > runBusy/3 { // a look alone has no run
		if err := r.s.seeRun(ctx, &r.run); err != nil {
			return err
		}
		r.seen = time.Now()
	}
	if r.opts.Progress == nil {
		return nil
	}
	return r.opts.Progress(took, r.out, max(0, looked), r.of)
}

// scan goes through the table in the order of ids, from after on.
func (r *reprocessing) scan(ctx context.Context, after int64, each batch) error {
	least, greatest, err := r.s.idBounds(ctx)
	if err != nil {
		return err
	}
	r.of = greatest
	for after = max(after, least-1); ; {
		ids, upTo, found, err := r.s.look(ctx, r.sel, &r.run, after)
		if err != nil || !found {
			return err
		}
		if len(ids) == 0 {
			err = r.tell(ctx, 0, upTo)
		} else {
			err = each(ctx, ids, upTo)
		}
		if err != nil {
			return err
		}
		after = upTo
	}
}

// keys goes through the rows of some keys.
func (r *reprocessing) keys(ctx context.Context, each batch) error {
	r.of = int64(len(r.sel.Keys))
	return r.sel.eachKeys(func(keys []string, position int64) error {
		if position <= r.run.position {
			return nil // put back before the run was cut off
		}
		ids, err := r.found(ctx, keys)
		if err != nil {
			return err
		}
		return each(ctx, ids, position)
	})
}

// found are the ids of the rows of keys that are selected by the other conditions.
func (r *reprocessing) found(ctx context.Context, keys []string) ([]int64, error) {
	byKey, err := r.s.idsOf(ctx, keys)
	if err != nil {
		return nil, err
	}
	var ids []int64
	var missing []string
	for _, key := range keys {
		if id, there := byKey[key]; there {
			ids = append(ids, id)
			continue
		}
		missing = append(missing, key)
	}
	r.out.miss(missing)
	slices.Sort(ids)
	return r.s.among(ctx, r.sel, &r.run, ids)
}

// sample goes through the whole selection, keeps some of it by chance, each row by
// the same, and puts these back.
func (r *reprocessing) sample(ctx context.Context) error {
	most := r.opts.Sample - int(r.out.PutBack+r.out.Deferred) // before it was cut off
	var chosen []int64
	seen := 0
	choose := func(ctx context.Context, ids []int64, upTo int64) error {
		for _, id := range ids {
			if seen++; len(chosen) < most {
				chosen = append(chosen, id)
			} else if i := rand.IntN(seen); i < len(chosen) {
				chosen[i] = id
			}
		}
		return r.tell(ctx, 0, upTo)
	}
	var err error
	if r.sel.byKeys() {
		err = r.keys(ctx, choose)
	} else {
		err = r.scan(ctx, math.MinInt64+1, choose)
	}
	if err != nil {
		return err
	}
	slices.Sort(chosen)
	for part := range slices.Chunk(chosen, chunk) {
		if err := r.putBack(ctx, part, r.run.position); err != nil {
			return err
		}
	}
	return nil
}
