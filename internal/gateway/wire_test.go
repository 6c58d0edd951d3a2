package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// raw is a client on a pipe that writes frames as it wants.
type raw struct {
	*mcptest.Peer
	t      *testing.T
	frames chan jsonrpc.Message
}

func rawClient(t *testing.T, f *front) *raw {
	near, far := mcptest.Pipe()
	conn := jsonrpc.NewConn(context.WithoutCancel(t.Context()), far,
		jsonrpc.ConnOptions{Handler: f.server, Cancel: cancelled, First: mcp.MethodInitialize})
	c := &raw{t: t, frames: make(chan jsonrpc.Message, 4096)}
	c.Peer = mcptest.Serve(near, func(_ *mcptest.Peer, m *jsonrpc.Message) { c.frames <- *m })
	t.Cleanup(func() {
		c.Close()
		_ = conn.Close()
	})
	return c
}

// modern makes a request of 2026-07-28. meta has more members of _meta.
func (c *raw) modern(id, method, params, meta string) {
	obj := object(c.t, params)
	full := mcp.SetCaller(obj, mcp.Caller{Version: mcp.V20260728, Capabilities: []byte(everyCapability)})
	c.Raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method,
		strings.Replace(string(full), `"_meta":{`, `"_meta":{`+meta, 1)))
}

// next returns the next frame, in short.
func (c *raw) next() string {
	c.t.Helper()
	return inShort(receive(c.t, "a message", c.frames))
}

func (c *raw) wants(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		if got := c.next(); got != want {
			c.t.Fatalf("came %s, want %s", got, want)
		}
	}
}

// quiet fails the test if something has come.
func (c *raw) quiet() {
	c.t.Helper()
	select {
	case m := <-c.frames:
		c.t.Errorf("came %s", inShort(m))
	default:
	}
}

// inShort names a message, with its tag, token or id.
func inShort(m jsonrpc.Message) string {
	meta, _ := m.Params.Meta()
	switch {
	case m.Method == mcp.MethodProgress:
		return fmt.Sprintf("progress %s %s", m.Params.Get("progressToken"), m.Params.Get("progress"))
	case m.Method == mcp.MethodAcknowledged:
		return fmt.Sprintf("acknowledged %s %s", meta.Get(mcp.MetaSubscriptionID), m.Params.Get("notifications"))
	case m.Method == mcp.MethodCanceled:
		return fmt.Sprintf("cancelled %s", m.Params.Get("requestId"))
	case m.Method == mcp.MethodUpdated:
		return fmt.Sprintf("updated %s %s", meta.Get(mcp.MetaSubscriptionID), m.Params.Get("uri"))
	case m.Method != "":
		return fmt.Sprintf("%s %s", m.Method, meta.Get(mcp.MetaSubscriptionID))
	case m.Error != nil:
		return fmt.Sprintf("error %s %d", m.ID.Raw(), m.Error.Code)
	}
	return "result " + string(m.ID.Raw())
}

// TestProgressEndsWithTheResult is C-120: progress comes in the order and with the
// values that the server gave it, also if these fall, and none that it sends behind the
// result comes at all.
func TestProgressEndsWithTheResult(t *testing.T) {
	host := &mcptest.Host{}
	host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		if m.Method != mcp.MethodToolsCall {
			answerLists(p, m, mcp.V20251125)
			return
		}
		meta, _ := m.Params.Meta()
		progress := func(n int) {
			p.Notify(mcp.MethodProgress, fmt.Sprintf(`{"progressToken":%s,"progress":%d}`, meta.Get("progressToken"), n))
		}
		progress(50)
		progress(40)
		p.Reply(m, `{"content":[]}`)
		progress(100)
	}
	f := newGateway(t, behind{name: "s", dial: host.Dial})
	c := rawClient(t, f)
	for i := range 500 {
		c.modern(fmt.Sprint(i), mcp.MethodToolsCall, `{"name":"custom"}`, `"progressToken":"p",`)
		c.wants(`progress "p" 50`, `progress "p" 40`, fmt.Sprint("result ", i))
	}
	until(t, "no call goes on", func() bool { return f.servers.Get("s").Status().InFlight == 0 })
	c.quiet()
}

// TestZeros is C-091 through the gateway: the id 0 and the token 0 are as good as
// others.
func TestZeros(t *testing.T) {
	b := newBackend(mcp.V20251125)
	f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	c := rawClient(t, f)
	for range 3 {
		c.modern("0", mcp.MethodToolsCall, `{"name":"progress"}`, `"progressToken":0,`)
		for got := c.next(); got != "result 0"; got = c.next() {
			if !strings.HasPrefix(got, "progress 0 ") {
				t.Fatalf("came %s", got)
			}
		}
		c.modern("0", mcp.MethodToolsCall, `{"name":"wait"}`, "")
		receive(t, "the call", b.started)
		c.Notify(mcp.MethodCanceled, `{"requestId":0}`)
		_ = receive(t, "its end", b.ended)
	}
	c.quiet()
}

