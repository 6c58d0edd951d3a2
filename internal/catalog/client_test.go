package catalog_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/mcp"
)

// apart returns servers a, p and z of which p runs for each client apart.
func apart() []catalog.ServerOptions {
	all := servers("a", "p", "z")
	all[1].PerClient = true
	return all
}

// TestClient: what a server lists for one client stands in its place in that
// client's lists and in no other.
func TestClient(t *testing.T) {
	c := catalog.New(apart(), catalog.Options{})
	one, two := c.Join(""), c.Join("somebody")
	if isReady(c) || isReady(one) {
		t.Error("ready before any server was heard of")
	}
	one.Replace("p", toolsNamed("early")) // waits for the others, as theirs do
	c.Replace("a", toolsNamed("t"))
	c.Replace("z", toolsNamed("t"))
	if !isReady(c) || !isReady(one) || isReady(two) {
		t.Errorf("ready: all %v, one %v, two %v", isReady(c), isReady(one), isReady(two))
	}
	wantNames(t, c, mcp.Tools, "a__t", "z__t")
	wantNames(t, one, mcp.Tools, "a__t", "p__early", "z__t")
	wantNames(t, two, mcp.Tools, "a__t", "z__t")
	if c.Replace("p", toolsNamed("no")) {
		t.Error("lists of such a server for all are taken")
	}
	two.Heard("p")
	if !isReady(two) {
		t.Error("a client waits for a server that was tried")
	}
	signals := 0
	defer c.Watch(func() { signals++ })()
	before := [...]uint64{one.Fingerprint(mcp.Tools, mcp.Latest), two.Fingerprint(mcp.Tools, mcp.Latest)}
	two.Replace("p", toolsNamed("x", "y"))
	if signals == 0 || one.Fingerprint(mcp.Tools, mcp.Latest) != before[0] || two.Fingerprint(mcp.Tools, mcp.Latest) == before[1] {
		t.Errorf("%d signals; fingerprints changed: %v %v", signals,
			one.Fingerprint(mcp.Tools, mcp.Latest) != before[0], two.Fingerprint(mcp.Tools, mcp.Latest) != before[1])
	}
	wantNames(t, two, mcp.Tools, "a__t", "p__x", "p__y", "z__t")
	if _, ok := one.Find(mcp.Tools, "p__x"); ok {
		t.Error("one client finds the other's")
	}
	if e, ok := two.Find(mcp.Tools, "p__x"); !ok || e.Server != "p" || e.Own != "x" {
		t.Errorf("found %+v", e)
	}
	if _, ok := two.Find(mcp.Tools, "a__t"); !ok {
		t.Error("a shared tool is not found")
	}
	c.Replace("a", toolsNamed("t", "u"))
	wantNames(t, two, mcp.Tools, "a__t", "a__u", "p__x", "p__y", "z__t")
}

// TestClientRemembers: a client sees at first what its principal's last one saw,
// and no other's; what stays keeps its place, and a walk goes on.
func TestClientRemembers(t *testing.T) {
	store := openStore(t, t.TempDir())
	defer closeStore(t, store)
	opts := catalog.Options{Store: store, Page: mcp.PageLimits{Items: 2}}
	c := open(apart(), opts)
	one := c.Join("anna")
	one.Replace("p", toolsNamed("b", "a", "c"))
	wantNames(t, c.Join("bert"), mcp.Tools)
	check := func(c *catalog.Catalog) {
		t.Helper()
		again := c.Join("anna")
		defer again.Leave()
		if !isReady(again) {
			t.Error("a client waits for a list that is known")
		}
		wantNames(t, again, mcp.Tools, "p__b", "p__a", "p__c")
		_, next, _ := page(t, again, mcp.Tools, mcp.Latest, nil)
		again.Replace("p", toolsNamed("d", "c", "b", "a"))
		items, _, _ := page(t, again, mcp.Tools, mcp.Latest, next)
		if len(items) != 1 || keyOf(t, mcp.Tools, items[0]) != "p__c" {
			t.Errorf("the walk goes on with %s", items)
		}
		wantNames(t, again, mcp.Tools, "p__b", "p__a", "p__c", "p__d")
		again.Replace("p", toolsNamed("b", "a", "c"))
	}
	check(c)
	if err := store.Flush(); err != nil {
		t.Fatal(err)
	}
	other := open(apart(), opts)
	wantNames(t, other.Join("bert"), mcp.Tools)
	check(other)
}

