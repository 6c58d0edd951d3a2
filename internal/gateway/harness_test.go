package gateway_test

import (
	"context"
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/gateway"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// key is the key for requestState in all tests.
var key = []byte("an-example-key-of-at-least-32-bytes")

var cancelled = jsonrpc.CancelNotification{Method: mcp.MethodCanceled, Member: "requestId"}

// overPipe returns a dialler that connects to a handler in memory.
func overPipe(t *testing.T, h jsonrpc.Handler) client.Dial {
	return func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		near, far := mcptest.Pipe()
		srv := jsonrpc.NewConn(context.WithoutCancel(ctx), far, jsonrpc.ConnOptions{Handler: h, Cancel: cancelled, First: mcp.MethodInitialize})
		t.Cleanup(func() { _ = srv.Close() })
		return jsonrpc.NewConn(context.WithoutCancel(ctx), near, jsonrpc.ConnOptions{
			Handler: in.Handler, Route: in.Route, Notification: in.Notification, Cancel: cancelled,
		}), nil
	}
}

// overChild returns a dialler that starts a child process, this test binary once
// more, and has a handler answer on its pipes.
func overChild(t *testing.T, h jsonrpc.Handler) client.Dial {
	socket := mcptest.NewSocket(t, func(ctx context.Context, conn net.Conn, _ int) {
		_ = stdio.Serve(ctx, conn, conn, h, nil) // it ends as the test wants
	})
	name, env := socket.Command()
	cmd := &stdio.Command{Name: name}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		return cmd.Dial(ctx, jsonrpc.ConnOptions{Handler: in.Handler, Route: in.Route, Notification: in.Notification})
	}
}

// overHTTP serves a handler over HTTP and returns a dialler that connects to it.
func overHTTP(t *testing.T, h jsonrpc.Handler, opts mcphttp.HandlerOptions) client.Dial {
	handler := mcphttp.NewHandler(h, opts)
	srv := httptest.NewServer(handler)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = handler.Close(ctx)
		srv.CloseClientConnections()
		srv.Close()
	})
	return func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		return mcphttp.Dial(ctx, srv.URL, mcphttp.DialOptions{
			Handler: in.Handler, Route: in.Route, Notification: in.Notification, Gap: in.Gap,
		})
	}
}

// behind is a server behind a gateway.
type behind struct {
	name string
	dial client.Dial
	http bool
	opts upstream.Options // more of them
	// apart: it runs for each client apart.
	apart bool
}

// front is a gateway under test.
type front struct {
	source  *gateway.Source
	server  *server.Server
	servers *upstream.Set
	catalog *catalog.Catalog
}

// newGateway returns a gateway whose servers are ready. Names are exposed as they
// are.
func newGateway(t *testing.T, all ...behind) *front {
	t.Helper()
	f := startGateway(t, all...)
	receive(t, "the lists are there", f.catalog.Ready())
	return f
}

