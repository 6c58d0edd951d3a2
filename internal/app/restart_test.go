package app_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// begin walks the first pages of the tools and returns their items and the cursor
// of the next page, raw.
func begin(t testing.TB, c *mcptest.Caller, pages int) (items []string, cursor string) {
	t.Helper()
	params := `{}`
	for range pages {
		a, err := c.Call(bounded(t), mcp.MethodToolsList, params)
		if err != nil || a.Error != "" {
			t.Fatal(a.Error, err)
		}
		items, cursor = append(items, a.Items(mcp.Tools)...), a.Cursor()
		params = `{"cursor":` + cursor + `}`
	}
	return items, cursor
}

// resume walks on from a cursor to the end.
func resume(t testing.TB, c *mcptest.Caller, cursor string) (items []string) {
	t.Helper()
	for cursor != "" {
		a, err := c.Call(bounded(t), mcp.MethodToolsList, `{"cursor":`+cursor+`}`)
		if err != nil || a.Error != "" {
			t.Fatal(a.Error, err)
		}
		items, cursor = append(items, a.Items(mcp.Tools)...), a.Cursor()
	}
	return items
}

// TestRestart_WalkGoesOn has a walk that began before a restart end after it,
// with each tool once, though servers have come and gone in the configuration;
// only another order of the servers ends it.
func TestRestart_WalkGoesOn(t *testing.T) {
	var entries []entry
	lists := make(map[string][]string)
	for i, name := range []string{"m", "z", "a", "k"} {
		b := answering(tools("t%d", 5)...)
		if i%2 == 0 {
			b.Version = mcp.Latest
		}
		entries = append(entries, remote(name, b.OnHTTP(t).URL))
		lists[name] = exposed(name, tools("t%d", 5))
	}
	m, z, a, k := entries[0], entries[1], entries[2], entries[3]
	const size = `"pageItems":4`
	g := newGateway(t, size, m, a, k)
	g.ready()
	head, cursor := begin(t, g.http(mcp.Latest), 2)
	if got := slices.Concat(head, resume(t, g.http(mcp.LatestSession), cursor)); len(got) != 15 {
		t.Fatalf("%d tools: %s", len(got), got)
	}
	for what, servers := range map[string][]entry{
		"a server comes before the place": {m, z, a, k}, "a server comes after the place": {m, a, z, k},
		"a server behind the place goes": {m, a}, "a server before the place goes": {a, k}, "its own server goes": {m, k},
	} {
		h := newGateway(t, size, m, a, k) // with a state of its own
		h.ready()
		head, cursor := begin(t, h.http(mcp.Latest), 2)
		h.close()
		h.start(size, servers...)
		h.ready()
		got := slices.Concat(head, resume(t, h.http(mcp.Latest), cursor))
		want := slices.Concat(lists["m"], lists["a"])
		if slices.Contains(servers, k) {
			want = append(want, lists["k"]...)
		}
		if what == "its own server goes" {
			want = slices.Concat(head, lists["k"])
		}
		same(t, what, got, want) // what is new waits for the next walk
		h.close()
	}
	g.close()
	g.start(size, k, a, m)
	got, err := g.http(mcp.Latest).Call(bounded(t), mcp.MethodToolsList, `{"cursor":`+cursor+`}`)
	if err != nil || got.Code() != jsonrpc.CodeInvalidParams || !strings.Contains(got.Error, "begin again") {
		t.Errorf("a cursor from before the servers were put in another order: %+v, %v", got, err)
	}
	same(t, "in another order", list(t, g.http(mcp.Latest), mcp.Tools), slices.Concat(lists["k"], lists["a"], lists["m"]))
}

// TestRestart_SecondProcess has two gateways of one configuration at once: the
// second only reads the state. It lists the same in the same order, and refuses
// to go on with a walk of the first, whose positions it cannot know.
func TestRestart_SecondProcess(t *testing.T) {
	f := newFleet(t, 2, 4)
	g := newGateway(t, `"pageItems":5`, f.entries...)
	g.ready()
	g.restart() // so that the state is written
	g.ready()
	file := g.file()
	cfg, _, err := config.Load([]string{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	second, err := app.Start(ctx, app.Options{
		Config: cfg, Files: []string{file}, Version: "test", Logger: slog.New(slog.NewTextHandler(g.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := second.Listen(ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	two := mcptest.CallHTTP(t, second.URL(), mcp.Latest)
	same(t, "of the second gateway", list(t, two, mcp.Tools), f.tools)
	_, cursor := begin(t, g.http(mcp.Latest), 3)
	got, err := two.Call(bounded(t), mcp.MethodToolsList, `{"cursor":`+cursor+`}`)
	if err != nil || got.Code() != jsonrpc.CodeInvalidParams {
		t.Errorf("a cursor of the first gateway, at the second: %+v, %v", got, err)
	}
	if url := g.found(); url != g.URL() {
		t.Errorf("commands find %s of the two", url)
	}
	g.close()
	eventually(t, "commands find the second", func() bool { return g.found() == second.URL() })
}
