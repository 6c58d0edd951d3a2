package registry

import (
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// attempts is how often user code is asked again because the set changed in
// the meantime. Each time, another change succeeded; only functions that
// change what they are asked about every time get anywhere near.
const attempts = 1000

// errRaced is returned by edits that found another entry than the one which
// user code had spoken about.
var errRaced = errors.New("registry: the set changed meanwhile")

// Set is an ordered set of items with unique names. Make one with [New]. It
// may be used by several goroutines and must not be copied. The package
// documentation has the rules of order, concurrency and events.
type Set[T any] struct {
	options Options[T]
	keys    *keys
	current atomic.Pointer[version[T]] // stored under mu

	mu        sync.Mutex  // gives changes their order; guards what follows
	listeners []*listener // never edited, only replaced or appended to
	scopes    int         // open Defer scopes
	pending   Change      // changes since scopes was 0
}

// New returns an empty set. It panics if Options.Name is nil.
func New[T any](options Options[T]) *Set[T] {
	s := &Set[T]{
		options: options.withDefaults(),
		keys:    &keys{fold: options.Fold, seed: maphash.MakeSeed()},
	}
	s.current.Store(new(version[T]))
	return s
}

// Len returns the number of items. It takes no lock.
func (s *Set[T]) Len() int { return s.current.Load().size }

// Get returns the item with a name. It takes no lock, and allocates only
// what Options.Fold does.
func (s *Set[T]) Get(name string) (T, bool) {
	key, hash := s.keys.of(name)
	if it := s.current.Load().index.get(key, hash); it != nil {
		return it.Value, true
	}
	var none T
	return none, false
}

// Add appends items, in their order and next to each other: all of them, or
// none if a name is taken, which is a [*DuplicateError].
func (s *Set[T]) Add(items ...T) error {
	added, err := s.newItems(items)
	if err != nil {
		return err
	}
	_, err = s.commit(func(d *draft[T]) error {
		for _, it := range added {
			if d.index.get(it.key, it.hash) != nil {
				return &DuplicateError{Name: it.Name}
			}
		}
		for _, it := range added {
			d.push(it, s.options.Ordinals.Next())
		}
		return nil
	})
	return err
}

// Remove takes out item and reports whether it was there. The name of item is
// read once; the entry under that name is taken out if it holds the same
// instance, as Options.Same has it. An item that was renamed since it was
// added is not found, [Set.RemoveName] takes it out by its old name.
func (s *Set[T]) Remove(item T) bool {
	key, hash := s.keys.of(s.options.Name(item))
	for range attempts {
		found := s.current.Load().index.get(key, hash)
		if found == nil || !s.options.Same(found.Value, item) {
			return false
		}
		if s.removeExactly(found) {
			return true
		}
	}
	return false
}

// RemoveName takes out the item with a name and reports whether there was one.
func (s *Set[T]) RemoveName(name string) bool {
	key, hash := s.keys.of(name)
	change, _ := s.commit(func(d *draft[T]) error {
		if it := d.index.get(key, hash); it != nil {
			d.remove(it)
		}
		return nil
	})
	return !change.Empty()
}

// removeExactly takes out it, unless it is gone or has a new value.
func (s *Set[T]) removeExactly(it *item[T]) bool {
	_, err := s.commit(func(d *draft[T]) error {
		if d.index.get(it.key, it.hash) != it {
			return errRaced
		}
		d.remove(it)
		return nil
	})
	return err == nil
}

// Clear takes out all items and returns how many there were.
func (s *Set[T]) Clear() int {
	change, _ := s.commit(func(d *draft[T]) error {
		d.clear()
		return nil
	})
	return change.Removed
}

// Restore appends entries of an earlier life of the set, under the names and
// ordinals they had. Ordinals must grow, be above those of all items that this
// set ever had, and not exceed 1<<62; the set's Sequence goes on after them. Sets that share a
// Sequence are restored before any of them adds an item, or the Sequence is
// made with the highest ordinal of all. On error, which is a
// [*DuplicateError] if a name is taken, nothing was restored.
func (s *Set[T]) Restore(entries []Entry[T]) error {
	restored := make([]*item[T], len(entries))
	for i, e := range entries {
		key, hash := s.keys.of(e.Name)
		restored[i] = &item[T]{Entry: e, key: key, hash: hash}
	}
	if err := distinct(restored); err != nil {
		return err
	}
	_, err := s.commit(func(d *draft[T]) error {
		last := d.last
		for _, it := range restored {
			if it.Ordinal > maxOrdinal {
				return fmt.Errorf("registry: restore %q: ordinal %d is above %d", it.Name, it.Ordinal, uint64(maxOrdinal))
			}
			if it.Ordinal <= last {
				return fmt.Errorf("registry: restore %q: ordinal %d is not above %d", it.Name, it.Ordinal, last)
			}
			if d.index.get(it.key, it.hash) != nil {
				return &DuplicateError{Name: it.Name}
			}
			last = it.Ordinal
		}
		s.options.Ordinals.skip(last)
		for _, it := range restored {
			d.push(it, it.Ordinal)
		}
		return nil
	})
	return err
}

// newItem makes an item without an ordinal. It runs user code.
func (s *Set[T]) newItem(value T) *item[T] {
	name := s.options.Name(value)
	key, hash := s.keys.of(name)
	return &item[T]{Entry: Entry[T]{Name: name, Value: value}, key: key, hash: hash}
}

// newItems makes items, none of which share a key. It runs user code.
func (s *Set[T]) newItems(values []T) ([]*item[T], error) {
	items := make([]*item[T], len(values))
	for i, value := range values {
		items[i] = s.newItem(value)
	}
	return items, distinct(items)
}

// distinct returns an error for the first item whose key another has.
func distinct[T any](items []*item[T]) error {
	if len(items) < 2 {
		return nil
	}
	seen := make(map[string]bool, len(items))
	for _, it := range items {
		if seen[it.key] {
			return &DuplicateError{Name: it.Name}
		}
		seen[it.key] = true
	}
	return nil
}
