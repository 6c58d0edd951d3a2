package mcphttp_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mcp-roster/roster/mcphttp"
)

func TestGuard(t *testing.T) {
	// C-147, C-150
	local := &mcphttp.Guard{}
	public := &mcphttp.Guard{Hosts: []string{"gw.example.com", "alt.example.com:8443"}, Origins: []string{"https://app.example.com", "vscode-webview://x"}}
	tests := []struct {
		guard        *mcphttp.Guard
		host, origin string
		ok           bool
	}{
		{local, "localhost", "", true},
		{local, "localhost:7678", "", true},
		{local, "LOCALHOST:7678", "", true},
		{local, "127.0.0.1:7678", "", true},
		{local, "127.8.9.1", "", true},
		{local, "[::1]:7678", "", true},
		{local, "[::1]", "", true},
		{local, "::1", "", true},
		{local, "", "", false},
		{local, "evil.example", "", false},
		{local, "localhost.evil.example:7678", "", false},
		{local, "127.0.0.1.evil.example", "", false},
		{local, "192.168.1.5:7678", "", false},
		{local, "0.0.0.0:7678", "", false},
		{local, "localhost:1", "http://localhost:3000", true},
		{local, "localhost:1", "https://127.0.0.1", true},
		{local, "localhost:1", "http://[::1]:6274", true},
		{local, "localhost:1", "https://evil.example", false},
		{local, "localhost:1", "http://localhost@evil.example", false},
		{local, "localhost:1", "http://localhost.evil.example", false},
		{local, "localhost:1", "null", false},
		{local, "localhost:1", "file://", false},
		{local, "localhost:1", "ftp://localhost", false},
		{local, "localhost:1", "vscode-webview://x", false},
		{public, "gw.example.com", "", true},
		{public, "GW.example.com:99", "", true},
		{public, "alt.example.com:8443", "", true},
		{public, "alt.example.com:8444", "", false},
		{public, "localhost", "", true},
		{public, "gw.example.com", "https://app.example.com", true},
		{public, "gw.example.com", "https://app.example.com:8443", false},
		{public, "gw.example.com", "https://gw.example.com", true},
		{public, "gw.example.com", "vscode-webview://x", true},
		{&mcphttp.Guard{Hosts: []string{"*"}}, "evil.example", "http://evil.example", false}, // rebound
		{&mcphttp.Guard{Hosts: []string{"*"}}, "any", "", true},
		{&mcphttp.Guard{Hosts: []string{"*"}, Origins: []string{"*"}}, "any", "https://any.example", true},
	}
	for _, tt := range tests {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if err := tt.guard.Check(r); (err == nil) != tt.ok {
			t.Errorf("Host %q, Origin %q: %v", tt.host, tt.origin, err)
		}
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.Host = "localhost"
	r.Header["Origin"] = []string{"http://localhost", "https://evil.example"}
	if local.Check(r) == nil {
		t.Error("a second Origin was not looked at")
	}
}

func TestGuardWrap(t *testing.T) {
	// C-151: the same checks on every route of a server, for every method.
	b := &backend{}
	h := mcphttp.NewHandler(b, mcphttp.HandlerOptions{})
	reached := 0
	other := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ })
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	mux.Handle("/", h.Guard().Wrap(other))
	for _, method := range []string{"GET", "POST", "DELETE", "OPTIONS", "PUT"} {
		for _, path := range []string{"/mcp", "/status", "/livez"} {
			r := httptest.NewRequest(method, path, nil)
			r.Host = "localhost"
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Access-Control-Request-Method", "POST")
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, r)
			if w.Code != 403 || w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: %d, %v", method, path, w.Code, w.Header())
			}
		}
	}
	if reached != 0 || b.calls.Load() != 0 {
		t.Errorf("reached: %d, %d", reached, b.calls.Load())
	}
	r := httptest.NewRequest("GET", "/status", nil)
	r.Host = "localhost"
	mux.ServeHTTP(httptest.NewRecorder(), r)
	if reached != 1 {
		t.Error("a request without Origin was not let through")
	}
}

func TestHandlerCORS(t *testing.T) {
	e := serveHTTP(t, &backend{}, mcphttp.HandlerOptions{AllowedOrigins: []string{"https://app.example.com"}})
	a := e.do("OPTIONS", "", hdr{
		"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST",
		"Access-Control-Request-Headers": "mcp-method,mcp-param-region", "Access-Control-Request-Private-Network": "true",
	})
	for field, want := range map[string]string{
		"Access-Control-Allow-Origin": "https://app.example.com", "Access-Control-Allow-Methods": "GET, POST, DELETE",
		"Access-Control-Allow-Headers": "mcp-method,mcp-param-region", "Access-Control-Allow-Private-Network": "true",
	} {
		if got := a.header.Get(field); got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
	if a.status != 204 {
		t.Errorf("status %d", a.status)
	}
	a = e.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, hdr{"Origin": "https://app.example.com"})
	if a.header.Get("Access-Control-Expose-Headers") != "Mcp-Session-Id, WWW-Authenticate" || a.header.Get("Vary") != "Origin" {
		t.Errorf("%v", a.header)
	}
	if a := e.post(`{}`, nil); a.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("CORS headers without an Origin")
	}
}