// listening is a host of 2026-07-28 that acknowledges subscriptions, and keeps them
// for the test to speak on.
type listening struct {
	*mcptest.Host
	mu    sync.Mutex // guards the fields below
	peers map[string]*mcptest.Peer
	tools string // its list
}

func newListening(capabilities, tools string) *listening {
	l := &listening{Host: &mcptest.Host{}, peers: make(map[string]*mcptest.Peer), tools: tools}
	l.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		l.mu.Lock()
		defer l.mu.Unlock()
		switch m.Method {
		case mcp.MethodDiscover:
			p.Reply(m, mcptest.Discovered(capabilities, "2026-07-28"))
		case mcp.MethodListen:
			filter := m.Params.Get("notifications")
			p.Notify(mcp.MethodAcknowledged, fmt.Sprintf(`{"_meta":{%q:%s},"notifications":%s}`, mcp.MetaSubscriptionID, m.ID.Raw(), filter))
			l.peers[string(m.ID.Raw())] = p
		case mcp.MethodCanceled:
			delete(l.peers, string(m.Params.Get("requestId")))
		case mcp.MethodToolsList:
			p.Reply(m, `{"resultType":"complete","tools":[`+l.tools+`],"ttlMs":300000,"cacheScope":"private"}`)
		case mcp.MethodResourcesRead:
			p.Reply(m, `{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":`+formParams+`}},"requestState":"x"}`)
		default:
			answerLists(p, m, mcp.V20260728)
		}
	}
	return l
}

// tell sends a notification on every subscription.
func (l *listening) tell(method, params string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.peers {
		p.Notify(method, fmt.Sprintf(`{"_meta":{%q:%s}%s}`, mcp.MetaSubscriptionID, id, params))
	}
}

// become changes the list of tools and tells so.
func (l *listening) become(tools string) {
	l.mu.Lock()
	l.tools = tools
	l.mu.Unlock()
	l.tell(mcp.Tools.ChangedMethod(), "")
}

// drop ends every subscription.
func (l *listening) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, p := range l.peers {
		p.Raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","_meta":{%q:%s}}}`, id, mcp.MetaSubscriptionID, id))
	}
	clear(l.peers)
}

const (
	listensAll = `{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}}`
	toolA      = `{"name":"a","inputSchema":{"type":"object"}}`
	toolB      = `{"name":"b","inputSchema":{"type":"object"}}`
)

// TestSubscriptions is C-221 through the gateway: acknowledged first and for what is
// honoured, tagged with the client's id, and nothing else.
func TestSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := newListening(listensAll, toolA), newListening(`{"tools":{"listChanged":true}}`, toolB)
		f := newGateway(t, behind{name: "one", dial: one.Dial}, behind{name: "two", dial: two.Dial})
		synctest.Wait()
		c, other := rawClient(t, f), rawClient(t, f)
		one.become(toolA + `,{"name":"c","inputSchema":{"type":"object"}}`) // on its way when the client listens
		c.modern(`"sub-1"`, mcp.MethodListen, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:blob","x:nobody"]}}`, "")
		other.modern(`"sub-1"`, mcp.MethodListen, `{"notifications":{"promptsListChanged":true}}`, "")
		c.wants(`acknowledged "sub-1" {"toolsListChanged":true,"resourceSubscriptions":["x:blob"]}`)
		other.wants(`acknowledged "sub-1" {"promptsListChanged":true}`)
		time.Sleep(time.Minute)
		c.wants(`notifications/tools/list_changed "sub-1"`)
		one.tell(mcp.MethodUpdated, `,"uri":"x:blob"`)
		c.wants(`updated "sub-1" "x:blob"`)
		one.tell(mcp.MethodUpdated, `,"uri":"x:rounds"`)
		two.tell(mcp.Resources.ChangedMethod(), "")
		two.become(toolB + "," + strings.Replace(toolB, "b", "d", 1))
		time.Sleep(time.Minute)
		c.wants(`notifications/tools/list_changed "sub-1"`)
		c.quiet()
		other.quiet()
	})
}

