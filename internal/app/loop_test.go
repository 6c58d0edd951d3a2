package app_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/mcp"
)

// TestLoop has an entry of the configuration be the gateway itself, by its URL
// and as a command: the status says so, and the list does not grow (C-129).
func TestLoop(t *testing.T) {
	var behind atomic.Pointer[url.URL] // the gateway, once its port is known
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := behind.Load(); to != nil {
			httputil.NewSingleHostReverseProxy(to).ServeHTTP(w, r)
			return
		}
		http.Error(w, "not yet", http.StatusServiceUnavailable)
	}))
	defer proxy.Close()
	g := stoppedGateway(t)
	command := fmt.Sprintf(`{"command":%s,"env":{%q:%s}}`, mcp.String(os.Args[0]), gatewayVariable, mcp.String(g.file()))
	g.start(`"startupWait":"5s"`,
		remote("fine", answering(tool("t")).OnHTTP(t).URL), remote("url", proxy.URL+"/mcp"), entry{"command", command})
	to, err := url.Parse(strings.TrimSuffix(g.URL(), "/mcp"))
	if err != nil {
		t.Fatal(err)
	}
	behind.Store(to)
	g.until("both are found out", func(admin.Status) bool {
		url, command := g.server("url"), g.server("command")
		return url.State == upstream.Down && strings.Contains(url.Error, "this is the gateway itself") &&
			command.State == upstream.Down && strings.Contains(command.Error, "the entry that starts roster itself")
	})
	same(t, "beside itself", list(t, g.http(mcp.Latest), mcp.Tools), exposed("fine", []string{tool("t")}))
}

// TestLoop_OtherGateway has a gateway start another one, of another
// configuration, which is no loop.
func TestLoop_OtherGateway(t *testing.T) {
	inner := stoppedGateway(t)
	inner.start("", remote("s", answering(tool("t")).OnHTTP(t).URL))
	inner.close() // the child will run it
	command := fmt.Sprintf(`{"command":%s,"env":{%q:%s}}`, mcp.String(os.Args[0]), gatewayVariable, mcp.String(inner.file()))
	outer := newGateway(t, "", entry{"inner", command})
	c := outer.pipes(mcp.V20251125)
	if got := callTool(t, c, "inner__s__t"); !strings.Contains(got, "done") {
		t.Error(got)
	}
	if _, err := c.List(context.Background(), mcp.Prompts); err != nil {
		t.Error(err)
	}
}
