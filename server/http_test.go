package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/server"
)

// Rows 13 to 15 and 18 of the checks on a POST, as far as they are the server's.
func TestSeeds3_ErrorsOverHTTP(t *testing.T) {
	src := &garbage{Memory: newMemory(), result: `{}`}
	plain := server.New(newMemory(), server.Options{})
	missing := server.New(&garbage{Memory: newMemory(), err: mcp.MissingCapability(jsontext.Value(`{"sampling":{}}`))}, server.Options{})
	failing := server.New(&garbage{Memory: newMemory(), err: jsonrpc.Errorf(-32602, "no")}, server.Options{})
	annotated := server.New(annotatedMemory(t), server.Options{})
	for _, tt := range []struct {
		name         string
		srv          *server.Server
		method, rest string // rest of the params, behind _meta
		meta         string
		status, code int
	}{
		{"row 13: header missing", annotated, "tools/call", `,"name":"q","arguments":{"region":"eu"}`, meta, 400, -32020},
		{"row 13: no argument", annotated, "tools/call", `,"name":"q"`, meta, 200, 0},
		{"row 14: no capabilities", plain, "tools/list", ``, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`, 400, -32602},
		{"row 15: unknown", plain, "no/such", ``, meta, 404, -32601},
		{"row 15: removed", plain, "ping", ``, meta, 404, -32601},
		{"row 18: method not found by the source", plain, "completion/complete", ``, meta, 404, -32601},
		{"row 18: capability", missing, "tools/call", `,"name":"a"`, meta, 400, -32021},
		{"row 18: else", failing, "tools/call", `,"name":"a"`, meta, 200, -32602},
		{"result", server.New(src, server.Options{}), "tools/call", `,"name":"a"`, meta, 200, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := mcphttp.NewHandler(tt.srv, mcphttp.HandlerOptions{})
			web := httptest.NewServer(h)
			defer web.Close()
			for _, id := range []string{`7`, `"7"`, `"ü"`, `9007199254740993`, `-1`} { // C-092
				body := `{"jsonrpc":"2.0","id":` + id + `,"method":"` + tt.method + `","params":{` + tt.meta + tt.rest + `}}`
				status, answer := post(t, web.URL, tt.method, body)
				m, err := jsonrpc.Parse(answer)
				if err != nil {
					t.Fatalf("%s: %v", answer, err)
				}
				if status != tt.status || codeOf(m) != tt.code || m.ID.String() != id {
					t.Errorf("%d %s, want status %d, code %d, id %s", status, answer, tt.status, tt.code, id)
				}
			}
		})
	}
}

func annotatedMemory(t *testing.T) *server.Memory {
	t.Helper()
	m := newMemory()
	tool, err := server.NewTool(jsontext.Value(`{"name":"q","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}`),
		func(context.Context, *server.ToolCall) (jsontext.Value, error) { return server.TextResult("ran"), nil })
	if err != nil {
		t.Fatal(err)
	}
	add(t, m.Tools, tool)
	return m
}

// post sends a stateless request, its headers saying what they must.
func post(t *testing.T, url, method, body string) (int, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(mcp.HeaderVersion, "2026-07-28")
	req.Header.Set(mcp.HeaderMethod, method)
	if m, err := jsonrpc.Parse([]byte(body)); err == nil {
		if name, ok := m.Params.Text("name"); ok {
			req.Header.Set(mcp.HeaderName, name)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, answer
}

// When the server closes, each subscription ends with a result, over every wire.
func TestC223_CloseOverTheWires(t *testing.T) {
	for wire, dial := range wires {
		t.Run(wire, func(t *testing.T) {
			srv := server.New(newMemory(), server.Options{})
			heard := make(chan jsonrpc.Message, 1000)
			c := &client{t: t, version: mcp.Latest, notes: heard}
			c.wire = dial(t, srv, func(m *jsonrpc.Message) { heard <- *m })
			const listeners = 100
			var wg sync.WaitGroup
			for range listeners {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					defer cancel()
					result, err := c.request(ctx, mcp.MethodListen, `{"notifications":{"toolsListChanged":true}}`)
					if m, _ := result.Meta(); err != nil || m.Get(subscriptionID) == nil {
						t.Errorf("%s, %v", result.Raw, err)
					}
				})
			}
			count := make(map[string]int)
			for range listeners {
				count[c.note().Method]++
			}
			srv.Close()
			wg.Wait()
			for range listeners {
				count[c.note().Method]++
			}
			if want := map[string]int{mcp.MethodAcknowledged: listeners, mcp.MethodCanceled: listeners}; fmt.Sprint(count) != fmt.Sprint(want) {
				t.Errorf("%v", count)
			}
		})
	}
}
