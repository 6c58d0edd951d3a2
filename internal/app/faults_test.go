package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// silent returns the URL of a server that takes connections and says nothing. It
// also says nothing behind its header if header is set.
func silent(t testing.TB, header bool) string {
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if header {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-done:
		}
	}))
	t.Cleanup(func() {
		close(done)
		srv.Close()
	})
	return srv.URL
}

// dead is the entry of a server that exits at once.
func dead(t testing.TB, name string) entry {
	s := mcptest.NewSocket(t, func(context.Context, net.Conn, int) {})
	return piped(name, s)
}

// cycling returns a server that never gives another cursor (C-004).
func cycling() *mcptest.Backend {
	b := &mcptest.Backend{Version: mcp.V20250326}
	b.List = func(_ context.Context, k mcp.Kind, _ *jsonrpc.Request) (jsontext.Value, error) {
		if k != mcp.Tools {
			return nil, nil
		}
		return b.ListResult(k, tools("c%d", 8), true, "x"), nil
	}
	return b
}

// answering returns a server whose tools answer.
func answering(definitions ...string) *mcptest.Backend {
	b := &mcptest.Backend{Version: mcp.V20251125}
	b.Set(mcp.Tools, definitions...)
	b.Do = func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		if req.Method != mcp.MethodToolsCall {
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")
		}
		return jsontext.Value(`{"content":[{"type":"text","text":"done"}]}`), nil
	}
	return b
}

// TestSeeds5_07_FourOfThirtyFive has four servers that misbehave beside 31 good ones:
// the list of the good ones is there as soon as it can be, calls to them take as
// long as without the four, and the status says what is wrong (C-004, C-024,
// C-025, C-030).
func TestSeeds5_07_FourOfThirtyFive(t *testing.T) {
	var good []entry
	var want []string
	for i := range 31 {
		name := fmt.Sprintf("good%d", (i*13)%31)
		b := answering(tools("t%d", 3)...)
		if i%8 == 0 {
			good = append(good, piped(name, b.OnPipes(t)))
		} else {
			good = append(good, remote(name, b.OnHTTP(t).URL))
		}
		want = append(want, exposed(name, tools("t%d", 3))...)
	}
	odd := answering(tool("fine"), `{"name":"strange","description":7,"inputSchema":{"type":"object"}}`)
	bad := []entry{
		remote("silent", silent(t, false), `"connectTimeout":"300ms"`),
		dead(t, "dead"),
		remote("cycling", cycling().OnHTTP(t).URL),
		remote("odd", odd.OnHTTP(t).URL),
	}
	median := func(g *gateway) time.Duration {
		c := g.http(mcp.Latest)
		var all []time.Duration
		for i := range 90 {
			began := time.Now()
			callTool(t, c, fmt.Sprintf("good%d__t1", i%31))
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	g := newGateway(t, "", good...)
	g.ready()
	alone := median(g)
	g.close()

	servers := slices.Concat(good[:7], bad[:2], good[7:20], bad[2:], good[20:])
	g = newGateway(t, `"startupWait":"2s"`, servers...)
	items := list(t, g.http(mcp.Latest), mcp.Tools)
	var ours []string
	for _, item := range items {
		if strings.Contains(item, "good") {
			ours = append(ours, item)
		}
	}
	same(t, "the good servers", ours, want)
	g.until("the bad servers are known to be bad", func(st admin.Status) bool {
		return st.Health != admin.Starting && g.server("silent").State == upstream.Down && g.server("dead").State == upstream.Down &&
			g.server("cycling").State == upstream.Degraded && g.server("odd").State == upstream.Ready
	})
	if n := len(list(t, g.http(mcp.Latest), mcp.Tools)); n != 31*3+8+1 {
		t.Errorf("%d tools are listed", n)
	}
	if beside := median(g); beside > 5*alone+20*time.Millisecond {
		t.Errorf("a call takes %v beside bad servers, %v without", beside, alone)
	}
	st := status(t, g)
	if st.Health != admin.Degraded {
		t.Errorf("health is %s", st.Health)
	}
	for name, says := range map[string]string{
		"silent": "did not answer", "dead": "exited", "cycling": "cursor", "odd": "description is a number",
	} {
		i := indexOf(st.Servers, func(s admin.Server) bool { return s.Name == name })
		if text, _ := json.Marshal(st.Servers[i]); !strings.Contains(string(text), says) {
			t.Errorf("the status of %s does not say %q: %s", name, says, text)
		}
	}
	for _, s := range st.Servers {
		if strings.HasPrefix(s.Name, "good") && (s.State != upstream.Ready || s.Error != "" || len(s.Warnings) > 0) {
			t.Errorf("the status of a good server is %+v", s)
		}
	}
}

// status reads GET /status.
func status(t testing.TB, g *gateway) admin.Status {
	t.Helper()
	var st admin.Status
	if err := json.Unmarshal([]byte(get(t, g, "/status", http.StatusOK)), &st); err != nil {
		t.Fatal(err)
	}
	return st
}

// get reads a route beside /mcp.
func get(t testing.TB, g *gateway, path string, want int) string {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(g.URL(), "/mcp") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Errorf("GET %s: status %d, %v; want %d", path, resp.StatusCode, err, want)
	}
	return string(body)
}

// TestFaults_SilentStart has servers that say nothing, one of them behind a
// header: a list waits for startupWait and no longer, and a second one not at
// all (C-025).
func TestFaults_SilentStart(t *testing.T) {
	b := answering(tool("t"))
	mute := mcptest.NewSocket(t, func(_ context.Context, conn net.Conn, _ int) { _, _ = io.Copy(io.Discard, conn) })
	g := newGateway(t, `"startupWait":"400ms"`,
		remote("silent", silent(t, false)), remote("b", b.OnHTTP(t).URL), remote("header", silent(t, true)), piped("mute", mute))
	get(t, g, "/readyz", http.StatusServiceUnavailable)
	if got := get(t, g, "/healthz", http.StatusServiceUnavailable); !strings.Contains(got, "starting") {
		t.Errorf("health is %s", got)
	}
	same(t, "the list", list(t, g.http(mcp.Latest), mcp.Tools), exposed("b", []string{tool("t")}))
	callTool(t, g.pipes(mcp.V20250618), "b__t")
	get(t, g, "/readyz", http.StatusOK)
	if got := get(t, g, "/healthz", http.StatusOK); !strings.Contains(got, "degraded") {
		t.Errorf("health is %s", got)
	}
}

// TestFaults_AllDown has no server to be reached, or none at all: the gateway
// starts and lists nothing (C-026).
func TestFaults_AllDown(t *testing.T) {
	none := newGateway(t, "")
	if got := list(t, none.http(mcp.Latest), mcp.Tools); len(got) != 0 {
		t.Errorf("listed %s", got)
	}
	if got := get(t, none, "/healthz", http.StatusOK); !strings.Contains(got, "healthy") {
		t.Errorf("without servers health is %s", got)
	}
	b := answering(tool("t"))
	site := b.OnHTTP(t)
	site.Down()
	g := newGateway(t, "", dead(t, "dead"), remote("down", site.URL))
	if got := list(t, g.pipes(mcp.V20241105), mcp.Tools); len(got) != 0 {
		t.Errorf("listed %s", got)
	}
	get(t, g, "/readyz", http.StatusOK)
	site.Up()
	eventually(t, "the late server is listed", func() bool { return len(list(t, g.http(mcp.Latest), mcp.Tools)) == 1 })
}

// TestFaults_Reasons has two servers fail for reasons of their own: log and
// status name both (C-030).
func TestFaults_Reasons(t *testing.T) {
	forbidden := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the token has expired", http.StatusForbidden)
	}))
	defer forbidden.Close()
	g := newGateway(t, "",
		entry{"no-command", `{"command":"this-command-does-not-exist"}`},
		remote("forbidden", forbidden.URL),
		remote("fine", answering(tool("t")).OnHTTP(t).URL))
	g.until("both are down", func(st admin.Status) bool {
		return st.Health != admin.Starting && g.server("no-command").State == upstream.Down && g.server("forbidden").State == upstream.Down && g.server("fine").State == upstream.Ready
	})
	for name, reasons := range map[string][]string{
		"no-command": {"this-command-does-not-exist", "not found"}, "forbidden": {"403"},
	} {
		s := g.server(name)
		for _, reason := range reasons {
			if !strings.Contains(s.Error, reason) {
				t.Errorf("the error of %s does not say %q: %s", name, reason, s.Error)
			}
		}
		if s.NextTry == nil {
			t.Errorf("the status of %s does not say when it is tried next", name)
		}
		if log := g.log.String(); !strings.Contains(log, "server="+name) {
			t.Errorf("the log does not name %s", name)
		}
	}
	if st := g.Status(); st.Health != admin.Degraded {
		t.Errorf("health is %s", st.Health)
	}
}

