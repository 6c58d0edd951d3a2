package catalog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/mcp"
)

func legal(length int) *regexp.Regexp {
	return regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z0-9_-]{1,%d}$`, length))
}

// C-107: a long name is shortened, the same way every time, and leads to the
// server's own.
func TestLongName(t *testing.T) {
	server := strings.Repeat("s", 40)
	items := fixture(t, "nam_long.jsonl")
	own := keyOf(t, mcp.Tools, items[0])
	for _, length := range []int{0, 1, 5, 8, 9, 10, 30, 64, 128} {
		var first string
		for range 3 {
			c := open(servers(server), catalog.Options{NameLength: length})
			c.Replace(server, catalog.Lists{mcp.Tools: listOf(items...)})
			name := exposed(c, mcp.Tools, server, own)
			most := length
			if most == 0 {
				most = 50
			}
			if !legal(most).MatchString(name) {
				t.Fatalf("length %d: exposed name %q", length, name)
			}
			if first == "" {
				first = name
			}
			if name != first {
				t.Errorf("length %d: %q, and before %q", length, name, first)
			}
			if e, ok := c.Find(mcp.Tools, name); !ok || e.Own != own {
				t.Errorf("length %d: %q leads to %+v", length, name, e)
			}
			if r, _ := c.Report(server); (len(r.Renamed) == 1) != (most < 42+len(own)) {
				t.Errorf("length %d: report says %v", length, r.Renamed)
			}
		}
	}
}

// C-109: names that look alike when put together stay apart, and the first owner
// keeps its name.
func TestSeparatorInNames(t *testing.T) {
	data, err := os.ReadFile("testdata/nam_separator.json")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Servers map[string]struct{ Args []string } `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	order := []string{"a", "a__b", "evil_", "evil"} // of the file
	var want []byte
	for range 5 {
		c := catalog.New(servers(order...), catalog.Options{})
		for name, s := range config.Servers { // in any order
			c.Replace(name, toolsNamed(s.Args[1]))
		}
		<-c.Ready()
		keys, raw := walk(t, c, mcp.Tools, mcp.Latest)
		if want == nil {
			want = raw
		}
		if !bytes.Equal(raw, want) {
			t.Errorf("lists differ:\n%s\n%s", raw, want)
		}
		if len(keys) != 4 || keys[0] != "a__b__c" || keys[2] != "evil____thing" {
			t.Errorf("names are %q", keys)
		}
		for i, name := range keys {
			e, ok := c.Find(mcp.Tools, name)
			if !ok || e.Server != order[i] || e.Own != config.Servers[order[i]].Args[1] {
				t.Errorf("%q leads to %+v, want server %s", name, e, order[i])
			}
			r, _ := c.Report(order[i])
			if wantRenamed := i%2 == 1; (len(r.Renamed) == 1) != wantRenamed {
				t.Errorf("report on %s says %v", order[i], r.Renamed)
			}
		}
	}
}

// C-111: illegal characters are mapped, names stay apart, and each leads to the
// server's own.
func TestIllegalNames(t *testing.T) {
	items := fixture(t, "nam_illegal.jsonl")
	for _, length := range []int{8, 12, 50, 64} {
		for _, opts := range [][]catalog.ServerOptions{servers("s"), {prefixed("s", "")}, {prefixed("s", "é.")}} {
			c := open(opts, catalog.Options{NameLength: length})
			c.Replace("s", catalog.Lists{mcp.Tools: listOf(items...)})
			keys := names(t, c, mcp.Tools)
			if len(keys) != len(items) {
				t.Fatalf("%d names for %d items", len(keys), len(items))
			}
			for i, name := range keys {
				e, ok := c.Find(mcp.Tools, name)
				if !legal(length).MatchString(name) || !ok || e.Own != keyOf(t, mcp.Tools, items[i]) {
					t.Errorf("%q leads to %+v, want %s", name, e, items[i])
				}
			}
		}
	}
}

