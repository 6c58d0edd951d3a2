package catalog_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/mcp"
)

// C-001: all items of a list that came in pages are listed, whatever the size of
// our own pages.
func TestAllItemsAtAnyPageSize(t *testing.T) {
	items := fixture(t, "pag_three_pages.jsonl")
	for size := 1; size <= 8; size++ {
		c := open(servers("s"), catalog.Options{Page: mcp.PageLimits{Items: size}})
		c.Replace("s", catalog.Lists{mcp.Tools: listOf(items...)})
		wantNames(t, c, mcp.Tools, "s__t1", "s__t2", "s__t3", "s__t4", "s__t5", "s__t6")
	}
}

// C-002: walks of an unchanged catalog are the same, byte for byte, also while
// servers list again what they listed before, and after a restart.
func TestSeeds5_01_WalksOfAnUnchangedCatalog(t *testing.T) {
	dir := t.TempDir()
	var options []catalog.ServerOptions
	lists := make(map[string]catalog.Lists)
	for i := range 35 {
		name := fmt.Sprintf("server%d", (i*17)%35)
		var tools []string
		for j := range 12 {
			tools = append(tools, fmt.Sprintf("tool%d", (j*5)%12))
		}
		options = append(options, servers(name)...)
		lists[name] = toolsNamed(tools...)
	}
	var first []byte
	for life := range 3 {
		store := openStore(t, dir)
		c := open(options, catalog.Options{Store: store, Page: mcp.PageLimits{Items: 20}})
		for name, l := range lists {
			c.Replace(name, l)
		}
		for range 5 {
			var cursor *string
			var raw []byte
			seen := make(map[string]bool)
			for n := 0; ; n++ {
				items, next, bytes := page(t, c, mcp.Tools, mcp.Latest, cursor)
				raw = append(raw, bytes...)
				for _, it := range items {
					seen[keyOf(t, mcp.Tools, it)] = true
				}
				name := options[n%35].Name
				if c.Replace(name, lists[name]) {
					t.Fatal("a list that is the same counts as a change")
				}
				if cursor = next; next == nil {
					break
				}
			}
			if first == nil {
				first = raw
			}
			if !bytes.Equal(raw, first) {
				t.Fatalf("life %d: a walk differs", life)
			}
			if len(seen) != 420 {
				t.Fatalf("%d tools, want 420", len(seen))
			}
		}
		closeStore(t, store)
	}
}

// C-010: cursors that are damaged, of another kind, of another order, or of a
// catalog whose order was never saved, are refused and never taken for the first
// page.
func TestSeeds5_05_ForeignCursors(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	small := mcp.PageLimits{Items: 1}
	c := open(servers("a", "b"), catalog.Options{Store: store, Page: small})
	lists := toolsNamed("x", "y")
	lists[mcp.Prompts] = listOf(jsontext.Value(`{"name":"p"}`), jsontext.Value(`{"name":"q"}`))
	c.Replace("a", lists)
	c.Replace("b", lists)
	_, good, _ := page(t, c, mcp.Tools, mcp.Latest, nil)
	_, ofPrompts, _ := page(t, c, mcp.Prompts, mcp.Latest, nil)

	bad := []string{"", "AAAA", " ", "\x00", *ofPrompts, *good + "A", (*good)[1:], strings.Repeat("A", 5000), "é"}
	for i := range *good {
		damaged := []byte(*good)
		damaged[i] ^= 1
		bad = append(bad, string(damaged))
	}
	at, err := mcp.DecodeCursor(*good)
	if err != nil {
		t.Fatal(err)
	}
	for _, edit := range []func(*mcp.Cursor){
		func(c *mcp.Cursor) { c.Epoch++ },
		func(c *mcp.Cursor) { c.Epoch = 0 },
		func(c *mcp.Cursor) { c.View = "other" },
		func(c *mcp.Cursor) { c.Kind = mcp.Templates },
	} {
		other := at
		edit(&other)
		bad = append(bad, other.Encode())
	}
	for _, cursor := range bad {
		wantBadCursor(t, c, mcp.Tools, cursor)
	}
	closeStore(t, store)

	t.Run("after a reordering", func(t *testing.T) {
		store := openStore(t, dir)
		defer closeStore(t, store)
		c := open(servers("b", "a"), catalog.Options{Store: store, Page: small})
		wantBadCursor(t, c, mcp.Tools, *good)
		wantNames(t, c, mcp.Tools, "b__x", "b__y", "a__x", "a__y")
	})
	t.Run("without a store", func(t *testing.T) {
		wantBadCursor(t, open(servers("a", "b"), catalog.Options{}), mcp.Tools, *good)
	})
	t.Run("after the state was lost", func(t *testing.T) {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		wantBadCursor(t, open(servers("a", "b"), catalog.Options{Store: openStore(t, dir)}), mcp.Tools, *good)
	})
}

