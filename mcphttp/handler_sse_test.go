package mcphttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"go.uber.org/goleak"
)

// serveSSE serves a Handler at /mcp, /sse and /messages. The endpoint's url is
// that of the server.
func serveSSE(t testing.TB, b jsonrpc.Handler, opts mcphttp.HandlerOptions) *endpoint {
	t.Helper()
	running := goleak.IgnoreCurrent()
	h := mcphttp.NewHandler(b, opts)
	return endpointOf(t, h, httptest.NewServer(sseRoutes(h)), &http.Client{Transport: &http.Transport{}}, running)
}

func sseRoutes(h *mcphttp.Handler) http.Handler {
	mux := http.NewServeMux()
	stream, messages := h.SSE("/messages")
	mux.Handle("/mcp", h)
	mux.Handle("/sse", stream)
	mux.Handle("/messages", messages)
	return mux
}

// at returns the endpoint with a URL that counts from its own.
func (e *endpoint) at(ref string) *endpoint {
	e.t.Helper()
	base, err := url.Parse(e.url)
	if err != nil {
		e.t.Fatal(err)
	}
	u, err := base.Parse(ref)
	if err != nil {
		e.t.Fatal(err)
	}
	other := *e
	other.url = u.String()
	return &other
}

// openSSE opens a stream and returns where to send messages.
func (e *endpoint) openSSE(ctx context.Context, h hdr) (*events, *endpoint) {
	e.t.Helper()
	s := e.at("/sse").stream(ctx, "GET", "", h)
	ev := s.must()
	if ev.kind != "endpoint" || !strings.HasPrefix(ev.data, "/messages?sessionId=") {
		e.t.Fatalf("the first event: %+v", ev)
	}
	return s, e.at(ev.data)
}

func (e *endpoint) accepted(body string) {
	e.t.Helper()
	if a := e.post(body, nil); a.status != 202 || a.body != "" || a.header.Get("Content-Type") != "" {
		e.t.Fatalf("%s: %d %q %q", body, a.status, a.header.Get("Content-Type"), a.body)
	}
}

const sseHello = `{"jsonrpc":"2.0","id":"h","method":"initialize","params":{"protocolVersion":"2024-11-05","capabilities":{}}}`

func TestSSE(t *testing.T) {
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"noisy": noisy}}
	e := serveSSE(t, b, mcphttp.HandlerOptions{})
	s, messages := e.openSSE(testContext(t), nil)
	messages.accepted(sseHello)
	if ev := s.must(); ev.id != "" || !strings.HasPrefix(ev.data, `{"jsonrpc":"2.0","id":"h","result":{"protocolVersion":"2024-11-05"`) {
		t.Fatalf("%+v", ev)
	}
	messages.accepted(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, line := range fixtureLines(t, "ids_strings.jsonl") { // C-089
		m, err := jsonrpc.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		messages.accepted(string(line))
		if id, _ := messageID(t, s.must().data); id != m.ID.String() {
			t.Errorf("id %s became %s", m.ID, id)
		}
	}
	messages.accepted(`{"jsonrpc":"2.0","id":0,"method":"ping"}`)
	if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":0,"result":{}}` {
		t.Errorf("%+v", ev)
	}
	if err := b.session(0).Peer.Notify(testContext(t), "n", nil); err != nil {
		t.Fatal(err)
	}
	if ev := s.must(); ev.data != `{"jsonrpc":"2.0","method":"n"}` {
		t.Errorf("%+v", ev)
	}
}

func TestSSEAsks(t *testing.T) {
	// A server's question is answered while its request runs, and one that is
	// open when the request ends is taken back.
	end := make(chan struct{})
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"ask": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		got, err := req.Peer.Call(ctx, "roots/list", nil)
		if err != nil {
			return nil, err
		}
		go func() { _, _ = req.Peer.Call(ctx, "roots/list", nil) }() // ends with the request
		<-end
		return got.Raw, nil
	}}}
	e := serveSSE(t, b, mcphttp.HandlerOptions{})
	s, messages := e.openSSE(testContext(t), nil)
	messages.accepted(legacyCall(`"a"`, "ask"))
	if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":1,"method":"roots/list"}` {
		t.Fatalf("%+v", ev)
	}
	messages.accepted(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
	if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":2,"method":"roots/list"}` {
		t.Fatalf("%+v", ev)
	}
	close(end)
	if ev := s.must(); !strings.Contains(ev.data, mcp.MethodCanceled) {
		t.Fatalf("%+v", ev)
	}
	if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":"a","result":{"roots":[]}}` {
		t.Fatalf("%+v", ev)
	}
}