// TestListenBlocksNothing is C-222 through the gateway.
func TestListenBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newListening(listensAll, toolA)
		f := newGateway(t, behind{name: "one", dial: one.Dial})
		synctest.Wait()
		c := rawClient(t, f)
		c.modern("1", mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`, "")
		c.wants(`acknowledged 1 {"toolsListChanged":true}`)
		for i := range 100 {
			c.modern(fmt.Sprint(i+2), mcp.MethodToolsList, `{}`, "")
			c.wants(fmt.Sprint("result ", i+2))
		}
		c.Notify(mcp.MethodCanceled, `{"requestId":1}`)
		synctest.Wait()
		one.become(toolB)
		time.Sleep(time.Minute)
		c.quiet()
	})
}

// TestEndsOfSubscriptions is C-223 through the gateway: when it closes, each
// subscription ends in the orderly way; a server that ends its own is asked again,
// more and more slowly, and what changed in the gap is told.
func TestEndsOfSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newListening(listensAll, toolA)
		f := newGateway(t, behind{name: "one", dial: one.Dial, opts: upstream.Options{BackoffMin: time.Second, BackoffMax: time.Minute}})
		synctest.Wait()
		c := rawClient(t, f)
		const watch = `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x:blob"]}}`
		for range 100 {
			c.modern("1", mcp.MethodListen, watch, "")
			c.wants(`acknowledged 1 {"toolsListChanged":true,"resourceSubscriptions":["x:blob"]}`)
			c.Notify(mcp.MethodCanceled, `{"requestId":1}`) // and listens again under the same id
		}
		synctest.Wait()
		c.quiet()
		for i := range 100 {
			c.modern(fmt.Sprint(i), mcp.MethodListen, watch, "")
			c.wants(fmt.Sprintf(`acknowledged %d {"toolsListChanged":true,"resourceSubscriptions":["x:blob"]}`, i))
		}
		synctest.Wait()
		before := one.Count(mcp.MethodListen)
		one.mu.Lock()
		one.tools = toolB // nobody is told
		one.mu.Unlock()
		for range 20 {
			one.drop()
			time.Sleep(500 * time.Millisecond)
		}
		if n := one.Count(mcp.MethodListen) - before; n < 2 || n > 6 {
			t.Errorf("asked again %d times in 10 s", n)
		}
		time.Sleep(2 * time.Minute)
		changed := 0
		for len(c.frames) > 0 { // the resource may have changed in each gap
			if got := c.next(); strings.HasPrefix(got, mcp.Tools.ChangedMethod()) {
				changed++
			} else if !strings.HasPrefix(got, "updated ") {
				t.Fatalf("came %s", got)
			}
		}
		if changed != 100 {
			t.Errorf("%d of 100 were told that the tools have changed", changed)
		}
		one.tell(mcp.MethodUpdated, `,"uri":"x:blob"`)
		for range 100 {
			if got := c.next(); !strings.HasPrefix(got, "updated ") {
				t.Fatalf("came %s", got)
			}
		}
		synctest.Wait()
		c.quiet()
		f.server.Close()
		ended := make(map[string]string)
		for range 200 {
			kind, id, _ := strings.Cut(c.next(), " ")
			ended[id] += kind + " "
		}
		for id, how := range ended {
			if how != "cancelled result " {
				t.Errorf("subscription %s: %s", id, how)
			}
		}
		if len(ended) != 100 {
			t.Errorf("%d subscriptions have ended", len(ended))
		}
	})
}

// TestCachedLists is C-217 through the gateway: a list that may be kept for long is
// read anew when its server says that it has changed, and a result that asks for
// more says nothing of keeping it.
func TestCachedLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := newListening(listensAll, toolA)
		f := newGateway(t, behind{name: "one", dial: one.Dial})
		synctest.Wait()
		p := join(t, overPipe(t, f.server), false, mcp.V20260728, everyCapability)
		list := func() string {
			t.Helper()
			r, err := p.send(t.Context(), mcp.MethodToolsList, `{}`)
			if err != nil {
				t.Fatal(err)
			}
			return string(r.Get("tools"))
		}
		if got := list(); got != "["+toolA+"]" {
			t.Errorf("at first: %s", got)
		}
		one.become(toolB)
		time.Sleep(time.Second)
		if got := list(); got != "["+toolB+"]" {
			t.Errorf("after the change: %s", got)
		}
		reads := one.Count(mcp.MethodResourcesRead)
		for range 2 {
			r, err := p.send(t.Context(), mcp.MethodResourcesRead, `{"uri":"x:rounds"}`)
			if kind, _ := r.Text("resultType"); err != nil || kind != "input_required" || r.Get("ttlMs") != nil || r.Get("cacheScope") != nil {
				t.Errorf("%s, %v", r.Raw, err)
			}
		}
		if n := one.Count(mcp.MethodResourcesRead) - reads; n != 2 {
			t.Errorf("two reads asked the server %d times", n)
		}
	})
}
