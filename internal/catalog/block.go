package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
	"github.com/yosida95/uritemplate/v3"
)

// block is what one server contributes.
type block struct {
	name  string // never changed
	notes [len(mcp.Kinds)]atomic.Pointer[[]Note]
	// private: it is shown to some clients alone. It has no say in who owns a
	// URI.
	private bool
	// kept: it has what a server of many clients listed last for any client of
	// the principal.
	kept      bool
	principal string

	// The fields below belong to the catalog's writer.
	ServerOptions
	prefix string
	from   string // the key under which the lists were given
	lists  [len(mcp.Kinds)]list
}

// list is what one server lists of one kind.
type list struct {
	items  *registry.Set[*Entry] // by the server's own names
	part   *part                 // items as published, or about to be
	listed bool                  // there was a list
	// last is the fingerprint of the last list, as it came; 0: none came.
	last uint64
	// hidden are the items whose URI another server has, in order.
	hidden []*Entry
	// refused says what else of the last list is left out.
	refused notes
	// gone are the keys of named items that are gone, those that went first
	// before the others.
	gone []string
}

func newBlock(opts ServerOptions, place uint64, ordinals *registry.Sequence) *block {
	b := &block{name: opts.Name, ServerOptions: opts, prefix: opts.prefix(), from: opts.Key}
	for _, k := range mcp.Kinds {
		set := registry.New(registry.Options[*Entry]{
			Name:     func(e *Entry) string { return e.Own },
			Fold:     folds[k],
			Ordinals: ordinals,
		})
		b.lists[k] = list{items: set, part: &part{block: b, place: place, prefix: b.prefix, items: set.Snapshot()}}
		b.notes[k].Store(new([]Note))
	}
	return b
}

// heard reports whether the server ever gave a list of any kind.
func (b *block) heard() bool {
	for k := range b.lists {
		if b.lists[k].listed {
			return true
		}
	}
	return false
}

// applyLocked takes over new lists of a server.
func (c *Catalog) applyLocked(b *block, lists Lists) {
	if b.from != b.Key {
		b.from = b.Key
		c.pending.save(b)
	}
	first := !b.heard()
	for _, k := range mcp.Kinds {
		if lists[k] != nil {
			c.applyListLocked(b, k, lists[k])
		}
	}
	if first && b.heard() && !b.private { // what it does not list need not be waited for either
		for _, k := range mcp.Kinds {
			c.pending.views[k] = true
		}
	}
}

func (c *Catalog) applyListLocked(b *block, k mcp.Kind, given *List) {
	l := &b.lists[k]
	if !l.listed {
		l.listed = true
		c.pending.save(b)
	}
	if ttl := given.ttl(); ttl != l.part.ttl {
		c.showLocked(b, k, func(p *part) { p.ttl = ttl })
	}
	seen := mcp.Fingerprint(func(yield func(jsontext.Value) bool) {
		for _, raw := range given.Items {
			if !yield(raw) {
				return
			}
		}
	})
	if seen == l.last {
		return
	}
	l.last = seen
	entries := c.readLocked(b, k, given.Items)
	before := l.items.Snapshot()
	change, err := l.items.Replace(entries)
	if err != nil { // readLocked leaves no two of the same key
		c.log.Error("list not taken over", "server", b.Name, "kind", k.String(), "err", err)
		return
	}
	if !change.Empty() {
		c.followLocked(b, k, before)
	}
	c.noteLocked(b, k)
}

// readLocked returns the entries for a server's list, under the names that are
// or become theirs. It leaves out, with a note, definitions that the schema
// refuses, that stand twice, or that cannot be called. Those whose URI is another
// server's go to the hidden ones.
func (c *Catalog) readLocked(b *block, k mcp.Kind, items []jsontext.Value) []*Entry {
	l := &b.lists[k]
	l.refused, l.hidden = notes{}, nil
	now := l.items.Snapshot()
	entries := make([]*Entry, 0, len(items))
	seen := make(map[string]bool, len(items))
	for _, raw := range items {
		e, err := c.itemLocked(b, k, now, len(entries), raw)
		if err == nil && seen[e.key()] {
			err = errTwice
		}
		switch {
		case err != nil:
			l.refused.add(e.Own, err.Error())
			continue
		case named(k), b.private, c.names.claim(k, e.key(), owner{b.Name, e.key()}):
			entries = append(entries, e)
		default:
			l.hidden = append(l.hidden, e)
		}
		seen[e.key()] = true
	}
	return entries
}

var errTwice = errors.New("listed twice; the first one counts")

// itemLocked returns the entry for an item of a list: the one that there is, if
// the item is what it was. It looks first where most often it is found. With an
// error, only Own is set.
func (c *Catalog) itemLocked(b *block, k mcp.Kind, now *registry.Snapshot[*Entry], guess int, raw jsontext.Value) (*Entry, error) {
	if guess < now.Len() && bytes.Equal(now.At(guess).Value.raw, raw) {
		return now.At(guess).Value, nil
	}
	d, err := mcp.ParseDefinition(k, raw)
	if err != nil {
		return &Entry{Own: d.Key}, err
	}
	if old, ok := now.Lookup(d.Key); ok && bytes.Equal(old.Value.raw, d.Object.Raw) {
		return old.Value, nil
	}
	return c.entryLocked(b, d)
}

// entryLocked returns an entry for a definition. Its bytes are copied: the ones
// that came are part of a whole message, which one changed item must not keep.
func (c *Catalog) entryLocked(b *block, d mcp.Definition) (*Entry, error) {
	d.Object.Raw = bytes.Clone(d.Object.Raw)
	e := &Entry{Server: b.Name, Kind: d.Kind, Own: d.Key, Exposed: d.Key, Definition: d, raw: d.Object.Raw}
	if d.Kind == mcp.Tools {
		params, err := mcp.ParamHeaders(d.Object.Get("inputSchema"))
		if err != nil && b.HTTP {
			return e, err
		}
		e.Params = params
	}
	if d.Kind == mcp.Templates {
		e.template, _ = uritemplate.New(d.Key) // listed all the same: only matching needs it
	}
	if !named(d.Kind) {
		return e, nil
	}
	exposed, ok := c.names.give(d.Kind, b.prefix, owner{b.Name, d.Key})
	if !ok {
		return e, fmt.Errorf("no name of up to %d characters is free for it", c.opts.NameLength)
	}
	if exposed != d.Key {
		e.Exposed, e.Definition = exposed, d.Renamed(exposed)
		e.rename = []mcp.Edit{{Name: d.Kind.Key(), Value: mcp.String(d.Key)}}
	}
	return e, nil
}
