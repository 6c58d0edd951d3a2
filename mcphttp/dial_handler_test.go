package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// TestDialHandler has both ends of this package talk to each other, in every
// version.
func TestDialHandler(t *testing.T) {
	for _, v := range mcp.Versions() {
		t.Run(string(v), func(t *testing.T) {
			served := make(chan *jsonrpc.Session, 1)
			h := mcphttp.NewHandler(jsonrpc.HandlerFunc(func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
				switch req.Method {
				case mcp.MethodInitialize:
					return jsontext.Value(fmt.Sprintf(`{"protocolVersion":%q}`, v)), nil
				case mcp.MethodInitialized:
					served <- req.Session
				case mcp.MethodToolsCall:
					if err := req.Peer.Notify(ctx, mcp.MethodProgress, jsontext.Value(`{}`)); err != nil {
						return nil, err
					}
					if v.Stateless() {
						return jsontext.Value(`{"answer":{}}`), nil
					}
					answer, err := req.Peer.Call(ctx, mcp.MethodElicit, nil)
					if err != nil {
						return nil, err
					}
					return jsontext.Value(`{"answer":` + string(answer.Raw) + `}`), nil
				}
				return jsontext.Value(`{}`), nil
			}), mcphttp.HandlerOptions{})
			server := httptest.NewServer(h)
			defer server.Close()
			defer func() { _ = h.Close(within10s(t)) }()
			var notes atomic.Int64
			c := dial(t, server.URL, mcphttp.DialOptions{
				Notification: func(*jsonrpc.Message) { notes.Add(1) },
				Handler: jsonrpc.HandlerFunc(func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
					if req.Method == "boom" {
						panic("of the handler")
					}
					return jsontext.Value(`{"to":"` + req.Method + `"}`), nil
				}),
			})
			call := toolCall("")
			want := `{"answer":{"to":"elicitation/create"}}`
			if v.Stateless() {
				call = toolCall(v)
				call.Params = mcp.SetCaller(jsonrpc.Object{Raw: jsontext.Value(`{}`)}, mcp.Caller{Version: v, Info: jsontext.Value(`{"name":"t","version":"0"}`), Capabilities: jsontext.Value(`{}`)})
				call.Method, want = mcp.MethodToolsList, `{}`
				call.Header = map[string]string{mcp.HeaderVersion: string(v), mcp.HeaderMethod: call.Method}
			} else {
				greet(t, c)
				session := <-served
				eventually(t, "notification on the session's stream", func() bool {
					_ = session.Peer.Notify(within10s(t), "notifications/tools/list_changed", nil)
					return notes.Load() > 0
				})
				if answer, err := session.Peer.Call(within10s(t), mcp.MethodPing, nil); err != nil || string(answer.Raw) != `{"to":"ping"}` {
					t.Errorf("asked on the session's stream: %s, %v", answer.Raw, err)
				}
				_, err := session.Peer.Call(within10s(t), "boom", nil)
				if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInternal || strings.Contains(e.Message, "handler") {
					t.Errorf("a handler that panics answered %v", err)
				}
			}
			progress := 0
			call.Message = func(m *jsonrpc.Message) {
				if m.Method == mcp.MethodProgress {
					progress++
				}
			}
			result, err := c.Do(within10s(t), call)
			if err != nil || string(result.Raw) != want {
				t.Errorf("got %s, %v", result.Raw, err)
			}
			if progress != 1 && !v.Stateless() {
				t.Errorf("%d progress notifications", progress)
			}
			if err := c.Close(); err != nil || h.Sessions() != 0 {
				t.Errorf("%d sessions behind Close, %v", h.Sessions(), err)
			}
		})
	}
}