func TestSSECancel(t *testing.T) {
	hang := newHanging()
	e := serveSSE(t, &backend{tools: map[string]jsonrpc.HandlerFunc{"hang": hang.Handle}}, mcphttp.HandlerOptions{})
	s, messages := e.openSSE(testContext(t), nil)
	messages.accepted(legacyCall("0", "hang")) // C-091
	within(t, "the call", wait(hang.running))
	messages.accepted(legacyCall("0", "hang"))
	if id, code := messageID(t, s.must().data); id != "0" || code != jsonrpc.CodeInvalidRequest {
		t.Errorf("an id that is in use: %s, %d", id, code)
	}
	messages.accepted(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}`)
	if err := hang.cause(t); err != jsonrpc.ErrCanceled {
		t.Errorf("cause %v", err)
	}
	messages.accepted(`{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":2,"result":{}}` {
		t.Errorf("after a cancelled request: %+v", ev)
	}
}

func TestSSEEndOfStreamEndsSession(t *testing.T) {
	hang := newHanging()
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"hang": hang.Handle}}
	e := serveSSE(t, b, mcphttp.HandlerOptions{})
	ctx, leave := context.WithCancel(testContext(t))
	s, messages := e.openSSE(ctx, nil)
	messages.accepted(sseHello)
	s.must()
	messages.accepted(legacyCall("1", "hang"))
	within(t, "the call", wait(hang.running))
	leave()
	if err := hang.cause(t); err != jsonrpc.ErrSessionClosed {
		t.Errorf("cause %v", err)
	}
	within(t, "the session's end", b.session(0).Done())
	if a := messages.post(legacyCall("2", "hang"), nil); a.status != 404 || !strings.Contains(a.body, `"id":2`) {
		t.Errorf("after the stream: %d %s", a.status, a.body)
	}
	if n := e.handler.Sessions(); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

