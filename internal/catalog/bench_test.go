package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/mcp"
)

// sizes are a desk's catalog and a large platform's.
var sizes = []struct{ servers, tools int }{{35, 12}, {1000, 100}}

func filled(b *testing.B, servers, tools int) (*catalog.Catalog, []catalog.Lists) {
	b.Helper()
	var opts []catalog.ServerOptions
	for i := range servers {
		opts = append(opts, catalog.ServerOptions{Name: fmt.Sprint("server", i)})
	}
	c := catalog.New(opts, catalog.Options{})
	var lists []catalog.Lists
	for i := range 2 {
		l := &catalog.List{}
		for j := range tools {
			text := strings.Repeat("what it does ", 30)
			if j == tools/2 {
				text += fmt.Sprint(i) // one item differs
			}
			l.Items = append(l.Items, tool(fmt.Sprint("tool", j), text))
		}
		lists = append(lists, catalog.Lists{mcp.Tools: l})
	}
	for _, o := range opts {
		c.Replace(o.Name, lists[0])
	}
	return c, lists
}

func forSizes(b *testing.B, f func(b *testing.B, c *catalog.Catalog, lists []catalog.Lists)) {
	for _, s := range sizes {
		b.Run(fmt.Sprintf("%dx%d", s.servers, s.tools), func(b *testing.B) {
			c, lists := filled(b, s.servers, s.tools)
			b.ReportAllocs()
			b.ResetTimer()
			f(b, c, lists)
		})
	}
}

func BenchmarkList(b *testing.B) {
	forSizes(b, func(b *testing.B, c *catalog.Catalog, _ []catalog.Lists) {
		for b.Loop() {
			if _, err := c.List(mcp.Tools, mcp.Latest, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	forSizes(b, func(b *testing.B, c *catalog.Catalog, _ []catalog.Lists) {
		for b.Loop() {
			if _, ok := c.Find(mcp.Tools, "server7__tool7"); !ok {
				b.Fatal("not found")
			}
		}
	})
}

func BenchmarkFingerprint(b *testing.B) {
	forSizes(b, func(b *testing.B, c *catalog.Catalog, _ []catalog.Lists) {
		for b.Loop() {
			c.Fingerprint(mcp.Tools, mcp.Latest)
		}
	})
}

// BenchmarkReplace changes one tool of one server.
func BenchmarkReplace(b *testing.B) {
	forSizes(b, func(b *testing.B, c *catalog.Catalog, lists []catalog.Lists) {
		for i := 0; b.Loop(); i++ {
			if !c.Replace("server7", lists[(i+1)%2]) {
				b.Fatal("no change")
			}
		}
	})
}

// BenchmarkReplaceSame lists the same again.
func BenchmarkReplaceSame(b *testing.B) {
	forSizes(b, func(b *testing.B, c *catalog.Catalog, lists []catalog.Lists) {
		for b.Loop() {
			if c.Replace("server7", lists[0]) {
				b.Fatal("a change")
			}
		}
	})
}

// BenchmarkReplaceAndList also encodes the first page anew.
func BenchmarkReplaceAndList(b *testing.B) {
	forSizes(b, func(b *testing.B, c *catalog.Catalog, lists []catalog.Lists) {
		for i := 0; b.Loop(); i++ {
			c.Replace("server7", lists[(i+1)%2])
			if _, err := c.List(mcp.Tools, mcp.Latest, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A list that did not change costs no allocation, nor does a look at it.
func TestReadingAllocatesNothing(t *testing.T) {
	c := open(servers("a"), catalog.Options{})
	c.Replace("a", toolsNamed("x"))
	n := testing.AllocsPerRun(100, func() {
		if _, err := c.List(mcp.Tools, mcp.LatestSession, nil); err != nil {
			t.Fatal(err)
		}
		c.Fingerprint(mcp.Tools, mcp.Latest)
		c.Find(mcp.Tools, "a__x")
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
