package mcphttp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// errorRow is one place in the code that answers with an error.
type errorRow struct {
	name   string
	method string // "": POST
	body   string // ID stands for the request's id
	header hdr
	status int
	code   int
	noID   bool   // the error has no id
	data   string // in the error's data
	called bool   // the handler was asked
}

// errorRows has the order of checks on a POST as a table: a request for each,
// with everything that is checked later wrong as well where that is possible.
func errorRows(session2025 hdr) []errorRow {
	const list = `{"jsonrpc":"2.0","id":ID,"method":"tools/list"}`
	metaOf := func(version string) string {
		return `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `",` + caps + `}`
	}
	req := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":ID,"method":"` + method + `","params":{` + params + `}}`
	}
	modernOf := func(h hdr) hdr {
		out := hdr{"Mcp-Protocol-Version": "2026-07-28"}
		for k, v := range h {
			out[k] = v
		}
		return out
	}
	meta := metaOf("2026-07-28")
	with := func(extra hdr) hdr {
		out := hdr{}
		for k, v := range session2025 {
			out[k] = v
		}
		for k, v := range extra {
			out[k] = v
		}
		return out
	}
	bogus := hdr{"Mcp-Session-Id": "nope", "Mcp-Protocol-Version": "2025-11-25"}
	return []errorRow{
		{name: "1 origin", body: "{", header: hdr{"Origin": "https://evil.example", "Accept": "text/html"}, status: 403, code: -32600, noID: true},
		{name: "1 host", body: list, header: with(hdr{"Host": "evil.example"}), status: 403, code: -32600, noID: true},
		{name: "2 accept json only", body: "{", header: hdr{"Accept": "application/json", "Content-Type": "text/plain"}, status: 406, code: -32600, noID: true},
		{name: "2 accept sse only", body: list, header: with(hdr{"Accept": "text/event-stream"}), status: 406, code: -32600, noID: true},
		{name: "2 accept q=0", body: list, header: with(hdr{"Accept": "*/*, application/json;q=0"}), status: 406, code: -32600, noID: true},
		{name: "3 content type", body: "{", header: hdr{"Content-Type": "text/plain"}, status: 415, code: -32600, noID: true},
		{name: "3 no content type", body: list, header: with(hdr{"Content-Type": ""}), status: 415, code: -32600, noID: true},
		{name: "4 too long", body: list + strings.Repeat(" ", 1<<20), header: session2025, status: 413, code: -32600, noID: true},
		{name: "5 batch, 2025-11-25", body: "[" + list + "]", header: session2025, status: 400, code: -32600, noID: true},
		{name: "5 batch, 2026-07-28", body: "[" + list + "]", header: modernOf(nil), status: 400, code: -32600, noID: true},
		{name: "5 batch without session", body: "[" + list + "]", status: 400, code: -32600, noID: true},
		{name: "5 empty batch", body: "[]", header: session2025, status: 400, code: -32600, noID: true},
		{name: "6 not JSON", body: `{"jsonrpc":"2.0","id":ID,"method":`, header: session2025, status: 400, code: -32700, noID: true},
		{name: "6 empty body", body: ``, header: session2025, status: 400, code: -32700, noID: true},
		{name: "6 not a message", body: `{"a":1}`, header: session2025, status: 400, code: -32600, noID: true},
		{name: "6 id null", body: `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, header: session2025, status: 400, code: -32600, noID: true},
		{name: "6 id fractional", body: `{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, header: session2025, status: 400, code: -32600, noID: true},
		{name: "6 id object", body: `{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, header: session2025, status: 400, code: -32600, noID: true},
		{name: "6 version of JSON-RPC", body: `{"jsonrpc":"1.0","id":ID,"method":"tools/list"}`, header: session2025, status: 400, code: -32600},
		{name: "6 params array", body: `{"jsonrpc":"2.0","id":ID,"method":"tools/list","params":[]}`, header: session2025, status: 400, code: -32602},
		{name: "7 unknown version", body: req("tools/list", metaOf("2026-07-28")), header: with(hdr{"Mcp-Protocol-Version": "1999-01-01"}), status: 400, code: -32022, data: `{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"1999-01-01"}`},
		{name: "7 unknown version in _meta alone", body: req("tools/list", metaOf("2099-01-01")), status: 400, code: -32022, data: `"requested":"2099-01-01"`},
		{name: "8 initialize", body: req("initialize", `"protocolVersion":"2025-11-25"`), header: hdr{"Mcp-Protocol-Version": "2025-06-18"}, status: 400, code: -32020},
		{name: "8 initialize, modern header", body: req("initialize", `"protocolVersion":"2025-11-25"`), header: modernOf(nil), status: 400, code: -32020},
		{name: "9 no version header", body: req("tools/list", meta), header: hdr{"Mcp-Method": "tools/list"}, status: 400, code: -32020},
		{name: "9 no version header in a session", body: req("tools/list", meta), header: hdr{"Mcp-Session-Id": session2025["Mcp-Session-Id"], "Mcp-Method": "tools/list"}, status: 400, code: -32020},
		{name: "9 other version header", body: req("tools/list", meta), header: with(hdr{"Mcp-Method": "tools/list"}), status: 400, code: -32020},
		{name: "9 other version in _meta", body: req("tools/list", metaOf("2025-11-25")), header: modernOf(hdr{"Mcp-Method": "tools/list"}), status: 400, code: -32020},
		{name: "9 two version headers", body: req("tools/list", meta), header: hdr{"Mcp-Protocol-Version": "2026-07-28, 2026-07-28"}, status: 400, code: -32022},
		{name: "10 no _meta", body: list, header: modernOf(hdr{"Mcp-Method": "tools/list"}), status: 400, code: -32602},
		{name: "10 no version in _meta", body: req("tools/list", `"_meta":{`+caps+`}`), header: modernOf(nil), status: 400, code: -32602},
		{name: "10 _meta no object", body: req("tools/list", `"_meta":5`), header: modernOf(nil), status: 400, code: -32602},
		{name: "11 no method header", body: req("tools/list", meta), header: modernOf(nil), status: 400, code: -32020},
		{name: "11 other method", body: req("tools/list", meta), header: modernOf(hdr{"Mcp-Method": "tools/call"}), status: 400, code: -32020},
		{name: "12 no name header", body: req("tools/call", `"name":"a",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call"}), status: 400, code: -32020},
		{name: "12 other tool", body: req("tools/call", `"name":"a",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "b"}), status: 400, code: -32020},
		{name: "12 other prompt", body: req("prompts/get", `"name":"a",`+meta), header: modernOf(hdr{"Mcp-Method": "prompts/get", "Mcp-Name": "b"}), status: 400, code: -32020},
		{name: "12 other resource", body: req("resources/read", `"uri":"a:b",`+meta), header: modernOf(hdr{"Mcp-Method": "resources/read", "Mcp-Name": "a:c"}), status: 400, code: -32020},
		{name: "12 other task", body: req("tasks/get", `"taskId":"a",`+meta), header: modernOf(hdr{"Mcp-Method": "tasks/get", "Mcp-Name": "b"}), status: 400, code: -32020},
		{name: "12 bad base64", body: req("tools/call", `"name":"a",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "=?base64?YQ?="}), status: 400, code: -32020},
		{name: "12 bad characters", body: req("tools/call", `"name":"é",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "é"}), status: 400, code: -32020},
		{name: "12 name only in the header", body: req("tools/call", meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "b"}), status: 400, code: -32020},
		{name: "14 no capabilities", body: req("tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), header: modernOf(hdr{"Mcp-Method": "tools/list"}), status: 400, code: -32602},
		{name: "14 capabilities no object", body: req("tools/list", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":1}`), header: modernOf(hdr{"Mcp-Method": "tools/list"}), status: 400, code: -32602},
		{name: "15 removed initialize", body: req("initialize", meta), header: modernOf(hdr{"Mcp-Method": "initialize"}), status: 404, code: -32601},
		{name: "15 removed ping", body: req("ping", meta), header: modernOf(hdr{"Mcp-Method": "ping"}), status: 404, code: -32601},
		{name: "15 removed setLevel", body: req("logging/setLevel", meta), header: modernOf(hdr{"Mcp-Method": "logging/setLevel"}), status: 404, code: -32601},
		{name: "15 removed subscribe", body: req("resources/subscribe", meta), header: modernOf(hdr{"Mcp-Method": "resources/subscribe"}), status: 404, code: -32601},
		{name: "15 removed unsubscribe", body: req("resources/unsubscribe", meta), header: modernOf(hdr{"Mcp-Method": "resources/unsubscribe"}), status: 404, code: -32601},
		{name: "15 unknown", body: req("no/such", meta), header: modernOf(hdr{"Mcp-Method": "no/such"}), status: 404, code: -32601, called: true},
		{name: "16 no session", body: list, header: hdr{"Mcp-Protocol-Version": "2025-11-25"}, status: 400, code: -32600},
		{name: "16 no session, no version", body: list, status: 400, code: -32600},
		{name: "17 unknown session", body: list, header: bogus, status: 404, code: -32001},
		{name: "18 legacy unknown method", body: req("no/such", ""), header: session2025, status: 200, code: -32601, called: true},
		{name: "18 legacy other error", body: req("tools/call", `"name":"x"`), header: session2025, status: 200, code: -32602, called: true},
		{name: "18 modern other error", body: req("tools/call", `"name":"x",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "x"}), status: 200, code: -32602, called: true},
		{name: "18 modern header mismatch", body: req("tools/call", `"name":"-32020",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "-32020"}), status: 400, code: -32020, called: true},
		{name: "18 modern capability", body: req("tools/call", `"name":"-32021",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "-32021"}), status: 400, code: -32021, called: true},
		{name: "18 modern version", body: req("tools/call", `"name":"-32022",`+meta), header: modernOf(hdr{"Mcp-Method": "tools/call", "Mcp-Name": "-32022"}), status: 400, code: -32022, called: true},
		{name: "20 modern response", body: `{"jsonrpc":"2.0","id":ID,"result":{}}`, header: modernOf(nil), status: 400, code: -32600, noID: true},
		{name: "legacy response without session", body: `{"jsonrpc":"2.0","id":ID,"result":{}}`, status: 400, code: -32600, noID: true},
		{name: "get modern", method: "GET", header: modernOf(nil), status: 405, code: -32600, noID: true},
		{name: "delete modern", method: "DELETE", header: modernOf(nil), status: 405, code: -32600, noID: true},
		{name: "get without session", method: "GET", status: 400, code: -32600, noID: true},
		{name: "get unknown session", method: "GET", header: bogus, status: 404, code: -32001, noID: true},
		{name: "get without accept", method: "GET", header: with(hdr{"Accept": "application/json"}), status: 406, code: -32600, noID: true},
		{name: "delete without session", method: "DELETE", status: 400, code: -32600, noID: true},
		{name: "delete unknown session", method: "DELETE", header: bogus, status: 404, code: -32001, noID: true},
		{name: "put", method: "PUT", body: list, header: session2025, status: 405, code: -32600, noID: true},
	}
}

// TestHandlerErrors asserts status, media type, code, id and whether the handler
// was asked, for each place that answers with an error (C-082, C-095, C-205,
// C-207, C-209, C-213).
func TestHandlerErrors(t *testing.T) {
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{}}
	for name, code := range map[string]int{"-32020": -32020, "-32021": -32021, "-32022": -32022} {
		b.tools[name] = func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			return nil, jsonrpc.Errorf(code, "from the handler")
		}
	}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{MaxBody: 1 << 19})
	session := e.initialize("2025-11-25")
	for _, row := range errorRows(session) {
		t.Run(row.name, func(t *testing.T) {
			for _, id := range []string{`"e-1"`, `0`, `12345678901234567890`} {
				before := b.calls.Load()
				method := row.method
				if method == "" {
					method = "POST"
				}
				a := e.do(method, strings.Replace(row.body, "ID", id, 1), row.header)
				got, code := messageID(t, a.body)
				want := id
				if row.noID {
					want = ""
				}
				if a.status != row.status || code != row.code || got != want || !strings.Contains(a.body, row.data) {
					t.Errorf("id %s: got %d %s, want %d with code %d, id %q, data %s", id, a.status, a.body, row.status, row.code, want, row.data)
				}
				if ct := a.header.Get("Content-Type"); ct != "application/json" {
					t.Errorf("Content-Type %q", ct)
				}
				if called := b.calls.Load() != before; called != row.called {
					t.Errorf("handler called: %v", called)
				}
				if a.header.Get("Mcp-Session-Id") != "" {
					t.Error("an error with a session id")
				}
			}
		})
	}
	if n := e.handler.Sessions(); n != 1 {
		t.Errorf("%d sessions left, want 1", n)
	}
}

func TestHandlerAcceptsWhatIsRight(t *testing.T) {
	e := serveHTTP(t, &backend{tools: map[string]jsonrpc.HandlerFunc{
		"Ünï cödé": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) { return nil, nil },
	}}, mcphttp.HandlerOptions{})
	session := e.initialize("2025-06-18")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for name, h := range map[string]hdr{
		"plain":              {},
		"no version header":  {"Mcp-Protocol-Version": ""},
		"any":                {"Accept": "*/*"},
		"ranges":             {"Accept": "application/*;q=0.5, text/*"},
		"case":               {"Accept": "Application/JSON,TEXT/Event-Stream"},
		"no accept":          {"Accept": ""},
		"charset":            {"Content-Type": "Application/JSON; charset=UTF-8"},
		"stray method":       {"Mcp-Method": "tools/call"}, // C-209: nothing is decided on it
		"stray last event":   {"Last-Event-Id": "0-1"},
		"other session date": {"Mcp-Protocol-Version": "2025-11-25"},
	} {
		for k, v := range session {
			if _, ok := h[k]; !ok {
				h[k] = v
			}
		}
		if a := e.post(list, h); a.status != 200 || a.body != `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}` {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// C-224: a session id on a request that stands alone is ignored.
	for _, id := range []string{"bogus", session["Mcp-Session-Id"]} {
		body, h := modern("1", "tools/list", "")
		h["Mcp-Session-Id"], h["Last-Event-Id"] = id, "0-1"
		if a := e.post(body, h); a.status != 200 || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("stray session id: %d %s", a.status, a.body)
		}
	}
	body, h := modernCall("1", "Ünï cödé")
	h["Mcp-Name"] = mcp.EncodeHeader("Ünï cödé")
	if a := e.post(body, h); a.body != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Errorf("encoded name: %d %s", a.status, a.body)
	}
}

func TestHandlerVersions(t *testing.T) {
	// C-213, C-224
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{Versions: []mcp.Version{mcp.V20260728}})
	for _, method := range []string{"GET", "DELETE"} {
		a := e.do(method, "", hdr{"Mcp-Session-Id": "x", "Last-Event-Id": "0-1"})
		if a.status != 405 || a.header.Get("Allow") != "POST" || a.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d, Allow %q", method, a.status, a.header.Get("Allow"))
		}
	}
	a := e.post(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, nil)
	if id, code := messageID(t, a.body); a.status != 400 || id != `"i"` || code != -32022 || !strings.Contains(a.body, `"supported":["2026-07-28"]`) {
		t.Errorf("initialize: %d %s", a.status, a.body)
	}
	a = e.post(`{"jsonrpc":"2.0","id":"i","method":"tools/list"}`, nil)
	if id, code := messageID(t, a.body); a.status != 400 || id != `"i"` || code != -32020 {
		t.Errorf("no version: %d %s", a.status, a.body)
	}
	if body, h := modern("1", "tools/list", ""); e.post(body, h).status != 200 {
		t.Error("the version that is served is not")
	}
	old := serveHTTP(t, b, mcphttp.HandlerOptions{Versions: []mcp.Version{mcp.V20250618}})
	body, h := modern("1", "tools/list", "")
	a = old.post(body, h)
	if id, code := messageID(t, a.body); a.status != 400 || id != "1" || code != -32022 || !strings.Contains(a.body, `"supported":["2025-06-18"]`) {
		t.Errorf("sessions only: %d %s", a.status, a.body)
	}
}
