package app_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// text returns a tool's result.
func text(format string, args ...any) jsontext.Value {
	return jsontext.Value(`{"content":[{"type":"text","text":` + string(mcp.String(fmt.Sprintf(format, args...))) + `}]}`)
}

// TestCalls_UnknownName has a name that is not listed be refused with those that
// are close to it.
func TestCalls_UnknownName(t *testing.T) {
	b := answering(tool("create_issue"), tool("close_issue"), tool("zoom"))
	b.Add(mcp.Prompts, `{"name":"review"}`)
	g := newGateway(t, "", remote("gh", b.OnHTTP(t).URL))
	for _, c := range []*mcptest.Caller{g.pipes(mcp.V20241105), g.http(mcp.Latest)} {
		for _, q := range []struct{ method, name, near string }{
			{mcp.MethodToolsCall, "gh__create_isue", "gh__create_issue"},
			{mcp.MethodToolsCall, "create_issue", "gh__create_issue"},
			{mcp.MethodToolsCall, "GH__ZOOM", "gh__zoom"},
			{mcp.MethodPromptsGet, "review", "gh__review"},
		} {
			a, err := c.Call(bounded(t), q.method, `{"name":"`+q.name+`"}`)
			if err != nil || a.Code() != jsonrpc.CodeInvalidParams || !strings.Contains(a.Error, q.near) || !strings.Contains(a.Error, q.name) {
				t.Errorf("%s %s: %+v, %v; want -32602 that names %s", q.method, q.name, a, err, q.near)
			}
		}
		a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"nothing_like_it_at_all"}`)
		if err != nil || a.Code() != jsonrpc.CodeInvalidParams || strings.Contains(a.Error, "did you mean") {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if n := b.Count(mcp.MethodToolsCall); n != 0 {
		t.Errorf("the server got %d calls", n)
	}
}

// TestCalls_Killed has a server be killed with calls under way: all of them fail
// at once and say so, and a reply that was written is delivered (C-046).
func TestCalls_Killed(t *testing.T) {
	const calls = 5
	var waiting sync.WaitGroup
	waiting.Add(calls)
	b := answering(tool("hang"), tool("t"))
	quick := b.Do
	b.Do = func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		if name, _ := req.Params.Text("name"); name != "hang" {
			return quick(ctx, req)
		}
		waiting.Done()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	socket := b.OnPipes(t)
	g := newGateway(t, "", piped("s", socket))
	c := g.http(mcp.Latest)
	answers := make(chan string, calls)
	for range calls {
		go func() { // ends with its call
			a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"s__hang"}`)
			answers <- fmt.Sprint(a, err)
		}()
	}
	waiting.Wait()
	socket.Kill()
	for range calls {
		select {
		case got := <-answers:
			if !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `server \"s\"`) || !strings.Contains(got, "exited") {
				t.Errorf("a call to a server that was killed: %s", got)
			}
		case <-time.After(patience):
			t.Fatal("a call hangs after its server was killed")
		}
	}
	g.until("the server is back", func(admin.Status) bool {
		return socket.Starts() == 2 && g.server("s").State == upstream.Ready
	})
	if got := callTool(t, c, "s__t"); !strings.Contains(got, "done") {
		t.Error(got)
	}
}