// TestFaults_Outage has a server go away and come back with what it had: its tools
// stay listed, calls fail at once and say why, and no client is told of a change
// (C-029).
func TestFaults_Outage(t *testing.T) {
	b, other := answering(tool("t")), answering(tool("o"))
	other.Version = mcp.V20250618
	socket, site := b.OnPipes(t), other.OnHTTP(t)
	g := newGateway(t, "", piped("s", socket), remote("o", site.URL))
	g.ready()
	clients := g.audience(5)
	before := clients.counts(mcp.Tools)
	first := walk(t, clients[0], mcp.Tools, nil)
	socket.Kill()
	g.until("the server is down", func(admin.Status) bool { return g.server("s").State == upstream.Down })
	if got := walk(t, clients[0], mcp.Tools, nil); got != first {
		t.Errorf("while the server is down, the list is %s", got)
	}
	got := callTool(t, clients[0], "s__t")
	for _, part := range []string{`"isError":true`, `server \"s\" is down`, "exited", "tried again in"} {
		if !strings.Contains(got, part) {
			t.Errorf("a call to a server that is down does not say %q: %s", part, got)
		}
	}
	if got := callTool(t, clients[1], "o__o"); !strings.Contains(got, "done") {
		t.Error(got)
	}
	g.until("the server is back", func(admin.Status) bool { return g.server("s").State == upstream.Ready })
	if got := callTool(t, clients[0], "s__t"); !strings.Contains(got, "done") {
		t.Error(got)
	}
	other.Add(mcp.Tools, tool("more")) // so that all know when they have heard everything
	other.Changed(bounded(t), mcp.Tools)
	if n := clients.told(t, mcp.Tools, before); n != 1 {
		t.Errorf("an outage and one change were told %d times", n)
	}
}
