package catalog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
)

// TestSeeds5_04_WalksAmongChanges holds random walks against a model, while servers come
// and go, their lists change, and the catalog is built anew from its store: each
// item that is there for the whole walk is returned exactly once, and none twice;
// and the order is always that of the servers and of first sight.
func TestSeeds5_04_WalksAmongChanges(t *testing.T) {
	const seeds, steps = 40, 120
	for seed := range uint64(seeds) {
		m := newModel(t, seed)
		for range steps {
			m.step()
		}
		m.finish()
	}
}

// all are the servers of the model, in the order of the configuration.
var all = []string{"a", "b", "c", "d", "e", "f"}

// model is what must be true, and the catalog that is held against it.
type model struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	dir   string
	limit int // items per page
	store *state.Store
	c     *catalog.Catalog

	configured []string
	listed     map[string][]item // by server, in order of first sight
	next       int
	walkers    []*walker
}

type item struct{ name, text string }

// walker is a walk that is under way.
type walker struct {
	version mcp.Version
	cursor  *string
	there   map[string]bool // there since the walk began
	seen    map[string]int
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 1)), dir: t.TempDir(), limit: 3,
		configured: all, listed: make(map[string][]item),
	}
	if seed%2 == 1 {
		m.configured = all[1:4]
	}
	m.start()
	return m
}

func (m *model) start() {
	m.store = openStore(m.t, m.dir)
	m.c = open(servers(m.configured...), catalog.Options{
		Store: m.store, Page: mcp.PageLimits{Items: m.limit},
	})
}

func (m *model) step() {
	switch n := m.r.IntN(100); {
	case n < 45:
		m.advance()
	case n < 55:
		m.begin()
	case n < 94:
		m.change()
	case n < 97:
		m.restartUnchanged()
	default:
		m.reconfigure()
	}
	m.check()
}

// begin begins a walk.
func (m *model) begin() {
	v := mcp.Latest
	if m.r.IntN(2) == 0 {
		v = mcp.LatestSession
	}
	m.walkers = append(m.walkers, &walker{version: v, there: m.names(), seen: make(map[string]int)})
	m.advanceOne(len(m.walkers) - 1)
}

func (m *model) advance() {
	if len(m.walkers) > 0 {
		m.advanceOne(m.r.IntN(len(m.walkers)))
	}
}

// advanceOne goes a page further in a walk, and holds it against the model if it
// has ended.
func (m *model) advanceOne(i int) {
	w := m.walkers[i]
	items, next, _ := page(m.t, m.c, mcp.Tools, w.version, w.cursor)
	for _, it := range items {
		w.seen[keyOf(m.t, mcp.Tools, it)]++
	}
	if w.cursor = next; next != nil {
		return
	}
	m.walkers = slices.Delete(m.walkers, i, i+1)
	for name := range w.there {
		if w.seen[name] == 0 {
			m.t.Fatalf("%s was there for the whole walk and not returned", name)
		}
	}
	for name, n := range w.seen {
		if n > 1 {
			m.t.Fatalf("%s was returned %d times", name, n)
		}
	}
}

// change gives a server another list.
func (m *model) change() {
	server := m.configured[m.r.IntN(len(m.configured))]
	items := slices.Clone(m.listed[server])
	was := slices.Clone(items)
	for range 1 + m.r.IntN(3) {
		switch m.r.IntN(5) {
		case 0, 1: // an item comes, or comes back
			it := item{fmt.Sprintf("t%d", m.r.IntN(12)), ""}
			if !slices.ContainsFunc(items, func(o item) bool { return o.name == it.name }) {
				items = append(items, it)
			}
		case 2: // one goes
			if len(items) > 0 {
				i := m.r.IntN(len(items))
				items = slices.Delete(items, i, i+1)
			}
		case 3: // one becomes another
			if len(items) > 0 {
				m.next++
				items[m.r.IntN(len(items))].text = fmt.Sprint(m.next)
			}
		case 4: // or nothing
		}
	}
	given := slices.Clone(items)
	m.r.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })
	list := &catalog.List{}
	for _, it := range given {
		list.Items = append(list.Items, tool(it.name, it.text))
	}
	before := m.c.Fingerprint(mcp.Tools, mcp.Latest)
	changed := m.c.Replace(server, catalog.Lists{mcp.Tools: list})
	if after := m.c.Fingerprint(mcp.Tools, mcp.Latest); changed != (before != after) {
		m.t.Fatalf("Replace reports %v, fingerprints %x and %x", changed, before, after)
	}
	m.listed[server] = survivorsFirst(was, given)
	if same := slices.Equal(was, m.listed[server]); same == changed {
		m.t.Fatalf("Replace reports %v for %v after %v", changed, given, was)
	}
	m.forget()
}

