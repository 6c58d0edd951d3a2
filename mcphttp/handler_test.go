package mcphttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"go.uber.org/goleak"
)

// patience bounds every wait of these tests for something that should happen.
const patience = 30 * time.Second

// backend is the handler behind the endpoints of these tests. Tools are
// functions by name.
type backend struct {
	calls atomic.Int64 // all that reached the handler
	tools map[string]jsonrpc.HandlerFunc

	mu       sync.Mutex
	sessions []*jsonrpc.Session
	notes    []string
}

func (b *backend) Handle(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	b.calls.Add(1)
	if req.ID.IsZero() {
		b.mu.Lock()
		b.notes = append(b.notes, req.Method)
		b.mu.Unlock()
		return nil, nil
	}
	switch req.Method {
	case mcp.MethodInitialize:
		if req.Params.Get("refuse") != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "refused")
		}
		b.mu.Lock()
		b.sessions = append(b.sessions, req.Session)
		b.mu.Unlock()
		asked, _ := req.Params.Text("protocolVersion")
		return jsontext.Value(fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"serverInfo":{"name":"t","version":"0"}}`, mcp.Negotiate(mcp.Version(asked)))), nil
	case mcp.MethodToolsList:
		return jsontext.Value(`{"tools":[]}`), nil
	case mcp.MethodPing:
		return jsontext.Value(`{}`), nil
	case mcp.MethodToolsCall, mcp.MethodListen:
		name, _ := req.Params.Text("name")
		if req.Method == mcp.MethodListen {
			name = "listen"
		}
		if f := b.tools[name]; f != nil {
			return f(ctx, req)
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown tool %q", name)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)
}

func (b *backend) session(i int) *jsonrpc.Session {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sessions[i]
}

// endpoint is a Handler on a real server.
type endpoint struct {
	t       testing.TB
	url     string
	handler *mcphttp.Handler
	server  *httptest.Server
	client  *http.Client
}

func serveHTTP(t testing.TB, b jsonrpc.Handler, opts mcphttp.HandlerOptions) *endpoint {
	t.Helper()
	running := goleak.IgnoreCurrent()
	h := mcphttp.NewHandler(b, opts)
	return endpointOf(t, h, httptest.NewServer(h), &http.Client{Transport: &http.Transport{}}, running)
}

// serveHTTP2 is serveHTTP over HTTP/2.
func serveHTTP2(t testing.TB, b jsonrpc.Handler, opts mcphttp.HandlerOptions) *endpoint {
	t.Helper()
	running := goleak.IgnoreCurrent()
	h := mcphttp.NewHandler(b, opts)
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.StartTLS()
	return endpointOf(t, h, server, server.Client(), running)
}

func endpointOf(t testing.TB, h *mcphttp.Handler, server *httptest.Server, client *http.Client, running goleak.Option) *endpoint {
	e := &endpoint{t: t, url: server.URL, handler: h, server: server, client: client}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = h.Close(ctx)
		e.client.CloseIdleConnections()
		server.Close()
		goleak.VerifyNone(t, running)
	})
	return e
}

// hdr are header fields; "" removes one of the defaults.
type hdr map[string]string

func (e *endpoint) send(ctx context.Context, method, body string, h hdr) *http.Response {
	e.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, e.url, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	for k, v := range h {
		switch {
		case k == "Host":
			req.Host = v
		case v == "":
			req.Header.Del(k)
		default:
			req.Header.Set(k, v)
		}
	}
	resp, err := e.client.Do(req)
	if err != nil {
		e.t.Fatalf("%s: %v", method, err)
	}
	e.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
}

func (e *endpoint) post(body string, h hdr) answer { e.t.Helper(); return e.do("POST", body, h) }

func (e *endpoint) do(method, body string, h hdr) answer {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	resp := e.send(ctx, method, body, h)
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		e.t.Fatalf("body: %v", err)
	}
	resp.Body.Close()
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// initialize begins a session and returns the header fields that belong to it.
func (e *endpoint) initialize(version string) hdr {
	e.t.Helper()
	a := e.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{}}}`, nil)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || len(id) < 22 {
		e.t.Fatalf("initialize: %d %q %s", a.status, id, a.body)
	}
	h := hdr{"Mcp-Session-Id": id}
	if mcp.Version(version).HasVersionHeader() {
		h["Mcp-Protocol-Version"] = version
	}
	return h
}

