package catalog

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// Client is the catalog as one client sees it for whom some servers run apart:
// what these list stands where the others see nothing, in the same place and under
// the same names. A server that has not listed anything for this client yet shows
// what it listed last for any client of the same principal. Its methods may be
// called concurrently; those that read take no lock but for the first time after
// a change.
type Client struct {
	catalog   *Catalog
	principal string
	opened    chan struct{}
	first     [len(mcp.Kinds)][2]uint64 // fingerprints when opened was closed; read behind that
	// kin sees what every client of the principal does for which no server has listed
	// anything yet, so that those share views and pages; nil for itself. alone: there
	// are such lists.
	kin   *Client
	alone atomic.Bool

	changes atomic.Uint64 // of what is shown beside the shared servers
	sights  [len(mcp.Kinds)]atomic.Pointer[sight]

	// The fields below are guarded by the catalog's lock.
	isOpen  bool
	blocks  map[string]*block // what servers have listed for this client, by name
	early   map[string]Lists
	waiting map[string]bool // servers without any list for it, not heard of yet
}

// known says whose last lists are kept.
type known struct{ server, principal string }

// sight is one list as a client sees it at one moment.
type sight struct {
	*view
	base    *view // of the shared servers, and the changes that it is made of
	changes uint64
	own     map[string]*Entry // what the client's servers list, by exposed name
}

// PerClient reports whether there are servers that run for each client apart.
func (c *Catalog) PerClient() bool { return c.views[mcp.Tools].Load().perClient }

// Join returns the catalog for a client of a principal; "" is anybody. Leave ends
// it.
func (c *Catalog) Join(principal string) *Client {
	c.recall(principal)
	cl := &Client{
		catalog: c, principal: principal, opened: make(chan struct{}),
		blocks: make(map[string]*block), early: make(map[string]Lists), waiting: make(map[string]bool),
	}
	c.change(func() {
		if cl.kin = c.kin[principal]; cl.kin == nil {
			cl.kin = &Client{catalog: c, principal: principal}
			c.kin[principal] = cl.kin
		}
		c.clients[cl] = struct{}{}
		for _, b := range c.blocks {
			if b.PerClient && c.known[known{b.Name, principal}] == nil {
				cl.waiting[b.Name] = true
			}
		}
		cl.openIfHeardLocked()
	})
	return cl
}

// Leave says that the client is gone. What its servers listed is still kept for
// others of its principal.
func (cl *Client) Leave() {
	c := cl.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, cl)
}

// Recall shows the client what the store remembers of servers that have come since
// Join.
func (cl *Client) Recall() { cl.catalog.recall(cl.principal) }

// recall reads what the store has of a principal's last lists, once.
func (c *Catalog) recall(principal string) {
	if c.opts.Store == nil {
		return
	}
	c.mu.Lock()
	var missing []string
	for _, b := range c.blocks {
		if b.PerClient && !c.recalled[known{b.Name, principal}] {
			missing = append(missing, b.Name)
		}
	}
	c.mu.Unlock()
	for _, name := range missing {
		v, ok := c.opts.Store.ServerOf(name, principal)
		c.change(func() { c.recallLocked(known{name, principal}, v, ok) })
	}
}

func (c *Catalog) recallLocked(of known, v state.Server, ok bool) {
	b := c.blockLocked(of.server)
	if c.recalled[of] || b == nil {
		return
	}
	c.recalled[of] = true
	if !ok || c.known[of] != nil {
		return
	}
	k := c.newPrivateLocked(b, of.principal, true)
	if v.Prefix == k.prefix {
		c.reclaimLocked(k, v)
	}
	if v.Key == k.Key {
		c.restoreListsLocked(k, v)
	}
	if k.heard() {
		c.known[of] = k
		c.knownChangedLocked(of)
	}
}

