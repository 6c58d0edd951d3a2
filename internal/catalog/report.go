package catalog

import (
	"slices"

	"github.com/mcp-roster/roster/mcp"
)

// Report says what of a server's lists clients see, for status. It is the
// caller's.
type Report struct {
	// Counts has how many items are listed, by kind.
	Counts [len(mcp.Kinds)]int
	// Renamed has the tools and prompts whose name is not prefix and own name
	// put together, in order.
	Renamed []Rename
	// LeftOut has what is not listed, and why, by kind: at most 101 notes of
	// each, the last of which counts the others.
	LeftOut [len(mcp.Kinds)][]Note
}

// Rename is a name that had to be another.
type Rename struct {
	// Kind is Tools or Prompts.
	Kind mcp.Kind
	// Own is the server's own name, Exposed the one that clients see.
	Own, Exposed string
}

// Report returns the report on a server; false if there is no such server. It
// takes no lock, and time in proportion to the server's items and to
// the servers.
func (c *Catalog) Report(server string) (r Report, ok bool) {
	for _, k := range mcp.Kinds {
		parts := c.views[k].Load().parts
		i := slices.IndexFunc(parts, func(p *part) bool { return p.block.name == server })
		if i < 0 {
			continue
		}
		ok = true
		p := parts[i]
		r.Counts[k] = p.items.Len()
		r.LeftOut[k] = slices.Clone(*p.block.notes[k].Load())
		if !named(k) {
			continue
		}
		for _, e := range p.items.All() {
			if e.Value.Exposed != p.prefix+e.Value.Own {
				r.Renamed = append(r.Renamed, Rename{k, e.Value.Own, e.Value.Exposed})
			}
		}
	}
	return r, ok
}
