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
// takes no lock, and time in proportion to the server's items.
func (c *Catalog) Report(server string) (Report, bool) {
	b := c.byName[server]
	if b == nil {
		return Report{}, false
	}
	var r Report
	for _, k := range mcp.Kinds {
		items := c.views[k].Load().parts[b.at].items
		r.Counts[k] = items.Len()
		r.LeftOut[k] = slices.Clone(*b.notes[k].Load())
		if !named(k) {
			continue
		}
		for _, e := range items.All() {
			if e.Value.Exposed != b.prefix+e.Value.Own {
				r.Renamed = append(r.Renamed, Rename{k, e.Value.Own, e.Value.Exposed})
			}
		}
	}
	return r, true
}
