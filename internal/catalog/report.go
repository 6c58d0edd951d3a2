package catalog

import "github.com/mcp-roster/roster/mcp"

// Report says what of a server's lists clients see, for status.
type Report struct {
	// Counts has how many items are listed, by kind.
	Counts [len(mcp.Kinds)]int
	// Renamed has items whose name is not prefix and own name put together.
	Renamed []Rename
	// LeftOut has what is not listed, and why.
	LeftOut [len(mcp.Kinds)][]Note
}

// Rename is a name that had to be another.
type Rename struct {
	Kind mcp.Kind
	// Own is the server's own name, Exposed the one that clients see.
	Own, Exposed string
}

// Report returns the report on a server; false if there is no such server.
func (c *Catalog) Report(server string) (Report, bool) {
	b := c.block(server)
	if b == nil {
		return Report{}, false
	}
	var r Report
	for _, k := range mcp.Kinds {
		s := b.sets[k].Snapshot()
		r.Counts[k] = s.Len()
		r.LeftOut[k] = *b.notes[k].Load()
		if folds[k] != nil {
			continue
		}
		for _, e := range s.All() {
			if e.Value.Exposed != b.prefix+e.Value.Own {
				r.Renamed = append(r.Renamed, Rename{k, e.Value.Own, e.Value.Exposed})
			}
		}
	}
	return r, true
}
