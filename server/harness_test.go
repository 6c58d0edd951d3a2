package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// meta is what a stateless request says of its client.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

const subscriptionID = "io.modelcontextprotocol/subscriptionId"

// rawClient is a client in memory that speaks in frames, so that a test says what
// stands in them. It is for tests in a bubble: after synctest.Wait it has all that
// has been said.
type rawClient struct {
	t    *testing.T
	end  *mcptest.End
	conn *jsonrpc.Conn // the server's side

	mu   sync.Mutex // guards came
	came []jsonrpc.Message
}

// connect serves one raw client, until the test ends.
func connect(t *testing.T, h jsonrpc.Handler) *rawClient {
	t.Helper()
	ours, theirs := mcptest.Pipe()
	c := &rawClient{t: t, end: ours}
	c.conn = jsonrpc.NewConn(t.Context(), theirs, jsonrpc.ConnOptions{
		Handler: h, First: mcp.MethodInitialize,
		Cancel: jsonrpc.CancelNotification{Method: mcp.MethodCanceled, Member: "requestId"},
	})
	done := make(chan struct{})
	go func() { // ends with the pipe
		defer close(done)
		for {
			frame, err := ours.ReadFrame()
			if err != nil {
				return
			}
			m, err := jsonrpc.Parse(frame)
			if err != nil {
				t.Errorf("the server sent %s: %v", frame, err)
			}
			c.mu.Lock()
			c.came = append(c.came, m)
			c.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = ours.Close()
		_ = c.conn.Close()
		<-done
	})
	return c
}

func (c *rawClient) send(frames ...string) {
	c.t.Helper()
	for _, f := range frames {
		if err := c.end.WriteFrames([][]byte{[]byte(f)}); err != nil {
			c.t.Fatal(err)
		}
	}
}

// ask sends a request; params has the members without braces.
func (c *rawClient) ask(id, method, params string) {
	c.t.Helper()
	c.send(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":{` + params + `}}`)
}

// take returns what came since the last take.
func (c *rawClient) take() []jsonrpc.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.came
	c.came = nil
	return out
}

// takeLines is take in short: "method params", "id result" or "id error code".
func (c *rawClient) takeLines() []string {
	var out []string
	for _, m := range c.take() {
		out = append(out, line(m))
	}
	return out
}

func line(m jsonrpc.Message) string {
	switch {
	case m.Method != "":
		return strings.TrimSpace(m.Method + " " + string(m.Params.Raw))
	case m.Error != nil:
		return fmt.Sprintf("%s error %d", m.ID.String(), m.Error.Code)
	}
	return m.ID.String() + " " + string(m.Result.Raw)
}

