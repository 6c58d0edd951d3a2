package catalog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
)

// TestReconfigure_AsAfterRestart makes one random change of the configuration after
// the other, while servers give lists: what clients see is always what they would
// see of a catalog that is started with that configuration, to the byte.
func TestReconfigure_AsAfterRestart(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		store := openStore(t, t.TempDir())
		prefix := func() *string {
			return []*string{nil, new(string), new("same__")}[r.IntN(3)]
		}
		var all []catalog.ServerOptions
		for i := range 5 {
			all = append(all, catalog.ServerOptions{Name: fmt.Sprintf("s%d", i), Key: "k", Prefix: prefix()})
		}
		now := slices.Clone(all[:2])
		c := open(now, catalog.Options{Store: store, Page: mcp.PageLimits{Items: 3}})
		for step := range 40 {
			if r.IntN(3) > 0 {
				name := all[r.IntN(len(all))].Name
				c.Replace(name, someLists(r))
			} else {
				now = nil
				for _, i := range order(r, len(all)) {
					if r.IntN(5) == 0 {
						all[i].Prefix = prefix()
					}
					if r.IntN(3) > 0 {
						now = append(now, all[i])
					}
				}
				c.Expect([]string{firstOf(now)})
				c.Replace(firstOf(now), someLists(r))
				c.Reconfigure(now)
			}
			other := restarted(t, store, now)
			for _, k := range mcp.Kinds {
				_, got := walk(t, c, k, mcp.Latest)
				_, want := walk(t, other, k, mcp.Latest)
				if !bytes.Equal(got, want) {
					t.Fatalf("seed %d, step %d: %s are\n%s\nand would be after a restart\n%s", seed, step, k, got, want)
				}
				c.Each(k, func(e *catalog.Entry) bool {
					if found, ok := c.Find(k, e.Exposed); !ok || found != e {
						t.Fatalf("seed %d, step %d: %s %q is listed and not found", seed, step, k, e.Exposed)
					}
					return true
				})
			}
		}
	}
}

func firstOf(list []catalog.ServerOptions) string {
	if len(list) == 0 {
		return "nobody"
	}
	return list[0].Name
}

// order returns the numbers below n, most often in their order.
func order(r *rand.Rand, n int) []int {
	if r.IntN(4) == 0 {
		return r.Perm(n)
	}
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// someLists returns lists with some items that other servers have, too.
func someLists(r *rand.Rand) catalog.Lists {
	var names, uris []string
	for i := range 4 {
		if r.IntN(2) == 0 {
			names = append(names, fmt.Sprintf("t%d", i))
		}
		if r.IntN(2) == 0 {
			uris = append(uris, fmt.Sprintf("file:///%d", i))
		}
	}
	lists := toolsNamed(names...)
	lists[mcp.Resources] = resourcesAt(uris...)[mcp.Resources]
	return lists
}

// restarted returns a catalog of a copy of what is saved.
func restarted(t *testing.T, store *state.Store, servers []catalog.ServerOptions) *catalog.Catalog {
	t.Helper()
	if err := store.Flush(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(store.Dir())); err != nil {
		t.Fatal(err)
	}
	return open(servers, catalog.Options{Store: openStore(t, dir), Page: mcp.PageLimits{Items: 3}})
}

// TestReconfigure_Expect has servers that come give their lists before they are
// there: nothing is seen of them until then, and all at once.
func TestReconfigure_Expect(t *testing.T) {
	c := open(servers("a", "b"), catalog.Options{})
	c.Replace("a", toolsNamed("x"))
	c.Replace("b", toolsNamed("y"))
	signals := 0
	defer c.Watch(func() { signals++ })()
	heard := c.Expect([]string{"b", "c", "d"})
	c.Replace("c", toolsNamed("z"))
	c.Replace("b", toolsNamed("w"))
	select {
	case <-heard:
		t.Error("d was not heard of")
	default:
	}
	c.Heard("d")
	select {
	case <-heard:
	default:
		t.Error("all were heard of")
	}
	if got := names(t, c, mcp.Tools); !slices.Equal(got, []string{"a__x", "b__y"}) || signals != 0 {
		t.Errorf("before: %q, %d signals", got, signals)
	}
	if !c.Reconfigure(servers("c", "b", "d")) || signals != 1 {
		t.Errorf("%d signals", signals)
	}
	if got := names(t, c, mcp.Tools); !slices.Equal(got, []string{"c__z", "b__w"}) {
		t.Errorf("after: %q", got)
	}
	if _, ok := c.Find(mcp.Tools, "a__x"); ok {
		t.Error("what went is still found")
	}
	c.Replace("d", toolsNamed("v"))
	if got := names(t, c, mcp.Tools); !slices.Equal(got, []string{"c__z", "b__w", "d__v"}) {
		t.Errorf("later: %q", got)
	}
	if c.Replace("a", toolsNamed("x")) {
		t.Error("a server that went can list")
	}
}

// TestReconfigure_OtherServer keeps the list of a server that is reached in another
// way now, until it gives one itself; but another process does not show it.
func TestReconfigure_OtherServer(t *testing.T) {
	store := openStore(t, t.TempDir())
	c := open(servers("a"), catalog.Options{Store: store})
	c.Replace("a", toolsNamed("x"))
	changed := []catalog.ServerOptions{{Name: "a", Key: "another"}}
	c.Reconfigure(changed)
	if got := names(t, c, mcp.Tools); !slices.Equal(got, []string{"a__x"}) {
		t.Errorf("before it lists: %q", got)
	}
	if got := names(t, restarted(t, store, changed), mcp.Tools); got != nil {
		t.Errorf("after a restart: %q", got)
	}
	c.Replace("a", toolsNamed("x"))
	if got := names(t, restarted(t, store, changed), mcp.Tools); !slices.Equal(got, []string{"a__x"}) {
		t.Errorf("after it has listed and a restart: %q", got)
	}
}

// TestReconfigure_Freed has a server go whose names and URIs others want.
func TestReconfigure_Freed(t *testing.T) {
	a, b := prefixed("a", ""), prefixed("b", "")
	c := open([]catalog.ServerOptions{a, b}, catalog.Options{})
	lists := toolsNamed("x")
	lists[mcp.Resources] = resourcesAt("file:///r")[mcp.Resources]
	c.Replace("a", lists)
	c.Replace("b", resourcesAt("file:///r", "file:///s"))
	if got := names(t, c, mcp.Resources); !slices.Equal(got, []string{"file:///r", "file:///s"}) {
		t.Fatalf("before: %q", got)
	}
	c.Reconfigure([]catalog.ServerOptions{b})
	if got := names(t, c, mcp.Resources); !slices.Equal(got, []string{"file:///s", "file:///r"}) {
		t.Errorf("the URI that is free again: %q", got)
	}
	c.Replace("b", toolsNamed("x"))
	if e, ok := c.Find(mcp.Tools, "x"); !ok || e.Server != "b" {
		t.Errorf("the name that is free again: %q", names(t, c, mcp.Tools))
	}
}
