package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// fleet is many servers and what a gateway must list of them.
type fleet struct {
	entries  []entry
	backends []*mcptest.Backend
	sockets  []*mcptest.Socket
	sites    []*mcptest.Site
	tools    []string
	// delay is how long at most a server on pipes waits before it speaks.
	delay atomic.Int64
}

// serverNames are in no order of the alphabet, and not in that of their length.
var serverNames = strings.Fields(`mike Zulu alpha yankee_2 bravo x-ray charlie Whiskey delta victor echo uniform
	foxtrot tango golf sierra hotel romeo india quebec juliett papa kilo oscar lima november a1 z26 b2 y25 c3 x24 d4 w23 e5`)

var toolNames = strings.Fields(`write read_file Search apply zoom bisect Ask query patch list open merge`)

// newFleet returns servers of every kind: on pipes and over HTTP, with sessions
// and without, with lists in one page and in many, made of package server and of
// bytes.
func newFleet(t testing.TB, onPipes, overHTTP int) *fleet {
	f := &fleet{}
	pipes := 0
	for i, name := range serverNames[:onPipes+overHTTP] {
		var definitions []string
		for j := range toolNames {
			own := toolNames[(j*5+i)%len(toolNames)]
			definitions = append(definitions, fmt.Sprintf(
				`{"description":"tool %d of %s","name":"%s","inputSchema":{"type":"object"},"x":1.0}`, j, name, own))
		}
		f.tools = append(f.tools, exposed(name, definitions)...)
		h, v := f.handler(t, i, definitions)
		if (i+1)*onPipes/(onPipes+overHTTP) > pipes {
			pipes++
			f.addSocket(t, name, h)
		} else {
			site := mcptest.NewSite(t, h, v)
			f.sites = append(f.sites, site)
			f.entries = append(f.entries, remote(name, site.URL))
		}
	}
	return f
}

func (f *fleet) addSocket(t testing.TB, name string, h jsonrpc.Handler) {
	s := mcptest.NewSocket(t, func(ctx context.Context, conn net.Conn, _ int) {
		if most := f.delay.Load(); most > 0 {
			select {
			case <-time.After(time.Duration(rand.Int64N(most))):
			case <-ctx.Done():
			}
		}
		_ = stdio.Serve(ctx, conn, conn, h, nil) // it ends as the test wants
	})
	f.sockets = append(f.sockets, s)
	f.entries = append(f.entries, piped(name, s))
}

// handler returns the i-th server.
func (f *fleet) handler(t testing.TB, i int, definitions []string) (jsonrpc.Handler, mcp.Version) {
	v := mcp.Versions()[i%4]
	if i%3 != 0 {
		b := &mcptest.Backend{Version: v, Page: []int{0, 1, 5}[i/3%3]}
		b.Set(mcp.Tools, definitions...)
		f.backends = append(f.backends, b)
		return b, v
	}
	m := server.NewMemory(server.MemoryOptions{Name: "memory", Version: "1", Page: mcp.PageLimits{Items: 1 + i%12}})
	for _, d := range definitions {
		tool, err := server.NewTool(jsontext.Value(d), func(context.Context, *server.ToolCall) (jsontext.Value, error) {
			return server.TextResult("done"), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Tools.Add(tool); err != nil {
			t.Fatal(err)
		}
	}
	srv := server.New(m, server.Options{})
	t.Cleanup(srv.Close)
	if v.Stateless() {
		return srv, v
	}
	return sessionsOnly(srv), v
}

// sessionsOnly hides from a client on pipes that a server is also stateless.
func sessionsOnly(h jsonrpc.Handler) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		if req.Method == mcp.MethodDiscover {
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")
		}
		return h.Handle(ctx, req)
	})
}

// kill takes every server down and brings it back.
func (f *fleet) kill() {
	for _, s := range f.sites {
		s.Down()
	}
	for _, s := range f.sockets {
		s.Kill()
	}
	for _, s := range f.sites {
		s.Up()
	}
}