func startGateway(t *testing.T, all ...behind) *front {
	t.Helper()
	bare := ""
	var blocks []catalog.ServerOptions
	for _, b := range all {
		blocks = append(blocks, catalog.ServerOptions{Name: b.name, Prefix: &bare, HTTP: b.http, PerClient: b.apart})
	}
	cat := catalog.New(blocks, catalog.Options{Implementation: jsontext.Value(`{"name":"roster","version":"0"}`)})
	f := &front{servers: upstream.NewSet(), catalog: cat}
	var err error
	f.source, err = gateway.New(cat, f.servers, gateway.Options{Implementation: jsontext.Value(`{"name":"roster","version":"0"}`), Key: key, StartWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	f.server = server.New(f.source, server.Options{Settle: time.Millisecond, SettleMax: 10 * time.Millisecond})
	var servers []*upstream.Server
	for _, b := range all {
		opts := b.opts
		opts.Name, opts.Dial, opts.HTTP = b.name, b.dial, b.http
		opts.Capabilities = jsontext.Value(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)
		opts.Hooks = upstream.Hooks{
			Notification: func(m *jsonrpc.Message) { f.source.Notification(context.WithoutCancel(t.Context()), b.name, m) },
			Lists:        func(l upstream.Lists) { cat.Replace(b.name, listsOf(l)) },
		}
		if b.apart {
			shared := opts
			opts.PerClient = func(c upstream.Client) upstream.Options { return f.apart(t, shared, c) }
		}
		servers = append(servers, upstream.New(opts))
	}
	if err := f.servers.Apply(context.WithoutCancel(t.Context()), servers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.server.Close()
		f.source.Close()
		f.servers.Close()
	})
	return f
}

func listsOf(l upstream.Lists) catalog.Lists {
	var lists catalog.Lists
	for k, listed := range l.Kinds {
		if listed.List != nil {
			lists[k] = &catalog.List{Items: listed.List.Items}
		}
	}
	return lists
}

// apart returns the options of a server that runs for one client.
func (f *front) apart(t *testing.T, opts upstream.Options, c upstream.Client) upstream.Options {
	ctx := context.WithoutCancel(t.Context())
	opts.Capabilities = c.Capabilities
	opts.Ask = func(ctx context.Context, srv *upstream.Server, q *jsonrpc.Request) (jsontext.Value, error) {
		return f.source.AskFor(ctx, c, srv, q)
	}
	opts.Hooks = upstream.Hooks{
		Begin:        func(srv *upstream.Server) { f.source.Begun(c, srv) },
		Notification: func(m *jsonrpc.Message) { f.source.NotificationFor(ctx, c, opts.Name, m) },
		Lists:        func(l upstream.Lists) { f.source.Listed(c, opts.Name, listsOf(l)) },
		State: func(st upstream.Status) {
			if st.State == upstream.Down {
				f.source.Heard(c, opts.Name)
			}
		},
	}
	return opts
}

// party is a client of one version that writes down what it says and hears.
type party struct {
	wire    client.Wire
	version mcp.Version
	http    bool
	caps    string
	level   string // of log messages, for stateless versions
	// answer answers a question; nil: as answerTo does.
	answer  func(ctx context.Context, method string, params jsonrpc.Object) (string, error)
	updates chan string // URIs
	heard   chan string // methods of other notifications

	mu    sync.Mutex // guards lines
	lines []string
}

const everyCapability = `{"elicitation":{"form":{},"url":{}},"sampling":{},"roots":{}}`

// join begins a conversation.
func join(t *testing.T, dial client.Dial, http bool, v mcp.Version, caps string) *party {
	t.Helper()
	p := &party{version: v, http: http, caps: caps, updates: make(chan string, 1024), heard: make(chan string, 1024)}
	ctx := context.WithoutCancel(t.Context())
	wire, err := dial(ctx, client.Incoming{Notification: p.notification, Handler: jsonrpc.HandlerFunc(p.asked), Gap: func() {}})
	if err != nil {
		t.Fatal(err)
	}
	p.wire = wire
	t.Cleanup(func() { _ = wire.Close() })
	if v.Stateless() {
		return p
	}
	params := fmt.Sprintf(`{"protocolVersion":%q,"capabilities":%s,"clientInfo":{"name":"c","version":"1"}}`, v, caps)
	result, err := wire.Do(ctx, &jsonrpc.Call{Method: mcp.MethodInitialize, Params: jsontext.Value(params)})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := result.Text("protocolVersion"); got != string(v) {
		t.Fatalf("asked for version %s, got %s", v, got)
	}
	if err := wire.Notify(ctx, mcp.MethodInitialized, nil); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *party) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

func (p *party) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.lines
	p.lines = nil
	return out
}

func (p *party) notification(m *jsonrpc.Message) {
	if strings.HasSuffix(m.Method, "/list_changed") || m.Method == mcp.MethodCanceled {
		return // when they come is not said
	}
	p.note("<- %s %s", m.Method, readable(m.Params))
	if uri, _ := m.Params.Text("uri"); m.Method == mcp.MethodUpdated {
		p.updates <- uri
	} else {
		p.heard <- m.Method
	}
}

