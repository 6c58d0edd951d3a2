package registry

import "sync/atomic"

// Sequence gives out ordinals: 1, 2, 3 and so on, each once. Several sets may
// share one, so that an ordinal says which of their items is older. The zero
// value is ready for use. A Sequence may be used by several goroutines and must not be
// copied.
type Sequence struct {
	last atomic.Uint64
}

// NewSequence returns a sequence that goes on after last: its first ordinal
// is last+1. Who reads last from a file checks it first; a sequence that
// begins near the end of uint64 starts over at 0.
func NewSequence(last uint64) *Sequence {
	q := new(Sequence)
	q.last.Store(last)
	return q
}

// maxOrdinal bounds restored ordinals, so that a damaged file cannot bring a
// sequence near its end.
const maxOrdinal = 1 << 62

// Next returns an ordinal that is higher than all before it.
func (q *Sequence) Next() uint64 { return q.last.Add(1) }

// Last returns the highest ordinal given out so far. An item with a higher
// one is added after the call to Last.
func (q *Sequence) Last() uint64 { return q.last.Load() }

// skip makes Next return ordinals above to.
func (q *Sequence) skip(to uint64) {
	for {
		last := q.last.Load()
		if last >= to || q.last.CompareAndSwap(last, to) {
			return
		}
	}
}
