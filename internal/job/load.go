package job

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/windrow-go/windrow/checkout"
	"github.com/windrow-go/windrow/intake"
)

// The size of a load's transactions: large enough that their commits don't
// count, small enough that a break costs little.
const (
	chunkRows  = 10_000
	chunkBytes = 8 << 20
	// togetherMost is how many chunks follow in the same transaction where the store
	// takes more than one, and togetherWait how long it is kept open for the next.
	togetherMost = 15
	togetherWait = 50 * time.Millisecond
)

var (
	// ErrInputChanged says that the records already loaded are no longer what
	// the input begins with.
	ErrInputChanged = errors.New("the input has changed since it was loaded")
	// ErrInputShrank is the same for an input that ends sooner than it did.
	ErrInputShrank = fmt.Errorf("%w: it has fewer records than before", ErrInputChanged)
)

// Loader loads an input, from where an earlier load of the same input was cut
// off.
type Loader struct {
	Store Store
	// Source is how the input is known from one start to the next; see
	// SourceName.
	Source string
	// Files are the input's files, in order; "-" is Stdin.
	Files  []string
	Stdin  io.Reader
	Intake intake.Options
	// Key names the field whose value is the row's key; empty for none.
	Key string
	// AvailableAt names the field that says when the row comes due, as
	// intake.FieldTime reads it; empty for none.
	AvailableAt string
	// Limit bounds the records taken, 0 for all.
	Limit int64
	// Again loads the input once more though it has been loaded.
	Again bool
	// Replace loads a changed input as a new one instead of returning
	// ErrInputChanged. It needs files that can be read twice.
	Replace bool
	// Reject takes bad records; nil makes the first one the load's error.
	Reject func(*intake.BadRecord) error

	source  *intake.Source
	digest  *intake.Digest
	load    checkout.Load
	records atomic.Int64
	opened  atomic.Pointer[intake.Source]
}

// Loaded tells what a load has come to. Its counts are of the whole load, the
// part done by earlier starts included.
type Loaded struct {
	checkout.Load
	// New counts the rows that this call added.
	New int64
	// Already is set if the input had been loaded before and has nothing new.
	Already bool
}

// Progress tells how far Run has come: records done, and an estimate of all of
// them, 0 while there is none. It may be called from another goroutine.
func (l *Loader) Progress() (done, total int64) {
	done = l.records.Load()
	source := l.opened.Load()
	if source == nil || done == 0 {
		return done, 0
	}
	if read, size := source.Progress(); read > 0 && size > 0 {
		total = max(done, int64(float64(done)*float64(size)/float64(read)))
	}
	if l.Limit > 0 {
		total = min(total, l.Limit)
	}
	return done, total
}

// Run loads what is not loaded yet. On an error everything up to the last
// finished chunk is stored, and the next Run goes on from there.
func (l *Loader) Run(ctx context.Context) (Loaded, error) {
	load, err := l.Store.LatestLoad(ctx, l.Source)
	known := err == nil
	if err != nil && !errors.Is(err, checkout.ErrNotFound) {
		return Loaded{}, err
	}
	if known && !l.Again {
		out, err := l.goOn(ctx, load)
		if !errors.Is(err, ErrInputChanged) || !l.Replace {
			return out, err
		}
	}
	if load, err = l.Store.BeginLoad(ctx, l.Source, load.ID); err != nil {
		return Loaded{}, err
	}
	return l.goOn(ctx, load)
}

// SourceName names an input by the paths of its files, as they are from the folder
// base: a database that lies beside its input is moved with it. With an empty base
// the paths are absolute.
func SourceName(files []string, base string) string {
	names := make([]string, len(files))
	for i, file := range files {
		names[i] = file
		abs, err := filepath.Abs(file)
		if err != nil || file == "-" {
			continue
		}
		names[i] = abs
		if root, err := filepath.Abs(base); err == nil && base != "" {
			if rel, err := filepath.Rel(root, abs); err == nil {
				names[i] = rel
			}
		}
	}
	return strings.Join(names, "\n")
}

func (l *Loader) goOn(ctx context.Context, load checkout.Load) (Loaded, error) {
	source, err := intake.Open(l.Files, l.Stdin, l.Intake)
	if err != nil {
		return Loaded{}, err
	}
	defer source.Close()
	l.source, l.digest, l.load = source, intake.NewDigest(), load
	l.records.Store(0)
	l.opened.Store(source)
	if err := l.skip(ctx, load); err != nil {
		return Loaded{Load: load}, err
	}
	before := load.Inserted
	fresh, err := l.append(ctx)
	out := Loaded{Load: l.load, New: l.load.Inserted - before}
	out.Already = err == nil && !fresh && load.FinishedAt != nil
	return out, err
}

// skip reads over what is loaded and makes sure that it is the same.
func (l *Loader) skip(ctx context.Context, load checkout.Load) error {
	for l.records.Load() < load.Records {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		_, err := l.nextRow()
		var bad *intake.BadRecord
		switch {
		case errors.Is(err, io.EOF):
			return ErrInputShrank
		case err != nil && !(errors.As(err, &bad) && !bad.Fatal):
			return err
		}
		l.records.Add(1)
	}
	if load.Records > 0 && l.digest.Sum() != load.Digest {
		return ErrInputChanged
	}
	return nil
}