// asked answers a question of a server with sessions.
func (p *party) asked(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	p.note("<- %s %s", r.Method, readable(r.Params))
	out, err := p.reply(ctx, r.Method, r.Params)
	if err != nil {
		return nil, err
	}
	p.note("-> %s", out)
	return jsontext.Value(out), nil
}

func (p *party) reply(ctx context.Context, method string, params jsonrpc.Object) (string, error) {
	if p.answer != nil {
		return p.answer(ctx, method, params)
	}
	return answerTo(method, params), nil
}

func answerTo(method string, params jsonrpc.Object) string {
	mode, _ := params.Text("mode")
	switch {
	case method == mcp.MethodSampling:
		return `{"role":"assistant","content":{"type":"text","text":"hello"},"model":"m"}`
	case method == mcp.MethodRootsList:
		return `{"roots":[]}`
	case mode == "url":
		return `{"action":"accept"}`
	}
	return `{"action":"accept","content":{"colour":"r<e>d & 1.0"}}`
}

// send makes a request of the party's version; params is an object.
func (p *party) send(ctx context.Context, method, params string) (jsonrpc.Object, error) {
	obj, err := jsonrpc.ParseObject(jsontext.Value(params))
	if err != nil {
		return obj, err
	}
	p.note("-> %s %s", method, readable(obj))
	result, err := p.wire.Do(ctx, p.call(method, obj))
	switch {
	case ctx.Err() != nil:
		p.note("-> cancelled")
	case err != nil:
		e := jsonrpc.AsError(err)
		p.note("<- error %d %s", e.Code, e.Message)
	default:
		p.note("<- result %s", readable(result))
	}
	return result, err
}

func (p *party) call(method string, params jsonrpc.Object) *jsonrpc.Call {
	call := &jsonrpc.Call{Method: method, Params: params.Raw}
	if !p.version.Stateless() {
		return call
	}
	call.Params = mcp.SetCaller(params, mcp.Caller{
		Version: p.version, Info: jsontext.Value(`{"name":"c","version":"1"}`), Capabilities: jsontext.Value(p.caps), LogLevel: p.level,
	})
	if p.http {
		call.Header = map[string]string{mcp.HeaderVersion: string(p.version), mcp.HeaderMethod: method}
		if name, ok := params.Text(mcp.NameMember(method)); ok {
			call.Header[mcp.HeaderName] = mcp.EncodeHeader(name)
		}
	}
	return call
}

// converse makes a request, and answers what its results ask for.
func (p *party) converse(ctx context.Context, method, params string) (jsonrpc.Object, error) {
	first, err := jsonrpc.ParseObject(jsontext.Value(params))
	if err != nil {
		return first, err
	}
	next := params
	for range 10 {
		result, err := p.send(ctx, method, next)
		if kind, _ := result.Text("resultType"); err != nil || kind != "input_required" {
			return result, err
		}
		answers, err := p.answers(ctx, result)
		if err != nil {
			return result, err
		}
		next = string(mcp.Splice(first, mcp.Edit{Name: "inputResponses", Value: answers},
			mcp.Edit{Name: "requestState", Value: result.Get("requestState")}))
	}
	return jsonrpc.Object{}, fmt.Errorf("%s: asked for more again and again", method)
}

func (p *party) answers(ctx context.Context, result jsonrpc.Object) (jsontext.Value, error) {
	var out jsonrpc.Object
	requests, err := jsonrpc.ParseObject(result.Get("inputRequests"))
	if err != nil {
		return nil, err
	}
	var edits []mcp.Edit
	for name, raw := range requests.All() {
		q, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		method, _ := q.Text("method")
		params, _ := jsonrpc.ParseObject(q.Get("params"))
		answer, err := p.reply(ctx, method, params)
		if err != nil {
			return nil, err
		}
		edits = append(edits, mcp.Edit{Name: name, Value: jsontext.Value(answer)})
	}
	return mcp.Splice(out, edits...), nil
}
