package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

func object(t *testing.T, raw string) jsonrpc.Object {
	t.Helper()
	o, err := jsonrpc.ParseObject(jsontext.Value(raw))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestCallForm: what a request looks like for a server of either era.
func TestCallForm(t *testing.T) {
	const params = `{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{},"k":1.0}}`
	caller := mcp.Caller{Version: "1999-01-01", Info: jsontext.Value(`{"name":"who"}`), Capabilities: jsontext.Value(`{"sampling":{}}`), LogLevel: "info"}
	tests := []struct {
		version mcp.Version
		want    string
	}{
		{mcp.V20251125, `{"name":"x","_meta":{"k":1.0}}`},
		{mcp.V20260728, `{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"who"},"k":1.0,"io.modelcontextprotocol/clientCapabilities":{"sampling":{}},"io.modelcontextprotocol/logLevel":"info"}}`},
	}
	for _, tt := range tests {
		t.Run(string(tt.version), func(t *testing.T) {
			h := host(tt.version, "{}", func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				if m.Method == "tools/call" {
					p.Reply(m, `{"content":[] ,"n":1.0}`)
				}
				return m.Method == "tools/call"
			})
			c := connect(t, client.Options{Dial: h.Dial})
			got, err := c.Call(t.Context(), client.Request{Method: "tools/call", Params: object(t, params), Caller: caller})
			if err != nil || string(got.Raw) != `{"content":[] ,"n":1.0}` {
				t.Errorf("%s, %v", got.Raw, err)
			}
			log := h.Peer().Log()
			if sent := string(log[len(log)-1].Params.Raw); sent != tt.want {
				t.Errorf("sent %s\nwant %s", sent, tt.want)
			}
		})
	}
}

// TestCallResults: a result is an object, or the error says what it is.
func TestCallResults(t *testing.T) {
	for raw, want := range map[string]string{
		"null": "is null", "[]": "is an array", `"x"`: "is a string", "1": "is a number", "true": "is a boolean",
	} {
		h := host(mcp.V20251125, "{}", func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == "x" {
				p.Reply(m, raw)
			}
			return m.Method == "x"
		})
		c := connect(t, client.Options{Dial: h.Dial})
		_, err := c.Call(t.Context(), client.Request{Method: "x"})
		if r, ok := errors.AsType[*client.ResultError](err); !ok || r.Method != "x" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestCallDeadline: a call without a deadline gets one.
func TestCallDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host(mcp.V20251125, "{}", func(_ *mcptest.Peer, m *jsonrpc.Message) bool { return m.Method == "x" })
		c := connect(t, client.Options{Dial: h.Dial})
		began := time.Now()
		_, err := c.Call(t.Context(), client.Request{Method: "x"})
		late, ok := errors.AsType[*client.TimeoutError](err)
		if !ok || late.Method != "x" || !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != client.DefaultCallTimeout {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestServerRequests: ping is answered, the rest goes to the handler.
func TestServerRequests(t *testing.T) {
	for _, handled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := host(mcp.V20251125, "{}", nil)
			opts := client.Options{Dial: h.Dial}
			if handled {
				opts.Handler = jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
					return jsontext.Value(`{"roots":[]}`), nil
				})
			}
			connect(t, opts)
			h.Peer().Raw(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			synctest.Wait()
			h.Peer().Raw(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
			synctest.Wait()
			log := h.Peer().Log()
			pong, roots := log[len(log)-2], log[len(log)-1]
			if pong.ID.String() != `"p"` || string(pong.Result.Raw) != "{}" {
				t.Errorf("ping was answered with %+v", pong)
			}
			if handled && string(roots.Result.Raw) != `{"roots":[]}` || !handled && (roots.Error == nil || roots.Error.Code != -32601) {
				t.Errorf("roots/list was answered with %+v", roots)
			}
		})
	}
}

