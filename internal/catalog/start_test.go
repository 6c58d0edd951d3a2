package catalog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
)

func isReady(c interface{ Ready() <-chan struct{} }) bool {
	select {
	case <-c.Ready():
		return true
	default:
		return false
	}
}

// C-011, C-013: in whatever order servers answer at the start, order and names
// are the same.
func TestSeeds5_02_OrderOfArrival(t *testing.T) {
	var opts []catalog.ServerOptions
	for _, name := range []string{"zeta", "alpha", "mid", "Beta", "omega"} {
		opts = append(opts, prefixed(name, "")) // all want the same names
	}
	var want []string
	for run := range uint64(20) {
		c := catalog.New(opts, catalog.Options{})
		for _, i := range rand.New(rand.NewPCG(run, 0)).Perm(len(opts)) {
			if isReady(c) {
				t.Fatal("ready before all servers were heard of")
			}
			lists := toolsNamed("x", "b", "a")
			lists[mcp.Prompts] = listOf(jsontext.Value(`{"name":"q"}`), jsontext.Value(`{"name":"p"}`))
			lists[mcp.Resources] = listOf(resource("file:///same", opts[i].Name), resource("file:///"+opts[i].Name, ""))
			lists[mcp.Templates] = listOf(jsontext.Value(`{"uriTemplate":"file:///{x}","name":"` + opts[i].Name + `"}`))
			c.Replace(opts[i].Name, lists)
		}
		if !isReady(c) {
			t.Fatalf("waiting for %q", c.Waiting())
		}
		var got []string
		for _, k := range mcp.Kinds {
			got = append(got, names(t, c, k)...)
			c.Each(k, func(e *catalog.Entry) bool {
				got = append(got, e.Server)
				return true
			})
		}
		if want == nil {
			want = got
		}
		if !slices.Equal(got, want) {
			t.Fatalf("run %d:\n got %q\nwant %q", run, got, want)
		}
	}
	if want[0] != "x" || want[15] != "zeta" {
		t.Errorf("the first server does not come first: %q", want)
	}
}

// A first list waits for servers that were never seen, until each was heard of or
// the time is over; those that were seen are listed from what is known.
func TestWaiting(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	c := catalog.New(servers("a", "b", "c"), catalog.Options{Store: store})
	signals := 0
	stop := c.Watch(func() { signals++ })
	defer stop()
	c.Replace("c", toolsNamed("z"))
	c.Heard("a")
	c.Heard("nobody")
	if got := c.Waiting(); !slices.Equal(got, []string{"b"}) || isReady(c) || signals != 0 {
		t.Errorf("waiting for %q, ready %v, %d signals", got, isReady(c), signals)
	}
	wantNames(t, c, mcp.Tools)
	c.Open()
	c.Open()
	if !isReady(c) || signals != 1 {
		t.Errorf("ready %v, %d signals", isReady(c), signals)
	}
	wantNames(t, c, mcp.Tools, "c__z")
	c.Replace("a", catalog.Lists{mcp.Tools: listOf()}) // empty, but known
	closeStore(t, store)

	store = openStore(t, dir)
	c = catalog.New(servers("a", "b", "c"), catalog.Options{Store: store})
	if got := c.Waiting(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("waiting for %q", got)
	}
	wantNames(t, c, mcp.Tools, "c__z")
	if c.Replace("c", toolsNamed("y", "z")) {
		t.Error("a list that waits counts as a change")
	}
	if !c.Replace("b", toolsNamed("x")) || !isReady(c) {
		t.Error("the last list opens the catalog and is no change")
	}
	wantNames(t, c, mcp.Tools, "b__x", "c__z", "c__y")
}

// What waits is put together from all that came before the start.
func TestEarlyListsOfOneServer(t *testing.T) {
	c := catalog.New(servers("a", "b"), catalog.Options{})
	lists := toolsNamed("old")
	lists[mcp.Prompts] = listOf(jsontext.Value(`{"name":"p"}`))
	c.Replace("a", lists)
	c.Replace("a", toolsNamed("new"))
	c.Heard("b")
	wantNames(t, c, mcp.Tools, "a__new")
	wantNames(t, c, mcp.Prompts, "a__p")
}

