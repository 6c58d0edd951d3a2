package mcphttp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcphttp"
)

// FuzzHandler sends foreign bytes as body and header. Whatever they are, the
// response is one JSON-RPC message, an array of them, or 202 without a body, and
// the id of a message that could be read comes back.
func FuzzHandler(f *testing.F) {
	f.Add(list, "", "", "", "", true)
	body, _ := modernCall(`"x"`, "t")
	f.Add(body, "2026-07-28", "tools/call", "t", "", false)
	f.Add(body, "2026-07-28", "tools/call", "=?base64?dA==?=", "s", true)
	f.Add(`[`+list+`]`, "2025-03-26", "", "", "", true)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, "", "", "", "", false)
	f.Add(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":null}}`, "", "", "", "", true)
	f.Add(`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, "", "", "", "", true)
	f.Add(`{"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}}`, "2026-07-28", "a", "", "", false)
	h := mcphttp.NewHandler(&backend{}, mcphttp.HandlerOptions{MaxSessions: 100})
	f.Cleanup(func() { _ = h.Close(context.Background()) })
	begin := httptest.NewRequest("POST", "/", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}`))
	begin.Host = "localhost"
	begin.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, begin)
	session := w.Header().Get("Mcp-Session-Id")

	f.Fuzz(func(t *testing.T, body, version, method, name, sessionID string, inSession bool) {
		r := httptest.NewRequest("POST", "/", strings.NewReader(body))
		r.Host = "localhost"
		set := func(field, value string) {
			if value != "" {
				r.Header[http.CanonicalHeaderKey(field)] = []string{value}
			}
		}
		set("Content-Type", "application/json")
		set("Mcp-Protocol-Version", version)
		set("Mcp-Method", method)
		set("Mcp-Name", name)
		set("Mcp-Session-Id", sessionID)
		if inSession {
			set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		checkResponse(t, body, w)
	})
}

func checkResponse(t *testing.T, body string, w *httptest.ResponseRecorder) {
	t.Helper()
	got := w.Body.Bytes()
	if w.Code == http.StatusAccepted {
		if len(got) > 0 {
			t.Fatalf("202 with %q", got)
		}
		return
	}
	if ct := w.Header().Get("Content-Type"); ct != "application/json" {
		t.Fatalf("Content-Type %q, %q", ct, got)
	}
	messages, err := jsonrpc.Elements(got)
	if err != nil {
		messages = append(messages, got)
	}
	for _, m := range messages {
		a, err := jsonrpc.Parse(m)
		if err != nil || !a.IsResponse() {
			t.Fatalf("not a response: %v: %q", err, m)
		}
		sent, err := jsonrpc.Parse([]byte(body))
		if err == nil && sent.IsRequest() && a.ID != sent.ID {
			t.Fatalf("id %q for the request %q", a.ID, body)
		}
		if err == nil && !sent.IsRequest() && !a.ID.IsZero() {
			t.Fatalf("id %q for what is no request", a.ID)
		}
	}
}
