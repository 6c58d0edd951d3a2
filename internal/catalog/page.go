package catalog

import (
	"sort"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// position is behind one item; the zero one is before all.
type position struct{ place, ordinal uint64 }

// walk has the pages of a view in one form, as far as they were asked for.
type walk struct {
	first atomic.Pointer[jsontext.Value]

	mu sync.Mutex // guards pages; held while one is encoded, so that one goroutine does it
	// pages has each page by the position that it begins behind; nil: it is a
	// page of the walk, and not encoded yet.
	pages map[position]jsontext.Value
}

// List returns one page, encoded as the result of a list request in a version.
// cursor is nil for the first page. The bytes must not be changed. The error is
// a *jsonrpc.Error with code -32602, for a cursor that was not given out for
// this kind and order of servers.
func (c *Catalog) List(kind mcp.Kind, version mcp.Version, cursor *string) (jsontext.Value, error) {
	return c.listOf(c.views[kind].Load(), version, cursor)
}

func (c *Catalog) listOf(v *view, version mcp.Version, cursor *string) (jsontext.Value, error) {
	f := formOf(version)
	if cursor == nil {
		if first := v.walks[f].first.Load(); first != nil {
			return *first, nil
		}
		page, _ := c.page(v, f, position{})
		v.walks[f].first.Store(&page)
		return page, nil
	}
	at, err := mcp.DecodeCursor(*cursor)
	switch {
	case err != nil:
		return nil, errCursor(err.Error())
	case at.Kind != v.kind || at.View != "":
		return nil, errCursor("belongs to another list")
	case at.Epoch != v.epoch:
		return nil, errCursor("the servers have been reordered since it was given out")
	}
	from := position{at.Place, at.Ordinal}
	if at.High == v.high {
		if page, ok := c.page(v, f, from); ok {
			return page, nil
		}
	}
	page, _ := c.encode(v, f, from, at.High)
	return page, nil
}

// errCursor is for a cursor that cannot be followed.
func errCursor(why string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cursor: %s: begin again without a cursor", why)
}

// page returns a page of the walk that begins now; false if no page of it begins
// there. Only pages of that walk are kept, so that cursors from elsewhere fill no
// memory.
func (c *Catalog) page(v *view, f form, from position) (jsontext.Value, bool) {
	w := &v.walks[f]
	w.mu.Lock()
	defer w.mu.Unlock()
	page, ok := w.pages[from]
	if !ok || page != nil {
		return page, ok
	}
	page, next := c.encode(v, f, from, v.high)
	w.pages[from] = page
	if next != (position{}) {
		w.pages[next] = nil
	}
	return page, true
}

// encode writes the page behind a position, of items no newer than high. next is
// the position behind its last item, zero if no page follows. It takes time in
// proportion to the page, and to the servers behind the position.
func (c *Catalog) encode(v *view, f form, from position, high uint64) (page jsontext.Value, next position) {
	version := f.version()
	p := mcp.Page{Kind: v.kind, Server: c.opts.Implementation, Hints: mcp.Hints{TTL: v.ttl}}
	var last position
	first := sort.Search(len(v.parts), func(i int) bool { return v.parts[i].place >= from.place })
	for _, part := range v.parts[first:] {
		i := 0
		if part.place == from.place {
			i = part.items.After(from.ordinal)
		}
		for ; i < part.items.Len(); i++ {
			e := part.items.At(i)
			if e.Ordinal > high {
				break
			}
			if !p.Add(e.Value.Definition.For(version), c.opts.Page) {
				p.Next = mcp.Cursor{Epoch: v.epoch, Kind: v.kind, High: high, Place: last.place, Ordinal: last.ordinal}.Encode()
				return p.Append(make([]byte, 0, p.Size()), version), last
			}
			last = position{part.place, e.Ordinal}
		}
	}
	return p.Append(make([]byte, 0, p.Size()), version), position{}
}