// TestCalls_LastWords has a server write one reply and half of another, and die
// (C-046).
func TestCalls_LastWords(t *testing.T) {
	var calls atomic.Int32
	var first string
	socket := mcptest.NewRawSocket(t, func(m *jsonrpc.Message, write func(string)) {
		id := string(m.ID.Raw())
		switch m.Method {
		case mcp.MethodInitialize:
			write(`{"jsonrpc":"2.0","id":` + id + `,"result":` + mcptest.Initialized("2025-06-18", `{"tools":{}}`) + `}`)
		case mcp.MethodToolsList:
			write(`{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[` + tool("t") + `]}}`)
		case mcp.MethodToolsCall:
			if calls.Add(1) == 1 {
				first = id
				return
			}
			write(`{"jsonrpc":"2.0","id":` + first + `,"result":` + string(text("whole")) + `}`)
			panic(mcptest.Hangup(`{"jsonrpc":"2.0","id":` + id + `,"result":{"cont`))
		default:
			if m.IsRequest() {
				write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no"}}`)
			}
		}
	})
	g := newGateway(t, "", piped("s", socket))
	g.ready()
	c := g.http(mcp.V20250618)
	whole := make(chan string, 1)
	go func() { // ends with its call
		a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"s__t"}`)
		whole <- fmt.Sprint(a, err)
	}()
	eventually(t, "the first call is there", func() bool { return calls.Load() == 1 })
	if got := callTool(t, c, "s__t"); !strings.Contains(got, `"isError":true`) || strings.Contains(got, "whole") || !strings.Contains(got, "exited") {
		t.Errorf("half a reply: %s", got)
	}
	if got := <-whole; !strings.Contains(got, "whole") {
		t.Errorf("a reply that was written before its server died: %s", got)
	}
}

// TestCalls_RestartedServer has a server come back from a restart with another
// tool and another capability (C-054).
func TestCalls_RestartedServer(t *testing.T) {
	b := answering(tool("t"))
	socket := b.OnPipes(t)
	g := newGateway(t, "", piped("s", socket))
	g.ready()
	clients := g.audience(4)
	tools, prompts := clients.counts(mcp.Tools), clients.counts(mcp.Prompts)
	b.Add(mcp.Tools, tool("extra")) // for the next process; this one tells nobody
	b.Set(mcp.Prompts, `{"name":"p"}`)
	socket.Kill()
	clients.told(t, mcp.Tools, tools)
	clients.told(t, mcp.Prompts, prompts)
	same(t, "tools", list(t, clients[0], mcp.Tools), exposed("s", []string{tool("t"), tool("extra")}))
	same(t, "prompts", list(t, clients[1], mcp.Prompts), []string{`{"name":"s__p"}`})
	callTool(t, clients[2], "s__extra")
	if n := b.Count(mcp.MethodInitialize); n != 2 || socket.Starts() < 2 {
		t.Errorf("%d handshakes with %d processes", n, socket.Starts())
	}
	listening(t, g, b)
	b.Add(mcp.Tools, tool("later"))
	tools = clients.counts(mcp.Tools)
	b.Changed(bounded(t), mcp.Tools)
	clients.told(t, mcp.Tools, tools)
}

// TestCalls_SharedState has two clients share a server with state, as the default
// is: they count together (C-088).
func TestCalls_SharedState(t *testing.T) {
	b := answering(tool("increment"))
	var n atomic.Int32
	b.Do = func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		return text("count %d", n.Add(1)), nil
	}
	g := newGateway(t, "", remote("s", b.OnHTTP(t).URL))
	one, two := g.http(mcp.V20251125), g.http(mcp.Latest)
	for i, c := range []*mcptest.Caller{one, two, one, one} {
		if got, want := callTool(t, c, "s__increment"), fmt.Sprintf("count %d", i+1); !strings.Contains(got, want) {
			t.Errorf("call %d: %s", i+1, got)
		}
	}
	if n := b.Count(mcp.MethodInitialize); n != 1 {
		t.Errorf("%d sessions with the server", n)
	}
}

// TestCalls_SameIDs has two clients use the same ids at once, on one server, which
// answers the second call first (C-093). Ids of every type come back as they were
// sent.
func TestCalls_SameIDs(t *testing.T) {
	var mu sync.Mutex
	var held string // a reply that waits for the next
	ids := make(map[string]bool)
	socket := mcptest.NewRawSocket(t, func(m *jsonrpc.Message, write func(string)) {
		id := string(m.ID.Raw())
		switch m.Method {
		case mcp.MethodDiscover:
			write(`{"jsonrpc":"2.0","id":` + id + `,"result":` + mcptest.Discovered(`{"tools":{}}`, "2026-07-28") + `}`)
		case mcp.MethodToolsList:
			write(`{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","tools":[` + tool("t") + `]}}`)
		case mcp.MethodToolsCall:
			mu.Lock()
			defer mu.Unlock()
			if ids[id] {
				t.Errorf("id %s is used again", id)
			}
			ids[id] = true
			reply := `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[],"resultType":"complete","got":` + string(m.Params.Get("arguments")) + `}}`
			if held == "" {
				held = reply
				return
			}
			write(reply + "\n" + held)
			held = ""
		default:
			if m.IsRequest() {
				write(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"no"}}`)
			}
		}
	})
	g := newGateway(t, "", piped("s", socket))
	g.ready()
	clients := []*mcptest.Caller{g.http(mcp.Latest), g.pipes(mcp.V20250618)}
	ask := func(c *mcptest.Caller, who, round int) error {
		id := []string{"1", `"1"`, "0", `""`, "9007199254740993", strconv.Itoa(round)}[round%6]
		want := fmt.Sprintf(`"got":{"who":%d,"round":%d}`, who, round)
		a, err := c.Raw(bounded(t), id, mcp.MethodToolsCall, fmt.Sprintf(`{"name":"s__t","arguments":{"who":%d,"round":%d}}`, who, round))
		if err == nil && !strings.Contains(a.Result, want) {
			err = fmt.Errorf("client %d, round %d, id %s: got %+v", who, round, id, a)
		}
		return err
	}
	for round := range rounds(300, 3000) {
		errs := make(chan error, len(clients))
		for who, c := range clients {
			go func() { errs <- ask(c, who, round) }() // ends with its call
		}
		for range clients {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCalls_NothingHidden has 100 calls cause one handshake, one listing and 100
// calls, also through a gateway behind a gateway (C-129).
func TestCalls_NothingHidden(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20250618, mcp.Latest} {
		b := answering(tool("t"))
		b.Version = v
		inner := newGateway(t, "", piped("s", b.OnPipes(t)))
		inner.ready()
		outer := newGateway(t, "", remote("inner", inner.URL()))
		outer.ready()
		c := outer.http(mcp.Latest)
		same(t, "through two gateways", list(t, c, mcp.Tools), []string{tool("inner__s__t")})
		for range 100 {
			if got := callTool(t, c, "inner__s__t"); !strings.Contains(got, "done") {
				t.Fatal(got)
			}
		}
		begun := b.Count(mcp.MethodInitialize)
		if v.Stateless() {
			begun = b.Count(mcp.MethodDiscover)
		}
		if lists, calls := b.Count(mcp.MethodToolsList), b.Count(mcp.MethodToolsCall); begun != 1 || lists != 1 || calls != 100 {
			t.Errorf("%s: %d handshakes, %d listings and %d calls", v, begun, lists, calls)
		}
		// What changes at the far end arrives at this one.
		if _, err := c.Listen(bounded(t)); err != nil {
			t.Fatal(err)
		}
		b.Add(mcp.Tools, tool("new"))
		b.Changed(bounded(t), mcp.Tools)
		if err := c.Notes.Wait(bounded(t), mcp.Tools.ChangedMethod(), 1); err != nil {
			t.Error(err)
		}
		outer.close()
		inner.close()
	}
}

// TestCalls_Timeout has the timeout of a server's entry hold on every wire, and
// the server be told (C-134).
func TestCalls_Timeout(t *testing.T) {
	gaveUp := make(chan mcp.Version, 10)
	var backends []*mcptest.Backend
	hanging := func(v mcp.Version) *mcptest.Backend {
		b := &mcptest.Backend{Version: v}
		backends = append(backends, b)
		b.Set(mcp.Tools, tool("hang"))
		b.Set(mcp.Prompts, `{"name":"hang"}`)
		b.Do = func(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) {
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), jsonrpc.ErrCanceled) {
				gaveUp <- v
			}
			return nil, ctx.Err()
		}
		return b
	}
	const timeout = `"timeout":"250ms"`
	g := newGateway(t, "",
		piped("p1", hanging(mcp.V20250618).OnPipes(t), timeout), piped("p2", hanging(mcp.Latest).OnPipes(t), timeout),
		remote("h1", hanging(mcp.V20250618).OnHTTP(t).URL, timeout), remote("h2", hanging(mcp.Latest).OnHTTP(t).URL, timeout))
	g.ready()
	c := g.http(mcp.Latest)
	for _, name := range []string{"p1", "p2", "h1", "h2"} {
		began := time.Now()
		got := callTool(t, c, name+"__hang")
		if took := time.Since(began); took < 250*time.Millisecond {
			t.Errorf("%s: gave up after %v", name, took)
		}
		if want := `server \"` + name + `\" did not answer tools/call within 250ms`; !strings.Contains(got, want) || !strings.Contains(got, `"isError":true`) {
			t.Errorf("%s: %s", name, got)
		}
		select {
		case <-gaveUp:
		case <-time.After(patience):
			t.Errorf("%s was not told", name)
		}
		a, err := c.Call(bounded(t), mcp.MethodPromptsGet, `{"name":"`+name+`__hang"}`)
		if err != nil || a.Code() != jsonrpc.CodeInternal || !strings.Contains(a.Error, "within 250ms") {
			t.Errorf("%s: prompts/get: %+v, %v", name, a, err)
		}
		if st := g.server(name); st.State != upstream.Ready || st.Restarts != 0 {
			t.Errorf("after a call that took too long, the status of %s is %+v", name, st)
		}
	}
	// A slow server is not a lost one: nothing is asked to find out.
	for i, b := range backends {
		if pings, hellos := b.Count(mcp.MethodPing), b.Count(mcp.MethodDiscover); pings > 0 || hellos > 1 {
			t.Errorf("server %d (%s) was pinged %d times and asked for its versions %d times", i, b.Version, pings, hellos)
		}
	}
}

