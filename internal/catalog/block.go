package catalog

import (
	"bytes"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// block is what one server contributes.
type block struct {
	ServerOptions
	place  uint64
	prefix string
	sets   [len(mcp.Kinds)]*registry.Set[*Entry] // by the server's own names
	sums   [len(mcp.Kinds)]atomic.Pointer[sums]
	ttl    [len(mcp.Kinds)]atomic.Int64 // nanoseconds; 0: not to be kept
	listed [len(mcp.Kinds)]atomic.Bool  // there was a list
	notes  [len(mcp.Kinds)]atomic.Pointer[[]Note]

	// wanted has the definitions of the last list, shadowed ones included.
	// It belongs to the catalog's writer.
	wanted [len(mcp.Kinds)][]mcp.Definition
}

// Note says why an item is not listed as its server lists it.
type Note struct {
	Name   string // the server's own
	Reason string
}

// sums are fingerprints of a block's items: for versions with any outputSchema,
// and for those without.
type sums [2]uint64

// folds bring a kind's names into the form in which they are compared.
var folds = [len(mcp.Kinds)]func(string) string{
	mcp.Resources: mcp.FoldURI, mcp.Templates: mcp.FoldURI,
}

func fold(k mcp.Kind, name string) string {
	if f := folds[k]; f != nil {
		return f(name)
	}
	return name
}

func newBlock(opts ServerOptions, place uint64, ordinals *registry.Sequence) *block {
	b := &block{ServerOptions: opts, place: place, prefix: mapLegal(opts.Name) + separator}
	if opts.Prefix != nil {
		b.prefix = *opts.Prefix
	}
	for _, k := range mcp.Kinds {
		b.sets[k] = registry.New(registry.Options[*Entry]{
			Name: func(e *Entry) string { return e.Own },
			Fold: folds[k],
			Equal: func(a, b *Entry) bool {
				return a.Exposed == b.Exposed && bytes.Equal(a.raw, b.raw)
			},
			Ordinals: ordinals,
		})
		b.sums[k].Store(&sums{})
		b.notes[k].Store(new([]Note))
	}
	return b
}

// claimLocked gives a server's remembered names back to it.
func (c *Catalog) claimLocked(v state.Server) {
	for _, k := range mcp.Kinds {
		for _, item := range v.Lists[k.String()] {
			d, err := mcp.ParseDefinition(k, jsontext.Value(item.Raw))
			if err == nil && item.Name != "" {
				c.names.claim(k, item.Name, owner{v.Name, d.Key})
			}
		}
		for key, name := range v.Names[k.String()] {
			c.names.claim(k, name, owner{v.Name, key})
		}
	}
}

// restoreLocked fills a block with a server's last good lists, under the
// ordinals that they had.
func (c *Catalog) restoreLocked(b *block, v state.Server) {
	for _, k := range mcp.Kinds {
		items, ok := v.Lists[k.String()]
		if !ok {
			continue
		}
		var entries []registry.Entry[*Entry]
		var defs []mcp.Definition
		for _, item := range items {
			d, err := mcp.ParseDefinition(k, jsontext.Value(item.Raw))
			if err != nil {
				continue
			}
			defs = append(defs, d)
			if e := c.entryLocked(b, d); e != nil {
				entries = append(entries, registry.Entry[*Entry]{Ordinal: item.Ordinal, Name: e.Own, Value: e})
			}
		}
		if err := b.sets[k].Restore(entries); err != nil {
			c.log.Warn("remembered list not used", "server", b.Name, "kind", k.String(), "err", err)
			continue
		}
		b.wanted[k] = defs
		b.listed[k].Store(true)
		c.publishLocked(b, k)
	}
}

// applyLocked takes over new lists of a server.
func (c *Catalog) applyLocked(b *block, lists Lists) (changed bool) {
	for _, k := range mcp.Kinds {
		list := lists[k]
		if list == nil {
			continue
		}
		defs, notes := c.read(b, k, list.Items)
		ttl := list.TTL
		if list.Degraded {
			ttl = 0
		}
		if time.Duration(b.ttl[k].Swap(int64(ttl))) != ttl {
			c.touch(k)
		}
		b.listed[k].Store(true)
		b.wanted[k] = defs
		if c.setLocked(b, k, notes) {
			changed = true
		}
	}
	c.saveLocked(b)
	return changed
}

// read parses a list: definitions that the schema refuses, that stand twice, or
// that cannot be called are left out and noted.
func (c *Catalog) read(b *block, k mcp.Kind, items []jsontext.Value) ([]mcp.Definition, []Note) {
	defs := make([]mcp.Definition, 0, len(items))
	seen := make(map[string]bool, len(items))
	var notes []Note
	for _, raw := range items {
		d, err := mcp.ParseDefinition(k, raw)
		switch {
		case err != nil:
			notes = append(notes, Note{d.Key, err.Error()})
			continue
		case seen[fold(k, d.Key)]:
			notes = append(notes, Note{d.Key, "listed twice; the first one counts"})
			continue
		}
		if k == mcp.Tools && b.HTTP {
			if _, err := mcp.ParamHeaders(d.Object.Get("inputSchema")); err != nil {
				notes = append(notes, Note{d.Key, err.Error()})
				continue
			}
		}
		seen[fold(k, d.Key)] = true
		defs = append(defs, d)
	}
	return defs, notes
}

// entryLocked returns the entry for a definition, under the name that is or
// becomes its own; nil if another server has its URI.
func (c *Catalog) entryLocked(b *block, d mcp.Definition) *Entry {
	e := &Entry{Server: b.Name, Kind: d.Kind, Own: d.Key, Exposed: d.Key, Definition: d, raw: d.Object.Raw}
	o := owner{b.Name, fold(d.Kind, d.Key)}
	switch d.Kind {
	case mcp.Resources, mcp.Templates:
		if !c.names.claim(d.Kind, o.key, o) {
			return nil
		}
	default:
		e.Exposed = c.names.give(d.Kind, b.prefix, o)
		if e.Exposed != e.Own {
			e.Definition = d.Renamed(e.Exposed)
		}
	}
	if d.Kind == mcp.Tools && b.HTTP {
		e.Params, _ = mcp.ParamHeaders(d.Object.Get("inputSchema")) // read has checked them
	}
	return e
}

// setLocked makes a block's set be what it wants, as far as names allow.
func (c *Catalog) setLocked(b *block, k mcp.Kind, notes []Note) (changed bool) {
	before := b.sets[k].Snapshot()
	entries := make([]*Entry, 0, len(b.wanted[k]))
	for _, d := range b.wanted[k] {
		e := c.entryLocked(b, d)
		if e == nil {
			other := c.names.owners[k][fold(k, d.Key)].server
			notes = append(notes, Note{d.Key, "server " + other + " has the same URI and was first"})
			continue
		}
		entries = append(entries, e)
	}
	c.noteLocked(b, k, notes)
	change, err := b.sets[k].Replace(entries)
	if err != nil {
		c.log.Error("list not taken over", "server", b.Name, "kind", k.String(), "err", err)
		return false
	}
	if change.Empty() {
		return false
	}
	c.publishLocked(b, k)
	c.releaseLocked(b, k, before)
	return true
}

// noteLocked keeps what is wrong with a list, and logs what is new.
func (c *Catalog) noteLocked(b *block, k mcp.Kind, notes []Note) {
	old := *b.notes[k].Load()
	b.notes[k].Store(&notes)
	for _, n := range notes {
		if !slices.Contains(old, n) {
			c.warn(b, k, n)
		}
	}
}

// publishLocked makes a block's entries of a kind findable and its pages new.
func (c *Catalog) publishLocked(b *block, k mcp.Kind) {
	now := b.sets[k].Snapshot()
	err := c.exposed[k].Update(func(batch *registry.Batch[*Entry]) error {
		for _, e := range now.All() {
			batch.Set(e.Value)
		}
		return nil
	})
	if err != nil {
		c.log.Error("names not published", "server", b.Name, "kind", k.String(), "err", err)
	}
	b.sums[k].Store(sum(now))
	c.touch(k)
}

// releaseLocked takes what a block no longer lists out of the table of names,
// and lets a server have the URIs that stood in its way.
func (c *Catalog) releaseLocked(b *block, k mcp.Kind, before *registry.Snapshot[*Entry]) {
	now := b.sets[k].Snapshot()
	freed := false
	for _, old := range before.All() {
		if _, still := now.Lookup(old.Name); still {
			continue
		}
		c.exposed[k].RemoveName(old.Value.Exposed)
		if folds[k] != nil {
			o := owner{b.Name, fold(k, old.Value.Own)}
			delete(c.names.owners[k], o.key)
			delete(c.names.given[k], o)
			freed = true
		}
	}
	if !freed {
		return
	}
	for _, other := range *c.blocks.Load() {
		if other != b && len(other.wanted[k]) > other.sets[k].Len() {
			c.setLocked(other, k, nil)
			c.saveLocked(other)
		}
	}
}

// sum fingerprints a block's items.
func sum(s *registry.Snapshot[*Entry]) *sums {
	var out sums
	if s.Len() == 0 {
		return &out
	}
	for form, v := range versions {
		out[form] = mcp.Fingerprint(func(yield func(jsontext.Value) bool) {
			for _, e := range s.All() {
				if !yield(e.Value.Definition.For(v)) {
					return
				}
			}
		})
	}
	return &out
}

// reserve is how many ordinals are set aside at a time, so that they need not
// be saved one by one; what a crash loses is never used.
const reserve = 1 << 20

// reserveLocked saves the index when the ordinals set aside are running out.
func (c *Catalog) reserveLocked() {
	if c.opts.Store == nil {
		return
	}
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
		Name: b.Name, Key: b.Key, Prefix: b.prefix,
		Lists: make(map[string][]state.Item), Names: make(map[string]map[string]string),
	}
	for _, k := range mcp.Kinds {
		if !b.listed[k].Load() {
			continue
		}
		s := b.sets[k].Snapshot()
		items := make([]state.Item, 0, s.Len())
		for _, e := range s.All() {
			item := state.Item{Ordinal: e.Ordinal, Raw: string(e.Value.raw)}
			if e.Value.Exposed != e.Value.Own {
				item.Name = e.Value.Exposed
			}
			items = append(items, item)
		}
		v.Lists[k.String()] = items
		if gone := c.goneLocked(b, k, s); len(gone) > 0 {
			v.Names[k.String()] = gone
		}
	}
	c.opts.Store.SaveServer(v)
}

// maxGone is how many names of items that are gone are kept per server and kind.
const maxGone = 10_000

// goneLocked returns the names that a block's former items keep.
func (c *Catalog) goneLocked(b *block, k mcp.Kind, s *registry.Snapshot[*Entry]) map[string]string {
	if folds[k] != nil || len(c.names.given[k]) == 0 {
		return nil
	}
	gone := make(map[string]string)
	for o, name := range c.names.given[k] {
		if o.server != b.Name {
			continue
		}
		if _, there := s.Lookup(o.key); there {
			continue
		}
		if len(gone) == maxGone {
			delete(c.names.given[k], o)
			delete(c.names.owners[k], name)
			continue
		}
		gone[o.key] = name
	}
	return gone
}
