package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// rounds is how often two clients call a shared server at once.
const rounds = 1000

// TestTwoClientsShareAServer is C-093 and C-183: two clients send the same ids and
// tokens to one server, which answers in reverse order with progress, logs and
// questions between; what it says cannot be told apart but by id and token.
func TestTwoClientsShareAServer(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var first *jsonrpc.Message // the call that waits for the other
			ids := make(map[string]bool)
			host := &mcptest.Host{}
			host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
				if m.Method != mcp.MethodToolsCall {
					answerLists(p, m, v)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if ids[m.ID.Key()] {
					t.Errorf("id %s twice", m.ID)
				}
				ids[m.ID.Key()] = true
				if first == nil {
					first = m
					return
				}
				p.Notify(mcp.MethodMessage, `{"level":"error","data":"SECRET"}`)
				p.Raw(`{"jsonrpc":"2.0","id":"q` + m.ID.String() + `","method":"elicitation/create","params":{"message":"SECRET","requestedSchema":{"type":"object","properties":{}}}}`)
				for _, call := range []*jsonrpc.Message{m, first} {
					args := string(call.Params.Get("arguments"))
					meta, _ := jsonrpc.ParseObject(call.Params.Get("_meta"))
					p.Notify(mcp.MethodProgress, fmt.Sprintf(`{"progressToken":%s,"progress":1,"message":%s}`, meta.Get("progressToken"), mcp.String(args)))
					p.Reply(call, `{"content":[],"structuredContent":`+args+`}`)
				}
				first = nil
			}
			f := newGateway(t, behind{name: "s", dial: host.Dial})
			var both sync.WaitGroup
			for _, who := range []string{"one", "two"} {
				p := join(t, overPipe(t, f.server), false, v, everyCapability)
				both.Go(func() { inRounds(t, p, who) })
			}
			both.Wait()
		})
	}
}

func inRounds(t *testing.T, p *party, who string) {
	for i := range rounds {
		args := fmt.Sprintf(`{"who":%q,"round":%d}`, who, i)
		result, err := p.wire.Do(t.Context(), p.call(mcp.MethodToolsCall, object(t, `{"name":"custom","arguments":`+args+`,"_meta":{"progressToken":"same"}}`)))
		if err != nil {
			t.Error(err)
			return
		}
		if string(result.Get("structuredContent")) != args {
			t.Errorf("%s got %s, want %s", who, result.Raw, args)
		}
		lines := p.take()
		if len(lines) != 1 || !strings.Contains(lines[0], string(mcp.String(args))) {
			t.Fatalf("%s in round %d heard %q", who, i, lines)
		}
	}
}

