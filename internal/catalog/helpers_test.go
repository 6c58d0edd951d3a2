package catalog_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// Temporary directories are in memory where the system has such: the tests
	// save often, and wait for the disk each time.
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		_ = os.Setenv("TMPDIR", memory) // at worst it is slow
	}
	goleak.VerifyTestMain(m)
}

// tool returns a definition of a tool; text makes one differ from another.
func tool(name, text string) jsontext.Value {
	return fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":{"type":"object"}}`, mcp.String(name), mcp.String(text))
}

func resource(uri, name string) jsontext.Value {
	return fmt.Appendf(nil, `{"uri":%s,"name":%s}`, mcp.String(uri), mcp.String(name))
}

// listOf returns a list of definitions.
func listOf(items ...jsontext.Value) *catalog.List { return &catalog.List{Items: items} }

// toolsNamed returns lists with tools of these names.
func toolsNamed(names ...string) catalog.Lists {
	l := &catalog.List{}
	for _, n := range names {
		l.Items = append(l.Items, tool(n, n))
	}
	return catalog.Lists{mcp.Tools: l}
}

func resourcesAt(uris ...string) catalog.Lists {
	l := &catalog.List{}
	for _, u := range uris {
		l.Items = append(l.Items, resource(u, u))
	}
	return catalog.Lists{mcp.Resources: l}
}

// servers returns options for servers of these names.
func servers(names ...string) []catalog.ServerOptions {
	out := make([]catalog.ServerOptions, len(names))
	for i, n := range names {
		out[i] = catalog.ServerOptions{Name: n, Key: "key of " + n}
	}
	return out
}

func prefixed(name, prefix string) catalog.ServerOptions {
	return catalog.ServerOptions{Name: name, Key: "key of " + name, Prefix: &prefix}
}

// open returns a catalog that does not wait for any server.
func open(list []catalog.ServerOptions, opts catalog.Options) *catalog.Catalog {
	c := catalog.New(list, opts)
	c.Open()
	return c
}

func openStore(t testing.TB, dir string) *state.Store {
	t.Helper()
	s, err := state.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *state.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// lister is a Catalog or a Client.
type lister interface {
	List(kind mcp.Kind, version mcp.Version, cursor *string) (jsontext.Value, error)
}

// page returns one page, and the cursor of the next; nil if there is none.
func page(t testing.TB, c lister, k mcp.Kind, v mcp.Version, cursor *string) (items []jsontext.Value, next *string, raw jsontext.Value) {
	t.Helper()
	raw, err := c.List(k, v, cursor)
	if err != nil {
		t.Fatalf("List %s: %v", k, err)
	}
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		t.Fatalf("page is not an object: %v\n%s", err, raw)
	}
	if items, err = jsonrpc.Elements(obj.Get(k.Field())); err != nil {
		t.Fatalf("page has no %s: %v", k.Field(), err)
	}
	if text, ok := obj.Text("nextCursor"); ok {
		next = &text
	}
	return items, next, raw
}

// wantBadCursor fails the test unless a cursor is refused as the protocol says.
func wantBadCursor(t testing.TB, c *catalog.Catalog, k mcp.Kind, cursor string) {
	t.Helper()
	for _, v := range mcp.Versions() {
		page, err := c.List(k, v, &cursor)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("cursor %q for %s in %s: got page %.60s and error %v, want -32602", cursor, k, v, page, err)
		}
	}
}

// keyOf returns what identifies a listed item.
func keyOf(t testing.TB, k mcp.Kind, item jsontext.Value) string {
	t.Helper()
	d, err := mcp.ParseDefinition(k, item)
	if err != nil {
		t.Fatalf("listed item is invalid: %v\n%s", err, item)
	}
	return d.Key
}

// walk returns the keys of all items, and the bytes of all pages.
func walk(t testing.TB, c lister, k mcp.Kind, v mcp.Version) (keys []string, raw []byte) {
	t.Helper()
	var cursor *string
	for range 100_000 {
		items, next, bytes := page(t, c, k, v, cursor)
		for _, it := range items {
			keys = append(keys, keyOf(t, k, it))
		}
		raw = append(append(raw, bytes...), '\n')
		if cursor = next; cursor == nil {
			return keys, raw
		}
	}
	t.Fatal("the walk does not end")
	return nil, nil
}

// names returns the exposed names of all items, as walked in small steps.
func names(t testing.TB, c lister, k mcp.Kind) []string {
	t.Helper()
	keys, _ := walk(t, c, k, mcp.Latest)
	return keys
}

func wantNames(t testing.TB, c lister, k mcp.Kind, want ...string) {
	t.Helper()
	if got := names(t, c, k); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s:\n got %q\nwant %q", k, got, want)
	}
}

// exposed returns the name under which clients see a server's item; "" if they
// do not.
func exposed(c *catalog.Catalog, k mcp.Kind, server, own string) string {
	name := ""
	c.Each(k, func(e *catalog.Entry) bool {
		if e.Server == server && e.Own == own {
			name = e.Exposed
		}
		return true
	})
	return name
}

// fixture returns the definitions that a file of recorded results lists.
func fixture(t testing.TB, file string) []jsontext.Value {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var items []jsontext.Value
	for line := range bytes.Lines(data) {
		m, err := jsonrpc.ParseObject(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		result, err := jsonrpc.ParseObject(m.Get("result"))
		if err != nil {
			t.Fatal(err)
		}
		more, err := jsonrpc.Elements(result.Get("tools"))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, more...)
	}
	return items
}

// logTo returns a logger that writes to a buffer.
func logTo(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
