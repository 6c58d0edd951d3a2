package catalog

import (
	"encoding/binary"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// A form is how definitions and pages are written for some of the versions.
type form int

const (
	forStateless form = iota
	forSessions
	forms
)

// formOf returns a version's form.
func formOf(v mcp.Version) form {
	if v.Stateless() {
		return forStateless
	}
	return forSessions
}

// version returns one of the versions of a form: all that is written depends on
// the form alone.
func (f form) version() mcp.Version {
	if f == forStateless {
		return mcp.Latest
	}
	return mcp.LatestSession
}

// view is one list at one moment. What is known when it is made is never
// changed; pages are added as they are asked for.
type view struct {
	kind  mcp.Kind
	epoch uint64
	parts []*part // in order of place
	ttl   time.Duration
	high  uint64 // ordinal of the newest item
	sums  [forms]uint64
	walks [forms]walk
	// perClient: some parts are empty in which clients see their own.
	perClient bool
}

// part is one block's share of a view. It is never changed.
type part struct {
	block  *block
	place  uint64
	prefix string
	heard  bool // there was a list of any kind
	items  *registry.Snapshot[*Entry]
	sums   [forms]uint64 // fingerprints; 0 if there are no items
	ttl    time.Duration // 0: not to be kept
}

// viewLocked makes the view of the blocks as they are. It takes time in
// proportion to the servers, not to their items.
func (c *Catalog) viewLocked(k mcp.Kind) *view {
	parts := make([]*part, len(c.blocks))
	for i, b := range c.blocks {
		p := *b.lists[k].part
		p.heard = b.heard()
		parts[i] = &p
	}
	return newView(k, c.epoch, parts)
}

// newView makes the view of parts in order.
func newView(k mcp.Kind, epoch uint64, parts []*part) *view {
	v := &view{kind: k, epoch: epoch, parts: parts}
	contributing := false
	for _, p := range parts {
		v.perClient = v.perClient || p.block.PerClient
		n := p.items.Len()
		if n > 0 {
			v.high = max(v.high, p.items.At(n-1).Ordinal)
		}
		if n == 0 && p.heard {
			continue // it has nothing to list, and says when that changes
		}
		if !contributing || p.ttl < v.ttl {
			v.ttl, contributing = p.ttl, true
		}
	}
	sum := make([]byte, 8)
	for f := range v.sums {
		v.sums[f] = mcp.Fingerprint(func(yield func(jsontext.Value) bool) {
			for _, p := range v.parts {
				if p.sums[f] != 0 && !yield(binary.LittleEndian.AppendUint64(sum[:0], p.sums[f])) {
					return
				}
			}
		})
	}
	for f := range v.walks {
		v.walks[f].pages = map[position]jsontext.Value{{}: nil}
	}
	return v
}

// each calls f for the entries, in order, until it returns false.
func (v *view) each(f func(*Entry) bool) {
	for _, p := range v.parts {
		for _, e := range p.items.All() {
			if !f(e.Value) {
				return
			}
		}
	}
}

// has reports whether one of the items has a key.
func (v *view) has(key string) bool {
	for _, p := range v.parts {
		if _, ok := p.items.Lookup(key); ok {
			return true
		}
	}
	return false
}

// sum fingerprints a block's items.
func sum(s *registry.Snapshot[*Entry]) (sums [forms]uint64) {
	if s.Len() == 0 {
		return sums
	}
	for f := range sums {
		v := form(f).version()
		sums[f] = mcp.Fingerprint(func(yield func(jsontext.Value) bool) {
			for _, e := range s.All() {
				if !yield(e.Value.Definition.For(v)) {
					return
				}
			}
		})
	}
	return sums
}

// Fingerprint is equal as long as List returns the same items, byte for byte,
// to clients of a version. It takes no lock.
func (c *Catalog) Fingerprint(kind mcp.Kind, v mcp.Version) uint64 {
	return c.views[kind].Load().sums[formOf(v)]
}

// FirstFingerprint is what Fingerprint was when Ready was closed. It must not be
// called before.
func (c *Catalog) FirstFingerprint(kind mcp.Kind, v mcp.Version) uint64 {
	return c.first[kind][formOf(v)]
}