func TestSSERefusals(t *testing.T) {
	b := &backend{}
	who := func(r *http.Request) string { return r.Header.Get("X-Who") }
	e := serveSSE(t, b, mcphttp.HandlerOptions{Principal: who, MaxBody: 1000})
	_, messages := e.openSSE(testContext(t), hdr{"X-Who": "a"})
	own := hdr{"X-Who": "a"}
	plain := e.at("/mcp").initialize("2025-11-25")
	id := messages.url[strings.Index(messages.url, "=")+1:]
	big := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 1000) + `"}}`
	const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}`
	for _, tt := range []struct {
		name, verb, path, body string
		header                 hdr
		status                 int
		id                     string
	}{
		{"another principal", "POST", messages.url, ping, hdr{"X-Who": "b"}, 404, `"p"`},
		{"no session", "POST", "/messages", ping, own, 404, `"p"`},
		{"a session of the other wire", "POST", "/messages?sessionId=" + plain["Mcp-Session-Id"], ping, nil, 404, `"p"`},
		{"this session on the other wire", "POST", "/mcp", ping, hdr{"X-Who": "a", "Mcp-Session-Id": id}, 404, `"p"`},
		{"origin", "POST", messages.url, ping, hdr{"X-Who": "a", "Origin": "https://evil.example"}, 403, ""}, // C-151
		{"origin of the stream", "GET", "/sse", "", hdr{"Origin": "https://evil.example"}, 403, ""},          // C-151
		{"host", "GET", "/sse", "", hdr{"Host": "evil.example"}, 403, ""},
		{"preflight of a foreign page", "OPTIONS", "/sse", "", hdr{"Origin": "https://evil.example"}, 403, ""},
		{"media type", "POST", messages.url, ping, hdr{"X-Who": "a", "Content-Type": "text/plain"}, 415, ""},
		{"no JSON", "POST", messages.url, "{", own, 400, ""},
		{"batch", "POST", messages.url, "[" + ping + "]", own, 400, ""},
		{"too large", "POST", messages.url, big, own, 413, ""},
		{"verb", "DELETE", "/sse", "", own, 405, ""},
		{"verb of messages", "GET", messages.url, "", own, 405, ""},
		{"no stream wanted", "GET", "/sse", "", hdr{"Accept": "application/json"}, 406, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			calls := b.calls.Load()
			a := e.at(tt.path).do(tt.verb, tt.body, tt.header)
			if a.status != tt.status || a.header.Get("Content-Type") != "application/json" {
				t.Fatalf("%d %q %s", a.status, a.header.Get("Content-Type"), a.body)
			}
			if id, code := messageID(t, a.body); id != tt.id || code == 0 {
				t.Errorf("id %s, code %d", id, code)
			}
			if a.status == 403 && a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Error("a refused page may read the answer")
			}
			if b.calls.Load() != calls {
				t.Error("the handler was called")
			}
		})
	}
	if a := e.at("/messages").do("OPTIONS", "", hdr{"Origin": "http://localhost:3000", "Access-Control-Request-Headers": "authorization"}); a.status != 204 ||
		a.header.Get("Access-Control-Allow-Methods") != "POST" || a.header.Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight: %d %v", a.status, a.header)
	}
}

func TestSSENewerVersions(t *testing.T) {
	// A client that tries the newest first is told what there is, on the stream: it
	// would take a POST that fails for the end.
	b := &backend{}
	e := serveSSE(t, b, mcphttp.HandlerOptions{})
	s, messages := e.openSSE(testContext(t), nil)
	body, header := modern(`"m"`, "server/discover", "")
	for _, h := range []hdr{header, {"Mcp-Protocol-Version": "1999-01-01"}} {
		if a := messages.post(body, h); a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		ev := s.must()
		if id, code := messageID(t, ev.data); id != `"m"` || code != mcp.CodeUnsupportedVersion || !strings.Contains(ev.data, "2025-11-25") {
			t.Errorf("%s", ev.data)
		}
	}
	if n := b.calls.Load(); n != 0 {
		t.Errorf("%d calls of the handler", n)
	}
	messages.accepted(sseHello)
	s.must()
}

func TestSSEKeepAlive(t *testing.T) {
	e := serveSSE(t, &backend{}, mcphttp.HandlerOptions{KeepAlive: time.Millisecond})
	s, _ := e.openSSE(testContext(t), nil)
	if ev, err := s.next(); err != nil || ev.comment != "keep-alive" {
		t.Errorf("%+v, %v", ev, err)
	}
}

func TestSSESlowClientIsDropped(t *testing.T) {
	// Answers count, too: a client could send requests for ever and read nothing.
	big := jsontext.Value(`{"x":"` + strings.Repeat("x", 1<<20) + `"}`)
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"big": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		return big, nil
	}}}
	e := serveSSE(t, b, mcphttp.HandlerOptions{QueueBytes: 4 << 20})
	_, messages := e.openSSE(testContext(t), nil) // and is not read from here on
	for i := range 200 {
		a := messages.post(legacyCall(jsonrpc.IntID(int64(i)).String(), "big"), nil)
		if a.status == 404 {
			return
		}
		if a.status != 202 {
			t.Fatalf("%d %s", a.status, a.body)
		}
	}
	t.Error("200 MiB wait for a client that does not read")
}

func TestSSEClose(t *testing.T) {
	// What runs is answered before the stream ends.
	release := make(chan struct{})
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"slow": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		<-release
		return jsontext.Value(`{"done":true}`), nil
	}}}
	e := serveSSE(t, b, mcphttp.HandlerOptions{})
	s, messages := e.openSSE(testContext(t), nil)
	messages.accepted(legacyCall("1", "slow"))
	closed := make(chan error, 1)
	go func() { closed <- e.handler.Close(testContext(t)) }()
	eventually(t, "refusal", func() bool { return messages.post(`{"jsonrpc":"2.0","id":2,"method":"ping"}`, nil).status == 503 })
	close(release)
	if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":1,"result":{"done":true}}` {
		t.Errorf("%+v", ev)
	}
	s.atEnd()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