// TestHeaders: the fields of stateless requests over HTTP, and none for others.
func TestHeaders(t *testing.T) {
	const tools = `{"tools":[
		{"name":"sql","inputSchema":{"type":"object","properties":{
			"region":{"type":"string","x-mcp-header":"Region"},
			"opts":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"},"dry":{"type":"boolean","x-mcp-header":"Dry"}}},
			"x-mcp-header":{"type":"string"}}}},
		{"name":"plain","inputSchema":{"type":"object","default":{"x-mcp-header":"a b"}}},
		{"name":"bad token","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}},
		{"name":"empty","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":""}}}},
		{"name":"number","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
		{"name":"twice","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}},
		{"name":"in items","inputSchema":{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}},
		{"name":"in anyOf","inputSchema":{"type":"object","anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}},
		{"name":"at the root","inputSchema":{"type":"object","x-mcp-header":"A"}}
	]}`
	var version string
	w, dial := dialHTTP(func(call *jsonrpc.Call) (string, error) {
		switch call.Method {
		case mcp.MethodDiscover:
			return mcptest.Discovered(allLists, version), nil
		case mcp.MethodInitialize:
			return mcptest.Initialized(version, allLists), nil
		case mcp.MethodToolsList:
			return tools, nil
		}
		return "{}", nil
	})
	version = "2026-07-28"
	c := connect(t, client.Options{Dial: dial, HTTP: true})
	l, err := c.List(t.Context(), mcp.Tools, client.Limits{})
	if err != nil || names(l) != "sql plain" || len(l.Warnings) != 7 {
		t.Fatalf("listed %s, %v, warnings %q", names(l), err, l.Warnings)
	}
	calls := []struct {
		method, params string
		extra, want    map[string]string
	}{
		{"tools/call", `{"name":"sql","arguments":{"region":"é u","opts":{"n":4.20e1,"dry":false}}}`, nil, map[string]string{
			"Mcp-Method": "tools/call", "Mcp-Name": "sql", "Mcp-Param-Region": "=?base64?w6kgdQ==?=", "Mcp-Param-N": "42", "Mcp-Param-Dry": "false",
		}},
		{"tools/call", `{"name":"sql","arguments":{"region":null,"opts":5}}`, nil, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "sql"}},
		{"tools/call", `{"name":"sql"}`, nil, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "sql"}},
		{"tools/call", `{"name":"naïve"}`, nil, map[string]string{"Mcp-Method": "tools/call", "Mcp-Name": "=?base64?bmHDr3Zl?="}},
		{"resources/read", `{"uri":"file:///a"}`, map[string]string{"X": "y"}, map[string]string{"Mcp-Method": "resources/read", "Mcp-Name": "file:///a", "X": "y"}},
		{"completion/complete", `{}`, nil, map[string]string{"Mcp-Method": "completion/complete"}},
	}
	for _, call := range calls {
		if _, err := c.Call(t.Context(), client.Request{Method: call.method, Params: object(t, call.params), Header: call.extra}); err != nil {
			t.Fatal(err)
		}
		call.want["Mcp-Protocol-Version"] = "2026-07-28"
		got := w.calls[len(w.calls)-1].Header
		if len(got) != len(call.want) {
			t.Errorf("%s: fields %v, want %v", call.params, got, call.want)
		}
		for k, v := range call.want {
			if got[k] != v {
				t.Errorf("%s: %s is %q, want %q", call.params, k, got[k], v)
			}
		}
	}
	version = "2025-11-25"
	c = connect(t, client.Options{Dial: dial, HTTP: true})
	if l, err = c.List(t.Context(), mcp.Tools, client.Limits{}); err != nil || len(l.Items) != 9 {
		t.Errorf("older version: %d tools, %v", len(l.Items), err)
	}
	if h := w.calls[len(w.calls)-1].Header; h != nil {
		t.Errorf("older version: fields %v", h)
	}
}

// TestClose: what waits fails at once.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host(mcp.V20251125, "{}", func(_ *mcptest.Peer, m *jsonrpc.Message) bool { return m.Method == "x" })
		c := connect(t, client.Options{Dial: h.Dial})
		failed := make(chan error)
		go func() {
			_, err := c.Call(t.Context(), client.Request{Method: "x"})
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		h.Peer().Close()
		if err := <-failed; !errors.Is(err, jsonrpc.ErrClosed) || time.Since(began) > time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		<-c.Done()
	})
}