// TestSeeds5_01_35Servers has walks of 420 tools that are the same to the byte,
// whatever happens to the servers (C-002, C-011, C-013).
func TestSeeds5_01_35Servers(t *testing.T) {
	f := newFleet(t, 20, 15)
	g := newGateway(t, `"pageItems":7`, f.entries...)
	c := g.http(mcp.Latest)
	first := walk(t, c, mcp.Tools, nil)
	if n := strings.Count(first, "\n"); n != 60 {
		t.Errorf("420 tools in pages of 7 make %d pages", n)
	}
	g.ready()
	check := func(when string) {
		t.Helper()
		if got := walk(t, g.http(mcp.Latest), mcp.Tools, nil); got != first {
			t.Errorf("%s, the walk is another: %s", when, difference(got, first))
		}
		same(t, when, list(t, g.http(mcp.LatestSession), mcp.Tools), f.tools)
	}
	check("at first")
	for range 4 {
		n := 0
		got := walk(t, c, mcp.Tools, func() {
			f.backends[n%len(f.backends)].Changed(bounded(t), mcp.Tools)
			n++
		})
		if got != first {
			t.Errorf("with servers that list the same again, the walk is another: %s", difference(got, first))
		}
	}
	g.restart()
	check("at once after a restart")
	g.ready()
	check("after a restart")
	f.kill()
	check("with all servers killed")
	g.until("all servers are back", func(st admin.Status) bool {
		return !slices.ContainsFunc(st.Servers, func(s admin.Server) bool {
			// Over HTTP nothing breaks that a stateless server would notice.
			return s.State != "ready" || s.Transport == "stdio" && s.Restarts == 0
		})
	})
	check("with all servers back")
	for _, size := range []string{`"pageItems":20`, ``} {
		g.close()
		g.start(size, f.entries...)
		same(t, "with "+size, list(t, g.http(mcp.Latest), mcp.Tools), f.tools)
	}
	f.delay.Store(int64(300 * time.Millisecond))
	for range rounds(2, 20) {
		g := newGateway(t, `"pageItems":7`, f.entries...)
		same(t, "with servers that start in another order", list(t, g.http(mcp.Latest), mcp.Tools), f.tools)
		g.close()
	}
}

// difference shows where two texts part.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	part := func(s string) string { return s[max(i-80, 0):min(i+80, len(s))] }
	return fmt.Sprintf("at byte %d\n...%s...\nwant\n...%s...", i, part(got), part(want))
}

// definition returns the definition of an item of any kind.
func definition(k mcp.Kind, server string, i int) string {
	switch k {
	case mcp.Resources:
		return fmt.Sprintf(`{"uri":"test://%s/%d","name":"r%d"}`, server, i, i)
	case mcp.Templates:
		return fmt.Sprintf(`{"name":"t%d","uriTemplate":"test://%s/%d/{x}"}`, i, server, i)
	case mcp.Prompts:
		return fmt.Sprintf(`{"name":"p%d"}`, i)
	}
	return tool(fmt.Sprintf("t%d", i))
}

// TestWalks_AllKinds walks all four lists of servers that have one item to a
// page (C-009), which start in another order every time (C-011, C-013).
func TestWalks_AllKinds(t *testing.T) {
	var f fleet
	var want [len(mcp.Kinds)][]string
	for i, name := range []string{"mike", "Zulu", "alpha", "yankee", "bravo"} {
		b := &mcptest.Backend{Version: mcp.Versions()[i], Page: 1}
		for _, k := range mcp.Kinds {
			var own []string
			for _, j := range []int{5, 3, 8, 1, 2} {
				own = append(own, definition(k, name, j+int(k)))
			}
			b.Set(k, own...)
			if k == mcp.Tools || k == mcp.Prompts {
				own = exposed(name, own)
			}
			want[k] = append(want[k], own...)
		}
		f.addSocket(t, name, b)
	}
	f.delay.Store(int64(200 * time.Millisecond))
	for range rounds(5, 20) {
		g := newGateway(t, `"pageItems":7`, f.entries...)
		for _, k := range mcp.Kinds {
			same(t, k.String(), list(t, g.http(mcp.LatestSession), k), want[k])
			first := walk(t, g.pipes(mcp.Latest), k, nil)
			if got := walk(t, g.http(mcp.Latest), k, nil); got != first {
				t.Errorf("%s: the walk is another: %s", k, difference(got, first))
			}
		}
		g.close()
	}
}

// TestWalks_ThreePages has a server with three pages behind gateways with pages
// of any size (C-001).
func TestWalks_ThreePages(t *testing.T) {
	b := &mcptest.Backend{Version: mcp.V20250618}
	pages := map[string]string{
		"":   `{"tools":[{"name":"t1","inputSchema":{"type":"object"}},{"name":"t2","inputSchema":{"type":"object"}}],"nextCursor":"p2"}`,
		"p2": `{"tools":[{"name":"t3","inputSchema":{"type":"object"}},{"name":"t4","inputSchema":{"type":"object"}}],"nextCursor":"p3"}`,
		"p3": `{"tools":[{"name":"t5","inputSchema":{"type":"object"}},{"name":"t6","inputSchema":{"type":"object"}}]}`,
	}
	b.List = func(_ context.Context, k mcp.Kind, req *jsonrpc.Request) (jsontext.Value, error) {
		if k != mcp.Tools {
			return nil, nil
		}
		cursor, _ := req.Params.Text("cursor")
		return jsontext.Value(pages[cursor]), nil
	}
	var want []string
	for i := range 6 {
		want = append(want, tool(fmt.Sprintf("paged__t%d", i+1)))
	}
	site := b.OnHTTP(t)
	for _, size := range []string{`"pageItems":1`, `"pageItems":2`, `"pageItems":4`, `"pageItems":6`, ``} {
		g := newGateway(t, size, remote("paged", site.URL))
		same(t, "with "+size, list(t, g.http(mcp.LatestSession), mcp.Tools), want)
		g.close()
	}
}
