package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

var unsorted = []string{"zeta", "Alpha", "mid", "alpha", "10", "9", "ärger"}

// fill adds a thing of each kind for each name.
func fill(t *testing.T, m *server.Memory, names ...string) {
	t.Helper()
	for _, n := range names {
		add(t, m.Tools, emptyTool(t, n))
		prompt, err := server.NewPrompt(jsontext.Value(`{"name":"`+n+`"}`),
			func(context.Context, *server.Request) (jsontext.Value, error) { return jsontext.Value(`{}`), nil })
		if err != nil {
			t.Fatal(err)
		}
		add(t, m.Prompts, prompt)
		resource, err := server.NewResource(jsontext.Value(`{"uri":"mem:///`+n+`","name":"r"}`),
			func(_ context.Context, _ *server.Request, uri string) (jsontext.Value, error) {
				return server.TextContents(uri, "text/plain", n), nil
			})
		if err != nil {
			t.Fatal(err)
		}
		add(t, m.Resources, resource)
		template, err := server.NewTemplate(jsontext.Value(`{"uriTemplate":"t:///`+n+`/{x}","name":"t"}`),
			func(_ context.Context, _ *server.Request, uri string, values uritemplate.Values) (jsontext.Value, error) {
				return server.TextContents(uri, "text/plain", values.Get("x").String()), nil
			})
		if err != nil {
			t.Fatal(err)
		}
		add(t, m.Templates, template)
	}
}

func keys(kind mcp.Kind, names []string) []string {
	out := slices.Clone(names)
	for i, n := range out {
		switch kind {
		case mcp.Resources:
			out[i] = "mem:///" + n
		case mcp.Templates:
			out[i] = "t:///" + n + "/{x}"
		}
	}
	return out
}

func TestSeeds1_13_OrderOverTheWires(t *testing.T) {
	everyWire(t, func(t *testing.T, m *server.Memory, c *client) {
		want := func(names ...string) {
			t.Helper()
			for _, k := range mcp.Kinds {
				if got := c.list(k); !slices.Equal(got, keys(k, names)) {
					t.Errorf("%s: %q, want %q", k, got, keys(k, names))
				}
			}
		}
		want()
		fill(t, m, unsorted...)
		want(unsorted...)

		// Removed and added again: last.
		m.Tools.RemoveName("Alpha")
		m.Prompts.RemoveName("Alpha")
		m.Resources.RemoveName("mem:///Alpha")
		m.Templates.RemoveName("t:///Alpha/{x}")
		fill(t, m, "Alpha")
		want("zeta", "mid", "alpha", "10", "9", "ärger", "Alpha")

		m.Tools.Clear()
		m.Prompts.Clear()
		m.Resources.Clear()
		m.Templates.Clear()
		want()
		fill(t, m, "b", "a")
		want("b", "a")
	})
}

func TestSeeds2_06_ScopeIsOneNotification(t *testing.T) {
	everyWire(t, func(t *testing.T, m *server.Memory, c *client) {
		open := func(kind mcp.Kind) func() {
			switch kind {
			case mcp.Tools:
				return m.Tools.Defer()
			case mcp.Prompts:
				return m.Prompts.Defer()
			case mcp.Resources:
				return m.Resources.Defer()
			}
			return m.Templates.Defer()
		}
		var ends []func()
		for _, k := range mcp.Kinds {
			ends = append(ends, open(k))
		}
		for i := range 16 {
			fill(t, m, fmt.Sprint("n", i))
		}
		if len(c.notes) != 0 {
			t.Errorf("told %s within the scope", line(<-c.notes))
		}
		for _, end := range ends {
			end()
		}
		var got []string
		for range 3 {
			note := c.note()
			got = append(got, note.Method)
			if tagged, _ := note.Params.Meta(); (tagged.Get(subscriptionID) != nil) != c.version.Stateless() {
				t.Errorf("in %s: %s", c.version, line(note))
			}
		}
		slices.Sort(got)
		want := []string{"notifications/prompts/list_changed", "notifications/resources/list_changed", "notifications/tools/list_changed"}
		if !slices.Equal(got, want) {
			t.Errorf("told %q", got)
		}
		if n := len(c.list(mcp.Tools)); n != 16 {
			t.Errorf("%d tools after the notification", n)
		}
		c.quiet()
	})
}

// quiet fails if something comes. A change that comes after it is the proof.
func (c *client) quiet() {
	c.t.Helper()
	select {
	case m := <-c.notes:
		c.t.Errorf("unexpected: %s", line(m))
	default:
	}
}

func TestC196_BeginNamesTheClientsVersion(t *testing.T) {
	everyWire(t, func(t *testing.T, _ *server.Memory, c *client) {
		const capabilities = `"capabilities":{"prompts":{"listChanged":true},"resources":{"listChanged":true`
		want := `{"protocolVersion":"` + string(c.version) + `",` + capabilities
		info := `"serverInfo":{"name":"mem","version":"1"},"instructions":"use it"}`
		if c.version.Stateless() {
			want = `{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],` + capabilities
			info = `"instructions":"use it","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mem","version":"1"}}}`
		}
		if got := string(c.begun.Raw); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, info) {
			t.Errorf("%s\nwant %s ... %s", got, want, info)
		}
	})
}

