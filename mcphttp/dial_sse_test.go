package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// oldRemote is a server that knows HTTP+SSE only, at one path and the one that its
// endpoint event names.
type oldRemote struct {
	t        testing.TB
	url      string
	endpoint string                                              // what the event says; may have %s for the server's own URL
	refuse   func(w http.ResponseWriter)                         // a POST of the stream's path
	post     func(w http.ResponseWriter, m jsonrpc.Message) bool // false: the remote does it
	messages chan jsonrpc.Message
	say      chan string // written to the stream as it is; "" ends it
	done     chan struct{}

	mu   sync.Mutex
	urls []string // of POSTs to anything but the stream's path
}

func newOldRemote(t testing.TB, endpoint string) *oldRemote {
	o := &oldRemote{
		t: t, endpoint: endpoint, messages: make(chan jsonrpc.Message, 100), say: make(chan string, 100), done: make(chan struct{}),
		refuse: func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) },
	}
	server := httptest.NewServer(o)
	o.url = server.URL
	t.Cleanup(func() { close(o.done); server.Close() })
	return o
}

func (o *oldRemote) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/dir/sse" && r.Method == http.MethodGet:
		o.stream(w, r)
	case r.URL.Path == "/dir/sse":
		o.refuse(w)
	default:
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body)
		if err != nil {
			o.t.Errorf("the client sent %q: %v", body, err)
		}
		o.mu.Lock()
		o.urls = append(o.urls, r.URL.String())
		o.mu.Unlock()
		o.messages <- m
		if o.post != nil && o.post(w, m) {
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "Accepted")
		switch {
		case m.Method == mcp.MethodInitialize:
			o.answer(m, `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`)
		case m.IsRequest():
			o.answer(m, `{"ok":true}`)
		}
	}
}

func (o *oldRemote) stream(w http.ResponseWriter, r *http.Request) {
	startStream(w)
	event := o.endpoint
	if strings.Contains(event, "%s") {
		event = fmt.Sprintf(event, o.url)
	}
	_, _ = io.WriteString(w, event)
	_ = http.NewResponseController(w).Flush()
	for {
		select {
		case text := <-o.say:
			if text == "" {
				return
			}
			_, _ = io.WriteString(w, text)
			_ = http.NewResponseController(w).Flush()
		case <-r.Context().Done():
			return
		case <-o.done:
			return
		}
	}
}

func (o *oldRemote) answer(m jsonrpc.Message, result string) {
	o.say <- "event: message\ndata: " + string(jsonrpc.AppendResult(nil, m.ID, jsontext.Value(result))) + "\n\n"
}

func (o *oldRemote) posted() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.urls...)
}

