package gateway_test

import (
	"context"
	web "net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// TestDisconnectInSession: what a client with a session asked for goes on when its
// connection breaks: the server is not told, and ends the call as it wants.
func TestDisconnectInSession(t *testing.T) {
	release, ended := make(chan struct{}), make(chan error, 1)
	b := newBackend(mcp.V20251125)
	b.custom = func(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) {
		b.started <- "custom"
		select {
		case <-ctx.Done():
		case <-release:
		}
		ended <- ctx.Err()
		return text("done")
	}
	f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	handler := mcphttp.NewHandler(f.server, mcphttp.HandlerOptions{})
	broken := make(chan struct{}, 64)
	site := httptest.NewServer(web.HandlerFunc(func(w web.ResponseWriter, r *web.Request) {
		stop := context.AfterFunc(r.Context(), func() { broken <- struct{}{} })
		defer stop()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = handler.Close(t.Context())
		site.CloseClientConnections()
		site.Close()
	})
	c := mcptest.CallHTTP(t, site.URL, mcp.V20251125)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = c.Call(ctx, mcp.MethodToolsCall, `{"name":"custom"}`) })
	receive(t, "the call", b.started)
	cancel()
	wait.Wait()
	receive(t, "the connection breaks", broken)
	for range 3 { // whatever the gateway would tell the server comes before these
		if a, err := c.Call(t.Context(), mcp.MethodToolsCall, `{"name":"touch"}`); err != nil || a.Error != "" {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if len(ended) > 0 {
		t.Error("the call was cancelled")
	}
	close(release)
	if err := receive(t, "its end", ended); err != nil {
		t.Errorf("the call was cancelled: %v", err)
	}
}