func TestC102_EmptyIsAnArray(t *testing.T) {
	everyWire(t, func(t *testing.T, m *server.Memory, c *client) {
		for _, k := range mcp.Kinds {
			if got := string(c.do(k.ListMethod(), `{}`).Get(k.Field())); got != "[]" {
				t.Errorf("%s: %s", k, got)
			}
		}
		for name, result := range map[string]string{"absent": `{}`, "null": `{"content":null}`, "structured": `{"structuredContent":{"a":1}}`} {
			tool, err := server.NewTool(jsontext.Value(`{"name":"`+name+`","inputSchema":{"type":"object"}}`),
				func(context.Context, *server.ToolCall) (jsontext.Value, error) { return jsontext.Value(result), nil })
			if err != nil {
				t.Fatal(err)
			}
			add(t, m.Tools, tool)
			if got := string(c.do("tools/call", `{"name":"`+name+`"}`).Get("content")); got != "[]" {
				t.Errorf("%s: content %s", name, got)
			}
		}
		fill(t, m, "empty")
		if got := string(c.do("prompts/get", `{"name":"empty"}`).Get("messages")); got != "[]" {
			t.Errorf("messages %s", got)
		}
	})
}

func TestErrorsOverTheWires(t *testing.T) {
	everyWire(t, func(t *testing.T, m *server.Memory, c *client) {
		fill(t, m, "one")
		modern := c.version.Stateless()
		for _, tt := range []struct {
			method, params   string
			stateless, older int // codes
		}{
			{"tools/call", `{"name":"nobody"}`, -32602, -32602},
			{"tools/call", `{"name":"one","arguments":[]}`, -32602, -32602},
			{"tools/call", `{"name":"one","arguments":"x"}`, -32602, -32602},
			{"prompts/get", `{"name":"nobody"}`, -32602, -32602},
			{"resources/read", `{"uri":"mem://nobody"}`, -32602, -32002},
			{"tools/list", `{"cursor":5}`, -32602, -32602},
			{"tools/list", `{"cursor":"nonsense"}`, -32602, -32602},
			{"tools/list", `{"cursor":""}`, -32602, -32602},
			{"prompts/list", `{"cursor":"` + mcp.Cursor{Kind: mcp.Tools, High: 9, Ordinal: 1}.Encode() + `"}`, -32602, -32602},
			{"tools/list", `{"cursor":"` + mcp.Cursor{Kind: mcp.Tools, High: 9, Ordinal: 1, View: "v"}.Encode() + `"}`, -32602, -32602},
			{"tools/list", `{"cursor":"` + mcp.Cursor{Kind: mcp.Tools, High: 9, Ordinal: 1, Place: 3}.Encode() + `"}`, -32602, -32602},
			{"completion/complete", `{"ref":{"type":"ref/prompt","name":"one"},"argument":{"name":"a","value":""}}`, -32601, -32601},
			{"no/such", `{}`, -32601, -32601},
			{"tasks/list", `{}`, -32601, -32601},
			{"logging/setLevel", `{"level":"loud"}`, -32601, -32602},
			{"logging/setLevel", `{"level":5}`, -32601, -32602},
			{"ping", `{}`, -32601, 0},
			{"server/discover", `{}`, 0, -32601},
			{"subscriptions/listen", `{}`, -32602, -32601},
			{"subscriptions/listen", `{"notifications":{"toolsListChanged":1}}`, -32602, -32601},
			{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":"u"}}`, -32602, -32601},
			{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":[1]}}`, -32602, -32601},
		} {
			want := tt.older
			if modern {
				want = tt.stateless
			}
			_, err := c.request(t.Context(), tt.method, tt.params)
			if e, ok := errors.AsType[*jsonrpc.Error](err); (want != 0) != ok || ok && e.Code != want {
				t.Errorf("%s %s: %v, want code %d", tt.method, tt.params, err, want)
			}
		}
		// What a client names must be there.
		for _, method := range []string{"tools/call", "prompts/get", "resources/read"} {
			if modern {
				continue // its header repeats it: the wire refuses
			}
			_, err := c.request(t.Context(), method, `{}`)
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != -32602 || !strings.Contains(e.Message, "must be a string") {
				t.Errorf("%s without a name: %v", method, err)
			}
		}
	})
}

func TestReadsOverTheWires(t *testing.T) {
	everyWire(t, func(t *testing.T, m *server.Memory, c *client) {
		fill(t, m, "one")
		for uri, text := range map[string]string{"mem:///one": "one", "MEM:///one": "one", "t:///one/value": "value"} {
			result := c.do("resources/read", `{"uri":"`+uri+`"}`)
			want := `{"contents":[{"uri":"` + uri + `","mimeType":"text/plain","text":"` + text + `"}]`
			if got := string(result.Raw); !strings.HasPrefix(got, want) {
				t.Errorf("%s, want %s", got, want)
			}
			if hinted := result.Get("ttlMs") != nil && result.Get("cacheScope") != nil; hinted != c.version.Stateless() {
				t.Errorf("in %s: %s", c.version, result.Raw)
			}
		}
	})
}