// A forged position is a position: it leads nowhere bad.
func FuzzCursor(f *testing.F) {
	c := open(servers("a", "b"), catalog.Options{Page: mcp.PageLimits{Items: 2}})
	c.Replace("a", toolsNamed("x", "y", "z"))
	c.Replace("b", toolsNamed("x", "y", "z"))
	raw, err := c.List(mcp.Tools, mcp.Latest, nil)
	if err != nil {
		f.Fatal(err)
	}
	_, next, _ := page(f, c, mcp.Tools, mcp.Latest, nil)
	at, err := mcp.DecodeCursor(*next)
	if err != nil {
		f.Fatal(err)
	}
	f.Add("AAAA", at.High, at.Place, at.Ordinal)
	f.Add(*next, uint64(0), uint64(0), uint64(0))
	f.Add(string(raw), ^uint64(0), ^uint64(0), ^uint64(0))
	f.Fuzz(func(t *testing.T, text string, high, place, ordinal uint64) {
		_, _ = c.List(mcp.Tools, mcp.LatestSession, &text)
		forged := mcp.Cursor{Epoch: at.Epoch, Kind: mcp.Tools, High: high, Place: place, Ordinal: ordinal}.Encode()
		seen := make(map[string]bool)
		for cursor := &forged; cursor != nil; {
			items, next, _ := page(t, c, mcp.Tools, mcp.Latest, cursor)
			for _, it := range items {
				key := keyOf(t, mcp.Tools, it)
				if seen[key] {
					t.Fatalf("%s twice behind %q", key, forged)
				}
				seen[key] = true
			}
			cursor = next
		}
	})
}

// A walk goes on behind an item, a server or a whole block that is gone.
func TestSeeds5_03_WalkOverGaps(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	opts := catalog.Options{Store: store, Page: mcp.PageLimits{Items: 2}}
	c := open(servers("a", "b", "c"), opts)
	for _, s := range []string{"a", "b", "c"} {
		c.Replace(s, toolsNamed("1", "2", "3"))
	}
	_, cursor, _ := page(t, c, mcp.Tools, mcp.Latest, nil) // behind a__2
	c.Replace("a", toolsNamed("1", "3"))
	items, cursor, _ := page(t, c, mcp.Tools, mcp.Latest, cursor) // behind b__1
	if got := keyOf(t, mcp.Tools, items[0]); got != "a__3" || len(items) != 2 {
		t.Errorf("the second page begins with %s and has %d items", got, len(items))
	}
	closeStore(t, store)

	opts.Store = openStore(t, dir)
	c = open(servers("a", "c"), opts)
	c.Replace("c", toolsNamed("0", "1", "2", "3"))
	items, _, _ = page(t, c, mcp.Tools, mcp.Latest, cursor)
	var got []string
	for _, it := range items {
		got = append(got, keyOf(t, mcp.Tools, it))
	}
	if !slices.Equal(got, []string{"c__1", "c__2"}) {
		t.Errorf("behind the server that is gone: %q", got)
	}
}

// Every item is on a page, also one that is larger than a page.
func TestPagesByBytes(t *testing.T) {
	c := open(servers("a"), catalog.Options{Page: mcp.PageLimits{Bytes: 300}})
	big := strings.Repeat("x", 1000)
	c.Replace("a", catalog.Lists{mcp.Tools: listOf(tool("1", ""), tool("2", big), tool("3", ""), tool("4", ""), tool("5", big))})
	wantNames(t, c, mcp.Tools, "a__1", "a__2", "a__3", "a__4", "a__5")
	c.Replace("a", toolsNamed())
	wantNames(t, c, mcp.Tools)
}

// Pages that are asked for out of turn are those of the walk.
func TestPagesInAnyOrder(t *testing.T) {
	c := open(servers("a"), catalog.Options{Page: mcp.PageLimits{Items: 1}})
	c.Replace("a", toolsNamed("1", "2", "3"))
	_, raw := walk(t, c, mcp.Tools, mcp.Latest)
	_, second, _ := page(t, c, mcp.Tools, mcp.Latest, nil)
	_, third, _ := page(t, c, mcp.Tools, mcp.Latest, second)
	c.Replace("a", toolsNamed("1", "2", "3", "4")) // a new view, without pages
	c.Replace("a", toolsNamed("1", "2", "3"))
	_, _, page3 := page(t, c, mcp.Tools, mcp.Latest, third)
	_, _, page2 := page(t, c, mcp.Tools, mcp.Latest, second)
	_, _, page1 := page(t, c, mcp.Tools, mcp.Latest, nil)
	if got := fmt.Sprintf("%s\n%s\n%s\n", page1, page2, page3); got != string(raw) {
		t.Errorf("got\n%swant\n%s", got, raw)
	}
}

// A walk that began before an item went and came back does not return it again,
// nor what is newer than the walk, though later walks have the same pages.
func TestReturnerDuringAWalk(t *testing.T) {
	c := open(servers("a"), catalog.Options{Page: mcp.PageLimits{Items: 1}})
	c.Replace("a", toolsNamed("1", "2", "3"))
	_, cursor, _ := page(t, c, mcp.Tools, mcp.Latest, nil)
	_, cursor, _ = page(t, c, mcp.Tools, mcp.Latest, cursor) // behind 2
	c.Replace("a", toolsNamed("2", "3"))
	c.Replace("a", toolsNamed("1", "2", "3"))
	wantNames(t, c, mcp.Tools, "a__2", "a__3", "a__1")
	items, cursor, _ := page(t, c, mcp.Tools, mcp.Latest, cursor)
	if got := keyOf(t, mcp.Tools, items[0]); got != "a__3" || cursor != nil {
		t.Errorf("behind 2 comes %s, and more: %v", got, cursor != nil)
	}
}