// C-014, C-029: a server that cannot be reached for a while changes nothing, nor
// does one that lists the same again.
func TestNothingChanges(t *testing.T) {
	c := open(servers("a", "b"), catalog.Options{})
	lists := toolsNamed("x", "y")
	c.Replace("a", lists)
	c.Replace("b", toolsNamed("z"))
	_, before := walk(t, c, mcp.Tools, mcp.Latest)
	first, err := c.List(mcp.Tools, mcp.Latest, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := c.Fingerprint(mcp.Tools, mcp.LatestSession)
	stop := c.Watch(func() { t.Error("a signal without a change") })
	defer stop()
	for range 30 {
		c.Heard("b") // tried, and no list
		for _, l := range []catalog.Lists{lists, toolsNamed("x", "y"), toolsNamed("y", "x"), {}} {
			if c.Replace("a", l) {
				t.Error("the same list counts as a change")
			}
		}
		if c.Replace("unknown", lists) {
			t.Error("an unknown server changes something")
		}
	}
	again, err := c.List(mcp.Tools, mcp.Latest, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, after := walk(t, c, mcp.Tools, mcp.Latest); !bytes.Equal(before, after) || sum != c.Fingerprint(mcp.Tools, mcp.LatestSession) {
		t.Errorf("changed from\n%s\nto\n%s", before, after)
	}
	if &first[0] != &again[0] {
		t.Error("the page was encoded again")
	}
}

// Definitions come back from the store byte for byte.
func TestDefinitionsSurviveByteForByte(t *testing.T) {
	raw := []string{
		`{"name":"a","inputSchema":{"type":"object"},"x":1e400,"n":123456789012345678901234567890,"z":-0.0}`,
		"{\"name\":\"b\",\"description\":\"\u2028\u2029<&>\u0000é\\u00e9\\ud83d\\ude00\\/\",\"inputSchema\":{\"type\":\"object\"}}",
		`{ "inputSchema" : { "type" : "object" } , "name" : "\u0063" }`,
		`{"name":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"a":{"b":1,"a":2}}`,
		"{\"name\":\"e\",\r\n\t\"inputSchema\":{\"type\":\"object\"}}",
	}
	raw[1] = string(bytes.ReplaceAll([]byte(raw[1]), []byte{0}, []byte(`\u0000`)))
	list := &catalog.List{}
	for _, r := range raw {
		list.Items = append(list.Items, jsontext.Value(r))
	}
	dir := t.TempDir()
	opts := []catalog.ServerOptions{prefixed("s", "")}
	var pages [2][2][]byte
	for life := range 2 {
		store := openStore(t, dir)
		c := open(opts, catalog.Options{Store: store})
		if life == 0 {
			c.Replace("s", catalog.Lists{mcp.Tools: list})
		}
		items, _, _ := page(t, c, mcp.Tools, mcp.Latest, nil)
		for i, it := range items {
			if string(it) != raw[i] {
				t.Errorf("life %d: got %s\nwant %s", life, it, raw[i])
			}
		}
		_, pages[life][0] = walk(t, c, mcp.Tools, mcp.Latest)
		_, pages[life][1] = walk(t, c, mcp.Tools, mcp.LatestSession)
		closeStore(t, store)
	}
	for f := range pages[0] {
		if !bytes.Equal(pages[0][f], pages[1][f]) {
			t.Errorf("a restart changed\n%s\nto\n%s", pages[0][f], pages[1][f])
		}
	}
	if bytes.Contains(pages[0][1], []byte("outputSchema")) {
		t.Error("a client with sessions is given a free-form outputSchema")
	}
}

// copyDir copies a directory as a crash at this moment would leave it.
func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(filepath.Join(to, "copy"), os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(to, "copy")
}

// highest returns the ordinal of the newest tool, from a cursor.
func highest(t *testing.T, c *catalog.Catalog) uint64 {
	t.Helper()
	_, next, _ := page(t, c, mcp.Tools, mcp.Latest, nil)
	if next == nil {
		t.Fatal("there is only one page")
	}
	at, err := mcp.DecodeCursor(*next)
	if err != nil {
		t.Fatal(err)
	}
	return at.High
}

// An ordinal that was given out is never used again, even if nothing was saved
// after it; and a walk that such a process began returns nothing twice.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	small := mcp.PageLimits{Items: 1}
	c := open(servers("a", "b"), catalog.Options{Store: openStore(t, dir), Page: small})
	crashed := copyDir(t, dir) // nothing but the order is saved
	c.Replace("a", toolsNamed("1", "2", "3"))
	c.Replace("b", toolsNamed("1"))
	items, cursor, _ := page(t, c, mcp.Tools, mcp.Latest, nil)
	seen := map[string]int{keyOf(t, mcp.Tools, items[0]): 1}
	high := highest(t, c)

	c = open(servers("a", "b"), catalog.Options{Store: openStore(t, crashed), Page: small})
	c.Replace("b", toolsNamed("1", "2", "3"))
	c.Replace("a", toolsNamed("1", "2", "3"))
	for cursor != nil {
		items, cursor, _ = page(t, c, mcp.Tools, mcp.Latest, cursor)
		for _, it := range items {
			seen[keyOf(t, mcp.Tools, it)]++
		}
	}
	for name, n := range seen {
		if n > 1 {
			t.Errorf("%s was returned %d times", name, n)
		}
	}
	c.Replace("b", toolsNamed())
	c.Replace("a", toolsNamed("1", "2"))
	if now := highest(t, c); now <= high+1 {
		t.Errorf("newest ordinal %d, and %d before the crash", now, high)
	}
}

// A process that cannot save the order gives out cursors that are good for
// itself only.
func TestCursorsOfAReaderOnly(t *testing.T) {
	dir := t.TempDir()
	small := mcp.PageLimits{Items: 1}
	writer := open(servers("a"), catalog.Options{Store: openStore(t, dir), Page: small})
	writer.Replace("a", toolsNamed("1", "2"))
	reader := open(servers("a"), catalog.Options{Store: openStore(t, dir), Page: small})
	reader.Replace("a", toolsNamed("2", "1"))
	_, theirs, _ := page(t, writer, mcp.Tools, mcp.Latest, nil)
	_, own, _ := page(t, reader, mcp.Tools, mcp.Latest, nil)
	wantBadCursor(t, reader, mcp.Tools, *theirs)
	wantBadCursor(t, writer, mcp.Tools, *own)
	wantNames(t, reader, mcp.Tools, "a__2", "a__1")
}

// Whatever is in the store, the catalog starts.
func TestDamagedStore(t *testing.T) {
	item := func(ordinal uint64, raw string) state.Item { return state.Item{Ordinal: ordinal, Raw: state.Text(raw)} }
	x, y := string(tool("x", "")), string(tool("y", ""))
	for name, items := range map[string][]state.Item{
		"same ordinal":     {item(5, x), item(5, y)},
		"falling ordinals": {item(6, x), item(5, y)},
		"ordinal 0":        {item(0, x)},
		"huge ordinal":     {item(1<<63, x)},
		"same name":        {item(5, x), item(6, x)},
		"not JSON":         {item(5, "{")},
		"no definition":    {item(5, "{}")},
		"none":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			store := openStore(t, dir)
			store.SaveServer(state.Server{
				Name: "a", Key: "key of a", Prefix: "a__", Lists: map[string][]state.Item{"tools": items},
				Names: map[string][]state.Name{"tools": {{Own: "x", Exposed: "no good"}, {Own: "y", Exposed: "b__x"}, {Own: "x", Exposed: "b__x"}}},
			})
			store.SaveIndex(state.Index{Epoch: 7, Ordinals: 1<<64 - 1, Places: []state.Place{{Server: "a", At: 9}, {Server: "b", At: 9}}})
			closeStore(t, store)
			store = openStore(t, dir)
			c := open(servers("a", "b"), catalog.Options{Store: store, Page: mcp.PageLimits{Items: 1}})
			c.Replace("b", toolsNamed("x"))
			c.Replace("a", toolsNamed("x", "y"))
			got := names(t, c, mcp.Tools)
			if len(got) != 3 || got[0] == got[1] {
				t.Errorf("names are %q", got)
			}
			for _, n := range got {
				if !legal(50).MatchString(n) {
					t.Errorf("name %q", n)
				}
			}
		})
	}
}