// C-113: names differ in case.
func TestCaseOfNames(t *testing.T) {
	c := open(servers("s"), catalog.Options{})
	c.Replace("s", toolsNamed("Get", "get", "GET"))
	wantNames(t, c, mcp.Tools, "s__Get", "s__get", "s__GET")
	if e, ok := c.Find(mcp.Tools, "s__get"); !ok || e.Own != "get" {
		t.Errorf("s__get leads to %+v", e)
	}
	if _, ok := c.Find(mcp.Tools, "S__get"); ok {
		t.Error("a name is found in another case")
	}
}

// C-114: of items with the same name the first is listed, and what has no name
// is not; the log and the report say so.
func TestDuplicateAndMissingNames(t *testing.T) {
	var log bytes.Buffer
	c := open(servers("s", "other"), catalog.Options{Logger: logTo(&log)})
	items := fixture(t, "nam_dupes.jsonl")
	c.Replace("s", catalog.Lists{mcp.Tools: listOf(items...)})
	c.Replace("other", toolsNamed("y"))
	wantNames(t, c, mcp.Tools, "s__x", "s__good", "other__y")
	if e, _ := c.Find(mcp.Tools, "s__x"); !bytes.Contains(e.Definition.Object.Raw, []byte(`"first"`)) {
		t.Errorf("listed: %s", e.Definition.Object.Raw)
	}
	r, _ := c.Report("s")
	if len(r.LeftOut[mcp.Tools]) != 5 || strings.Count(log.String(), "level=WARN") != 5 {
		t.Errorf("left out: %+v\nlog: %s", r.LeftOut[mcp.Tools], log.String())
	}
	c.Replace("s", catalog.Lists{mcp.Tools: listOf(append(items, jsontext.Value(`{"name":"z"}`))...)})
	if n := strings.Count(log.String(), "level=WARN"); n != 6 {
		t.Errorf("what was said before is said again: %d lines", n)
	}
}

// A server that lists only rubbish costs bounded memory and log.
func TestManyInvalidItems(t *testing.T) {
	var log bytes.Buffer
	c := open(servers("s"), catalog.Options{Logger: logTo(&log)})
	list := &catalog.List{}
	for i := range 20_000 {
		list.Items = append(list.Items, fmt.Appendf(nil, `{"name":"%s%d"}`, strings.Repeat("é", 200), i))
	}
	c.Replace("s", catalog.Lists{mcp.Tools: list})
	r, _ := c.Report("s")
	notes := r.LeftOut[mcp.Tools]
	if len(notes) != 101 || notes[100].Reason != "and 19900 more" || log.Len() > 100_000 {
		t.Errorf("%d notes, the last one %+v; log of %d bytes", len(notes), notes[len(notes)-1], log.Len())
	}
	if len(notes[0].Name) > 140 || !utf8.ValidString(notes[0].Name) {
		t.Errorf("name in a note: %q", notes[0].Name)
	}
}

