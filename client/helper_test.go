package client_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const allLists = `{"tools":{},"prompts":{},"resources":{}}`

// host is a server that knows one version and answers what else on does not.
func host(version mcp.Version, caps string, on func(p *mcptest.Peer, m *jsonrpc.Message) bool) *mcptest.Host {
	return &mcptest.Host{On: func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		switch {
		case on != nil && on(p, m):
		case !m.IsRequest():
		case m.Method == mcp.MethodDiscover && version.Stateless():
			p.Reply(m, mcptest.Discovered(caps, string(version)))
		case m.Method == mcp.MethodInitialize && !version.Stateless():
			p.Reply(m, mcptest.Initialized(string(version), caps))
		default:
			p.Refuse(m, jsonrpc.CodeMethodNotFound, "Method not found", "")
		}
	}}
}

// connect connects over pipes and closes with the test.
func connect(t *testing.T, opts client.Options) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// methods returns what a peer was sent.
func methods(p *mcptest.Peer) string {
	var out []string
	for _, m := range p.Log() {
		out = append(out, m.Method)
	}
	return strings.Join(out, " ")
}

// httpError is an error of a wire over HTTP.
type httpError struct {
	status int
	body   string
	answer *jsonrpc.Error
}

func (e *httpError) Error() string    { return fmt.Sprintf("HTTP status %d", e.status) }
func (e *httpError) HTTPStatus() int  { return e.status }
func (e *httpError) HTTPBody() []byte { return []byte(e.body) }
func (e *httpError) Unwrap() error {
	if e.answer == nil {
		return nil
	}
	return e.answer
}

// httpWire is a wire over HTTP whose answers are given by a function.
type httpWire struct {
	answer func(call *jsonrpc.Call) (string, error)
	once   sync.Once
	done   chan struct{}

	mu    sync.Mutex
	calls []*jsonrpc.Call
	notes []string
}

func dialHTTP(answer func(call *jsonrpc.Call) (string, error)) (*httpWire, client.Dial) {
	w := &httpWire{answer: answer, done: make(chan struct{})}
	return w, func(context.Context, client.Incoming) (client.Wire, error) { return w, nil }
}

func (w *httpWire) Do(_ context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	w.mu.Lock()
	w.calls = append(w.calls, call)
	w.mu.Unlock()
	raw, err := w.answer(call)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":` + raw + `}`))
	return m.Result, err
}

func (w *httpWire) Notify(_ context.Context, method string, _ jsontext.Value) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notes = append(w.notes, method)
	return nil
}
func (w *httpWire) Done() <-chan struct{} { return w.done }
func (w *httpWire) Err() error            { return nil }
func (w *httpWire) Close() error          { w.once.Do(func() { close(w.done) }); return nil }

func (w *httpWire) methods() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, c := range w.calls {
		out = append(out, c.Method)
	}
	return strings.Join(append(out, w.notes...), " ")
}

// fixture returns the lines of a file of responses as functions of the id.
func fixture(t *testing.T, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		if s.Text() != "" {
			lines = append(lines, s.Text())
		}
	}
	return lines
}

func withID(line string, m *jsonrpc.Message) string {
	return strings.ReplaceAll(line, `"@ID"`, m.ID.String())
}

var errNetwork = errors.New("connection refused")