// Servers that are put between others, taken out and put back, have their places;
// only another order of those that were there is a new epoch.
func TestPlacesOfServers(t *testing.T) {
	dir := t.TempDir()
	var epoch uint64
	for i, step := range []struct {
		configured []string
		reorders   bool
	}{
		{[]string{"b", "d"}, true}, // the first order is one
		{[]string{"b", "c", "d"}, false},
		{[]string{"a", "b", "c", "d", "e"}, false},
		{[]string{"a", "e"}, false},
		{[]string{"a", "c", "e"}, false},
		{[]string{}, false},
		{[]string{"a", "b", "c", "d", "e"}, false},
		{[]string{"b", "a", "c", "d", "e"}, true},
		{[]string{"b", "a", "c", "d", "e"}, false},
		{[]string{"b", "b", "e"}, false},
		{[]string{"e", "b"}, true},
		{[]string{"e", "new", "b", "a"}, false},
	} {
		store := openStore(t, dir)
		c := open(servers(step.configured...), catalog.Options{Store: store})
		var want []string
		for _, s := range slices.Backward(step.configured) {
			c.Replace(s, toolsNamed("t"))
		}
		for _, s := range slices.Compact(step.configured) {
			want = append(want, s+"__t")
		}
		wantNames(t, c, mcp.Tools, want...)
		now := store.Index().Epoch
		if (now != epoch) != step.reorders {
			t.Errorf("step %d: epoch %d after %d", i, now, epoch)
		}
		epoch = now
		closeStore(t, store)
	}
}

// There is room for any number of servers between two.
func TestManyInsertions(t *testing.T) {
	dir := t.TempDir()
	configured := []string{"first", "last"}
	for i := range 100 { // more than the bits of a gap
		configured = slices.Insert(configured, 1, fmt.Sprint(i))
		store := openStore(t, dir)
		c := open(servers(configured...), catalog.Options{Store: store, Page: mcp.PageLimits{Items: 1}})
		closeStore(t, store)
		var want []string
		for _, s := range slices.Backward(configured) {
			c.Replace(s, toolsNamed("t"))
			want = append(want, s+"__t")
		}
		slices.Reverse(want)
		wantNames(t, c, mcp.Tools, want...)
	}
}
