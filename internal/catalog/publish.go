package catalog

import (
	"slices"

	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// changes are what is still to be published and saved of a change.
type changes struct {
	opens   bool      // the first lists are complete
	apart   bool      // what some clients see apart is another now
	clients []*Client // those whose first lists are complete
	views   [len(mcp.Kinds)]bool
	come    [len(mcp.Kinds)][]*Entry // entries that are new, or take another's place
	gone    [len(mcp.Kinds)][]*Entry // those that went
	freed   [len(mcp.Kinds)]bool     // a URI has lost its owner
	blocks  []*block                 // to be saved
}

// save has a block saved, unless it is another's copy.
func (p *changes) save(b *block) {
	if b.private && !b.kept {
		return
	}
	if !slices.Contains(p.blocks, b) { // there is more than one only at the start
		p.blocks = append(p.blocks, b)
	}
}

// followLocked does what follows from a change of a block's items, which were
// before: it takes time in proportion to the items of that block.
func (c *Catalog) followLocked(b *block, k mcp.Kind, before *registry.Snapshot[*Entry]) {
	l := &b.lists[k]
	now := l.items.Snapshot()
	for _, e := range now.All() {
		if old, ok := before.Lookup(e.Name); !b.private && (!ok || old.Value != e.Value) {
			c.pending.come[k] = append(c.pending.come[k], e.Value)
		}
	}
	l.gone = slices.DeleteFunc(l.gone, func(key string) bool {
		_, back := now.Lookup(key)
		return back
	})
	for _, old := range before.All() {
		e, still := now.Lookup(old.Name)
		if still && e.Value == old.Value {
			continue
		}
		if !b.private {
			c.pending.gone[k] = append(c.pending.gone[k], old.Value)
		}
		switch {
		case still:
		case named(k):
			l.gone = append(l.gone, old.Value.key())
		case !b.private:
			c.names.release(k, owner{b.Name, old.Value.key()})
			c.pending.freed[k] = true
		}
	}
	c.forgetLocked(b, k)
	sums := sum(now)
	c.showLocked(b, k, func(p *part) { p.items, p.sums = now, sums })
	c.pending.save(b)
}

// maxGone is how many names of items that are gone are kept, per server and
// kind.
const maxGone = 10_000

// forgetLocked gives up the names of the items that are gone for longest.
func (c *Catalog) forgetLocked(b *block, k mcp.Kind) {
	l := &b.lists[k]
	if b.private && !b.kept { // the names are those of what is kept
		l.gone = nil
	}
	for len(l.gone) > maxGone {
		c.names.release(k, owner{b.Name, l.gone[0]})
		l.gone = l.gone[1:]
	}
}

// showLocked has another part of a block published.
func (c *Catalog) showLocked(b *block, k mcp.Kind, edit func(*part)) {
	p := *b.lists[k].part
	edit(&p)
	b.lists[k].part = &p
	if !b.private {
		c.pending.views[k] = true
	}
}

// publishLocked shows readers all that has changed, kind by kind in one step,
// and has it saved. It reports whether a fingerprint is another now.
func (c *Catalog) publishLocked() (changed bool) {
	for _, k := range mcp.Kinds {
		if c.pending.freed[k] {
			c.admitLocked(k)
		}
	}
	p := c.pending
	c.pending = changes{}
	changed = p.apart
	for _, k := range mcp.Kinds {
		if !p.views[k] {
			continue
		}
		c.expose(k, func(b *registry.Batch[*Entry]) {
			for _, e := range p.come[k] {
				b.Set(e)
			}
		})
		now := c.viewLocked(k)
		was := c.views[k].Swap(now)
		changed = changed || was == nil || was.sums != now.sums
		c.expose(k, func(b *registry.Batch[*Entry]) {
			for _, e := range p.gone[k] {
				b.Remove(e) // if nobody else has the name now
			}
		})
	}
	for _, b := range p.blocks {
		c.saveLocked(b)
	}
	if p.opens {
		for _, k := range mcp.Kinds {
			c.first[k] = c.views[k].Load().sums
		}
		close(c.opened)
	}
	for _, cl := range p.clients {
		for _, k := range mcp.Kinds {
			cl.first[k] = cl.seeLocked(k).sums
		}
		close(cl.opened)
	}
	return changed
}

// expose changes the table of exposed names.
func (c *Catalog) expose(k mcp.Kind, f func(*registry.Batch[*Entry])) {
	err := c.exposed[k].Update(func(b *registry.Batch[*Entry]) error {
		f(b)
		return nil
	})
	if err != nil { // nobody else changes it
		c.log.Error("names not published", "kind", k.String(), "err", err)
	}
}

// admitLocked lists the hidden items whose URIs nobody has any more, in the
// order of the servers.
func (c *Catalog) admitLocked(k mcp.Kind) {
	for _, b := range c.blocks {
		l := &b.lists[k]
		if len(l.hidden) == 0 {
			continue
		}
		before := l.items.Snapshot()
		var still, admitted []*Entry
		for _, e := range l.hidden {
			if c.names.claim(k, e.key(), owner{b.Name, e.key()}) {
				admitted = append(admitted, e)
			} else {
				still = append(still, e)
			}
		}
		if len(admitted) > 0 {
			if err := l.items.Add(admitted...); err != nil { // hidden items are not among those listed
				c.log.Error("items not listed", "server", b.Name, "kind", k.String(), "err", err)
				continue
			}
			l.hidden = still
			c.followLocked(b, k, before)
		}
		c.noteLocked(b, k) // the others may have another owner
	}
}
