package app_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// ask makes a request of any route and returns the response, whose body is read.
func ask(t *testing.T, verb, url string, header map[string]string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithCancel(bounded(t))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, verb, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") == "text/event-stream" {
		return resp, ""
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// routes of the gateway and the verb that each has.
var (
	dataRoutes = map[string]string{"/mcp": "POST", "/sse": "GET", "/messages": "POST", "/status": "GET", "/items": "GET"}
	openRoutes = map[string]string{"/livez": "GET", "/readyz": "GET", "/healthz": "GET", "/health": "GET"}
)

func TestEdge_Keys(t *testing.T) {
	key := auth.NewKey()
	g := newGateway(t, fmt.Sprintf(`"keys":[{"name":"ann","sha256":%q}],"allowedOrigins":["https://app.example.com"]`, auth.HashKey(key)))
	g.ready()
	base := strings.TrimSuffix(g.URL(), "/mcp")
	for path, verb := range dataRoutes {
		resp, body := ask(t, verb, base+path, map[string]string{"Origin": "https://app.example.com"})
		if resp.StatusCode != 401 || !strings.HasPrefix(resp.Header.Get("Www-Authenticate"), "Bearer") {
			t.Errorf("%s without a key: %d %s", path, resp.StatusCode, body)
		}
		if resp.Header.Get("Access-Control-Allow-Origin") != "https://app.example.com" {
			t.Errorf("%s: the page cannot see why: %v", path, resp.Header)
		}
		if resp, _ := ask(t, verb, base+path, map[string]string{"Authorization": "Bearer " + key}); resp.StatusCode == 401 {
			t.Errorf("%s with a key: %d", path, resp.StatusCode)
		}
		resp, _ = ask(t, "OPTIONS", base+path, map[string]string{
			"Origin": "https://app.example.com", "Access-Control-Request-Method": verb, "Access-Control-Request-Headers": "authorization",
		})
		if resp.StatusCode != 204 || resp.Header.Get("Access-Control-Allow-Headers") != "authorization" {
			t.Errorf("preflight of %s: %d %v", path, resp.StatusCode, resp.Header)
		}
	}
	for path, verb := range openRoutes {
		if resp, _ := ask(t, verb, base+path, nil); resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if strings.Contains(g.log.String(), key) {
		t.Error("a key is in the log")
	}
}

func TestEdge_SessionsBelongToKeys(t *testing.T) {
	ann, ben := auth.NewKey(), auth.NewKey()
	g := newGateway(t, fmt.Sprintf(`"keys":[{"name":"ann","sha256":%q},{"name":"ben","sha256":%q}]`, auth.HashKey(ann), auth.HashKey(ben)))
	dial := func(key string) *mcphttp.Conn {
		c, err := mcphttp.Dial(t.Context(), g.URL(), mcphttp.DialOptions{Header: http.Header{"Authorization": {"Bearer " + key}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	if _, err := dial(ann).Call(bounded(t), mcp.MethodInitialize, []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}`)); err != nil {
		t.Fatal(err)
	}
	// The stream of HTTP+SSE, too, has an owner.
	base := strings.TrimSuffix(g.URL(), "/mcp")
	req, err := http.NewRequestWithContext(bounded(t), http.MethodGet, base+"/sse", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+ann)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, 512)
	n, err := resp.Body.Read(first)
	if err != nil {
		t.Fatal(err)
	}
	_, endpoint, _ := strings.Cut(string(first[:n]), "data: ")
	endpoint = strings.TrimSpace(endpoint)
	for key, want := range map[string]int{ann: 202, ben: 404} {
		post, err := http.NewRequestWithContext(bounded(t), http.MethodPost, base+endpoint, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		post.Header.Set("Content-Type", "application/json")
		post.Header.Set("Authorization", "Bearer "+key)
		resp, err := transport.RoundTrip(post)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
	}
}

func TestEdge_ForeignOriginsAndHosts(t *testing.T) { // C-147, C-151
	g := newGateway(t, `"allowedHosts":["gw.example.com"],"allowedOrigins":["https://app.example.com"]`)
	g.ready()
	base := strings.TrimSuffix(g.URL(), "/mcp")
	for _, routes := range []map[string]string{dataRoutes, openRoutes} {
		for path, verb := range routes {
			for _, verb := range []string{verb, "OPTIONS"} {
				for _, header := range []map[string]string{{"Origin": "https://evil.example"}, {"Host": "evil.example"}} {
					resp, body := ask(t, verb, base+path, header)
					if resp.StatusCode != 403 || resp.Header.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s %s, %v: %d %v %s", verb, path, header, resp.StatusCode, resp.Header, body)
					}
				}
				header := map[string]string{"Host": "gw.example.com", "Origin": "https://app.example.com"}
				if resp, _ := ask(t, verb, base+path, header); resp.StatusCode == 403 {
					t.Errorf("%s %s, %v: %d", verb, path, header, resp.StatusCode)
				}
			}
		}
	}
}

func TestEdge_SSEBothWays(t *testing.T) {
	// One gateway in front of another over HTTP+SSE: dialled, and fallen back to.
	inner := newGateway(t, "", remote("a", sumBackend(t).OnHTTP(t).URL))
	inner.ready()
	sse := strings.TrimSuffix(inner.URL(), "/mcp") + "/sse"
	outer := newGateway(t, "", remote("direct", sse), remote("fallback", sse, `"type":"http"`))
	outer.ready()
	same(t, "over HTTP+SSE", list(t, outer.http(mcp.Latest), mcp.Tools),
		[]string{tool("direct__a__sum"), tool("fallback__a__sum")})
	for _, name := range []string{"direct__a__sum", "fallback__a__sum"} {
		if got := callTool(t, outer.http(mcp.V20250618), name); !strings.Contains(got, "42") {
			t.Errorf("%s: %s", name, got)
		}
	}
	c, err := client.Connect(bounded(t), client.Options{
		HTTP: true, Info: []byte(`{"name":"t","version":"0"}`),
		Dial: func(ctx context.Context, in client.Incoming) (client.Wire, error) {
			return mcphttp.DialSSE(ctx, strings.TrimSuffix(outer.URL(), "/mcp")+"/sse", mcphttp.DialOptions{Notification: in.Notification})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tools, err := c.List(bounded(t), mcp.Tools, client.Limits{})
	if err != nil || len(tools.Items) != 2 {
		t.Errorf("%v, %v", tools, err)
	}
}

func sumBackend(t *testing.T) *mcptest.Backend {
	t.Helper()
	b := &mcptest.Backend{Version: mcp.V20251125, Do: func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		return jsontext.Value(`{"content":[{"type":"text","text":"42"}]}`), nil
	}}
	b.Set(mcp.Tools, tool("sum"))
	return b
}

func TestEdge_SSEOff(t *testing.T) {
	g := newGateway(t, `"sse":false`)
	base := strings.TrimSuffix(g.URL(), "/mcp")
	for path, verb := range map[string]string{"/sse": "GET", "/messages": "POST"} {
		if resp, _ := ask(t, verb, base+path, nil); resp.StatusCode != 404 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

// site starts an HTTPS server of a backend with a certificate that no system
// trusts, and writes the certificate and its key to files.
func site(t *testing.T, b *mcptest.Backend) (url, cert, key string) {
	t.Helper()
	h := mcphttp.NewHandler(b, mcphttp.HandlerOptions{})
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // handshakes that fail are the test
	server.StartTLS()
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = h.Close(ctx)
		server.Close()
	})
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	return server.URL + "/mcp", write("cert.pem", "CERTIFICATE", pair.Certificate[0]), write("key.pem", "PRIVATE KEY", der)
}

func TestEdge_TLS(t *testing.T) {
	url, cert, key := site(t, sumBackend(t))
	quoted := func(s string) string { return string(mcp.String(s)) }
	g := newGateway(t, `"startupWait":"2s","tlsCert":`+quoted(cert)+`,"tlsKey":`+quoted(key),
		remote("trusted", url, `"caFile":`+quoted(cert)),
		remote("unknown", url),
		remote("nofile", url, `"caFile":"/nowhere/ca.pem"`),
		remote("nopem", url, `"caFile":`+quoted(key)))
	g.until("state of trusted", func(admin.Status) bool { return g.server("trusted").State == "ready" })
	for name, want := range map[string]string{"unknown": "certificate", "nofile": "/nowhere/ca.pem", "nopem": "no certificate"} {
		g.until("state of "+name, func(admin.Status) bool { return strings.Contains(g.server(name).Error, want) })
	}
	if !strings.HasPrefix(g.URL(), "https://") {
		t.Fatal(g.URL())
	}
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	for _, protocol := range []string{"http/1.1", "h2"} {
		transport := &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: protocol == "h2",
		}
		c, err := mcphttp.Dial(t.Context(), g.URL(), mcphttp.DialOptions{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Call(bounded(t), mcp.MethodInitialize, []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}`)); err != nil {
			t.Fatal(err)
		}
		got, err := c.Call(bounded(t), mcp.MethodToolsCall, []byte(`{"name":"trusted__sum","arguments":{}}`))
		if err != nil || !strings.Contains(string(got.Raw), "42") {
			t.Errorf("%s: %s, %v", protocol, got.Raw, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
	}
}

func TestEdge_GlobalCAFile(t *testing.T) {
	url, cert, _ := site(t, sumBackend(t))
	g := newGateway(t, `"caFile":`+string(mcp.String(cert)), remote("s", url))
	g.ready()
	if got := callTool(t, g.http(mcp.Latest), "s__sum"); !strings.Contains(got, "42") {
		t.Error(got)
	}
}
