package mcphttp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	_ client.Wire      = (*mcphttp.Conn)(nil)
	_ client.HTTPError = (*mcphttp.StatusError)(nil)
)

// dialTime bounds every wait of the tests of Dial for something that should
// happen.
const dialTime = 10 * time.Second

// received is one HTTP request that a remote got.
type received struct {
	verb   string
	header http.Header
	body   string
	msg    jsonrpc.Message // zero if there was no body
	ctx    context.Context
}

// remote is a server to dial: of sessions, unless its functions say otherwise.
// Where one is nil, or returns false, the remote answers by itself.
type remote struct {
	t        testing.TB
	url      string
	sessions atomic.Int64
	opened   atomic.Int64 // TCP connections

	mu   sync.Mutex
	do   func(w http.ResponseWriter, r received) bool
	got  []received
	dead map[string]bool // sessions that it does not know any more
	open map[string]bool
}

// newRemote starts a remote on loopback.
func newRemote(t testing.TB, do func(w http.ResponseWriter, r received) bool) *remote {
	rm := newMemoryRemote(t, do)
	server := httptest.NewUnstartedServer(rm)
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			rm.opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	rm.url = server.URL + "/mcp"
	return rm
}

// newMemoryRemote returns a remote that is reached as a transport.
func newMemoryRemote(t testing.TB, do func(w http.ResponseWriter, r received) bool) *remote {
	return &remote{t: t, do: do, open: map[string]bool{}, dead: map[string]bool{}}
}

// on sets what the remote does from now on.
func (rm *remote) on(do func(w http.ResponseWriter, r received) bool) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.do = do
}

