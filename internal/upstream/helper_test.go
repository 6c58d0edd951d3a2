package upstream_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const changing = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true}}`

// backend is a server whose tools a test can change.
type backend struct {
	host    mcptest.Host
	version mcp.Version
	caps    string

	mu    sync.Mutex // guards the fields below
	tools []string
	// on may answer a message itself; it runs on the peer's reader.
	on func(p *mcptest.Peer, m *jsonrpc.Message) bool
}

func newBackend(v mcp.Version, tools ...string) *backend {
	b := &backend{version: v, caps: changing, tools: tools}
	b.host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) { b.answer(p, m) }
	return b
}

func (b *backend) set(tools ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tools = tools
}

func (b *backend) script(on func(p *mcptest.Peer, m *jsonrpc.Message) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.on = on
}

func (b *backend) answer(p *mcptest.Peer, m *jsonrpc.Message) {
	b.mu.Lock()
	on, version, caps := b.on, b.version, b.caps
	b.mu.Unlock()
	if on != nil && on(p, m) || !m.IsRequest() {
		return
	}
	switch m.Method {
	case mcp.MethodDiscover:
		if version.Stateless() {
			p.Reply(m, mcptest.Discovered(caps, string(version)))
			return
		}
	case mcp.MethodInitialize:
		if !version.Stateless() {
			p.Reply(m, mcptest.Initialized(string(version), caps))
			return
		}
	case mcp.MethodToolsList:
		p.Reply(m, b.list())
		return
	case mcp.MethodPromptsList:
		p.Reply(m, `{"prompts":[]}`)
		return
	case mcp.MethodResourcesList:
		p.Reply(m, `{"resources":[{"uri":"x:1","name":"r"}]}`)
		return
	case mcp.MethodTemplatesList:
		p.Reply(m, `{"resourceTemplates":[]}`)
		return
	case mcp.MethodToolsCall:
		p.Reply(m, `{"content":[]}`)
		return
	case mcp.MethodPing, mcp.MethodSubscribe, mcp.MethodUnsubscribe, mcp.MethodSetLevel:
		p.Reply(m, `{}`)
		return
	case mcp.MethodListen:
		p.Notify(mcp.MethodAcknowledged, `{"_meta":{"io.modelcontextprotocol/subscriptionId":`+m.ID.String()+`},"notifications":`+string(m.Params.Get("notifications"))+`}`)
		return
	}
	p.Refuse(m, jsonrpc.CodeMethodNotFound, "Method not found", "")
}

func (b *backend) list() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var items []string
	for _, name := range b.tools {
		items = append(items, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
	}
	return `{"tools":[` + strings.Join(items, ",") + `],"ttlMs":0,"cacheScope":"private"}`
}

func (b *backend) listed() int { return b.host.Count(mcp.MethodToolsList) }

// gateway is what a test hears of a server.
type gateway struct {
	server *upstream.Server

	mu     sync.Mutex // guards the fields below
	lists  []upstream.Lists
	states []upstream.State
	notes  []string
}

// run runs a server in a bubble until the test ends.
func run(t *testing.T, opts upstream.Options) *gateway {
	t.Helper()
	g := &gateway{}
	if opts.Name == "" {
		opts.Name = "b1"
	}
	opts.Hooks.Lists = func(l upstream.Lists) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.lists = append(g.lists, l)
	}
	opts.Hooks.State = func(s upstream.Status) {
		g.mu.Lock()
		defer g.mu.Unlock()
		if len(g.lists) == 0 && (s.State == upstream.Ready || s.State == upstream.Degraded) {
			t.Errorf("the server is %s before its lists were told", s.State)
		}
		if n := len(g.states); n == 0 || g.states[n-1] != s.State {
			g.states = append(g.states, s.State)
		}
	}
	opts.Hooks.Notification = func(m *jsonrpc.Message) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.notes = append(g.notes, m.Method)
	}
	g.server = upstream.New(opts)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.server.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return g
}

// published returns how often lists came.
func (g *gateway) published() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.lists)
}

// noted returns the notifications that came.
func (g *gateway) noted() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.notes, " ")
}

// news returns the n-th publication, from 1.
func (g *gateway) news(n int) upstream.Lists {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lists[n-1]
}

// tools returns the tools as a catalog has them: what was published last.
func (g *gateway) tools() string { return g.items(mcp.Tools) }

func (g *gateway) items(k mcp.Kind) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := len(g.lists) - 1; i >= 0; i-- {
		if l := g.lists[i].Kinds[k].List; l != nil {
			return names(l)
		}
	}
	return "(none)"
}

func names(l *client.List) string {
	var out []string
	for _, item := range l.Items {
		obj, _ := jsonrpc.ParseObject(item)
		name, _ := obj.Text(l.Kind.Key())
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func (g *gateway) call(ctx context.Context, tool string) (string, error) {
	params, _ := jsonrpc.ParseObject(jsontext.Value(fmt.Sprintf(`{"name":"%s"}`, tool)))
	result, err := g.server.Call(ctx, upstream.Request{Method: mcp.MethodToolsCall, Params: params})
	return string(result.Raw), err
}

func (g *gateway) wantState(t *testing.T, want upstream.State) {
	t.Helper()
	if st := g.server.Status(); st.State != want {
		t.Errorf("state is %s (%v), want %s", st.State, st.LastErr, want)
	}
}

// pass lets time pass in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) // in a bubble: all tests that call it are
}

// eras runs a test in a bubble for a server of either era.
func eras(t *testing.T, test func(t *testing.T, v mcp.Version)) {
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, v) })
		})
	}
}