// TestCalls_Resources has two servers with resources of their own, binary ones
// and such of a scheme of their own (C-189).
func TestCalls_Resources(t *testing.T) {
	blob := base64.StdEncoding.EncodeToString([]byte("\x00\x01\xff\xfe\r\n\u2028"))
	serve := func(v mcp.Version, uris ...string) *mcptest.Backend {
		b := &mcptest.Backend{Version: v}
		for _, uri := range uris {
			b.Add(mcp.Resources, `{"uri":"`+uri+`","name":"n"}`)
		}
		b.Do = func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			uri, _ := req.Params.Text("uri")
			return jsontext.Value(`{"contents":[{"uri":"` + uri + `","blob":"` + blob + `"}],"by":"` + string(v) + `"}`), nil
		}
		return b
	}
	one := serve(mcp.V20250618, "file:///a.bin", "ui://one/App")
	two := serve(mcp.Latest, "file:///b.bin", "ui://two/App", "file:///a.bin")
	g := newGateway(t, "", piped("one", one.OnPipes(t)), remote("two", two.OnHTTP(t).URL))
	g.ready()
	for _, c := range []*mcptest.Caller{g.http(mcp.V20250326), g.pipes(mcp.Latest)} {
		if n := len(list(t, c, mcp.Resources)); n != 4 {
			t.Errorf("%d resources are listed", n)
		}
		for uri, by := range map[string]mcp.Version{
			"file:///a.bin": mcp.V20250618, "ui://one/App": mcp.V20250618, "file:///b.bin": mcp.Latest, "ui://two/App": mcp.Latest,
		} {
			got := result(t, c, mcp.MethodResourcesRead, `{"uri":"`+uri+`"}`)
			if !strings.Contains(got, `{"contents":[{"uri":"`+uri+`","blob":"`+blob+`"}],"by":"`+string(by)+`"`) {
				t.Errorf("%s: %s", uri, got)
			}
		}
		a, err := c.Call(bounded(t), mcp.MethodResourcesRead, `{"uri":"file:///c.bin"}`)
		want := jsonrpc.CodeInvalidParams
		if !c.Version.Stateless() {
			want = mcp.CodeResourceNotFound
		}
		if err != nil || a.Code() != want || !strings.Contains(a.Error, "file:///c.bin") {
			t.Errorf("a resource that nobody has: %+v, %v", a, err)
		}
	}
}

