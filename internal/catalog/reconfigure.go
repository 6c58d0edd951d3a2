package catalog

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
)

// coming are servers whose lists wait for Reconfigure. A nil one has none.
type coming struct {
	servers map[string]bool // true: not heard of yet
	unheard int
	all     chan struct{} // closed when all are heard of
}

func (c *coming) has(server string) bool {
	if c == nil {
		return false
	}
	_, ok := c.servers[server]
	return ok
}

func (c *coming) heard(server string) {
	if c == nil || !c.servers[server] {
		return
	}
	c.servers[server] = false
	if c.unheard--; c.unheard == 0 {
		close(c.all)
	}
}

// Expect keeps the lists that these servers give until the next Reconfigure, so
// that they become visible together with what it changes. The servers may be new
// or there already. The channel is closed when each of them has given lists or is
// heard of, see [Catalog.Heard].
func (c *Catalog) Expect(servers []string) <-chan struct{} {
	next := &coming{servers: make(map[string]bool), all: make(chan struct{})}
	for _, name := range servers {
		next.servers[name] = true
	}
	if next.unheard = len(next.servers); next.unheard == 0 {
		close(next.all)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.coming = next
	return next.all
}

// Reconfigure makes the catalog one of these servers, given in the order of the
// configuration, in one step that readers see whole. Servers that stay keep
// their lists until they give others, whatever has changed in how they are
// reached; those that come bring what the store remembers of them, and what they
// have given since [Catalog.Expect]. If those that stay are in another order than
// they were, cursors from before are refused. It reports whether a Fingerprint is
// another now.
//
// It waits until the order is saved, as New does. It must come after Ready is
// closed, and from one goroutine at a time.
func (c *Catalog) Reconfigure(servers []ServerOptions) (changed bool) {
	servers = c.distinct(servers)
	c.arrange(servers)
	remembered := c.remembered(c.strangers(servers))
	return c.change(func() { c.reconfigureLocked(servers, remembered) })
}

// strangers returns those of the servers that the catalog does not have.
func (c *Catalog) strangers(servers []ServerOptions) []ServerOptions {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []ServerOptions
	for _, s := range servers {
		if c.blockLocked(s.Name) == nil {
			out = append(out, s)
		}
	}
	return out
}

func (c *Catalog) reconfigureLocked(servers []ServerOptions, remembered map[string]state.Server) {
	places := placesOf(c.index)
	c.epoch = c.index.Epoch
	before := c.blocks
	c.blocks = nil
	var fresh, remade []*block
	for _, s := range servers {
		i := slices.IndexFunc(before, func(b *block) bool { return b.Name == s.Name && b.PerClient == s.PerClient })
		if i < 0 {
			b := newBlock(s, places[s.Name], c.ordinals)
			fresh, c.blocks = append(fresh, b), append(c.blocks, b)
			continue
		}
		b := before[i]
		c.blocks = append(c.blocks, b)
		if c.adoptLocked(b, s, places[s.Name]) {
			remade = append(remade, b)
		}
	}
	for _, b := range before {
		if !slices.Contains(c.blocks, b) {
			c.dropLocked(b)
		}
	}
	for _, b := range remade {
		c.remakeLocked(b)
	}
	c.reconfigurePrivateLocked()
	c.restoreLocked(fresh, remembered)
	for _, b := range c.blocks {
		if lists, ok := c.early[b.Name]; ok {
			c.applyLocked(b, lists)
		}
	}
	clear(c.early)
	c.coming = nil
	for _, k := range mcp.Kinds {
		c.pending.views[k] = true
	}
}

// reconfigurePrivateLocked does the same for what servers that run per client have
// listed.
func (c *Catalog) reconfigurePrivateLocked() {
	var remade []*block
	keep := func(b *block) bool {
		shared := c.blockLocked(b.Name)
		if shared == nil || !shared.PerClient {
			c.dropLocked(b)
			return false
		}
		if c.adoptLocked(b, shared.ServerOptions, shared.lists[0].part.place) {
			remade = append(remade, b)
		}
		return true
	}
	maps.DeleteFunc(c.known, func(of known, b *block) bool {
		kept := keep(b)
		if !kept {
			delete(c.recalled, of)
		}
		return !kept
	})
	for _, kin := range c.kin {
		kin.changes.Add(1)
	}
	for cl := range c.clients {
		maps.DeleteFunc(cl.blocks, func(_ string, b *block) bool { return !keep(b) })
		cl.alone.Store(len(cl.blocks) > 0)
		cl.changes.Add(1)
		clear(cl.waiting)
		cl.openIfHeardLocked()
	}
	for _, b := range remade {
		c.remakeLocked(b)
	}
}

// adoptLocked takes over what has changed about a server that stays. It reports
// whether its entries must be made anew; if their names are others, too, it has
// given up those that they have.
func (c *Catalog) adoptLocked(b *block, s ServerOptions, place uint64) (remake bool) {
	prefix := s.prefix()
	renamed, rewired := prefix != b.prefix, s.HTTP != b.HTTP
	b.ServerOptions, b.prefix = s, prefix
	for _, k := range mcp.Kinds {
		if renamed || b.lists[k].part.place != place {
			c.showLocked(b, k, func(p *part) { p.place, p.prefix = place, prefix })
		}
		if renamed && named(k) {
			c.releaseLocked(b, k)
		}
	}
	return renamed || rewired
}

// releaseLocked lets others have the names of a block's items.
func (c *Catalog) releaseLocked(b *block, k mcp.Kind) {
	l := &b.lists[k]
	for _, e := range l.items.Snapshot().All() {
		c.names.release(k, owner{b.Name, e.Value.key()})
	}
	for _, key := range l.gone {
		c.names.release(k, owner{b.Name, key})
	}
	l.gone = nil
}

// remakeLocked makes a block's entries anew of what the server wrote.
func (c *Catalog) remakeLocked(b *block) {
	for _, k := range mcp.Kinds {
		l := &b.lists[k]
		l.last = 0 // the next list is looked at, even if it is the same
		before := l.items.Snapshot()
		entries := make([]*Entry, 0, before.Len())
		for _, old := range before.All() {
			e, err := c.remadeLocked(b, k, old.Value)
			if err != nil {
				l.refused.add(old.Value.Own, err.Error())
				continue
			}
			entries = append(entries, e)
		}
		if _, err := l.items.Replace(entries); err != nil { // their keys were different before
			c.log.Error("list not made anew", "server", b.Name, "kind", k.String(), "err", err)
			continue
		}
		c.followLocked(b, k, before)
		c.noteLocked(b, k)
	}
}

func (c *Catalog) remadeLocked(b *block, k mcp.Kind, old *Entry) (*Entry, error) {
	d, err := mcp.ParseDefinition(k, jsontext.Value(old.raw))
	if err != nil {
		return nil, err
	}
	return c.entryLocked(b, d)
}

// dropLocked takes a server's items away. What the store has of it stays, for
// when it comes back.
func (c *Catalog) dropLocked(b *block) {
	for _, k := range mcp.Kinds {
		for _, e := range b.lists[k].items.Snapshot().All() {
			if !b.private {
				c.pending.gone[k] = append(c.pending.gone[k], e.Value)
			}
		}
		if b.private && !named(k) {
			continue
		}
		c.releaseLocked(b, k)
		c.pending.freed[k] = c.pending.freed[k] || !named(k)
	}
}