// append reads the rest of the input chunk by chunk while the chunk before is
// being stored. fresh tells whether there was any rest.
func (l *Loader) append(ctx context.Context) (fresh bool, err error) {
	chunks := make(chan loadChunk)
	group, reading := errgroup.WithContext(ctx) // a bad record must not cut off the chunk before it
	group.Go(func() error {
		defer close(chunks)
		return l.read(reading, chunks)
	})
	group.Go(func() error {
		for chunk := range chunks {
			fresh = fresh || chunk.Records > l.load.Records
			if chunk.Records == l.load.Records && l.load.FinishedAt != nil {
				continue // nothing new: the load stays as it is
			}
			if err := l.store(ctx, chunk, chunks); err != nil {
				return err
			}
		}
		return nil
	})
	err = group.Wait()
	return fresh, err
}

// loadChunk is a chunk and the bad records passed over in it.
type loadChunk struct {
	checkout.Chunk
	rejected []*intake.BadRecord
}

// store stores a chunk, and those that follow if the store takes them along. Bad records
// are written down right before: a load that is killed in between writes those of one
// transaction again, and loses none.
func (l *Loader) store(ctx context.Context, chunk loadChunk, following <-chan loadChunk) error {
	if err := l.reject(chunk); err != nil {
		return err
	}
	var failed error
	taken := 0
	chunk.Next = func() (checkout.Chunk, bool) {
		if taken == togetherMost || failed != nil {
			return checkout.Chunk{}, false
		}
		taken++
		next, ok := soon(ctx, following)
		if ok {
			failed = l.reject(next)
		}
		return next.Chunk, ok && failed == nil
	}
	return errors.Join(l.Store.Append(ctx, &l.load, chunk.Chunk), failed)
}

// soon returns the next chunk, unless it is long in coming or there is none.
func soon(ctx context.Context, chunks <-chan loadChunk) (loadChunk, bool) {
	timer := time.NewTimer(togetherWait)
	defer timer.Stop()
	select {
	case chunk, ok := <-chunks:
		return chunk, ok
	case <-timer.C:
	case <-ctx.Done():
	}
	return loadChunk{}, false
}

func (l *Loader) reject(chunk loadChunk) error {
	for _, bad := range chunk.rejected {
		if err := l.Reject(bad); err != nil {
			return err
		}
	}
	return nil
}

// read sends the chunks of the rest of the input. A bad record or a failing file
// doesn't keep back the good records before it.
func (l *Loader) read(ctx context.Context, chunks chan<- loadChunk) error {
	rejected := l.load.Rejected
	for {
		chunk, err := l.nextChunk(ctx, &rejected)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if len(chunk.Rows)+len(chunk.rejected) > 0 || chunk.Last || err == nil {
			select {
			case chunks <- chunk:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err != nil || chunk.Last {
			return err
		}
	}
}

// nextChunk reads up to the next chunk's end. Bad records fill it like good ones.
func (l *Loader) nextChunk(ctx context.Context, rejected *int64) (loadChunk, error) {
	var chunk loadChunk
	bytes := 0
	var failed error
	for len(chunk.Rows)+len(chunk.rejected) < chunkRows && bytes < chunkBytes && ctx.Err() == nil {
		if l.Limit > 0 && l.records.Load() >= l.Limit {
			chunk.Last = true
			break
		}
		row, err := l.nextRow()
		if errors.Is(err, io.EOF) {
			chunk.Last = true
			break
		}
		if err != nil {
			bad := l.passOver(err)
			if bad == nil {
				failed = err
				break
			}
			l.records.Add(1)
			bytes += len(bad.Raw)
			chunk.rejected = append(chunk.rejected, bad)
			continue
		}
		l.records.Add(1)
		bytes += len(row.Data)
		chunk.Rows = append(chunk.Rows, row)
	}
	*rejected += int64(len(chunk.rejected))
	chunk.Records, chunk.Rejected, chunk.Digest = l.records.Load(), *rejected, l.digest.Sum()
	return chunk, failed
}

func (l *Loader) nextRow() (checkout.NewRow, error) {
	row, err := nextRow(l.source, l.Key, l.AvailableAt)
	if err == nil {
		l.digest.Add(row.Data)
	}
	return row, err
}

// nextRow makes a row of source's next record, with the value of the field named key
// as its key, and that of due as its due time, unless those are empty.
func nextRow(source *intake.Source, key, due string) (checkout.NewRow, error) {
	record, err := source.Next()
	if err != nil {
		return checkout.NewRow{}, err
	}
	row := checkout.NewRow{Data: record.Data}
	if key != "" {
		value, err := intake.Field(record.Data, key)
		if err != nil {
			return checkout.NewRow{}, badField(record, "--key", err)
		}
		row.Key = &value
	}
	if due != "" {
		if row.AvailableAt, err = intake.FieldTime(record.Data, due); err != nil {
			return checkout.NewRow{}, badField(record, "--available-at", err)
		}
	}
	return row, nil
}

// badField makes a bad record of one that lacks what a flag wants of it.
func badField(record intake.Record, flag string, err error) *intake.BadRecord {
	return &intake.BadRecord{
		File: record.File, Line: record.Line, Reason: flag + ": " + err.Error(), Raw: record.Data[:min(len(record.Data), 4096)]}
}

// passOver returns the bad record that err is, if the load may go on after it.
func (l *Loader) passOver(err error) *intake.BadRecord {
	var bad *intake.BadRecord
	if !errors.As(err, &bad) || bad.Fatal || l.Reject == nil {
		return nil
	}
	return bad
}
