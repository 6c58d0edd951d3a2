package registry

// comparison is what Options.Equal said about an item and the entry it found
// under its key.
type comparison[T any] struct {
	with  *item[T] // nil: there was none
	equal bool
}

// Replace makes the set hold items, with the smallest change that does: an
// item that is Equal to the entry under its name leaves that entry as it is,
// one with other content gives it a new value in the same place, entries
// without an item go, and newcomers follow at the end in their order. Readers
// see all of it at once. If there is nothing to do, there is no event.
//
// Two items with the same name are a [*DuplicateError], and change nothing.
func (s *Set[T]) Replace(items []T) (Change, error) {
	wanted, err := s.newItems(items)
	if err != nil {
		return Change{}, err
	}
	keep := make(map[string]bool, len(wanted))
	for _, it := range wanted {
		keep[it.key] = true
	}
	compared := make([]comparison[T], len(wanted))
	for attempt := 1; ; attempt++ {
		s.compare(wanted, compared)
		change, err := s.commit(func(d *draft[T]) error {
			// When it was in vain too often, an entry nobody compared
			// counts as different: that is never wrong, only less quiet.
			if attempt < attempts && !upToDate(d, wanted, compared) {
				return errRaced
			}
			s.replaceLocked(d, wanted, compared, keep)
			return nil
		})
		if err == nil {
			return change, nil
		}
	}
}

// compare brings the comparisons of wanted up to date with the set. It runs
// user code.
func (s *Set[T]) compare(wanted []*item[T], compared []comparison[T]) {
	now := s.current.Load()
	for i, it := range wanted {
		found := now.index.get(it.key, it.hash)
		if found == compared[i].with {
			continue
		}
		compared[i] = comparison[T]{with: found}
		if found != nil {
			compared[i].equal = s.options.Equal(found.Value, it.Value)
		}
	}
}

// upToDate reports whether each wanted item was compared with what is there
// now.
func upToDate[T any](d *draft[T], wanted []*item[T], compared []comparison[T]) bool {
	for i, it := range wanted {
		if d.index.get(it.key, it.hash) != compared[i].with {
			return false
		}
	}
	return true
}

func (s *Set[T]) replaceLocked(d *draft[T], wanted []*item[T], compared []comparison[T], keep map[string]bool) {
	for _, it := range d.list() {
		if !keep[it.key] {
			d.remove(it)
		}
	}
	for i, it := range wanted {
		switch found := d.index.get(it.key, it.hash); {
		case found == nil:
			d.push(it, s.options.Ordinals.Next())
		case found != compared[i].with || !compared[i].equal:
			d.overwrite(found, it)
		}
	}
}
