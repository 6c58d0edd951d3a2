package upstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// patience bounds every wait of the tests that use real time.
const patience = 60 * time.Second

// until waits for something to become true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// counted is a server over HTTP that counts what it is asked.
type counted struct {
	*httptest.Server
	mu     sync.Mutex // guards counts
	counts map[string]int
}

func (c *counted) count(method string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[method]
}

// serveHTTP serves a source in some versions.
func serveHTTP(t *testing.T, source server.Source, versions []mcp.Version) *counted {
	t.Helper()
	c := &counted{counts: make(map[string]int)}
	srv := server.New(source, server.Options{})
	h := mcphttp.NewHandler(jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
		c.mu.Lock()
		c.counts[r.Method]++
		c.mu.Unlock()
		return srv.Handle(ctx, r)
	}), mcphttp.HandlerOptions{Versions: versions})
	c.Server = httptest.NewServer(h)
	t.Cleanup(func() {
		srv.Close()
		_ = h.Close(context.WithoutCancel(t.Context()))
		c.CloseClientConnections()
		c.Server.Close()
	})
	return c
}

func dialURL(url string) client.Dial {
	return func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		return mcphttp.Dial(ctx, url, mcphttp.DialOptions{Handler: in.Handler, Notification: in.Notification, Gap: in.Gap})
	}
}

// TestOverHTTP is C-129, C-134 and the way of a list change, over real HTTP.
func TestOverHTTP(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20250618, mcp.V20251125, mcp.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			source, err := memory("work")
			if err != nil {
				t.Fatal(err)
			}
			site := serveHTTP(t, source, []mcp.Version{v})
			g := run(t, upstream.Options{Dial: dialURL(site.URL), HTTP: true, RequestTimeout: time.Second})
			until(t, "first lists", func() bool { return g.published() == 1 })
			if got := g.server.Status().Version; got != v || g.tools() != "work wait" {
				t.Errorf("version %s, tools %q", got, g.tools())
			}
			for range 100 {
				if got, err := g.call(t.Context(), "work"); err != nil || !strings.Contains(got, "work") {
					t.Fatalf("%s, %v", got, err)
				}
			}
			handshakes := site.count(mcp.MethodInitialize)
			if v.Stateless() {
				handshakes = site.count(mcp.MethodDiscover)
			}
			if handshakes != 1 || site.count(mcp.MethodToolsList) != 1 || site.count(mcp.MethodToolsCall) != 100 {
				t.Errorf("asked %v", site.counts)
			}
			began := time.Now()
			_, err = g.call(t.Context(), "wait")
			if late, ok := errors.AsType[*upstream.TimeoutError](err); !ok || time.Since(began) > patience/2 {
				t.Errorf("%v, %v", err, late)
			}
			tool, err := newTool("more")
			if err != nil {
				t.Fatal(err)
			}
			if err := source.Tools.Add(tool); err != nil {
				t.Fatal(err)
			}
			until(t, "the list change", func() bool { return g.tools() == "work wait more" })
			g.wantState(t, upstream.Ready)
		})
	}
}

// TestOutageOverHTTP: a server that goes away is down for as long as it is.
func TestOutageOverHTTP(t *testing.T) {
	source, err := memory("work")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	down := false
	inner := mcphttp.NewHandler(server.New(source, server.Options{}), mcphttp.HandlerOptions{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		away := down
		mu.Unlock()
		if away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = inner.Close(context.WithoutCancel(t.Context()))
		site.CloseClientConnections()
		site.Close()
	})
	g := run(t, upstream.Options{Dial: dialURL(site.URL), HTTP: true, BackoffMin: 20 * time.Millisecond, BackoffMax: 50 * time.Millisecond})
	until(t, "first lists", func() bool { return g.published() == 1 })
	mu.Lock()
	down = true
	mu.Unlock()
	if _, err := g.call(t.Context(), "work"); err == nil {
		t.Error("no error")
	}
	until(t, "the server to be down", func() bool { return g.server.Status().State == upstream.Down })
	_, err = g.call(t.Context(), "work")
	if away, ok := errors.AsType[*upstream.UnavailableError](err); !ok || !strings.Contains(err.Error(), "503") {
		t.Errorf("%v, %v", err, away)
	}
	mu.Lock()
	down = false
	mu.Unlock()
	until(t, "the server to be back", func() bool { return g.server.Status().State == upstream.Ready })
	if _, err := g.call(t.Context(), "work"); err != nil || g.published() != 1 {
		t.Errorf("%v, published %d times", err, g.published())
	}
}

// TestKilledChild is C-046 with a real process: its calls fail within a second,
// and it is started again.
func TestKilledChild(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &stdio.Command{Name: exe, Env: []string{childKind + "=1", "GORACE=atexit_sleep_ms=0"}}
	pids := make(chan int, 8)
	g := run(t, upstream.Options{
		BackoffMin: 20 * time.Millisecond, BackoffMax: 50 * time.Millisecond,
		Dial: func(ctx context.Context, in client.Incoming) (client.Wire, error) {
			c, err := cmd.Dial(ctx, jsonrpc.ConnOptions{Handler: in.Handler, Notification: in.Notification})
			if err != nil {
				return nil, err
			}
			pids <- c.Process().PID()
			return c, nil
		},
	})
	until(t, "first lists", func() bool { return g.published() == 1 })
	failed := make(chan error, 5)
	for range 5 {
		go func() {
			_, err := g.call(t.Context(), "wait")
			failed <- err
		}()
	}
	until(t, "5 calls in flight", func() bool { return g.server.Status().InFlight == 5 })
	if _, err := g.call(t.Context(), "work"); err != nil {
		t.Error(err)
	}
	process, err := os.FindProcess(<-pids)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := <-failed; err == nil || !strings.Contains(err.Error(), "b1") {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("calls failed after %v", took)
	}
	until(t, "a second process", func() bool {
		st := g.server.Status()
		return st.State == upstream.Ready && st.Restarts == 1
	})
	if _, err := g.call(t.Context(), "work"); err != nil || g.published() != 1 {
		t.Errorf("%v, published %d times", err, g.published())
	}
}
