package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// FuzzHandle sends any request to a Memory, in a session, before one and without
// one: it is answered with an object or an error, in time.
func FuzzHandle(f *testing.F) {
	methods := []string{
		"initialize", "ping", "server/discover", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list",
		"resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "completion/complete",
		"logging/setLevel", "subscriptions/listen", "tasks/get", "notifications/initialized", "notifications/cancelled", "no/such",
	}
	cursor := mcp.Cursor{Kind: mcp.Tools, High: 3, Ordinal: 1}.Encode()
	for _, m := range methods {
		for _, p := range []string{
			``, `{}`, `{` + meta + `}`, `{"name":"a",` + meta + `}`, `{"name":"typed","arguments":{"id":1},"uri":"mem:///a","level":"info","protocolVersion":"2025-06-18"}`,
			`{"cursor":"` + cursor + `",` + meta + `}`, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["mem:///a"]},` + meta + `}`,
			`{"name":"a","_meta":{"progressToken":"t"}}`, `{"uri":"t:///a/%zz","name":5,"_meta":[]}`,
		} {
			f.Add(m, p)
		}
	}
	f.Fuzz(func(t *testing.T, method, params string) {
		var obj jsonrpc.Object
		if params != "" {
			var err error
			if obj, err = jsonrpc.ParseObject(jsontext.Value(params)); err != nil {
				t.Skip() // no wire lets it through
			}
		}
		srv := server.New(&watched{Memory: fuzzMemory(t), may: map[string]bool{"mem:///a": true}}, server.Options{})
		srv.Close() // so that subscriptions end
		fresh := jsonrpc.NewSession("", &stuckPeer{})
		begun := jsonrpc.NewSession("", &stuckPeer{})
		defer fresh.Close()
		defer begun.Close()
		if _, err := srv.Handle(t.Context(), &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: "initialize", Params: parse(t, `{"protocolVersion":"2025-11-25"}`), Session: begun, Peer: begun.Peer}); err != nil {
			t.Fatal(err)
		}
		for _, session := range []*jsonrpc.Session{nil, fresh, begun} {
			for _, id := range []jsonrpc.ID{jsonrpc.IntID(2), {}} {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				result, err := srv.Handle(ctx, &jsonrpc.Request{ID: id, Method: method, Params: obj, Session: session, Peer: &stuckPeer{}, Header: map[string][]string{}})
				if ctx.Err() != nil {
					t.Errorf("took too long")
				}
				cancel()
				if id.IsZero() {
					continue
				}
				if err != nil {
					if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Message == "" {
						t.Errorf("error %v", err)
					}
					continue
				}
				if _, err := jsonrpc.ParseObject(result); err != nil {
					t.Errorf("result %s: %v", result, err)
				}
			}
		}
	})
}

func fuzzMemory(t testing.TB) *server.Memory {
	m := server.NewMemory(server.MemoryOptions{
		Name: "f\xff", Version: "1", Instructions: "\x00", Page: mcp.PageLimits{Items: 2},
		Complete: func(context.Context, *server.Request) (jsontext.Value, error) {
			return jsontext.Value(`{"completion":{"values":[]}}`), nil
		},
	})
	typed, err := server.NewFuncTool(server.FuncTool{Name: "typed"}, func(_ context.Context, _ *server.ToolCall, in order) (order, error) { return in, nil })
	if err != nil {
		t.Fatal(err)
	}
	echo, err := server.NewTool(jsontext.Value(`{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}`),
		func(ctx context.Context, c *server.ToolCall) (jsontext.Value, error) {
			return server.TextResult(string(c.Arguments)), c.Progress(ctx, 1, 2, "\xff")
		})
	if err != nil {
		t.Fatal(err)
	}
	add(t, m.Tools, echo, typed, emptyTool(t, "c"))
	resource, err := server.NewResource(jsontext.Value(`{"uri":"mem:///a","name":"a"}`),
		func(_ context.Context, _ *server.Request, uri string) (jsontext.Value, error) {
			return server.TextContents(uri, "", uri), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	add(t, m.Resources, resource)
	template, err := server.NewTemplate(jsontext.Value(`{"uriTemplate":"t:///a/{x}{?y*}","name":"t"}`),
		func(_ context.Context, _ *server.Request, uri string, v uritemplate.Values) (jsontext.Value, error) {
			return server.TextContents(uri, "", v.Get("x").String()), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	add(t, m.Templates, template)
	prompt, err := server.NewPrompt(jsontext.Value(`{"name":"a"}`), func(context.Context, *server.Request) (jsontext.Value, error) { return nil, errors.New("\xff") })
	if err != nil {
		t.Fatal(err)
	}
	add(t, m.Prompts, prompt)
	return m
}
