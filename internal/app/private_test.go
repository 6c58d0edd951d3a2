package app_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/stdio"
)

// apart is a server of which each process lists a tool of its own beside "who",
// which says which process it is.
type apart struct {
	*mcptest.Socket
	// held: a process lists nothing until it has received from here.
	held     chan struct{}
	mu       sync.Mutex // guards backends
	backends map[int]*mcptest.Backend
}

const perClient = `"scope":"client"`

// patient are settings for a slow machine.
const patient = `"startupWait":"1m"`

func newApart(t *testing.T) *apart {
	a := &apart{backends: make(map[int]*mcptest.Backend), held: make(chan struct{})}
	close(a.held)
	a.Socket = mcptest.NewSocket(t, func(ctx context.Context, conn net.Conn, n int) {
		a.mu.Lock()
		held := a.held
		a.mu.Unlock()
		list := func(ctx context.Context, k mcp.Kind, _ *jsonrpc.Request) (jsontext.Value, error) {
			if k != mcp.Tools {
				return nil, nil
			}
			select {
			case <-held:
				return nil, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		b := &mcptest.Backend{Version: mcp.V20251125, List: list, Do: func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			return text("%d", n), nil
		}}
		b.Set(mcp.Tools, tool("who"), tool(fmt.Sprintf("own%d", n)))
		a.mu.Lock()
		a.backends[n] = b
		a.mu.Unlock()
		_ = stdio.Serve(ctx, conn, conn, b, nil) // it ends as the test wants
	})
	return a
}

// hold keeps processes that start from now on from listing, until release.
func (a *apart) hold() (release func()) {
	held := make(chan struct{})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = held
	return func() { close(held) }
}

func (a *apart) backend(n int) *mcptest.Backend {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.backends[n]
}

// who calls the tool that says which process answers.
func who(t testing.TB, c *mcptest.Caller) int {
	t.Helper()
	r := callTool(t, c, "s__who")
	obj, err := jsonrpc.ParseObject(jsontext.Value(r))
	if err != nil {
		t.Fatal(err)
	}
	content, _ := jsonrpc.Elements(obj.Get("content"))
	item, _ := jsonrpc.ParseObject(content[0])
	said, _ := item.Text("text")
	n, err := strconv.Atoi(said)
	if err != nil {
		t.Fatal(r)
	}
	return n
}

// TestPrivate_OneProcessEach: each session has one process, however many calls
// come at once, and it ends with the session, however that ends.
func TestPrivate_OneProcessEach(t *testing.T) {
	s := newApart(t)
	g := newGateway(t, patient, piped("s", s.Socket, perClient))
	if s.Starts() != 0 || g.server("s").State != upstream.Idle {
		t.Fatalf("%d processes and state %s before there is a client", s.Starts(), g.server("s").State)
	}
	one, two := g.http(mcp.V20251125), g.pipes(mcp.V20250618)
	var wait sync.WaitGroup
	var mu sync.Mutex
	seen := map[*mcptest.Caller][]int{}
	for range 25 {
		for _, c := range []*mcptest.Caller{one, two} {
			wait.Go(func() {
				n := who(t, c)
				mu.Lock()
				defer mu.Unlock()
				seen[c] = append(seen[c], n)
			})
		}
	}
	wait.Wait()
	if s.Starts() != 2 {
		t.Fatalf("%d processes for two clients", s.Starts())
	}
	for _, all := range seen {
		if slices.Min(all) != slices.Max(all) {
			t.Errorf("calls of one client came to processes %v", all)
		}
	}
	if seen[one][0] == seen[two][0] {
		t.Error("two clients share a process")
	}
	if items := get(t, g, "/items?name=s__who", http.StatusOK); !strings.Contains(items, `"server": "s"`) {
		t.Errorf("items %s", items)
	}
	if got := len(g.server("s").Clients); got != 2 {
		t.Errorf("status has %d clients", got)
	}
	must(t, one.End(bounded(t)))
	eventually(t, "the process of the session that was deleted ends", func() bool { return len(s.Pids()) == 1 })
	if n := who(t, two); n != seen[two][0] {
		t.Errorf("the other client has process %d now, not %d", n, seen[two][0])
	}
}

// TestPrivate_EndOfInput: the process of a client on pipes ends with its input.
func TestPrivate_EndOfInput(t *testing.T) {
	s := newApart(t)
	g := newGateway(t, patient, piped("s", s.Socket, perClient))
	t.Run("client", func(t *testing.T) {
		c := mcptest.CallPipes(t, mcp.V20251125, g.ServeStdio)
		who(t, c)
	})
	eventually(t, "the process ends", func() bool { return len(s.Pids()) == 0 })
	eventually(t, "the server is idle", func() bool { return g.server("s").State == upstream.Idle })
}

// TestPrivate_Lists: a client lists what its own process lists, beside what all
// share and in the order of the configuration, and hears of its changes alone. A
// new client of the same principal is shown at once what was listed last, also by a
// gateway that has started anew, and then what its own process lists.
func TestPrivate_Lists(t *testing.T) {
	s := newApart(t)
	shared := &mcptest.Backend{Version: mcp.V20251125}
	shared.Set(mcp.Tools, tool("x"))
	first, last := shared.OnPipes(t), shared.OnPipes(t)
	g := newGateway(t, patient, piped("a", first), piped("s", s.Socket, perClient), piped("z", last))
	want := func(n int, more ...string) []string {
		out := append(exposed("a", []string{tool("x")}), exposed("s", []string{tool("who"), tool(fmt.Sprintf("own%d", n))})...)
		return append(append(out, exposed("s", more)...), exposed("z", []string{tool("x")})...)
	}
	one := g.pipes(mcp.V20251125)
	same(t, "the first client's list", list(t, one, mcp.Tools), want(1))
	release := s.hold()
	two := g.pipes(mcp.V20251125)
	same(t, "the second client's first list", list(t, two, mcp.Tools), want(1))
	release()
	if err := two.Notes.Wait(bounded(t), mcp.Tools.ChangedMethod(), 1); err != nil {
		t.Fatal(err)
	}
	same(t, "the second client's list", list(t, two, mcp.Tools), want(2))
	same(t, "the first client's list", list(t, one, mcp.Tools), want(1))

	s.backend(1).Add(mcp.Tools, tool("late"))
	s.backend(1).Changed(bounded(t), mcp.Tools)
	if err := one.Notes.Wait(bounded(t), mcp.Tools.ChangedMethod(), 1); err != nil {
		t.Fatal(err)
	}
	same(t, "the first client's list", list(t, one, mcp.Tools), want(1, tool("late")))
	same(t, "the second client's list", list(t, two, mcp.Tools), want(2))
	if n := two.Notes.Count(mcp.Tools.ChangedMethod()); n != 1 {
		t.Errorf("the second client was told of %d changes", n)
	}
	if a, err := two.Call(bounded(t), mcp.MethodToolsCall, `{"name":"s__late"}`); err != nil || a.Code() != jsonrpc.CodeInvalidParams {
		t.Errorf("the second client can call what only the first has: %+v, %v", a, err)
	}

	release = s.hold()
	g.restart()
	three := g.pipes(mcp.V20251125)
	same(t, "the list after a restart", list(t, three, mcp.Tools), want(1, tool("late")))
	release()
	if err := three.Notes.Wait(bounded(t), mcp.Tools.ChangedMethod(), 1); err != nil {
		t.Fatal(err)
	}
	same(t, "the list after a restart", list(t, three, mcp.Tools), want(3))
}

// TestPrivate_Principals: what one principal's servers list, no other is ever
// shown.
func TestPrivate_Principals(t *testing.T) {
	s := newApart(t)
	anna, bert := auth.NewKey(), auth.NewKey()
	g := newGateway(t, patient+fmt.Sprintf(`,"keys":[{"name":"anna","sha256":%q},{"name":"bert","sha256":%q}]`, auth.HashKey(anna), auth.HashKey(bert)), piped("s", s.Socket, perClient))
	a := mcptest.CallHTTPAs(t, g.URL(), mcp.V20260728, anna)
	same(t, "anna's list", list(t, a, mcp.Tools), exposed("s", []string{tool("who"), tool("own1")}))
	b := mcptest.CallHTTPAs(t, g.URL(), mcp.V20260728, bert)
	same(t, "bert's list", list(t, b, mcp.Tools), exposed("s", []string{tool("who"), tool("own2")}))
	again := mcptest.CallHTTPAs(t, g.URL(), mcp.V20260728, anna)
	if who(t, again) != 1 || who(t, b) != 2 || s.Starts() != 2 {
		t.Errorf("%d processes for two principals", s.Starts())
	}
	defer s.hold()()
	g.restart()
	b = mcptest.CallHTTPAs(t, g.URL(), mcp.V20260728, bert)
	same(t, "bert's list after a restart", list(t, b, mcp.Tools), exposed("s", []string{tool("who"), tool("own2")}))
}

// TestPrivate_Reload: servers become private and shared again while the gateway
// runs.
func TestPrivate_Reload(t *testing.T) {
	s := newApart(t)
	g := newGateway(t, patient, piped("s", s.Socket))
	one, two := g.told(mcp.V20251125), g.told(mcp.V20251125)
	if a, b := who(t, one), who(t, two); a != 1 || b != 1 {
		t.Fatalf("processes %d and %d", a, b)
	}
	g.become(patient, piped("s", s.Socket, perClient))
	eventually(t, "the shared process ends", func() bool { return len(s.Pids()) == 0 })
	if a, b := who(t, one), who(t, two); a == b || s.Starts() != 3 {
		t.Errorf("processes %d and %d of %d", a, b, s.Starts())
	}
	for _, c := range []*mcptest.Caller{one, two} { // until its process was listed, a client sees what the shared one listed
		eventually(t, "the list of the client's own process", func() bool {
			got := list(t, c, mcp.Tools)
			return len(got) == 2 && !strings.Contains(got[1], "own1")
		})
	}
	g.become(patient, piped("s", s.Socket, perClient, `"prefix":"p_"`))
	for _, c := range []*mcptest.Caller{one, two} {
		if got := list(t, c, mcp.Tools); !strings.HasPrefix(got[0], `{"name":"p_who"`) {
			t.Errorf("list %q", got)
		}
	}
	g.become(patient, piped("s", s.Socket))
	if a, b := who(t, one), who(t, two); a != 4 || b != 4 {
		t.Errorf("processes %d and %d", a, b)
	}
	eventually(t, "the private processes end", func() bool { return len(s.Pids()) == 1 })
}

// TestPrivate_OverHTTP: each client has a session of its own with a server over
// HTTP, which is deleted when the client has left.
func TestPrivate_OverHTTP(t *testing.T) {
	b := answering(tool("t"))
	site := b.OnHTTP(t)
	var deleted atomic.Int32
	site.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			deleted.Add(1)
		}
		return false
	})
	g := newGateway(t, patient, remote("s", site.URL, perClient))
	one, two := g.http(mcp.V20251125), g.pipes(mcp.V20251125)
	for range 3 {
		for _, c := range []*mcptest.Caller{one, two} {
			same(t, "a client's list", list(t, c, mcp.Tools), exposed("s", []string{tool("t")}))
		}
	}
	callTool(t, one, "s__t")
	callTool(t, two, "s__t")
	if n := b.Count(mcp.MethodInitialize); n != 2 {
		t.Errorf("%d sessions for two clients", n)
	}
	must(t, one.End(bounded(t)))
	eventually(t, "one of the sessions is deleted", func() bool { return deleted.Load() == 1 })
}