// knownChangedLocked has what a server listed last for a principal shown to the
// clients for which it has not listed anything.
func (c *Catalog) knownChangedLocked(of known) {
	if kin := c.kin[of.principal]; kin != nil {
		kin.changes.Add(1)
	}
	for cl := range c.clients {
		if cl.principal == of.principal && cl.blocks[of.server] == nil {
			cl.changes.Add(1)
			delete(cl.waiting, of.server)
			cl.openIfHeardLocked()
		}
	}
	c.pending.apart = true
}

// newPrivateLocked returns an empty block of a server for one client, or for what
// is kept for all clients of a principal.
func (c *Catalog) newPrivateLocked(b *block, principal string, kept bool) *block {
	own := newBlock(b.ServerOptions, b.lists[0].part.place, c.ordinals)
	own.private, own.principal, own.kept = true, principal, kept
	return own
}

// Replace gives the lists of a server as it has them for this client; see
// Catalog.Replace.
func (cl *Client) Replace(server string, lists Lists) {
	c := cl.catalog
	c.change(func() {
		b := c.blockLocked(server)
		if b == nil || !b.PerClient {
			return
		}
		if !c.isOpen {
			cl.early[server] = lists.over(cl.early[server])
			return
		}
		cl.applyLocked(b, lists)
	})
}

func (cl *Client) applyLocked(shared *block, lists Lists) {
	c := cl.catalog
	of := known{shared.Name, cl.principal}
	own, last := cl.blocks[shared.Name], c.known[of]
	if own == nil {
		own = c.newPrivateLocked(shared, cl.principal, false)
		if last != nil {
			c.copyLocked(own, last)
		}
		cl.blocks[shared.Name] = own
		cl.alone.Store(true)
	}
	if last == nil {
		last = c.newPrivateLocked(shared, cl.principal, true)
		c.known[of] = last
	}
	c.applyLocked(own, lists)
	c.applyLocked(last, lists)
	cl.changes.Add(1)
	delete(cl.waiting, shared.Name)
	cl.openIfHeardLocked()
	c.knownChangedLocked(of)
}

// copyLocked fills an empty block with another's items, so that those which stay
// keep their places.
func (c *Catalog) copyLocked(to, from *block) {
	for _, k := range mcp.Kinds {
		if !from.lists[k].listed {
			continue
		}
		before := to.lists[k].items.Snapshot()
		if err := to.lists[k].items.Restore(from.lists[k].items.Snapshot().Entries()); err != nil { // it has neither names nor ordinals twice
			c.log.Error("list not taken over", "server", to.Name, "kind", k.String(), "err", err)
			continue
		}
		to.lists[k].listed = true
		c.followLocked(to, k, before)
	}
}

// Heard says that a server was tried for this client and has no list to give
// now; a first list need not wait for it.
func (cl *Client) Heard(server string) {
	cl.catalog.change(func() {
		delete(cl.waiting, server)
		cl.openIfHeardLocked()
	})
}

// Open ends the waiting for servers that have not listed anything for the client.
// It may be called more than once.
func (cl *Client) Open() {
	cl.catalog.change(func() {
		clear(cl.waiting)
		cl.openIfHeardLocked()
	})
}

// openIfHeardLocked lets lists be read once the shared servers have been heard of,
// and the client's own.
func (cl *Client) openIfHeardLocked() {
	if cl.isOpen || !cl.catalog.isOpen || len(cl.waiting) > 0 {
		return
	}
	cl.isOpen = true
	cl.catalog.pending.clients = append(cl.catalog.pending.clients, cl)
}

// Ready is closed once the lists can be read: see Catalog.Ready, and Open.
func (cl *Client) Ready() <-chan struct{} { return cl.opened }

// List returns one page; see Catalog.List.
func (cl *Client) List(kind mcp.Kind, version mcp.Version, cursor *string) (jsontext.Value, error) {
	return cl.catalog.listOf(cl.see(kind).view, version, cursor)
}

// Fingerprint identifies what List returns; see Catalog.Fingerprint.
func (cl *Client) Fingerprint(kind mcp.Kind, v mcp.Version) uint64 {
	return cl.see(kind).sums[formOf(v)]
}

