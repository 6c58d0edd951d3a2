package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/stdio"
)

// dialChild starts this program as a server.
func dialChild(t *testing.T, v mcp.Version) client.Dial {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &stdio.Command{Name: exe, Env: []string{childVersion + "=" + string(v), "GORACE=atexit_sleep_ms=0"}}
	return func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		return cmd.Dial(ctx, jsonrpc.ConnOptions{Handler: in.Handler, Notification: in.Notification})
	}
}

// site is the same server over HTTP.
type site struct {
	mu      sync.Mutex // guards the fields below
	headers []http.Header
	bad     []string
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request, v mcp.Version) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, _ := io.ReadAll(r.Body)
	m, err := jsonrpc.Parse(body)
	s.mu.Lock()
	s.headers = append(s.headers, r.Header.Clone())
	got := r.Header.Get(mcp.HeaderVersion)
	if m.Method != mcp.MethodInitialize && m.Method != mcp.MethodDiscover && got != string(v) {
		s.bad = append(s.bad, m.Method+" with version "+got)
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case !m.IsRequest():
		w.WriteHeader(http.StatusAccepted)
	case m.Method == mcp.MethodDiscover && !v.Stateless():
		w.WriteHeader(http.StatusBadRequest)
	case m.Method == mcp.MethodToolsCall:
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, pagedAnswer(v, &m))
	}
}

func dialSite(t *testing.T, v mcp.Version) (*site, client.Dial) {
	s := new(site)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeHTTP(w, r, v) }))
	t.Cleanup(server.Close)
	return s, func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		return mcphttp.Dial(ctx, server.URL, mcphttp.DialOptions{Handler: in.Handler, Notification: in.Notification, Gap: in.Gap})
	}
}

// TestSeeds4_11_OverRealWires: cursors pass as they came through a process's pipes
// and over HTTP, and a silent server does not hold a caller; each in both eras.
// Over HTTP it is C-199 as well: every later request has the version that the
// server answered with.
func TestSeeds4_11_OverRealWires(t *testing.T) {
	check := func(t *testing.T, v mcp.Version, opts client.Options) {
		c := connect(t, opts)
		if c.Server().Version != v {
			t.Errorf("version %s", c.Server().Version)
		}
		l, err := c.List(t.Context(), mcp.Tools, client.Limits{})
		if err != nil || names(l) != "c a b" || l.Pages != 3 {
			t.Errorf("listed %q, %v", names(l), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err = c.Call(ctx, client.Request{Method: mcp.MethodToolsCall, Params: object(t, `{"name":"a"}`)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a silent tool: %v", err)
		}
		if l, err = c.List(t.Context(), mcp.Tools, client.Limits{}); err != nil || len(l.Items) != 3 {
			t.Errorf("behind it: %v, %v", l, err)
		}
		if err := c.Close(); err != nil {
			t.Logf("closed: %v", err)
		}
	}
	for _, v := range []mcp.Version{mcp.V20250618, mcp.V20251125, mcp.V20260728} {
		t.Run("pipes "+string(v), func(t *testing.T) {
			check(t, v, client.Options{Dial: dialChild(t, v)})
		})
		t.Run("HTTP "+string(v), func(t *testing.T) {
			s, dial := dialSite(t, v)
			check(t, v, client.Options{Dial: dial, HTTP: true})
			s.mu.Lock()
			defer s.mu.Unlock()
			for _, bad := range s.bad {
				t.Error(bad)
			}
		})
	}
}