const caps = `"io.modelcontextprotocol/clientCapabilities":{}`

// modern returns a request of version 2026-07-28 and its header. params begin
// with a comma or are empty.
func modern(id, method, params string) (string, hdr) {
	h := hdr{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method +
		`","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` + caps + `}` + params + `}}`, h
}

func modernCall(id, tool string) (string, hdr) {
	body, h := modern(id, "tools/call", `,"name":"`+tool+`"`)
	h["Mcp-Name"] = tool
	return body, h
}

func legacyCall(id, tool string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"}}`
}

// event is one server-sent event, or a comment.
type event struct{ id, data, comment, retry, kind string }

// events reads a stream in the test's own simple way.
type events struct {
	t    testing.TB
	body io.ReadCloser
	r    *bufio.Reader
}

func (e *endpoint) stream(ctx context.Context, method, body string, h hdr) *events {
	e.t.Helper()
	resp := e.send(ctx, method, body, h)
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		e.t.Fatalf("no stream: %d %s %s", resp.StatusCode, ct, b)
	}
	if cc, xa := resp.Header.Get("Cache-Control"), resp.Header.Get("X-Accel-Buffering"); cc != "no-cache, no-transform" || xa != "no" {
		e.t.Errorf("Cache-Control %q, X-Accel-Buffering %q", cc, xa)
	}
	return &events{e.t, resp.Body, bufio.NewReaderSize(resp.Body, 1<<20)}
}

// next returns the next event, io.EOF behind the last.
func (s *events) next() (event, error) {
	var ev event
	for {
		line, err := s.r.ReadString('\n')
		if err != nil {
			return ev, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return ev, nil
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			ev.id = value
		case "data":
			ev.data = value
		case "retry":
			ev.retry = value
		case "event":
			ev.kind = value
		case "":
			ev.comment = value
		default:
			s.t.Fatalf("line %q in a stream", line)
		}
	}
}

// must returns the next event that is no comment.
func (s *events) must() event {
	s.t.Helper()
	for {
		ev, err := s.next()
		if err != nil {
			s.t.Fatalf("stream ended: %v", err)
		}
		if ev.comment == "" {
			return ev
		}
	}
}

func (s *events) atEnd() {
	s.t.Helper()
	if ev, err := s.next(); err != io.EOF {
		s.t.Fatalf("after the response: %+v, %v", ev, err)
	}
}

// messageID returns the raw id and the error code of one JSON-RPC message.
func messageID(t testing.TB, body string) (id string, code int) {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(body))
	if err != nil {
		t.Fatalf("not a message: %v: %q", err, body)
	}
	if m.Error != nil {
		code = m.Error.Code
	}
	return m.ID.String(), code
}

func within(t testing.TB, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s did not happen", what)
	}
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestHandlerIDs(t *testing.T) {
	// C-089, C-091, C-094
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-11-25")
	ids := []string{"0", "-1", "12345678901234567890", `"\u0061"`}
	for _, line := range fixtureLines(t, "ids_strings.jsonl") {
		m, err := jsonrpc.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, m.ID.String())
	}
	for _, id := range ids {
		a := e.post(`{"jsonrpc":"2.0","id":`+id+`,"method":"tools/list"}`, session)
		if got, code := messageID(t, a.body); got != id || code != 0 || a.status != 200 {
			t.Errorf("session: id %s came back as %s, %d %s", id, got, a.status, a.body)
		}
		body, h := modern(id, "tools/list", "")
		a = e.post(body, h)
		if got, code := messageID(t, a.body); got != id || code != 0 || a.status != 200 {
			t.Errorf("stateless: id %s came back as %s, %d %s", id, got, a.status, a.body)
		}
	}
	before := b.calls.Load()
	for i, line := range fixtureLines(t, "ids_null.jsonl") {
		a := e.post(string(line), session)
		if i == 5 { // no id at all: a notification
			if a.status != 202 || a.body != "" {
				t.Errorf("notification: %d %q", a.status, a.body)
			}
			continue
		}
		want := jsonrpc.CodeInvalidRequest
		if i == 4 {
			want = jsonrpc.CodeParse
		}
		if got, code := messageID(t, a.body); a.status != 400 || got != "" || code != want || strings.Contains(a.body, `"id"`) {
			t.Errorf("%s: %d %s", line, a.status, a.body)
		}
	}
	if n := b.calls.Load() - before; n != 1 {
		t.Errorf("handler was called %d times, want 1 for the notification", n)
	}
}

