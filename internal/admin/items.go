package admin

import (
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/mcp"
)

// Items is what /items answers.
type Items struct {
	Items []Item `json:"items"`
}

// Item says whose a listed item is.
type Item struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"` // as clients see it: a name, a URI or a URI template
	Server string `json:"server"`
	Own    string `json:"own"` // what its server calls it
}

// Items returns the listed items in order, by kind; with a name only those that
// clients see under it. Of a server that runs for each client apart they are those
// that it listed last for somebody whose name is not known.
func (s *Source) Items(name string) Items {
	out := Items{Items: []Item{}}
	all := s.Catalog.Join("")
	defer all.Leave()
	add := func(e *catalog.Entry) bool {
		out.Items = append(out.Items, Item{e.Kind.String(), e.Exposed, e.Server, e.Own})
		return true
	}
	for _, k := range mcp.Kinds {
		if name == "" {
			all.Each(k, add)
		} else if e, ok := all.Find(k, name); ok {
			add(e)
		}
	}
	return out
}