func TestDialFallsBackToSSE(t *testing.T) { // C-076
	legacy := string(fixture(t, "sse", "legacy_endpoint.sse"))
	for _, tt := range []struct {
		name, endpoint string
		status         int
		body           string
		want           string // where messages go; "": it does not fall back
	}{
		{"405", legacy, 405, "", "/messages/?session_id=abc%20d"},
		{"404", legacy, 404, "<html>not here</html>", "/messages/?session_id=abc%20d"},
		{"400 with an empty body", legacy, 400, "", "/messages/?session_id=abc%20d"},
		{"405 in the words of JSON-RPC", legacy, 405, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"use GET"}}`, "/messages/?session_id=abc%20d"},
		{"relative to the stream", "event: endpoint\ndata: post?s=1\n\n", 405, "", "/dir/post?s=1"},
		{"whole URL", "event: endpoint\r\ndata: %s/m\r\n\r\n", 405, "", "/m"},
		{"another event first", ": hi\n\nevent: hello\ndata: /x\n\nevent: endpoint\ndata: /m\n\n", 405, "", "/m"},
		{"another origin", "event: endpoint\ndata: http://other.example/m\n\n", 405, "", ""},
		{"another scheme", "event: endpoint\ndata: file:///etc/passwd\n\n", 405, "", ""},
		{"401", legacy, 401, "", ""},
		{"500", legacy, 500, "", ""},
		{"a newer server's error", legacy, 400, `{"jsonrpc":"2.0","error":{"code":-32020,"message":"header mismatch"}}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOldRemote(t, tt.endpoint)
			o.refuse = func(w http.ResponseWriter) {
				if strings.HasPrefix(tt.body, "{") {
					w.Header().Set("Content-Type", "application/json")
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}
			conn := dial(t, o.url+"/dir/sse", mcphttp.DialOptions{})
			result, err := conn.Call(within10s(t), mcp.MethodInitialize, jsontext.Value(`{"protocolVersion":"2025-11-25"}`))
			if tt.want == "" {
				if e, ok := errors.AsType[*mcphttp.StatusError](err); !ok || e.Status != tt.status {
					t.Errorf("%s, %v", result.Raw, err)
				}
				if got := o.posted(); len(got) != 0 {
					t.Errorf("POSTs to %q", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if v, _ := result.Text("protocolVersion"); v != "2024-11-05" {
				t.Errorf("%s", result.Raw)
			}
			if got := o.posted(); len(got) != 1 || got[0] != tt.want {
				t.Errorf("POSTs to %q", got)
			}
		})
	}
}

func TestClientOverSSE(t *testing.T) { // C-076
	// A client finds its way from any of the two ways to begin.
	for name, dialer := range map[string]func(context.Context, string, mcphttp.DialOptions) (*mcphttp.Conn, error){
		"Dial": mcphttp.Dial, "DialSSE": mcphttp.DialSSE,
	} {
		t.Run(name, func(t *testing.T) {
			o := newOldRemote(t, "event: endpoint\ndata: /m\n\n")
			c, err := client.Connect(within10s(t), client.Options{
				HTTP: true, Info: []byte(`{"name":"t","version":"0"}`),
				Dial: func(ctx context.Context, in client.Incoming) (client.Wire, error) {
					return dialer(ctx, o.url+"/dir/sse", mcphttp.DialOptions{Notification: in.Notification, Handler: in.Handler})
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.Server().Version; got != mcp.V20241105 {
				t.Errorf("version %s", got)
			}
			for _, method := range []string{mcp.MethodInitialize, mcp.MethodInitialized} {
				if m := <-o.messages; m.Method != method {
					t.Errorf("the client sent %s, want %s", m.Method, method)
				}
			}
			o.say <- ""
			select {
			case <-c.Done():
			case <-within10s(t).Done():
				t.Fatal("the wire lives on after its stream")
			}
			if err := c.Err(); err == nil || !strings.Contains(err.Error(), "ended the stream") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func dialSSE(t testing.TB, o *oldRemote, opts mcphttp.DialOptions) *mcphttp.Conn {
	t.Helper()
	c, err := mcphttp.DialSSE(within10s(t), o.url+"/dir/sse", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestDialSSE(t *testing.T) {
	notes := make(chan string, 10)
	o := newOldRemote(t, "event: endpoint\ndata: /m\n\n")
	c := dialSSE(t, o, mcphttp.DialOptions{
		Header:       http.Header{"Authorization": {"Bearer x"}},
		Notification: func(m *jsonrpc.Message) { notes <- m.Method },
		Handler: jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			return jsontext.Value(`{"roots":[]}`), nil
		}),
	})
	greet(t, c)
	<-o.messages
	<-o.messages
	o.say <- "data: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"n\"}\n\n: ping\n\nevent: other\ndata: {}\n\ndata: no JSON\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n"
	if n := <-notes; n != "n" {
		t.Error(n)
	}
	if m := <-o.messages; m.ID.String() != `"q"` || string(m.Result.Raw) != `{"roots":[]}` {
		t.Errorf("the answer: %+v", m)
	}
	// Many at once: each gets its own answer.
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := c.Call(within10s(t), "tools/call", nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestDialSSECallFailsWithItsPOST(t *testing.T) {
	o := newOldRemote(t, "event: endpoint\ndata: /m\n\n")
	o.post = func(w http.ResponseWriter, m jsonrpc.Message) bool {
		switch m.Method {
		case "big":
			http.Error(w, "too large", http.StatusRequestEntityTooLarge)
			return true
		case "lost":
			http.Error(w, "no such session", http.StatusNotFound)
			return true
		}
		return false
	}
	c := dialSSE(t, o, mcphttp.DialOptions{})
	_, err := c.Call(within10s(t), "big", nil)
	if e, ok := errors.AsType[*mcphttp.StatusError](err); !ok || e.Status != 413 {
		t.Errorf("error %v", err)
	}
	if _, err := c.Call(within10s(t), "ping", nil); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if _, err = c.Call(within10s(t), "lost", nil); err == nil {
		t.Error("a call of a lost session succeeded")
	}
	select {
	case <-c.Done():
	case <-within10s(t).Done():
		t.Fatal("the wire lives on without a session")
	}
	if e, ok := errors.AsType[*mcphttp.StatusError](c.Err()); !ok || e.Status != 404 {
		t.Errorf("error %v", c.Err())
	}
}

func TestDialSSESlowPOSTHoldsUpNobody(t *testing.T) {
	release := make(chan struct{})
	o := newOldRemote(t, "event: endpoint\ndata: /m\n\n")
	o.post = func(w http.ResponseWriter, m jsonrpc.Message) bool {
		if m.Method == "slow" { // it answers the POST when all is done
			<-release
		}
		return false
	}
	c := dialSSE(t, o, mcphttp.DialOptions{})
	slow := make(chan error, 1)
	go func() { _, err := c.Call(within10s(t), "slow", nil); slow <- err }()
	<-o.messages
	if _, err := c.Call(within10s(t), "quick", nil); err != nil {
		t.Error(err)
	}
	close(release)
	if err := <-slow; err != nil {
		t.Error(err)
	}
}

func TestDialSSERefused(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<html>hello</html>")
	}))
	defer web.Close()
	if _, err := mcphttp.DialSSE(within10s(t), web.URL, mcphttp.DialOptions{}); err == nil || !strings.Contains(err.Error(), "200") {
		t.Errorf("a web page: %v", err)
	}
	silent := newOldRemote(t, ": nothing\n\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	go func() { cancel(stop) }()
	if _, err := mcphttp.DialSSE(ctx, silent.url+"/dir/sse", mcphttp.DialOptions{}); !errors.Is(err, stop) {
		t.Errorf("a stream without an endpoint: %v", err)
	}
}

func TestSSEBothEnds(t *testing.T) {
	hang := newHanging()
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"hang": hang.Handle, "noisy": noisy}}
	e := serveSSE(t, b, mcphttp.HandlerOptions{})
	notes := make(chan string, 100)
	c, err := mcphttp.DialSSE(within10s(t), e.url+"/sse", mcphttp.DialOptions{Notification: func(m *jsonrpc.Message) { notes <- m.Method }})
	if err != nil {
		t.Fatal(err)
	}
	greet(t, c)
	ctx, giveUp := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := c.Call(ctx, "tools/call", jsontext.Value(`{"name":"hang"}`)); gone <- err }()
	within(t, "the call", wait(hang.running))
	giveUp()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := hang.cause(t); err != jsonrpc.ErrCanceled {
		t.Errorf("cause %v", err)
	}
	if _, err := c.Call(within10s(t), "tools/call", jsontext.Value(`{"name":"noisy"}`)); err != nil {
		t.Error(err)
	}
	if len(notes) == 0 {
		t.Error("no notification came before the answer")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	within(t, "the session's end", b.session(0).Done())
}
