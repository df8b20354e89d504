package checkout

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// A look spans so many ids at first. Where it finds few keys it has waded through
	// the index entries of rows finished lately, and the server had to read those rows:
	// once each, but every time while somebody holds an old snapshot. Without a bound
	// each process of a fleet would wade through all of them.
	shortReach = 4 << 10
	longReach  = 1 << 40
	// Who goes hungry looks so far at least, however long it takes.
	hungryReach = 64 << 10

	// A table of fewer ids is looked at as a whole.
	largeSpan = 16 << 10

	// A look that finds few keys in less than the first has met a gap, so the next
	// reaches further; one that takes longer than the second, less far.
	cheapLook = 2 * time.Millisecond
	dearLook  = 20 * time.Millisecond

	// So many ids are tried to find a place with fresh rows: the second number once
	// the first has met few. They cost as much as a short look through finished
	// rows, and show the whole table.
	samples     = 64
	moreSamples = 96
	// So many of the keys that were left to others are tried along with them, the second
	// number once rows are few, and so many remembered. They are neighbours, and so cost
	// less. Of those that are too many one in so many is remembered as an edge, a place to
	// come back to while it is fresh itself; edges are fewer.
	recalls     = 256
	moreRecalls = 2048
	mostBehind  = 4096
	behindEdges = 128
	mostEdges   = 128

	// mostLooks, and the time that they may take, bound the looks before the claimer is
	// told that there is nothing. Where looking takes long the server is busy with what
	// others have in hand, and that is all there is, more often than not: a fleet that
	// goes on looking takes from those the time to finish it.
	mostLooks   = 16
	longestHunt = 100 * time.Millisecond
	// A walker that has found nothing for so long is hungry, and looks for longer: then
	// what is left may well be rows that nobody has in view.
	hungryAfter = 5 * time.Second
	hungryHunt  = time.Second
)

// walkOn peeks at the next stretch of fresh keys.
func (w *walker) walkOn(ctx context.Context, n int) error {
	if !w.placed {
		if err := w.place(ctx); err != nil || !w.placed {
			return err
		}
	}
	w.gone.add(w.window.First, w.window.Last)
	w.window = stretch{}
	window := windowFor(peekBatches * n)
	if w.span < largeSpan {
		return w.lookRound(ctx, window, n)
	}
	began := time.Now()
	for look := range mostLooks {
		if look > 0 && len(w.behind) == 0 && time.Since(began) > w.patience() {
			return nil
		}
		if w.astray {
			if there, err := w.land(ctx, window); err != nil || !there {
				return err
			}
		}
		if len(w.fresh) == 0 {
			if err := w.lookAhead(ctx, window, n); err != nil {
				return err
			}
		}
		if len(w.fresh) > 0 {
			return nil
		}
	}
	return nil
}

// place learns how far the keys go, and puts the cursor somewhere.
func (w *walker) place(ctx context.Context) error {
	low, high, ok, err := w.table.bounds(ctx)
	if err == nil && ok && high-low < largeSpan {
		low, high, ok, err = w.table.freshBounds(ctx)
	}
	if err != nil || !ok {
		return err
	}
	w.low, w.high, w.placed = low-1, high, true
	w.span = max(w.span, high-low)
	w.cursor = w.low + rand.Int64N(w.high-w.low)
	w.astray = w.span >= largeSpan && w.begun // a fleet that begins finds rows anywhere
	w.begun, w.landed = true, true
	return nil
}

// land puts the cursor where there are fresh rows, of random places and of those to
// come back to. If there are none, the next to be tried are the keys that had been left
// to others; if there are none of these either, the cursor is put anywhere that isn't
// known to be finished. It returns false if that is nowhere.
func (w *walker) land(ctx context.Context, window int) (there bool, err error) {
	tries, recall := w.samples()
	recalled := w.behind[max(0, len(w.behind)-recall):]
	w.edges = slices.DeleteFunc(w.edges, w.gone.has)
	random := w.anywhere(tries)
	ids := slices.Concat(recalled, w.edges, random)
	if len(ids) == 0 {
		return false, nil
	}
	fresh, err := w.table.sample(ctx, ids)
	if err != nil {
		return false, err
	}
	w.behind = w.behind[:len(w.behind)-len(recalled)]
	left, hits := partition(fresh, recalled)
	w.edges, _ = partition(hits, w.edges)
	w.sparse = len(hits)-len(w.edges) < 4
	switch {
	case len(hits) > 0: // a little before, so that no small remainder is left there
		w.behind = append(w.behind, left...)
		w.cursor = max(w.low, hits[rand.IntN(len(hits))]-1-int64(window/2))
	case len(left) > 0:
		w.fresh, w.window = left, stretch{}
		return true, nil
	case len(random) == 0:
		return len(w.behind) > 0, nil
	default:
		w.cursor = random[0] - 1
	}
	w.astray, w.blind, w.landed = false, len(hits) == 0, true
	return true, nil
}

// anywhere returns up to n random ids that aren't known to be finished.
func (w *walker) anywhere(n int) []int64 {
	var ids []int64
	for range n {
		after, ok := w.gone.somewhere(w.low, w.high)
		if !ok {
			break
		}
		ids = append(ids, after+1)
	}
	return ids
}

// samples is how many random ids, and how many of those left behind, are tried.
func (w *walker) samples() (tries, recall int) {
	if w.sparse {
		return moreSamples, moreRecalls
	}
	return samples, recalls
}