// FirstFingerprint is what Fingerprint was when Ready was closed. It must not be
// called before.
func (cl *Client) FirstFingerprint(kind mcp.Kind, v mcp.Version) uint64 {
	return cl.first[kind][formOf(v)]
}

// Find returns the entry under an exposed name or a URI.
func (cl *Client) Find(kind mcp.Kind, name string) (*Entry, bool) {
	if e, ok := cl.see(kind).own[fold(kind, name)]; ok {
		return e, true
	}
	return cl.catalog.Find(kind, name)
}

// Each calls f for the entries of a kind, in order, until it returns false.
func (cl *Client) Each(kind mcp.Kind, f func(*Entry) bool) { cl.see(kind).each(f) }

// Matching yields the templates of which a URI is an expansion; see
// Catalog.Matching.
func (cl *Client) Matching(uri string) iter.Seq[*Entry] { return matching(cl, uri) }

// see returns a list as it is now.
func (cl *Client) see(k mcp.Kind) *sight {
	if cl.kin != nil && !cl.alone.Load() {
		return cl.kin.see(k)
	}
	now := cl.sights[k].Load()
	if now != nil && now.base == cl.catalog.views[k].Load() && now.changes == cl.changes.Load() {
		return now
	}
	cl.catalog.mu.Lock()
	defer cl.catalog.mu.Unlock()
	return cl.seeLocked(k)
}

func (cl *Client) seeLocked(k mcp.Kind) *sight {
	if cl.kin != nil && !cl.alone.Load() {
		return cl.kin.seeLocked(k)
	}
	base := cl.catalog.views[k].Load()
	now := &sight{base: base, changes: cl.changes.Load(), own: make(map[string]*Entry)}
	parts := slices.Clone(base.parts)
	for i, p := range parts {
		if p.block.PerClient {
			parts[i] = cl.partLocked(k, p, now.own, base)
		}
	}
	now.view = newView(k, base.epoch, parts)
	if before := cl.sights[k].Load(); before != nil && before.epoch == base.epoch && sameParts(before.parts, parts) {
		now.view = before.view // with the pages that it has
	}
	cl.sights[k].Store(now)
	return now
}

func sameParts(a, b []*part) bool {
	return slices.EqualFunc(a, b, func(x, y *part) bool {
		return x == y || x.block == y.block && x.place == y.place && x.items == y.items && x.ttl == y.ttl && x.heard == y.heard
	})
}

// partLocked returns what the client sees of a server in place of an empty part,
// and adds it to own. A URI that is in another part before it, or that a shared
// server has, is left out.
func (cl *Client) partLocked(k mcp.Kind, empty *part, own map[string]*Entry, base *view) *part {
	b := cl.blocks[empty.block.Name]
	if b == nil {
		b = cl.catalog.known[known{empty.block.Name, cl.principal}]
	}
	if b == nil {
		return empty
	}
	p := *b.lists[k].part
	p.place, p.block, p.prefix, p.heard = empty.place, empty.block, empty.prefix, b.heard()
	taken := func(e *Entry) bool {
		_, twice := own[e.key()]
		return !named(k) && (twice || base.has(e.key()))
	}
	var left []registry.Entry[*Entry]
	for i, e := range p.items.All() {
		switch {
		case taken(e.Value):
			if left == nil {
				left = append(make([]registry.Entry[*Entry], 0, p.items.Len()), p.items.Entries()[:i]...)
			}
			continue
		case left != nil:
			left = append(left, e)
		}
		own[fold(k, e.Value.Exposed)] = e.Value
	}
	if left != nil {
		p.items = restored(k, left)
		p.sums = sum(p.items)
	}
	return &p
}

// restored returns a snapshot of these entries.
func restored(k mcp.Kind, entries []registry.Entry[*Entry]) *registry.Snapshot[*Entry] {
	set := registry.New(registry.Options[*Entry]{Name: func(e *Entry) string { return e.Own }, Fold: folds[k]})
	_ = set.Restore(entries) // they come from such a set
	return set.Snapshot()
}