// TestClientsShareViews: clients that see the same, since no server has listed
// anything for them, are shown the same bytes.
func TestClientsShareViews(t *testing.T) {
	c := open(apart(), catalog.Options{})
	c.Join("anna").Replace("p", toolsNamed("a"))
	one, two, other := c.Join("anna"), c.Join("anna"), c.Join("bert")
	first := func(cl *catalog.Client) *byte {
		_, _, raw := page(t, cl, mcp.Tools, mcp.Latest, nil)
		return &raw[0]
	}
	if first(one) != first(two) || first(one) == first(other) {
		t.Error("pages are not shared by the clients of a principal, or by others, too")
	}
	before := first(one)
	two.Replace("p", toolsNamed("b"))
	wantNames(t, one, mcp.Tools, "p__b") // what was listed last
	wantNames(t, two, mcp.Tools, "p__b")
	if first(one) == before || first(one) == first(two) {
		t.Error("a list of its own is shared")
	}
}

// TestClientResources: a URI that a shared server has is that server's, and one
// that two of a client's servers have is the first one's.
func TestClientResources(t *testing.T) {
	all := append(apart(), catalog.ServerOptions{Name: "q", PerClient: true})
	c := open(all, catalog.Options{})
	one := c.Join("")
	c.Replace("z", resourcesAt("x:shared"))
	one.Replace("q", resourcesAt("x:both", "x:q"))
	one.Replace("p", resourcesAt("x:shared", "x:both", "x:p"))
	wantNames(t, one, mcp.Resources, "x:both", "x:p", "x:shared", "x:q")
	owner := func(uri string) string {
		e, ok := one.Find(mcp.Resources, uri)
		if !ok {
			return ""
		}
		return e.Server
	}
	if owner("x:shared") != "z" || owner("x:both") != "p" || owner("x:q") != "q" {
		t.Errorf("owners %s, %s, %s", owner("x:shared"), owner("x:both"), owner("x:q"))
	}
	c.Replace("z", resourcesAt("x:p"))
	wantNames(t, one, mcp.Resources, "x:shared", "x:both", "x:p", "x:q")
	if owner("x:shared") != "p" || owner("x:p") != "z" {
		t.Errorf("owners %s, %s", owner("x:shared"), owner("x:p"))
	}
}

// TestClientReconfigure: a change of the configuration reaches what is listed for
// single clients.
func TestClientReconfigure(t *testing.T) {
	c := open(apart(), catalog.Options{})
	one := c.Join("")
	one.Replace("p", toolsNamed("t"))
	c.Replace("a", toolsNamed("t"))
	wantNames(t, one, mcp.Tools, "a__t", "p__t")
	next := apart()
	prefix := "other_"
	next[1].Prefix = &prefix
	slices.Reverse(next)
	c.Reconfigure(next)
	wantNames(t, one, mcp.Tools, "other_t", "a__t")
	next[1].PerClient = false
	c.Reconfigure(next)
	wantNames(t, one, mcp.Tools, "a__t")
	c.Replace("p", toolsNamed("t"))
	wantNames(t, c, mcp.Tools, "other_t", "a__t")
}

// TestClientRaces: clients come, list and go while lists of all sorts change; each
// sees whole lists of its own.
func TestClientRaces(t *testing.T) {
	c := open(apart(), catalog.Options{})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 50 {
				cl := c.Join(fmt.Sprint(i % 2))
				own := fmt.Sprintf("own%d-%d", i, n)
				cl.Replace("p", toolsNamed(own, "same"))
				c.Replace("a", toolsNamed(fmt.Sprint("shared", n)))
				_, raw := walk(t, cl, mcp.Tools, mcp.Latest)
				if !bytes.Contains(raw, []byte(own)) || strings.Count(string(raw), `"p__`) != 2 {
					t.Errorf("client lists %s", raw)
				}
				cl.Leave()
			}
		})
	}
	all.Wait()
}