func TestHandlerSlowWholeAnswer(t *testing.T) {
	// C-130: http.Server has no write timeout that a long call could run into,
	// and a response that takes long becomes a stream that lives.
	release := make(chan struct{})
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"slow": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		<-release
		return jsontext.Value(`{"content":[]}`), nil
	}}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{StreamAfter: 20 * time.Millisecond, KeepAlive: 20 * time.Millisecond})
	session := e.initialize("2025-06-18")
	body, h := modernCall(`"x"`, "slow")
	streams := map[string]*events{
		"stateless": e.stream(testContext(t), "POST", body, h),
		"session":   e.stream(testContext(t), "POST", legacyCall(`"x"`, "slow"), session),
	}
	for name, s := range streams {
		for range 3 {
			if ev, err := s.next(); err != nil || ev.comment == "" {
				t.Fatalf("%s: want a comment, got %+v, %v", name, ev, err)
			}
		}
	}
	close(release)
	for name, s := range streams {
		if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":"x","result":{"content":[]}}` || ev.id != "" {
			t.Errorf("%s: %+v", name, ev)
		}
		s.atEnd()
	}
}

func TestHandlerNotifications(t *testing.T) {
	// C-066, C-068
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-11-25")
	for name, h := range map[string]hdr{
		"session":   session,
		"stateless": {"Mcp-Protocol-Version": "2026-07-28"},
	} {
		a := e.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)
		if a.status != 202 || a.body != "" || a.header.Get("Content-Type") != "" {
			t.Errorf("%s: %d %q %q", name, a.status, a.header.Get("Content-Type"), a.body)
		}
	}
	if len(b.notes) != 2 {
		t.Errorf("handler got %v", b.notes)
	}
	a := e.post(`{"jsonrpc":"2.0","id":5,"result":{}}`, session)
	if a.status != 202 || a.body != "" {
		t.Errorf("response: %d %q", a.status, a.body)
	}
}

func TestHandlerPanic(t *testing.T) {
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"boom": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		panic("secret")
	}}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	body, h := modernCall("7", "boom")
	a := e.post(body, h)
	if id, code := messageID(t, a.body); id != "7" || code != jsonrpc.CodeInternal || strings.Contains(a.body, "secret") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestHandlerBodyLimit(t *testing.T) {
	// C-160
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{MaxBody: 1 << 16})
	session := e.initialize("2025-11-25")
	endless := func(n int64) (io.Reader, *atomic.Int64) {
		var read atomic.Int64
		return io.LimitReader(readerFunc(func(p []byte) (int, error) {
			for i := range p {
				p[i] = ' '
			}
			read.Add(int64(len(p)))
			return len(p), nil
		}), n), &read
	}
	for name, length := range map[string]int64{"announced": 1 << 30, "chunked": -1} {
		body, read := endless(1 << 30)
		req, _ := http.NewRequestWithContext(testContext(t), "POST", e.url, body)
		req.ContentLength = length
		req.Header.Set("Content-Type", "application/json")
		resp, err := e.client.Do(req)
		if err != nil {
			// The server closed the connection while the client was sending.
			if read.Load() > 64<<20 {
				t.Errorf("%s: the server took %d bytes", name, read.Load())
			}
			continue
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if id, code := messageID(t, string(got)); resp.StatusCode != 413 || id != "" || code != jsonrpc.CodeInvalidRequest {
			t.Errorf("%s: %d %s", name, resp.StatusCode, got)
		}
		if read.Load() > 64<<20 {
			t.Errorf("%s: the server took %d bytes", name, read.Load())
		}
	}
	exact := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	exact += strings.Repeat(" ", 1<<16-len(exact))
	if a := e.post(exact, session); a.status != 200 {
		t.Errorf("at the limit: %d", a.status)
	}
	if a := e.post(exact+" ", session); a.status != 413 {
		t.Errorf("over the limit: %d", a.status)
	}
}

