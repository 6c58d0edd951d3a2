package registry

// Batch collects the changes of one [Set.Update]. It shows the set as its own
// changes leave it. It is not for use by several goroutines, nor after the
// function it was given to returned.
type Batch[T any] struct {
	set     *Set[T]
	view    *node[T] // what the set will hold, as far as the batch can tell
	cleared bool     // view says nothing about the set any more
	read    map[string]finding[T]
	steps   []step[T]
}

// finding is what the set held under a key when the batch first looked.
type finding[T any] struct {
	hash uint64
	item *item[T] // nil: nothing
}

// step is one change, to be made again on the version that is current when
// the batch is committed.
type step[T any] struct {
	action action
	item   *item[T]
}

type action int

const (
	push action = iota
	overwrite
	remove
	clearAll
)

// Update runs f and then makes all changes f asked for at once: no reader
// sees a part of them, neither in the list nor by name, and there is one
// event for all of them. If f fails, nothing happens and its error is
// returned. If f panics, nothing happens.
//
// F runs outside the lock. If another change touched a name that f had looked
// at or changed, f is run again on a new batch, so its only effects should be
// those on the batch and on variables it sets anew. Other names may change
// freely in the meantime. Only an f that is outrun a thousand times, in
// practice one that changes the set behind its own batch, gets [ErrConflict].
func (s *Set[T]) Update(f func(*Batch[T]) error) error {
	for range attempts {
		b := &Batch[T]{set: s, view: s.current.Load().index, read: make(map[string]finding[T])}
		if err := f(b); err != nil {
			return err
		}
		if _, err := s.commit(b.apply); err == nil {
			return nil
		}
	}
	return ErrConflict
}

// Get returns the item with a name.
func (b *Batch[T]) Get(name string) (T, bool) {
	if it := b.find(b.set.keys.of(name)); it != nil {
		return it.Value, true
	}
	var none T
	return none, false
}

// Add appends items: all of them, or none if a name is taken, which is a
// [*DuplicateError]. The function of the Update decides whether that fails
// the batch.
func (b *Batch[T]) Add(items ...T) error {
	added, err := b.set.newItems(items)
	if err != nil {
		return err
	}
	for _, it := range added {
		if b.find(it.key, it.hash) != nil {
			return &DuplicateError{Name: it.Name}
		}
	}
	for _, it := range added {
		b.put(push, it)
	}
	return nil
}

// Set gives the entry under item's name the value item, in the same place and
// under the same ordinal, or appends item if there is none. If the value there
// is Equal, nothing changes.
func (b *Batch[T]) Set(item T) {
	it := b.set.newItem(item)
	found := b.find(it.key, it.hash)
	if found != nil && b.set.options.Equal(found.Value, item) {
		return
	}
	if b.find(it.key, it.hash) == nil {
		b.put(push, it)
	} else {
		b.put(overwrite, it)
	}
}

// Remove takes out item and reports whether it was there, as [Set.Remove] does.
func (b *Batch[T]) Remove(item T) bool {
	found := b.find(b.set.keys.of(b.set.options.Name(item)))
	return found != nil && b.set.options.Same(found.Value, item) && b.drop(found)
}

// RemoveName takes out the item with a name and reports whether there was one.
func (b *Batch[T]) RemoveName(name string) bool {
	found := b.find(b.set.keys.of(name))
	return found != nil && b.drop(found)
}

// Clear takes out all items, also those that others add before the batch is
// committed.
func (b *Batch[T]) Clear() {
	b.view, b.cleared = nil, true
	b.steps = append(b.steps, step[T]{action: clearAll})
}

// find returns what is under a key, and notes it if that came from the set.
func (b *Batch[T]) find(key string, hash uint64) *item[T] {
	it := b.view.get(key, hash)
	if _, known := b.read[key]; !known && !b.cleared {
		b.read[key] = finding[T]{hash: hash, item: it}
	}
	return it
}

func (b *Batch[T]) put(a action, it *item[T]) {
	b.view = b.view.put(it, 0)
	b.steps = append(b.steps, step[T]{action: a, item: it})
}

// drop takes out it, unless user code that was asked about it already did.
func (b *Batch[T]) drop(it *item[T]) bool {
	if b.view.get(it.key, it.hash) != it {
		return false
	}
	b.view = b.view.remove(it, 0)
	b.steps = append(b.steps, step[T]{action: remove, item: it})
	return true
}

// apply makes the changes under the lock, if all that was read still holds.
// Since every step looked up its key first, or followed a Clear, no step can
// fail then.
func (b *Batch[T]) apply(d *draft[T]) error {
	for key, was := range b.read {
		if d.index.get(key, was.hash) != was.item {
			return errRaced
		}
	}
	for _, st := range b.steps {
		switch st.action {
		case push:
			d.push(st.item, b.set.options.Ordinals.Next())
		case overwrite:
			d.overwrite(d.index.get(st.item.key, st.item.hash), st.item)
		case remove:
			d.remove(d.index.get(st.item.key, st.item.hash))
		case clearAll:
			d.clear()
		}
	}
	return nil
}
