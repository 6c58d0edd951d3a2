package registry

import (
	"iter"
	"sort"
)

// Entry is an item as a set holds it.
type Entry[T any] struct {
	Ordinal uint64 // when it was added: above those of all items before it, never 0
	Name    string // as it was when the value was put in
	Value   T
}

// Snapshot is what a set held at one moment: list and lookup of the same
// version. It never changes.
type Snapshot[T any] struct {
	items []*item[T]
	index *node[T]
	keys  *keys
}

// Snapshot returns what the set holds now. It takes no lock. While the set
// does not change it returns the same pointer, without an allocation; the
// first call after items were removed or given new values takes O(n).
func (s *Set[T]) Snapshot() *Snapshot[T] {
	v := s.current.Load()
	if made := v.snapshot.Load(); made != nil {
		return made
	}
	v.snapshot.CompareAndSwap(nil, &Snapshot[T]{items: v.list(), index: v.index, keys: s.keys})
	return v.snapshot.Load()
}

// Len returns the number of entries.
func (s *Snapshot[T]) Len() int { return len(s.items) }

// At returns entry i, counted from 0 in order of registration. It panics if
// there is none, as an index into a slice does.
func (s *Snapshot[T]) At(i int) Entry[T] { return s.items[i].Entry }

// All yields the entries in order, each with its index.
func (s *Snapshot[T]) All() iter.Seq2[int, Entry[T]] {
	return func(yield func(int, Entry[T]) bool) {
		for i, it := range s.items {
			if !yield(i, it.Entry) {
				return
			}
		}
	}
}

// After returns the index of the first entry with an ordinal above the given
// one, or Len if there is none, in O(log n). The entry with that ordinal need
// not be there any more: a walk that remembers the last ordinal it returned
// goes on at the right place.
func (s *Snapshot[T]) After(ordinal uint64) int {
	return sort.Search(len(s.items), func(i int) bool { return s.items[i].Ordinal > ordinal })
}

// Lookup returns the entry under a name.
func (s *Snapshot[T]) Lookup(name string) (Entry[T], bool) {
	if it := s.index.get(s.keys.of(name)); it != nil {
		return it.Entry, true
	}
	return Entry[T]{}, false
}

// Items returns the values in order, in a slice that is the caller's own.
func (s *Snapshot[T]) Items() []T {
	values := make([]T, len(s.items))
	for i, it := range s.items {
		values[i] = it.Value
	}
	return values
}

// Names returns the names in order, in a slice that is the caller's own.
func (s *Snapshot[T]) Names() []string {
	names := make([]string, len(s.items))
	for i, it := range s.items {
		names[i] = it.Name
	}
	return names
}

// Entries returns the entries in order, in a slice that is the caller's own:
// what [Set.Restore] takes.
func (s *Snapshot[T]) Entries() []Entry[T] {
	entries := make([]Entry[T], len(s.items))
	for i, it := range s.items {
		entries[i] = it.Entry
	}
	return entries
}