func TestHandlerSlowBody(t *testing.T) {
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{BodyTimeout: 30 * time.Millisecond})
	addr := strings.TrimPrefix(e.url, "http://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{\"jsonrpc\"", addr); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if id, code := messageID(t, string(body)); resp.StatusCode != 408 || id != "" || code != jsonrpc.CodeInvalidRequest {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestHandlerBigAnswer(t *testing.T) {
	big := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 3<<20) + `"}]}`
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{
		"big": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) { return jsontext.Value(big), nil },
		"noted": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			return jsontext.Value(big), req.Peer.Notify(ctx, "notifications/message", jsontext.Value(big)) // the first is never too much
		},
	}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{QueueBytes: 1 << 10})
	body, h := modernCall("1", "big")
	want := `{"jsonrpc":"2.0","id":1,"result":` + big + `}`
	if a := e.post(body, h); a.body != want || a.header.Get("Content-Length") != fmt.Sprint(len(want)) {
		t.Errorf("%d bytes, want %d", len(a.body), len(want))
	}
	body, h = modernCall("1", "noted")
	s := e.stream(testContext(t), "POST", body, h)
	s.must()
	if ev := s.must(); ev.data != want {
		t.Errorf("%d bytes on the stream, want %d", len(ev.data), len(want))
	}
	s.atEnd()
}

func TestStreamLeavesConnectionUsable(t *testing.T) {
	// The time limits of a stream's writes end with it.
	const limit = 30 * time.Millisecond
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{
		"noisy": noisy,
		"late": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			<-time.After(2 * limit)
			return nil, nil
		},
	}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{WriteTimeout: limit})
	e.client.Transport.(*http.Transport).MaxConnsPerHost = 1
	body, h := modernCall("1", "noisy")
	e.post(body, h)
	body, h = modernCall("2", "late")
	if a := e.post(body, h); a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestHandlerClose(t *testing.T) {
	started := make(chan struct{}, 2)
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{
		"listen": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			if err := req.Peer.Notify(ctx, mcp.MethodAcknowledged, nil); err != nil {
				return nil, err
			}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), http.ErrServerClosed) {
				return nil, context.Cause(ctx)
			}
			return jsontext.Value(`{"resultType":"complete"}`), nil
		},
		"slow": func(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) {
			started <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		},
	}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-11-25")
	body, h := modern("1", "subscriptions/listen", "")
	listen := e.stream(testContext(t), "POST", body, h)
	listen.must()
	get := e.stream(testContext(t), "GET", "", session)
	get.must() // the priming event
	slow := make(chan answer, 1)
	go func() { slow <- e.post(legacyCall(`"s"`, "slow"), session) }()
	within(t, "the call", wait(started))

	ctx, cancel := context.WithCancel(testContext(t))
	closed := make(chan error, 1)
	go func() { closed <- e.handler.Close(ctx) }()
	if ev := listen.must(); !strings.Contains(ev.data, "complete") {
		t.Errorf("subscription ended with %+v", ev)
	}
	listen.atEnd()
	get.atEnd()
	if a := e.post(`{"jsonrpc":"2.0","id":"late","method":"tools/list"}`, session); a.status != 503 || !strings.Contains(a.body, `"late"`) {
		t.Errorf("late request: %d %s", a.status, a.body)
	}
	cancel()
	if err := <-closed; !errors.Is(err, context.Canceled) {
		t.Errorf("Close: %v", err)
	}
	if a := <-slow; a.status != 200 || !strings.Contains(a.body, `"id":"s"`) {
		t.Errorf("slow call: %d %s", a.status, a.body)
	}
	within(t, "the end of the session", b.session(0).Done())
}

// wait turns one value into a close.
func wait(c <-chan struct{}) <-chan struct{} {
	done := make(chan struct{})
	go func() { <-c; close(done) }()
	return done
}

func fixtureLines(t testing.TB, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}