// TestCalls_OurClient has the client package use the gateway.
func TestCalls_OurClient(t *testing.T) {
	b := answering(tool("t"))
	g := newGateway(t, `"pageItems":1`, piped("s", b.OnPipes(t)), remote("r", answering(tools("r%d", 5)...).OnHTTP(t).URL))
	changed := make(chan struct{}, 10)
	dial := func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		return mcphttp.Dial(ctx, g.URL(), mcphttp.DialOptions{Notification: in.Notification, Handler: in.Handler, Gap: in.Gap})
	}
	c, err := client.Connect(bounded(t), client.Options{Dial: dial, HTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if v := c.Server().Version; v != mcp.Latest {
		t.Errorf("spoken to in %s", v)
	}
	l, err := c.List(bounded(t), mcp.Tools, client.Limits{})
	if err != nil || len(l.Items) != 6 || l.Pages != 6 {
		t.Errorf("%d tools on %d pages, %v", len(l.Items), l.Pages, err)
	}
	listening := make(chan struct{})
	ctx, cancel := context.WithCancel(bounded(t))
	ended := make(chan error, 1)
	go func() { // ends with ctx
		ended <- c.Listen(ctx, client.Listen{
			Filter:       client.Filter{Kinds: []mcp.Kind{mcp.Tools}},
			Acknowledged: func(client.Filter) { close(listening) },
			Notification: func(*jsonrpc.Message) { changed <- struct{}{} },
		})
	}()
	<-listening
	b.Add(mcp.Tools, tool("more"))
	b.Changed(bounded(t), mcp.Tools)
	select {
	case <-changed:
	case <-time.After(patience):
		t.Error("not told of a change")
	}
	params, _ := jsonrpc.ParseObject(jsontext.Value(`{"name":"s__more"}`))
	got, err := c.Call(bounded(t), client.Request{Method: mcp.MethodToolsCall, Params: params})
	if err != nil || !strings.Contains(string(got.Raw), "done") {
		t.Errorf("%s, %v", got.Raw, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the subscription ended with %v", err)
	}
}

// TestCalls_BigBothWays has many calls with big arguments and big results at once,
// which must not stop each other in any pipe.
func TestCalls_BigBothWays(t *testing.T) {
	const size = 1 << 20
	calls := rounds(4, 16)
	echo := func(v mcp.Version) *mcptest.Backend {
		b := &mcptest.Backend{Version: v}
		b.Set(mcp.Tools, tool("echo"))
		b.Do = func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			return jsontext.Value(`{"content":[],"got":` + string(req.Params.Get("arguments")) + `}`), nil
		}
		return b
	}
	g := newGateway(t, "", piped("p", echo(mcp.V20241105).OnPipes(t)), remote("h", echo(mcp.Latest).OnHTTP(t).URL))
	g.ready()
	var all sync.WaitGroup
	for _, c := range []*mcptest.Caller{g.pipes(mcp.Latest), g.http(mcp.V20250618)} {
		for _, name := range []string{"p__echo", "h__echo"} {
			for i := range calls {
				all.Go(func() { // ends with its call
					args := `{"n":` + strconv.Itoa(i) + `,"s":"` + strings.Repeat(string(rune('a'+i)), size) + `"}`
					a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`","arguments":`+args+`}`)
					if err != nil || !strings.Contains(a.Result, `"got":`+args) {
						t.Errorf("%s: %d bytes, %s, %v", name, len(a.Result), a.Error, err)
					}
				})
			}
		}
	}
	all.Wait()
}

