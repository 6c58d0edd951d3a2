package mcphttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcphttp"
)

// TestPrefersStream: a client gets the form of response that it names first.
func TestPrefersStream(t *testing.T) {
	h := mcphttp.NewHandler(jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		return jsontext.Value(`{}`), nil
	}), mcphttp.HandlerOptions{})
	s := httptest.NewServer(h)
	defer s.Close()
	for accept, want := range map[string]string{
		"application/json, text/event-stream":       "application/json",
		"text/event-stream, application/json":       "text/event-stream",
		"text/event-stream;q=0.5, application/json": "application/json",
		"*/*": "application/json",
	} {
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Accept": accept, "Content-Type": "application/json", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
		} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if typ := resp.Header.Get("Content-Type"); typ != want || !strings.Contains(string(got), `"result":{}`) {
			t.Errorf("Accept %s: got %s with %q, want %s", accept, typ, got, want)
		}
	}
}
