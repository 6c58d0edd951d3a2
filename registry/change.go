package registry

import "slices"

// Change counts what one or more changes did. The zero value is no change.
type Change struct {
	Added   int // items that are new, or came back
	Updated int // values replaced in place
	Removed int
}

// Empty reports whether nothing was changed.
func (c Change) Empty() bool { return c == Change{} }

func (c Change) plus(d Change) Change {
	return Change{c.Added + d.Added, c.Updated + d.Updated, c.Removed + d.Removed}
}

// listener is a function with an identity, so that it can be found again.
type listener struct{ tell func(Change) }

// OnChange has f called after each change, on the goroutine that made it, or
// after a scope of [Set.Defer], on the goroutine that ended it. Calls may
// overlap. A panic of f reaches that goroutine, after the other listeners
// were told; the change stands. Stop ends it, and may be called more than
// once; an event that was already on its way may still arrive.
func (s *Set[T]) OnChange(f func(Change)) (stop func()) {
	l := &listener{tell: f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(slices.Clip(s.listeners), l)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		// A new slice: others may be reading the old one.
		s.listeners = slices.DeleteFunc(slices.Clone(s.listeners), func(other *listener) bool { return other == l })
	}
}

// Defer opens a scope: until it ends, changes by any goroutine are visible at
// once but not announced. Scopes nest and overlap; when the last one ends,
// one event says what happened in all of them, if anything did. End may be
// called more than once and by any goroutine. Deferring end lets an early
// return or a panic announce what had changed:
//
//	end := set.Defer()
//	defer end()
func (s *Set[T]) Defer() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes++
	open := true // guarded by s.mu
	return func() {
		s.mu.Lock()
		var change Change
		if open {
			open = false
			if s.scopes--; s.scopes == 0 {
				change, s.pending = s.pending, Change{}
			}
		}
		listeners := s.listeners
		s.mu.Unlock()
		announce(listeners, change)
	}
}

// commit is the one way to change a set. It makes the next version with edit,
// under the lock, and announces it after. If edit fails or changes nothing,
// nothing happened. Edit must not run user code.
func (s *Set[T]) commit(edit func(*draft[T]) error) (Change, error) {
	change, listeners, err := s.publish(edit)
	announce(listeners, change)
	return change, err
}

// publish is commit without the announcement. It returns the listeners to
// tell: none while a scope is open.
func (s *Set[T]) publish(edit func(*draft[T]) error) (Change, []*listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.current.Load().draft()
	if err := edit(d); err != nil {
		return Change{}, nil, err
	}
	if d.change.Empty() {
		return Change{}, nil, nil
	}
	s.current.Store(d.version())
	if s.scopes > 0 {
		s.pending = s.pending.plus(d.change)
		return d.change, nil, nil
	}
	return d.change, s.listeners, nil
}

// announce tells the listeners in order. Those behind one that panics are told
// while the panic passes through.
func announce(listeners []*listener, change Change) {
	if len(listeners) == 0 || change.Empty() {
		return
	}
	defer announce(listeners[1:], change)
	listeners[0].tell(change)
}
