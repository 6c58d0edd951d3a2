package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcphttp"
	"go.uber.org/goleak"
)

// serveGathered is serveHTTP with a listener that gathers writes.
func serveGathered(t testing.TB, b jsonrpc.Handler, opts mcphttp.HandlerOptions) *endpoint {
	t.Helper()
	running := goleak.IgnoreCurrent()
	h := mcphttp.NewHandler(b, opts)
	server := httptest.NewUnstartedServer(h)
	server.Listener = mcphttp.Gather(server.Listener)
	server.Config.ConnContext = mcphttp.GatherContext
	server.Start()
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	return endpointOf(t, h, server, client, running)
}

// TestGather has responses of all sizes around those of net/http's buffers and of
// our own limits, one behind the other on one connection.
func TestGather(t *testing.T) {
	sizes := []int{0, 1, 2 << 10, 1 << 20}
	for _, around := range []int{3 << 10, 4 << 10, 8 << 10, 32 << 10} {
		for n := around - 400; n < around+20; n += 7 {
			sizes = append(sizes, n)
		}
	}
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{}}
	for _, n := range sizes {
		b.tools[fmt.Sprint(n)] = func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			return jsontext.Value(`{"text":"` + strings.Repeat("x", n) + `"}`), nil
		}
	}
	e := serveGathered(t, b, mcphttp.HandlerOptions{})
	for _, n := range sizes {
		body, h := modernCall("1", fmt.Sprint(n))
		want := `{"jsonrpc":"2.0","id":1,"result":{"text":"` + strings.Repeat("x", n) + `"}}`
		if a := e.post(body, h); a.body != want {
			t.Fatalf("%d: got %d bytes, want %d", n, len(a.body), len(want))
		}
	}
}
