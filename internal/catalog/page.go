package catalog

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// pageCache has the pages of a whole walk, for one kind and one form of
// definitions, as they were when they were last asked for.
type pageCache struct {
	change atomic.Uint64 // counts what makes pages old
	mu     sync.Mutex    // one goroutine encodes
	pages  atomic.Pointer[pages]
}

// pages is a walk, encoded.
type pages struct {
	change uint64
	high   uint64
	page   []jsontext.Value
	starts map[position]int // the page behind a position
}

// position is behind one item.
type position struct{ place, ordinal uint64 }

// form is 0 for versions that allow any outputSchema, else 1.
func form(v mcp.Version) int {
	if v.HasAnyOutput() {
		return 0
	}
	return 1
}

// versions has one version of each form, and whether it is stateless decides
// the form of the page.
var versions = [...]mcp.Version{mcp.Latest, mcp.LatestSession}

// touch makes the pages of a kind old.
func (c *Catalog) touch(k mcp.Kind) {
	for i := range c.pages[k] {
		c.pages[k][i].change.Add(1)
	}
}

// Fingerprint is equal as long as List returns the same items, byte for byte,
// to clients of a version.
func (c *Catalog) Fingerprint(kind mcp.Kind, v mcp.Version) uint64 {
	return mcp.Fingerprint(func(yield func(jsontext.Value) bool) {
		for _, b := range *c.blocks.Load() {
			if n := b.sums[kind].Load()[form(v)]; n != 0 && !yield(binary.LittleEndian.AppendUint64(nil, n)) {
				return
			}
		}
	})
}

// errOldCursor is for a cursor that cannot be followed.
func errOldCursor(why string) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cursor: %s: begin again without a cursor", why)
}

// List returns one page, encoded as the result of a list request in a version.
// cursor is nil for the first page. The bytes must not be changed.
func (c *Catalog) List(kind mcp.Kind, v mcp.Version, cursor *string) (jsontext.Value, error) {
	all := c.walk(kind, form(v))
	if cursor == nil {
		return all.page[0], nil
	}
	at, err := mcp.DecodeCursor(*cursor)
	switch {
	case err != nil:
		return nil, errOldCursor(err.Error())
	case at.Kind != kind || at.View != "":
		return nil, errOldCursor("belongs to another list")
	case at.Epoch != c.epoch:
		return nil, errOldCursor("the servers have been reordered since it was given out")
	}
	from := position{at.Place, at.Ordinal}
	if i, ok := all.starts[from]; ok && at.High == all.high {
		return all.page[i], nil
	}
	page, _ := c.encode(kind, form(v), from, at.High)
	return page, nil
}

// walk returns the pages of a walk that begins now.
func (c *Catalog) walk(k mcp.Kind, form int) *pages {
	cache := &c.pages[k][form]
	if p := cache.pages.Load(); p != nil && p.change == cache.change.Load() {
		return p
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	change := cache.change.Load()
	if p := cache.pages.Load(); p != nil && p.change == change {
		return p
	}
	p := &pages{change: change, high: c.high(k), starts: make(map[position]int)}
	from := position{}
	for {
		page, next := c.encode(k, form, from, p.high)
		p.page = append(p.page, page)
		if next == (position{}) {
			break
		}
		p.starts[next] = len(p.page)
		from = next
	}
	cache.pages.Store(p)
	return p
}

// high returns the ordinal of the newest item.
func (c *Catalog) high(k mcp.Kind) uint64 {
	var high uint64
	for _, b := range *c.blocks.Load() {
		if s := b.sets[k].Snapshot(); s.Len() > 0 {
			high = max(high, s.At(s.Len()-1).Ordinal)
		}
	}
	return high
}

// encode writes the page behind a position, of items no newer than high. next is
// the position behind its last item, zero if no page follows.
func (c *Catalog) encode(k mcp.Kind, form int, from position, high uint64) (page jsontext.Value, next position) {
	v := versions[form]
	p := mcp.Page{Kind: k, Server: c.opts.Implementation, Hints: mcp.Hints{TTL: c.ttl(k)}}
	var last position
	for _, b := range *c.blocks.Load() {
		if b.place < from.place {
			continue
		}
		s := b.sets[k].Snapshot()
		i := 0
		if b.place == from.place {
			i = s.After(from.ordinal)
		}
		for ; i < s.Len(); i++ {
			e := s.At(i)
			if e.Ordinal > high {
				break
			}
			if !p.Add(e.Value.Definition.For(v), c.opts.Page) {
				p.Next = mcp.Cursor{Epoch: c.epoch, Kind: k, High: high, Place: last.place, Ordinal: last.ordinal}.Encode()
				return p.Append(make([]byte, 0, p.Size()), v), last
			}
			last = position{b.place, e.Ordinal}
		}
	}
	return p.Append(make([]byte, 0, p.Size()), v), position{}
}

// ttl is how long a page may be kept: the shortest of the servers in it.
func (c *Catalog) ttl(k mcp.Kind) time.Duration {
	least, some := time.Duration(0), false
	for _, b := range *c.blocks.Load() {
		if b.sets[k].Len() == 0 {
			continue
		}
		ttl := time.Duration(b.ttl[k].Load())
		if !some || ttl < least {
			least, some = ttl, true
		}
	}
	return least
}
