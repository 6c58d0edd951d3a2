package app_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// audience is clients that listen, of every era, over HTTP and on pipes.
type audience []*mcptest.Caller

func (g *gateway) audience(n int) audience {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g.t.Cleanup(cancel)
	var out audience
	for i := range n {
		var c *mcptest.Caller
		switch v := mcp.Versions()[i%5]; {
		case i%4 == 3 || v == mcp.V20241105:
			c = g.pipes(v)
		default:
			c = g.http(v)
		}
		if _, err := c.Listen(ctx); err != nil {
			g.t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// told waits until each was told of a change of a kind at least once more than
// before, and returns by how much at most.
func (a audience) told(t testing.TB, k mcp.Kind, before []int) (most int) {
	t.Helper()
	for i, c := range a {
		if err := c.Notes.Wait(bounded(t), k.ChangedMethod(), before[i]+1); err != nil {
			t.Fatalf("client %d (%s): %v", i, c.Version, err)
		}
		most = max(most, c.Notes.Count(k.ChangedMethod())-before[i])
	}
	return most
}

// counts returns how often each was told of a change of a kind.
func (a audience) counts(k mcp.Kind) []int {
	out := make([]int, len(a))
	for i, c := range a {
		out[i] = c.Notes.Count(k.ChangedMethod())
	}
	return out
}

// changedBackends returns a backend of each era with its entry.
func changedBackends(t testing.TB) (map[string]*mcptest.Backend, []entry) {
	old := &mcptest.Backend{Version: mcp.V20250618}
	latest := &mcptest.Backend{Version: mcp.Latest}
	both := map[string]*mcptest.Backend{"old": old, "new": latest}
	for _, b := range both {
		b.Set(mcp.Tools, tool("first"))
	}
	return both, []entry{piped("old", old.OnPipes(t)), remote("new", latest.OnHTTP(t).URL)}
}

// listening waits until a backend has somebody to tell of changes, and until the
// gateway has listed what it was to list because of that.
func listening(t testing.TB, g *gateway, b *mcptest.Backend) {
	t.Helper()
	g.ready()
	eventually(t, "the gateway listens", func() bool { return b.Listeners() > 0 })
}

// TestListChanged_Burst has a server add 200 tools one by one, with a
// notification each, in 50 ms: it is listed a few times, and each client is told
// a few times (C-019, C-021).
func TestListChanged_Burst(t *testing.T) {
	const added = 200
	backends, entries := changedBackends(t)
	g := newGateway(t, "", entries...)
	for _, b := range backends {
		listening(t, g, b)
	}
	clients := g.audience(20)
	for _, name := range []string{"old", "new"} {
		b := backends[name]
		before := clients.counts(mcp.Tools)
		lists := b.Count(mcp.MethodToolsList)
		began := time.Now()
		tick := time.NewTicker(50 * time.Millisecond / added)
		for i := range added {
			b.Add(mcp.Tools, tool(fmt.Sprintf("added%d", (i*7)%added)))
			b.Changed(bounded(t), mcp.Tools)
			<-tick.C
		}
		tick.Stop()
		eventually(t, "all tools are listed", func() bool {
			return len(list(t, clients[0], mcp.Tools)) >= added+1 && g.server(name).Items.Tools == added+1
		})
		most := clients.told(t, mcp.Tools, before)
		// A slow machine makes the burst longer, and a long one counts as several.
		allowed := 3 + int(time.Since(began)/(300*time.Millisecond))
		if n := b.Count(mcp.MethodToolsList) - lists; n > allowed {
			t.Errorf("%s was listed %d times within %v", name, n, time.Since(began))
		}
		if most > allowed {
			t.Errorf("a client was told %d times within %v", most, time.Since(began))
		}
	}
}

// TestListChanged_Identical has a server say that its list changed when it did
// not: it is listed, and no client hears of it (C-022). A real change is heard
// once, and only of its kind.
func TestListChanged_Identical(t *testing.T) {
	backends, entries := changedBackends(t)
	g := newGateway(t, "", entries...)
	for _, b := range backends {
		listening(t, g, b)
	}
	clients := g.audience(10)
	before := walk(t, clients[0], mcp.Tools, nil)
	tools, prompts := clients.counts(mcp.Tools), clients.counts(mcp.Prompts)
	for _, b := range backends {
		for range 3 {
			n := b.Count(mcp.MethodToolsList)
			b.Changed(bounded(t), mcp.Tools)
			if err := b.WaitCount(bounded(t), mcp.MethodToolsList, n+1); err != nil {
				t.Fatal("the list was not fetched again:", err)
			}
		}
	}
	if got := walk(t, clients[0], mcp.Tools, nil); got != before {
		t.Errorf("the list is\n%s\nwant\n%s", got, before)
	}
	backends["old"].Add(mcp.Prompts, `{"name":"new"}`)
	backends["old"].Changed(bounded(t), mcp.Prompts)
	if n := clients.told(t, mcp.Prompts, prompts); n != 1 {
		t.Errorf("one change of the prompts was told %d times", n)
	}
	for i, n := range clients.counts(mcp.Tools) {
		if n != tools[i] {
			t.Errorf("client %d (%s) was told %d times of tools that did not change", i, clients[i].Version, n-tools[i])
		}
	}
}

// TestListChanged_NoGap has a reader that sees one whole list or another whole
// list of a server whose tools are replaced, and always those of the other
// server (C-023).
func TestListChanged_NoGap(t *testing.T) {
	backends, entries := changedBackends(t)
	changing := backends["old"]
	generations := [][]string{tools("even%d", 50), tools("odd%d", 50)}
	changing.Set(mcp.Tools, generations[0]...)
	g := newGateway(t, "", entries...)
	listening(t, g, changing)
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, c := range []*mcptest.Caller{g.http(mcp.Latest), g.pipes(mcp.V20241105)} {
		readers.Go(func() { // ends with stop
			for {
				select {
				case <-stop:
					return
				default:
				}
				items, err := c.List(bounded(t), mcp.Tools)
				if err != nil {
					t.Error(err)
					return
				}
				text := strings.Join(items, "\n")
				even, odd := strings.Count(text, "old__even"), strings.Count(text, "old__odd")
				if even+odd != 50 || even*odd != 0 || strings.Count(text, "new__first") != 1 {
					t.Errorf("a list with %d, %d and %d tools", even, odd, len(items)-even-odd)
					return
				}
			}
		})
	}
	watcher := g.http(mcp.V20251125)
	if _, err := watcher.Listen(bounded(t)); err != nil {
		t.Fatal(err)
	}
	for i := range rounds(20, 100) {
		want := generations[(i+1)%2]
		changing.Set(mcp.Tools, want...)
		changing.Changed(bounded(t), mcp.Tools)
		eventually(t, "the new list is there", func() bool { return list(t, watcher, mcp.Tools)[0] == exposed("old", want)[0] })
	}
	close(stop)
	readers.Wait()
}

// TestListChanged_InsideCall has a server that says, during a call, that its
// tools changed, and answers the call when it was listed again (C-017).
func TestListChanged_InsideCall(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20241105, mcp.Latest} {
		b := &mcptest.Backend{Version: v}
		b.Set(mcp.Tools, tool("work"))
		b.Do = func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			n := b.Count(mcp.MethodToolsList)
			b.Add(mcp.Tools, tool(fmt.Sprintf("new%d", n)))
			b.Changed(ctx, mcp.Tools)
			if err := b.WaitCount(ctx, mcp.MethodToolsList, n+1); err != nil {
				return nil, err
			}
			return jsontext.Value(`{"content":[{"type":"text","text":"done"}]}`), nil
		}
		g := newGateway(t, "", piped("s", b.OnPipes(t)))
		c := g.pipes(mcp.Latest)
		listening(t, g, b)
		for i := range rounds(10, 500) {
			if got := callTool(t, c, "s__work"); !strings.Contains(got, "done") {
				t.Fatal(got)
			}
			eventually(t, "the new tool is listed", func() bool { return len(list(t, c, mcp.Tools)) >= i+2 })
		}
		g.close()
	}
}

// TestSeeds4_08_EveryKind has a server of each era add to and remove from each of
// its lists: each is listed again and each client told of that kind alone.
func TestSeeds4_08_EveryKind(t *testing.T) {
	backends, entries := changedBackends(t)
	for name, b := range backends {
		for _, k := range mcp.Kinds {
			b.Set(k, definition(k, name, 1), definition(k, name, 2))
		}
	}
	g := newGateway(t, "", entries...)
	for _, b := range backends {
		listening(t, g, b)
	}
	clients := g.audience(5)
	for name, b := range backends {
		for _, k := range mcp.Kinds {
			// Templates have no notification of their own.
			var before [len(mcp.Kinds)][]int
			for _, other := range mcp.Kinds {
				before[other] = clients.counts(other)
			}
			b.Set(k, definition(k, name, 3), definition(k, name, 2))
			b.Changed(bounded(t), k)
			clients.told(t, k, before[k])
			for _, c := range clients {
				want := []string{definition(k, name, 2), definition(k, name, 3)}
				if k == mcp.Tools || k == mcp.Prompts {
					want = exposed(name, want)
				}
				var own []string
				for _, item := range list(t, c, k) {
					if strings.Contains(item, name+"__") || strings.Contains(item, "//"+name+"/") {
						own = append(own, item)
					}
				}
				same(t, k.String()+" of "+name, own, want)
			}
			for _, other := range mcp.Kinds {
				if other.ChangedMethod() == k.ChangedMethod() {
					continue
				}
				for i, n := range clients.counts(other) {
					if n != before[other][i] {
						t.Errorf("client %d (%s) was told of %s when %s changed", i, clients[i].Version, other, k)
					}
				}
			}
		}
	}
}

// TestSeeds5_06_LateServer has a server that comes after the first list be
// listed, and clients be told, without a restart (C-026).
func TestSeeds5_06_LateServer(t *testing.T) {
	b := &mcptest.Backend{Version: mcp.V20250618}
	b.Set(mcp.Tools, tool("late"))
	site := b.OnHTTP(t)
	site.Down()
	g := newGateway(t, `"startupWait":"200ms"`, remote("s", site.URL))
	clients := g.audience(5)
	if items := list(t, clients[0], mcp.Tools); len(items) != 0 {
		t.Errorf("listed without a server: %s", items)
	}
	before := clients.counts(mcp.Tools)
	site.Up()
	clients.told(t, mcp.Tools, before)
	for _, c := range clients {
		same(t, "with the late server", list(t, c, mcp.Tools), exposed("s", []string{tool("late")}))
	}
}
