package catalog

import (
	"cmp"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

const (
	// reserve is how many ordinals are set aside at a time, so that they need
	// not be saved one by one; what a crash loses is never used.
	reserve = 1 << 20
	// maxOrdinal is more than are ever given out; a file that has more is
	// damaged.
	maxOrdinal = 1 << 62
)

// remembered returns what the store has of servers.
func (c *Catalog) remembered(servers []ServerOptions) map[string]state.Server {
	out := make(map[string]state.Server)
	if c.opts.Store == nil {
		return out
	}
	for _, s := range servers {
		if s.PerClient {
			continue // see recall
		}
		if v, ok := c.opts.Store.Server(s.Name); ok {
			out[s.Name] = v
		}
	}
	return out
}

// restoreLocked fills new blocks with what is remembered of their servers: first
// all names, so that none is given to another, then the lists.
func (c *Catalog) restoreLocked(blocks []*block, remembered map[string]state.Server) {
	for _, b := range blocks {
		if v, ok := remembered[b.Name]; ok && v.Prefix == b.prefix {
			c.reclaimLocked(b, v)
		}
	}
	for _, b := range blocks {
		if v, ok := remembered[b.Name]; ok && v.Key == b.Key {
			c.restoreListsLocked(b, v)
		}
		if b.heard() {
			delete(c.waiting, b.Name)
		}
	}
}

// arrange gives the servers their places, saves these with the ordinals that are
// set aside, and waits for it: only then do the positions in this process mean
// the same in another one. Otherwise they mean nothing there.
func (c *Catalog) arrange(servers []ServerOptions) {
	configured := make([]string, len(servers))
	for i, s := range servers {
		configured[i] = s.Name
	}
	index := c.reorder(configured)
	if c.opts.Store == nil {
		return
	}
	c.opts.Store.SaveIndex(index)
	if err := c.opts.Store.Flush(); err != nil {
		c.log.Debug("cursors of this process end with it", "err", err)
		c.opts.Store.SaveIndex(c.secede())
	}
}

// reorder gives the servers their places.
func (c *Catalog) reorder(configured []string) state.Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.index.Epoch
	c.index = arrange(c.index, configured)
	c.alone = c.alone && c.index.Epoch == before
	c.index.Ordinals = max(c.index.Ordinals, c.ordinals.Last()+reserve)
	return c.index
}

// secede has the positions of this process mean nothing in others.
func (c *Catalog) secede() state.Index {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.alone {
		c.alone, c.index.Epoch = true, newEpoch()
	}
	return c.index
}

// reclaimLocked gives a server's names back to it. Until its lists are there,
// they are those of items that are gone.
func (c *Catalog) reclaimLocked(b *block, v state.Server) {
	for _, k := range mcp.Kinds {
		if !named(k) {
			continue
		}
		reclaim := func(own, exposed string) {
			if c.names.reclaim(k, exposed, owner{b.Name, own}) {
				b.lists[k].gone = append(b.lists[k].gone, own)
			}
		}
		for _, name := range v.Names[k.String()] {
			reclaim(name.Own, name.Exposed)
		}
		for _, item := range v.Lists[k.String()] {
			d, err := mcp.ParseDefinition(k, jsontext.Value(item.Raw))
			if err == nil {
				reclaim(d.Key, cmp.Or(item.Name, d.Key))
			}
		}
	}
}

// restoreListsLocked fills a block with a server's last good lists, under the
// ordinals that they had. It is not known how long they may be kept.
func (c *Catalog) restoreListsLocked(b *block, v state.Server) {
	for _, k := range mcp.Kinds {
		items, ok := v.Lists[k.String()]
		if !ok {
			continue
		}
		entries := make([]registry.Entry[*Entry], 0, len(items))
		for _, item := range items {
			d, err := mcp.ParseDefinition(k, jsontext.Value(item.Raw))
			if err != nil {
				continue
			}
			e, err := c.entryLocked(b, d)
			if err != nil || !named(k) && !b.private && !c.names.claim(k, e.key(), owner{b.Name, e.key()}) {
				continue
			}
			entries = append(entries, registry.Entry[*Entry]{Ordinal: item.Ordinal, Name: e.Own, Value: e})
		}
		l := &b.lists[k]
		before := l.items.Snapshot()
		if err := l.items.Restore(entries); err != nil {
			c.log.Warn("remembered list not used", "server", b.Name, "kind", k.String(), "err", err)
			continue
		}
		l.listed = true
		if len(entries) > 0 {
			c.followLocked(b, k, before)
		}
	}
}

// reserveLocked saves the index when the ordinals set aside are running out,
// long before they have.
func (c *Catalog) reserveLocked() {
	if c.index.Ordinals < c.ordinals.Last()+reserve/2 {
		c.index.Ordinals = c.ordinals.Last() + reserve
		c.opts.Store.SaveIndex(c.index)
	}
}

// saveLocked has a server's lists and names written to the store.
func (c *Catalog) saveLocked(b *block) {
	if c.opts.Store == nil {
		return
	}
	c.reserveLocked()
	v := state.Server{
		Name: b.Name, Principal: b.principal, Key: b.from, Prefix: b.prefix,
		Lists: make(map[string][]state.Item), Names: make(map[string][]state.Name),
	}
	for _, k := range mcp.Kinds {
		l := &b.lists[k]
		for _, key := range l.gone {
			v.Names[k.String()] = append(v.Names[k.String()], state.Name{Own: key, Exposed: c.names.given[k][owner{b.Name, key}]})
		}
		if !l.listed {
			continue
		}
		items := make([]state.Item, 0, l.items.Len())
		for _, e := range l.items.Snapshot().All() {
			item := state.Item{Ordinal: e.Ordinal, Raw: state.Text(e.Value.raw)}
			if e.Value.Exposed != e.Value.Own {
				item.Name = e.Value.Exposed
			}
			items = append(items, item)
		}
		v.Lists[k.String()] = items
	}
	c.opts.Store.SaveServer(v)
}