// noteEdge remembers where a landing came down amid fresh rows: those before it may
// become a small remainder, which nobody would come upon by chance.
func (w *walker) noteEdge(from int64, keys []int64) {
	if w.landed && len(keys) > 0 && keys[0] == from+1 && from > w.low && !w.gone.has(from) {
		w.addEdge(from)
	}
	w.landed = false
}

func (w *walker) addEdge(id int64) {
	w.edges = append(w.edges, id)
	w.edges = w.edges[max(0, len(w.edges)-mostEdges):]
}

// partition splits ids into those that are among some and the others, each in order.
func partition(ids, some []int64) (in, out []int64) {
	slices.Sort(ids)
	sorted := slices.Sorted(slices.Values(some))
	for _, id := range slices.Compact(ids) {
		if _, there := slices.BinarySearch(sorted, id); there {
			in = append(in, id)
		} else {
			out = append(out, id)
		}
	}
	return in, out
}

// lookAhead peeks from the cursor as far as it reaches, or up to the next stretch
// that is known to be finished.
func (w *walker) lookAhead(ctx context.Context, window, n int) error {
	from := w.gone.beyond(w.cursor)
	upTo := w.gone.next(from)
	if from+w.reach < w.high {
		upTo = min(upTo, from+w.reach)
	}
	began := time.Now()
	keys, err := w.table.peekFresh(ctx, from, upTo, window)
	if err != nil {
		return err
	}
	w.noteEdge(from, keys)
	w.cursor = min(upTo, w.high)
	if len(keys) < window/2 {
		// Somebody else has been here, or this is the end.
		w.astray = upTo >= w.high || endsEarly(keys, from, upTo)
		w.adjustReach(time.Since(began))
	}
	if len(keys) == 0 {
		w.gone.add(from, min(upTo, w.high))
		return nil
	}
	w.gone.add(from, keys[0]-1)
	if len(keys) < window {
		w.gone.add(keys[len(keys)-1], min(upTo, w.high))
	} else {
		keys = wholeClaims(keys, n)
		w.cursor = keys[len(keys)-1]
	}
	w.try(keys)
	return nil
}

// endsEarly tells whether the keys found between two ids leave the last part of the
// way empty. Rows far apart, as when some of a table are put back, do not.
func endsEarly(keys []int64, from, to int64) bool {
	return len(keys) == 0 || keys[len(keys)-1] < to-(to-from)/4
}

// hungry tells whether nothing has been found for long.
func (w *walker) hungry() bool {
	return !w.missed.IsZero() && time.Since(w.missed) > hungryAfter
}

// patience is how long the looks may take that find nothing.
func (w *walker) patience() time.Duration {
	if w.hungry() {
		return hungryHunt
	}
	return longestHunt
}

// adjustReach is told how long a look took that found little.
func (w *walker) adjustReach(took time.Duration) {
	least := int64(shortReach)
	if w.hungry() {
		least = hungryReach
	}
	switch {
	case took < cheapLook:
		w.reach = min(w.reach*4, longReach)
	case took > dearLook:
		w.reach = w.reach / 4
	}
	w.reach = max(w.reach, least)
}

// lookRound peeks in a table that one look can span: from the cursor to the end,
// and if few are left there, at those from the beginning on as well.
func (w *walker) lookRound(ctx context.Context, window, n int) error {
	keys, err := w.table.peekFresh(ctx, w.cursor, afterAll, window)
	if err != nil {
		return err
	}
	if len(keys) == window {
		keys = wholeClaims(keys, n)
	} else {
		more, err := w.table.peekFresh(ctx, w.low, afterAll, window)
		if err != nil {
			return err
		}
		more = slices.DeleteFunc(more, func(id int64) bool { return len(keys) > 0 && id >= keys[0] })
		keys = append(more, keys...)
	}
	if len(keys) > 0 {
		w.cursor = keys[len(keys)-1]
		w.try(keys)
	}
	return nil
}

// wholeClaims leaves the keys out that would make a small last claim.
func wholeClaims(keys []int64, n int) []int64 {
	return keys[:len(keys)-len(keys)%min(n, len(keys))]
}

// try makes the keys of a look the next to be tried. After a landing without
// sight it begins anywhere among them, as others may have landed likewise.
func (w *walker) try(keys []int64) {
	if w.blind {
		w.blind = false
		from := rand.IntN(len(keys))
		w.behind = append(w.behind, keys[:from]...)
		keys = keys[from:]
	}
	w.fresh = keys
	w.window = stretch{keys[0] - 1, keys[len(keys)-1]}
}

// windowFor rounds a number of keys up to one of a few: the limit stands in the
// statement's text, and every text is prepared once on each connection.
func windowFor(keys int) int {
	window := minPeek
	for window < keys && window < maxPeek {
		window *= 2
	}
	return window
}

// jump leaves the place where somebody else is, and remembers the keys that are
// left there, tried ones among them: rows that nobody remembers are dear to find
// when they are the last.
func (w *walker) jump(tried []int64) {
	w.behind = append(append(w.behind, w.fresh...), tried...)
	if over := len(w.behind) - mostBehind; over > 0 {
		for i := 0; i < over; i += behindEdges {
			w.addEdge(w.behind[i])
		}
		w.behind = w.behind[over:]
	}
	w.fresh, w.due = nil, nil
	w.window = stretch{}
	w.nextLook = time.Time{}
	w.astray = true
	if w.span < largeSpan && w.placed {
		w.cursor, w.blind = w.low+rand.Int64N(w.high-w.low), true
	}
}
