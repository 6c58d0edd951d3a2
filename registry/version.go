package registry

import "sync/atomic"

// item is an entry together with its key. Once published it is never edited.
type item[T any] struct {
	Entry[T]
	key  string
	hash uint64 // of key
}

// contents are what a set holds: an index for lookups, and a log that keeps
// the order.
//
// Contents share the log's array with older ones: an append writes behind the
// end of every published log. So a log is appended to or built anew, and
// never edited or cut.
type contents[T any] struct {
	index *node[T]
	size  int        // items in index
	log   []*item[T] // by ordinal; may still have items that index has no longer
	stale int        // removals and new values that log does not show; 0: log is the list
	last  uint64     // the highest ordinal an item ever had
}

// list returns the items in order. It takes O(1) if nothing was removed or
// replaced since log was built, else O(n).
func (c *contents[T]) list() []*item[T] {
	if c.stale == 0 {
		return c.log[:len(c.log):len(c.log)]
	}
	live := make([]*item[T], 0, c.size)
	for _, it := range c.log {
		if now := c.index.get(it.key, it.hash); now != nil && now.Ordinal == it.Ordinal {
			live = append(live, now)
		}
	}
	return live
}

// version is published contents, with their list once somebody asked for it.
type version[T any] struct {
	contents[T]
	snapshot atomic.Pointer[Snapshot[T]]
}

// draft is the contents that will follow, while they are being made under the
// lock.
type draft[T any] struct {
	contents[T]
	change Change
}

// draft returns the beginning of the version after v. If a reader already
// built the list of v, the draft goes on from that.
func (v *version[T]) draft() *draft[T] {
	d := &draft[T]{contents: v.contents}
	if d.stale > 0 {
		if s := v.snapshot.Load(); s != nil {
			d.log, d.stale = s.items, 0
		}
	}
	return d
}

// push appends it, whose key must be free, under a new ordinal.
func (d *draft[T]) push(it *item[T], ordinal uint64) {
	it.Ordinal = ordinal
	d.last = ordinal
	d.index = d.index.put(it, 0)
	d.log = append(d.log, it)
	d.size++
	d.change.Added++
}

// overwrite puts it in the place of old, under the same key.
func (d *draft[T]) overwrite(old, it *item[T]) {
	it.Ordinal = old.Ordinal
	d.index = d.index.put(it, 0)
	d.stale++
	d.change.Updated++
}

// remove takes out it, which must be there.
func (d *draft[T]) remove(it *item[T]) {
	d.index = d.index.remove(it, 0)
	d.size--
	d.stale++
	d.change.Removed++
}

// clear takes out everything.
func (d *draft[T]) clear() {
	d.change.Removed += d.size
	d.index, d.size, d.log, d.stale = nil, 0, nil, 0
}

// version closes the draft. Rebuilding a log that is mostly stale is paid for
// by the changes that made it so.
func (d *draft[T]) version() *version[T] {
	if d.stale > len(d.log)/2 {
		d.log, d.stale = d.list(), 0
	}
	return &version[T]{contents: d.contents}
}