// A name keeps its owner: while the owner lists other things, over restarts,
// however often the owner is reached in another way, and whoever else wants it.
func TestNamesKeepTheirOwners(t *testing.T) {
	dir := t.TempDir()
	both := []catalog.ServerOptions{prefixed("a", ""), prefixed("b", "")}
	life := func(opts []catalog.ServerOptions, use func(*catalog.Catalog)) {
		t.Helper()
		store := openStore(t, dir)
		c := open(opts, catalog.Options{Store: store})
		use(c)
		closeStore(t, store)
	}
	var hashed string
	life(both, func(c *catalog.Catalog) {
		c.Replace("b", toolsNamed("x"))
		c.Replace("a", toolsNamed("x"))
		if hashed = exposed(c, mcp.Tools, "a", "x"); exposed(c, mcp.Tools, "b", "x") != "x" || hashed == "x" {
			t.Fatalf("a has %q", hashed)
		}
		c.Replace("b", toolsNamed("y")) // x of b is gone, its name is not free
		c.Replace("a", toolsNamed())
		c.Replace("a", toolsNamed("x"))
		if got := exposed(c, mcp.Tools, "a", "x"); got != hashed {
			t.Errorf("a got the name %q of an item that is gone", got)
		}
	})
	life(both, func(c *catalog.Catalog) {
		wantNames(t, c, mcp.Tools, hashed, "y")
		c.Replace("a", toolsNamed("x", "y"))
		c.Replace("b", toolsNamed("x", "y"))
		if x, y := exposed(c, mcp.Tools, "b", "x"), exposed(c, mcp.Tools, "b", "y"); x != "x" || y != "y" {
			t.Errorf("b has %q and %q", x, y)
		}
	})
	reached := []catalog.ServerOptions{both[1], both[0]} // and in another order
	reached[0].Key = "another"
	life(reached, func(c *catalog.Catalog) {
		if got := exposed(c, mcp.Tools, "b", "x"); got != "" {
			t.Errorf("b is another server and still has %q", got)
		}
		c.Replace("a", toolsNamed("x", "y", "z"))
		c.Replace("b", toolsNamed("x", "y", "z"))
		if x, z := exposed(c, mcp.Tools, "b", "x"), exposed(c, mcp.Tools, "b", "z"); x != "x" || z == "z" {
			t.Errorf("b has %q and %q", x, z)
		}
	})
	// A prefix that is taken away lets names come in nobody's way.
	again := []catalog.ServerOptions{prefixed("a", "pre_"), {Name: "b", Key: "another", Prefix: reached[0].Prefix}}
	life(again, func(c *catalog.Catalog) {
		if got := exposed(c, mcp.Tools, "a", "x"); got != "pre_x" {
			t.Errorf("a has %q under another prefix", got)
		}
		if got := exposed(c, mcp.Tools, "b", "x"); got != "x" {
			t.Errorf("b has %q", got)
		}
	})
	life(again, func(c *catalog.Catalog) {
		if got := exposed(c, mcp.Tools, "a", "x"); got != "pre_x" {
			t.Errorf("a has %q after a restart", got)
		}
	})
	// A saved name that is too long now is none.
	store := openStore(t, dir)
	c := open(again, catalog.Options{Store: store, NameLength: 4})
	for _, name := range names(t, c, mcp.Tools) {
		if !legal(4).MatchString(name) {
			t.Errorf("name %q", name)
		}
	}
}

// After a restart the names of a server are its own, before another that comes
// earlier in the configuration is given any: those of items that are gone, and
// those of the items that it lists.
func TestNamesKeepTheirOwnersBeforeOthersAreGivenAny(t *testing.T) {
	dir := t.TempDir()
	store := openStore(t, dir)
	c := open([]catalog.ServerOptions{prefixed("a", "a_"), prefixed("b", "")}, catalog.Options{Store: store})
	c.Replace("a", toolsNamed("gone", "here"))
	c.Replace("b", toolsNamed("gone", "here"))
	c.Replace("b", toolsNamed("here"))
	closeStore(t, store)

	c = open([]catalog.ServerOptions{prefixed("a", ""), prefixed("b", "")}, catalog.Options{Store: openStore(t, dir)})
	if gone, here := exposed(c, mcp.Tools, "a", "gone"), exposed(c, mcp.Tools, "a", "here"); gone == "gone" || here == "here" {
		t.Errorf("a has the names %q and %q of b", gone, here)
	}
	c.Replace("b", toolsNamed("gone", "here"))
	if gone, here := exposed(c, mcp.Tools, "b", "gone"), exposed(c, mcp.Tools, "b", "here"); gone != "gone" || here != "here" {
		t.Errorf("b has %q and %q", gone, here)
	}
}