func answerJSON(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

func (rm *remote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	got := received{verb: r.Method, header: r.Header, body: string(body), ctx: r.Context()}
	if len(body) > 0 {
		m, err := jsonrpc.Parse(body)
		if err != nil {
			rm.t.Errorf("the client sent %q: %v", body, err)
		}
		got.msg = m
	}
	rm.mu.Lock()
	rm.got = append(rm.got, got)
	id := r.Header.Get(mcp.HeaderSession)
	known := id == "" || rm.open[id] && !rm.dead[id]
	do := rm.do
	rm.mu.Unlock()
	if do != nil && do(w, got) {
		return
	}
	switch {
	case !known:
		http.Error(w, "session not found", http.StatusNotFound)
	case got.msg.Method == mcp.MethodInitialize:
		rm.begin(w, got, "2025-11-25")
	case got.msg.IsRequest():
		answerJSON(w, jsonrpc.AppendResult(nil, got.msg.ID, jsontext.Value(`{"ok":true}`)))
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodDelete:
		rm.forget(id)
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// begin answers an initialize with a new session: s1, s2, and so on.
func (rm *remote) begin(w http.ResponseWriter, r received, version string) {
	id := fmt.Sprintf("s%d", rm.sessions.Add(1))
	rm.mu.Lock()
	rm.open[id] = true
	rm.mu.Unlock()
	w.Header().Set(mcp.HeaderSession, id)
	answerJSON(w, jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{"protocolVersion":"`+version+`","capabilities":{}}`)))
}

func (rm *remote) forget(id string) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.dead[id] = true
}

// all returns what came so far and passes a filter: an HTTP verb or a method.
func (rm *remote) all(filter string) []received {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	var out []received
	for _, r := range rm.got {
		if filter == "" || r.verb == filter || r.msg.Method == filter {
			out = append(out, r)
		}
	}
	return out
}

// await waits until n requests that pass a filter have come.
func (rm *remote) await(t testing.TB, filter string, n int) []received {
	t.Helper()
	var got []received
	eventually(t, fmt.Sprintf("%d requests %q", n, filter), func() bool {
		got = rm.all(filter)
		return len(got) >= n
	})
	return got
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.NewTimer(dialTime)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("no %s within %v", what, dialTime)
		}
	}
}

// RoundTrip makes a remote a transport without a network, for tests in a bubble.
func (rm *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := &memoryWriter{header: http.Header{}, began: make(chan struct{})}
	w.r, w.w = io.Pipe()
	served := req.Clone(req.Context())
	if req.Body == nil {
		served.Body = http.NoBody
	}
	go func() { // ends when the handler returns
		rm.ServeHTTP(w, served)
		w.WriteHeader(http.StatusOK)
		_ = w.w.Close()
	}()
	stop := context.AfterFunc(req.Context(), func() { _ = w.w.CloseWithError(context.Cause(req.Context())) })
	select {
	case <-w.began:
	case <-req.Context().Done():
		return nil, context.Cause(req.Context())
	}
	return &http.Response{
		StatusCode: w.status, Header: w.sent, ContentLength: -1, Request: req,
		Body: &memoryBody{w.r, func() { stop() }},
	}, nil
}

type memoryBody struct {
	*io.PipeReader
	stop func()
}

func (b *memoryBody) Close() error { b.stop(); return b.PipeReader.Close() }

// memoryWriter is a response whose body is a pipe: each write is flushed.
type memoryWriter struct {
	header, sent http.Header
	status       int
	once         sync.Once
	began        chan struct{}
	r            *io.PipeReader
	w            *io.PipeWriter
}

func (w *memoryWriter) Header() http.Header { return w.header }

func (w *memoryWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

func (w *memoryWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, nil
	}
	return w.w.Write(p)
}

func (w *memoryWriter) Flush() { w.WriteHeader(http.StatusOK) }

// dial returns a Conn that the test closes.
func dial(t testing.TB, url string, opts mcphttp.DialOptions) *mcphttp.Conn {
	t.Helper()
	c, err := mcphttp.Dial(context.Background(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// begun returns a Conn with a session.
func begun(t testing.TB, url string, opts mcphttp.DialOptions) *mcphttp.Conn {
	t.Helper()
	c := dial(t, url, opts)
	greet(t, c)
	return c
}

func greet(t testing.TB, c *mcphttp.Conn) {
	t.Helper()
	if _, err := c.Call(within10s(t), mcp.MethodInitialize, jsontext.Value(`{"protocolVersion":"2025-11-25"}`)); err != nil {
		t.Fatal(err)
	}
	if err := c.Notify(within10s(t), mcp.MethodInitialized, nil); err != nil {
		t.Fatal(err)
	}
}

func within10s(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	t.Cleanup(cancel)
	return ctx
}

// toolCall is a call as a stateless client makes it, or with v "" one in a session.
func toolCall(v mcp.Version) *jsonrpc.Call {
	call := &jsonrpc.Call{Method: mcp.MethodToolsCall, Params: jsontext.Value(`{"name":"x"}`)}
	if v != "" {
		call.Header = map[string]string{mcp.HeaderVersion: string(v), mcp.HeaderMethod: call.Method, mcp.HeaderName: "x"}
	}
	return call
}

// startStream makes a response a stream of events.
func startStream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
}

// say writes to a stream at once.
func say(w http.ResponseWriter, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
	w.(http.Flusher).Flush()
}

// rawRemote is a TCP server that answers HTTP requests with exact bytes, and may
// end the connection after any of them.
type rawRemote struct {
	url string

	mu   sync.Mutex
	got  []string // the bodies of requests
	open []net.Conn
}

// newRawRemote starts one. answer gets the connection and a request's body and
// reports whether the connection is to be used again.
func newRawRemote(t testing.TB, answer func(conn net.Conn, req *http.Request, body string) bool) *rawRemote {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	rr := &rawRemote{url: "http://" + ln.Addr().String() + "/mcp"}
	var serving sync.WaitGroup
	serving.Go(func() { // ends with the listener
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			rr.mu.Lock()
			rr.open = append(rr.open, conn)
			rr.mu.Unlock()
			serving.Go(func() { rr.serve(conn, answer) }) // ends with the connection
		}
	})
	t.Cleanup(func() {
		_ = ln.Close()
		rr.mu.Lock()
		for _, conn := range rr.open {
			_ = conn.Close()
		}
		rr.mu.Unlock()
		serving.Wait()
	})
	return rr
}

func (rr *rawRemote) serve(conn net.Conn, answer func(net.Conn, *http.Request, string) bool) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		rr.mu.Lock()
		rr.got = append(rr.got, string(body))
		rr.mu.Unlock()
		if !answer(conn, req, string(body)) {
			return
		}
	}
}

func (rr *rawRemote) bodies() []string {
	rr.mu.Lock()
	defer rr.mu.Unlock()
	return slices.Clone(rr.got)
}

// writePieces writes bytes in pieces of n, each a segment of its own as far as
// TCP lets one say that.
func writePieces(conn net.Conn, s string, n int) {
	for len(s) > 0 {
		k := min(n, len(s))
		if _, err := io.WriteString(conn, s[:k]); err != nil {
			return
		}
		s = s[k:]
	}
}

// reply is an HTTP response whose body has placeholders for ids.
type reply struct {
	status, contentType, body string
	framing                   framing
}

// framing is how the end of a body is marked.
type framing int

const (
	sized   framing = iota
	chunked         // all in one chunk
	torn            // likewise, but without the end
	short           // less than its size says
)

func respond(status, contentType, body string) reply {
	return reply{status, contentType, body, sized}
}

// pong answers any request with an empty object.
var pong = respond("200 OK", "application/json", `{"jsonrpc":"2.0","id":"@ID","result":{}}`)

func stream(events string) reply { return reply{"200 OK", "text/event-stream", events, chunked} }

// to returns the bytes of the answer to a request.
func (r reply) to(request string) string {
	body := withIDs(r.body, request)
	head := "HTTP/1.1 " + r.status + "\r\n"
	if r.contentType != "" {
		head += "Content-Type: " + r.contentType + "\r\n"
	}
	switch r.framing {
	case chunked:
		return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", head, len(body), body)
	case torn:
		return fmt.Sprintf("%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", head, len(body), body)
	case short:
		return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body)+10, body)
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(body), body)
}

// withIDs puts a request's id and progress token in a fixture.
func withIDs(s, body string) string {
	m, _ := jsonrpc.Parse([]byte(body))
	return strings.NewReplacer(`"@ID"`, m.ID.String(), `"@TOKEN"`, `"t"`).Replace(s)
}

var errTest = errors.New("gone on purpose")
