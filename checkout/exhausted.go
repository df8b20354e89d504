package checkout

import (
	"math/rand/v2"
	"slices"
)

// stretch is the ids from after First up to Last.
type stretch struct{ First, Last int64 }

// exhausted remembers where a walker has seen that no fresh key is left, so that it
// neither lands there nor looks there again: while somebody holds an old snapshot,
// each look wades through the index entries of all rows that were finished there.
// Rows put back meanwhile are met after [walker.forget].
type exhausted []stretch // in order, apart from each other

// mostStretches bounds what is remembered.
const mostStretches = 256

// add notes that no fresh key is left from after first up to last.
func (e *exhausted) add(first, last int64) {
	if last <= first {
		return
	}
	all := *e
	i, _ := slices.BinarySearchFunc(all, first, func(s stretch, id int64) int {
		if s.Last < id {
			return -1
		}
		return 1
	})
	j := i
	for ; j < len(all) && all[j].First <= last; j++ {
		first, last = min(first, all[j].First), max(last, all[j].Last)
	}
	all = slices.Replace(all, i, j, stretch{first, last})
	if len(all) > mostStretches {
		all = slices.Delete(all, 0, 1)
	}
	*e = all
}

// beyond returns the first id from which on it is worth looking.
func (e exhausted) beyond(id int64) int64 {
	for _, s := range e {
		if s.First <= id && id < s.Last {
			return s.Last
		}
	}
	return id
}

// has tells whether id lies in an exhausted stretch.
func (e exhausted) has(id int64) bool { return e.beyond(id-1) != id-1 }

// next returns where the next exhausted stretch above id begins, or afterAll.
func (e exhausted) next(id int64) int64 {
	for _, s := range e {
		if s.First >= id {
			return s.First
		}
	}
	return afterAll
}

// left returns how many ids from after low up to high are not exhausted.
func (e exhausted) left(low, high int64) int64 {
	left := high - low
	for _, s := range e {
		left -= max(0, min(s.Last, high)-max(s.First, low))
	}
	return left
}

// somewhere returns a random place from low up to high, after which an id follows
// that is not exhausted, if there is one.
func (e exhausted) somewhere(low, high int64) (after int64, ok bool) {
	left := e.left(low, high)
	if left <= 0 {
		return 0, false
	}
	id := low + rand.Int64N(left)
	for _, s := range e {
		if s.Last > low && s.First <= id {
			id += s.Last - max(s.First, low)
		}
	}
	return min(id, high-1), true
}