// survivorsFirst returns a new list in the order in which it is shown.
func survivorsFirst(was, given []item) []item {
	var out []item
	for _, old := range was {
		for _, it := range given {
			if it.name == old.name {
				out = append(out, it)
			}
		}
	}
	for _, it := range given {
		if !slices.ContainsFunc(was, func(old item) bool { return old.name == it.name }) {
			out = append(out, it)
		}
	}
	return out
}

// restartUnchanged builds the catalog anew: every walk is byte for byte what it
// was.
func (m *model) restartUnchanged() {
	_, before := walk(m.t, m.c, mcp.Tools, mcp.Latest)
	closeStore(m.t, m.store)
	m.start()
	if _, after := walk(m.t, m.c, mcp.Tools, mcp.Latest); !bytes.Equal(before, after) {
		m.t.Fatalf("a restart changed the list from\n%s\nto\n%s", before, after)
	}
}

// reconfigure builds the catalog anew with other servers, and another size of
// pages.
func (m *model) reconfigure() {
	closeStore(m.t, m.store)
	m.limit = 1 + m.r.IntN(6)
	m.configured = nil
	for _, s := range all {
		if m.r.IntN(3) > 0 {
			m.configured = append(m.configured, s)
		}
	}
	if m.configured == nil {
		m.configured = all[:1]
	}
	epoch := m.store.Index().Epoch
	m.start()
	m.forget()
	if m.store.Index().Epoch == epoch {
		return
	}
	if m.seed%2 == 0 {
		m.t.Fatal("servers that all had places got others")
	}
	// A new server came behind one that was gone, and that one is back before it.
	for _, w := range m.walkers {
		wantBadCursor(m.t, m.c, mcp.Tools, *w.cursor)
	}
	m.walkers = nil
}

// names returns what is listed.
func (m *model) names() map[string]bool {
	out := make(map[string]bool)
	for _, s := range m.configured {
		for _, it := range m.listed[s] {
			out[s+"__"+it.name] = true
		}
	}
	return out
}

// forget takes what is gone now out of what walks must return.
func (m *model) forget() {
	now := m.names()
	for _, w := range m.walkers {
		for name := range w.there {
			if !now[name] {
				delete(w.there, name)
			}
		}
	}
}

// check holds the whole list against the model.
func (m *model) check() {
	var want []string
	for _, s := range m.configured {
		for _, it := range m.listed[s] {
			want = append(want, s+"__"+it.name)
		}
	}
	if got, _ := walk(m.t, m.c, mcp.Tools, mcp.LatestSession); !slices.Equal(got, want) {
		m.t.Fatalf("order\n got %q\nwant %q", got, want)
	}
	for _, name := range want {
		if e, ok := m.c.Find(mcp.Tools, name); !ok || e.Exposed != name {
			m.t.Fatalf("%s is listed and not found", name)
		}
	}
}

func (m *model) finish() {
	for len(m.walkers) > 0 {
		m.advance()
	}
	closeStore(m.t, m.store)
}

// TestSharedURIsAmongChanges lets servers list the same URIs at random: each URI
// is listed once, by one of those that list it now, and found there.
func TestSharedURIsAmongChanges(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	store := openStore(t, dir)
	options := func() catalog.Options {
		return catalog.Options{Store: store, Page: mcp.PageLimits{Items: 2}}
	}
	c := open(servers("a", "b", "c"), options())
	wanted := make(map[string]map[string]bool) // servers by URI
	owners := make(map[string]string)
	lists := make(map[string]catalog.Lists)
	for range 2000 {
		server := string("abc"[r.IntN(3)])
		list := &catalog.List{}
		for i := range 6 {
			uri := fmt.Sprintf("file:///%d", i)
			if wanted[uri] == nil {
				wanted[uri] = make(map[string]bool)
			}
			wanted[uri][server] = r.IntN(2) == 0
			if wanted[uri][server] {
				list.Items = append(list.Items, resource(uri, server))
			}
		}
		lists[server] = catalog.Lists{mcp.Resources: list}
		c.Replace(server, lists[server])
		if r.IntN(50) == 0 {
			closeStore(t, store)
			store = openStore(t, dir)
			c = open(servers("a", "b", "c"), options())
			for _, s := range []string{"c", "b", "a"} {
				c.Replace(s, lists[s])
			}
		}
		listed := names(t, c, mcp.Resources)
		for uri, by := range wanted {
			n := 0
			for _, u := range listed {
				if u == uri {
					n++
				}
			}
			any := by["a"] || by["b"] || by["c"]
			if any && n != 1 || !any && n != 0 {
				t.Fatalf("%s is listed %d times, wanted by %v", uri, n, by)
			}
			e, found := c.Find(mcp.Resources, uri)
			if found != any || found && !by[e.Server] {
				t.Fatalf("%s found %v at %+v, wanted by %v", uri, found, e, by)
			}
			if old := owners[uri]; found && by[old] && e.Server != old {
				t.Fatalf("%s went from %s, which still lists it, to %s", uri, old, e.Server)
			}
			owners[uri] = ""
			if found {
				owners[uri] = e.Server
			}
		}
	}
}