func object(t *testing.T, s string) jsonrpc.Object {
	t.Helper()
	o, err := jsonrpc.ParseObject(jsontext.Value(s))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// answerLists answers everything but calls.
func answerLists(p *mcptest.Peer, m *jsonrpc.Message, v mcp.Version) {
	switch {
	case !m.IsRequest():
	case m.Method == mcp.MethodDiscover && v.Stateless():
		p.Reply(m, mcptest.Discovered(backendCapabilities, string(v)))
	case m.Method == mcp.MethodInitialize && !v.Stateless():
		p.Reply(m, mcptest.Initialized(string(v), backendCapabilities))
	case strings.HasSuffix(m.Method, "/list"):
		p.Reply(m, string(new(backend).list(m.Method)))
	case m.Method == mcp.MethodPing:
		p.Reply(m, `{}`)
	default:
		p.Refuse(m, jsonrpc.CodeMethodNotFound, "method not found", "")
	}
}

// TestQuestionOfTwoCalls: with calls of two clients at a server, a question of it
// is nobody's; nor is one when the other's call was cancelled and the server may
// not know. When it has answered what was sent after that, it does.
func TestQuestionOfTwoCalls(t *testing.T) {
	var mu sync.Mutex
	var calls []*jsonrpc.Message
	var peer *mcptest.Peer
	answered := make(chan string, 8)
	host := &mcptest.Host{}
	host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		switch {
		case m.Method == mcp.MethodToolsCall:
			mu.Lock()
			calls, peer = append(calls, m), p
			mu.Unlock()
		case m.IsResponse() && m.Error != nil:
			answered <- m.Error.Message
		case m.IsResponse():
			answered <- string(m.Result.Raw)
		case m.Method == mcp.MethodPing: // a server that is too busy to answer
		default:
			answerLists(p, m, mcp.V20251125)
		}
	}
	f := newGateway(t, behind{name: "s", dial: host.Dial})
	one := join(t, overPipe(t, f.server), false, mcp.V20251125, everyCapability)
	two := join(t, overPipe(t, f.server), false, mcp.V20251125, everyCapability)
	begun := func(n int) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(calls) == n
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = one.send(ctx, mcp.MethodToolsCall, `{"name":"custom"}`) })
	until(t, "the first call", begun(1))
	wait.Go(func() { _, _ = two.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom"}`) })
	until(t, "the second call", begun(2))
	const ask = `{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"SECRET","requestedSchema":{"type":"object","properties":{}}}}`
	peer.Raw(fmt.Sprintf(ask, 1))
	if got := receive(t, "the refusal", answered); !strings.Contains(got, "not clear") {
		t.Errorf("with two calls: %s", got)
	}
	cancel()
	until(t, "the server is told", func() bool { return host.Count(mcp.MethodCanceled) == 1 })
	peer.Raw(fmt.Sprintf(ask, 2))
	if got := receive(t, "the refusal", answered); !strings.Contains(got, "not clear") {
		t.Errorf("with a call that was just cancelled: %s", got)
	}
	peer.Reply(calls[1], `{"content":[]}`)
	wait.Wait()
	for n := 3; n <= 4; n++ {
		wait.Go(func() { _, _ = two.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom"}`) })
		until(t, "another call", begun(n))
		peer.Raw(strings.Replace(fmt.Sprintf(ask, n), "SECRET", "yours", 1))
		if got := receive(t, "an answer", answered); strings.Contains(got, "not clear") != (n == 3) {
			t.Errorf("in call %d: %s", n, got)
		}
		peer.Reply(calls[n-1], `{"content":[]}`)
		wait.Wait()
	}
	for _, p := range []*party{one, two} {
		for _, line := range p.take() {
			if strings.Contains(line, "SECRET") {
				t.Errorf("a client saw %s", line)
			}
		}
	}
}

// TestCancelIsRouted is C-115 and C-122: a cancellation reaches the one server
// that it is for, with that server's id, and others and unknown ids nobody.
func TestCancelIsRouted(t *testing.T) {
	hosts := [2]*mcptest.Host{{}, {}}
	begun := make(chan jsonrpc.ID, 2)
	told := make(chan string, 8)
	for i, host := range hosts {
		host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
			switch {
			case m.Method == mcp.MethodToolsCall && i == 0:
				begun <- m.ID
			case m.Method == mcp.MethodToolsCall:
				p.Reply(m, `{"content":[]}`)
			case m.Method == mcp.MethodCanceled:
				told <- fmt.Sprint(i, " ", m.Params.Get("requestId"))
			case m.Method == mcp.MethodToolsList:
				p.Reply(m, fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}`, i))
			default:
				answerLists(p, m, mcp.V20250618)
			}
		}
	}
	f := newGateway(t, behind{name: "a", dial: hosts[0].Dial}, behind{name: "b", dial: hosts[1].Dial})
	p := join(t, overPipe(t, f.server), false, mcp.V20250618, `{}`)
	for _, params := range []string{`{"requestId":7}`, `{"requestId":"x"}`, `{}`, `{"requestId":null}`} {
		_ = p.wire.Notify(t.Context(), mcp.MethodCanceled, jsontext.Value(params))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = p.send(ctx, mcp.MethodToolsCall, `{"name":"t0"}`) })
	id := receive(t, "the slow call", begun)
	if _, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"t1"}`); err != nil {
		t.Error(err)
	}
	cancel()
	wait.Wait()
	if got, want := receive(t, "the cancellation", told), fmt.Sprint(0, " ", string(id.Raw())); got != want {
		t.Errorf("cancelled: %s, want %s", got, want)
	}
	if _, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"t1"}`); err != nil {
		t.Error(err)
	}
	if n := hosts[1].Count(mcp.MethodCanceled) + hosts[0].Count(mcp.MethodCanceled); n != 1 {
		t.Errorf("%d cancellations in all", n)
	}
}

// TestSharedSubscription is C-185 and C-186: a server has one subscription for all
// who watch a resource, and none when the last of them is gone, however it went.
func TestSharedSubscription(t *testing.T) {
	b := newBackend(mcp.V20251125)
	f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	var all []*party
	for range 3 {
		all = append(all, join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`))
	}
	for _, p := range all[:2] {
		if _, err := p.send(t.Context(), mcp.MethodSubscribe, `{"uri":"x:blob"}`); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.watches("x:blob"); n != 1 {
		t.Errorf("%d subscriptions at the server, want 1", n)
	}
	if _, err := all[0].send(t.Context(), mcp.MethodUnsubscribe, `{"uri":"x:blob"}`); err != nil {
		t.Fatal(err)
	}
	b.updated(t.Context(), "x:blob")
	receive(t, "the second still hears", all[1].updates)
	if len(all[0].updates)+len(all[2].updates) > 0 {
		t.Error("others heard, too")
	}
	_ = all[1].wire.Close()
	until(t, "the server is no longer asked", func() bool { return b.watches("x:blob") == 0 })
	if _, err := all[2].send(t.Context(), mcp.MethodSubscribe, `{"uri":"x:none"}`); err == nil {
		t.Error("a resource that nobody has can be watched")
	}
}

// TestSubscriptionOutlivesItsServer is C-187: a server that comes back is asked
// again.
func TestSubscriptionOutlivesItsServer(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			b := newBackend(v)
			f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
			p := join(t, overPipe(t, f.server), false, mcp.V20250618, `{}`)
			if _, err := p.send(t.Context(), mcp.MethodSubscribe, `{"uri":"x:blob"}`); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				b.mu.Lock()
				clear(b.watched)
				b.mu.Unlock()
				gone := f.servers.Get("s").Status().Restarts
				f.servers.Get("s").Restart()
				until(t, "it restarts", func() bool { return f.servers.Get("s").Status().Restarts > gone })
				until(t, "it is asked again", func() bool { return b.watches("x:blob") == 1 })
				receive(t, "an update, since there may have been one meanwhile", p.updates)
				b.updated(t.Context(), "x:blob")
				receive(t, "an update", p.updates)
			}
		})
	}
}

// TestDisconnect: a client of a stateless version that leaves cancels its call, one
// with a session does not.
func TestDisconnect(t *testing.T) {
	b := newBackend(mcp.V20251125)
	f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	dial := overHTTP(t, f.server, mcphttp.HandlerOptions{})
	modern := join(t, dial, true, mcp.V20260728, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = modern.send(ctx, mcp.MethodToolsCall, `{"name":"wait"}`) })
	receive(t, "the call", b.started)
	cancel()
	wait.Wait()
	_ = receive(t, "its end", b.ended)
}