// TestCalls_Canceled has clients of every era give up a call: the server is told,
// whatever its wire and version, and other calls go on.
func TestCalls_Canceled(t *testing.T) {
	type event struct {
		server string
		begun  bool
	}
	events := make(chan event, 10)
	hanging := func(name string, v mcp.Version) *mcptest.Backend {
		b := answering(tool("hang"), tool("t"))
		b.Version = v
		quick := b.Do
		b.Do = func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			if own, _ := req.Params.Text("name"); own != "hang" {
				return quick(ctx, req)
			}
			events <- event{name, true}
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), jsonrpc.ErrCanceled) {
				events <- event{name, false}
			}
			return nil, ctx.Err()
		}
		return b
	}
	servers := []string{"p1", "p2", "h1", "h2"}
	g := newGateway(t, "",
		piped("p1", hanging("p1", mcp.V20250618).OnPipes(t)), piped("p2", hanging("p2", mcp.Latest).OnPipes(t)),
		remote("h1", hanging("h1", mcp.V20250618).OnHTTP(t).URL), remote("h2", hanging("h2", mcp.Latest).OnHTTP(t).URL))
	g.ready()
	next := func(want event) {
		t.Helper()
		select {
		case got := <-events:
			if got != want {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("waited in vain for %+v", want)
		}
	}
	for i, c := range []*mcptest.Caller{g.http(mcp.Latest), g.http(mcp.V20251125), g.pipes(mcp.Latest), g.pipes(mcp.V20241105)} {
		for _, name := range servers {
			ctx, cancel := context.WithCancel(bounded(t))
			ended := make(chan struct{})
			go func() { // ends with its call
				defer close(ended)
				_, _ = c.Raw(ctx, `"give up"`, mcp.MethodToolsCall, `{"name":"`+name+`__hang"}`)
			}()
			next(event{name, true})
			if i > 0 { // a stateless client over HTTP leaves, and that is enough
				if err := c.Notify(bounded(t), mcp.MethodCanceled, `{"requestId":"give up","reason":"enough"}`); err != nil {
					t.Fatal(err)
				}
				next(event{name, false})
				cancel()
			} else {
				cancel()
				next(event{name, false})
			}
			<-ended
			if got := callTool(t, c, name+"__t"); !strings.Contains(got, "done") {
				t.Error(got)
			}
		}
	}
}