func (c *rawClient) initialize(version string) {
	c.t.Helper()
	c.ask(`"init"`, "initialize", `"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"raw","version":"1"}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func emptyTool(t testing.TB, name string) *server.Tool {
	t.Helper()
	tool, err := server.NewTool(jsontext.Value(`{"name":`+string(mcp.String(name))+`,"inputSchema":{"type":"object"}}`),
		func(context.Context, *server.ToolCall) (jsontext.Value, error) { return server.TextResult(name), nil })
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func emptyTools(t testing.TB, names ...string) []*server.Tool {
	t.Helper()
	var out []*server.Tool
	for _, n := range names {
		out = append(out, emptyTool(t, n))
	}
	return out
}

func add[T any](t testing.TB, set interface{ Add(...T) error }, items ...T) {
	t.Helper()
	if err := set.Add(items...); err != nil {
		t.Fatal(err)
	}
}

// caller is a client over a real wire.
type caller interface {
	Do(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error)
	Notify(ctx context.Context, method string, params jsontext.Value) error
	Close() error
}

// wires are how a server is reached.
var wires = map[string]func(t *testing.T, srv *server.Server, notes func(*jsonrpc.Message)) caller{
	"stdio": dialStdio,
	"http":  dialHTTP,
}

func dialHTTP(t *testing.T, srv *server.Server, notes func(*jsonrpc.Message)) caller {
	t.Helper()
	h := mcphttp.NewHandler(srv, mcphttp.HandlerOptions{})
	web := httptest.NewServer(h)
	conn, err := mcphttp.Dial(t.Context(), web.URL, mcphttp.DialOptions{Notification: notes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		_ = h.Close(t.Context()) // it has ended: at once
		web.Close()
	})
	return conn
}

func dialStdio(t *testing.T, srv *server.Server, notes func(*jsonrpc.Message)) caller {
	t.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() { // ends when the client closes the pipes
		served <- stdio.Serve(t.Context(), in, out, srv, nil)
		_ = out.Close()
	}()
	conn := jsonrpc.NewConn(t.Context(), &lines{r: bufio.NewReader(fromServer), w: toServer, close: []io.Closer{toServer, fromServer}}, jsonrpc.ConnOptions{
		Notification: notes, Cancel: jsonrpc.CancelNotification{Method: mcp.MethodCanceled, Member: "requestId"},
	})
	t.Cleanup(func() {
		_ = conn.Close()
		if err := <-served; err != nil {
			t.Log("served until", err)
		}
	})
	return conn
}

// lines is a Stream of JSON lines.
type lines struct {
	r     *bufio.Reader
	w     io.Writer
	close []io.Closer
}

func (l *lines) ReadFrame() ([]byte, error) { return l.r.ReadBytes('\n') }

func (l *lines) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		if _, err := l.w.Write(append(f[:len(f):len(f)], '\n')); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) Close() error {
	for _, c := range l.close {
		_ = c.Close()
	}
	return nil
}

// everyWire runs a test over every wire in every version, with a client that has
// begun.
func everyWire(t *testing.T, run func(t *testing.T, memory *server.Memory, c *client)) {
	for wire, dial := range wires {
		for _, v := range mcp.Versions() {
			t.Run(wire+"/"+string(v), func(t *testing.T) {
				t.Parallel()
				memory := newMemory()
				srv := server.New(memory, server.Options{Settle: 5 * time.Millisecond})
				t.Cleanup(srv.Close)
				c := &client{t: t, version: v, notes: make(chan jsonrpc.Message, 1000)}
				c.wire = dial(t, srv, func(m *jsonrpc.Message) { c.notes <- *m })
				c.begin()
				run(t, memory, c)
			})
		}
	}
}

func newMemory() *server.Memory {
	return server.NewMemory(server.MemoryOptions{Name: "mem", Version: "1", Instructions: "use it"})
}

// client is one over a real wire that speaks one version.
type client struct {
	t       *testing.T
	version mcp.Version
	wire    caller
	notes   chan jsonrpc.Message
	begun   jsonrpc.Object // the result of initialize or server/discover
}

// begin does what a client of the version does first, and listens for changes.
func (c *client) begin() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	if !c.version.Stateless() {
		c.begun = c.do("initialize", `{"protocolVersion":"`+string(c.version)+`","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
		if err := c.wire.Notify(ctx, mcp.MethodInitialized, nil); err != nil {
			c.t.Fatal(err)
		}
		return
	}
	c.begun = c.do("server/discover", `{}`)
	listening, stop := context.WithCancel(c.t.Context())
	done := make(chan struct{})
	go func() { // ends with listening
		defer close(done)
		_, _ = c.request(listening, mcp.MethodListen, `{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)
	}()
	c.t.Cleanup(func() {
		stop()
		<-done
	})
	if m := c.note(); m.Method != mcp.MethodAcknowledged {
		c.t.Fatalf("first came %s", line(m))
	}
}

// do sends a request that must succeed; params is an object without _meta.
func (c *client) do(method, params string) jsonrpc.Object {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
	defer cancel()
	result, err := c.request(ctx, method, params)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return result
}

func (c *client) request(ctx context.Context, method, params string) (jsonrpc.Object, error) {
	obj, err := jsonrpc.ParseObject(jsontext.Value(params))
	if err != nil {
		c.t.Fatal(err)
	}
	call := &jsonrpc.Call{Method: method, Params: jsontext.Value(params)}
	if c.version.Stateless() {
		call.Params = mcp.SetCaller(obj, mcp.Caller{Version: c.version})
		call.Header = map[string]string{mcp.HeaderVersion: string(c.version), mcp.HeaderMethod: method}
		if name, ok := obj.Text(mcp.NameMember(method)); ok {
			call.Header[mcp.HeaderName] = mcp.EncodeHeader(name)
		}
	}
	return c.wire.Do(ctx, call)
}

// note returns the next notification.
func (c *client) note() jsonrpc.Message {
	c.t.Helper()
	select {
	case m := <-c.notes:
		return m
	case <-time.After(10 * time.Second):
		c.t.Fatal("no notification came")
		return jsonrpc.Message{}
	}
}

// list returns the keys of a whole list, page by page.
func (c *client) list(kind mcp.Kind) []string {
	c.t.Helper()
	var out []string
	for cursor := ""; ; {
		params := `{}`
		if cursor != "" {
			params = `{"cursor":` + string(mcp.String(cursor)) + `}`
		}
		page := c.do(kind.ListMethod(), params)
		items, err := jsonrpc.Elements(page.Get(kind.Field()))
		if err != nil {
			c.t.Fatalf("%s: %s", err, page.Raw)
		}
		for _, item := range items {
			obj, err := jsonrpc.ParseObject(item)
			if err != nil {
				c.t.Fatal(err)
			}
			key, _ := obj.Text(kind.Key())
			out = append(out, key)
		}
		var more bool
		if cursor, more = page.Text("nextCursor"); !more {
			return out
		}
	}
}