// The names of the items that are gone for longest are given up.
func TestNamesOfFormerItemsAreBounded(t *testing.T) {
	c := open([]catalog.ServerOptions{prefixed("a", ""), prefixed("b", "")}, catalog.Options{})
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprint("t", i))
	}
	c.Replace("a", toolsNamed("oldest", "next"))
	c.Replace("a", toolsNamed("next"))
	c.Replace("a", toolsNamed(many...))
	c.Replace("a", toolsNamed("oldest2"))
	c.Replace("b", toolsNamed("oldest", "t9999"))
	if first, last := exposed(c, mcp.Tools, "b", "oldest"), exposed(c, mcp.Tools, "b", "t9999"); first != "oldest" || last == "t9999" {
		t.Errorf("b has %q and %q", first, last)
	}
}

// When there are fewer names than items, the others are left out and said to be.
func TestNoNameLeft(t *testing.T) {
	c := open(servers("s"), catalog.Options{NameLength: 1})
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprint("tool", i))
	}
	c.Replace("s", toolsNamed(many...))
	got := names(t, c, mcp.Tools)
	r, _ := c.Report("s")
	if len(got) < 2 || len(got)+100 > 200 || len(r.LeftOut[mcp.Tools]) != 101 {
		t.Errorf("%d names, %d notes", len(got), len(r.LeftOut[mcp.Tools]))
	}
}

// FuzzNames: whatever servers are called and list, and however short names must
// be, each listed name is legal, of one item, and leads to it.
func FuzzNames(f *testing.F) {
	f.Add("a", "a__b", "b__c", "c", "", "", 50)
	f.Add("a\x00b", "a", "c", "b\x00c", "p", "p", 9)
	f.Add("数", "_", "é", "_", ".", "_", 1)
	f.Add("s", "t", "\u2028", "\U0001f600", "", "..", 3)
	f.Fuzz(func(t *testing.T, s1, s2, t1, t2, p1, p2 string, length int) {
		if s1 == s2 || !utf8.ValidString(t1) || !utf8.ValidString(t2) || length > 1000 {
			return
		}
		opts := []catalog.ServerOptions{prefixed(s1, p1), prefixed(s2, p2)}
		c := open(opts, catalog.Options{NameLength: length})
		c.Replace(s1, toolsNamed(t1, t2))
		c.Replace(s2, toolsNamed(t1, t2))
		if length <= 0 {
			length = 50
		}
		seen := make(map[string]bool)
		c.Each(mcp.Tools, func(e *catalog.Entry) bool {
			if !legal(length).MatchString(e.Exposed) || seen[e.Exposed] {
				t.Errorf("name %q of %q %q", e.Exposed, e.Server, e.Own)
			}
			seen[e.Exposed] = true
			if found, ok := c.Find(mcp.Tools, e.Exposed); !ok || found != e {
				t.Errorf("%q leads to %+v", e.Exposed, found)
			}
			return true
		})
		listed := names(t, c, mcp.Tools)
		if len(listed) != len(seen) {
			t.Errorf("%d listed, %d entries", len(listed), len(seen))
		}
	})
}

// A surrogate without its other half is refused by the protocol's JSON.
func TestInvalidText(t *testing.T) {
	c := open(servers("s"), catalog.Options{})
	c.Replace("s", catalog.Lists{mcp.Tools: listOf(
		jsontext.Value(`{"name":"half \ud800","inputSchema":{"type":"object"}}`),
		jsontext.Value("{\"name\":\"bytes \xff\",\"inputSchema\":{\"type\":\"object\"}}"),
		jsontext.Value(`{"name":"nul \u0000","inputSchema":{"type":"object"}}`),
		tool("fine", ""),
	)})
	for _, name := range names(t, c, mcp.Tools) {
		if !legal(50).MatchString(name) {
			t.Errorf("name %q", name)
		}
	}
	if exposed(c, mcp.Tools, "s", "fine") == "" || exposed(c, mcp.Tools, "s", "nul \x00") == "" {
		t.Errorf("listed: %q", names(t, c, mcp.Tools))
	}
}
