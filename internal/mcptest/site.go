package mcptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// Site is a server over HTTP on loopback that can go down and come back.
type Site struct {
	URL string

	server *httptest.Server

	mu      sync.Mutex // guards the fields below
	handler jsonrpc.Handler
	opts    mcphttp.HandlerOptions
	serve   *mcphttp.Handler // nil: down
	hook    func(http.ResponseWriter, *http.Request) bool
}

// NewSite returns a Site that is up and serves a handler to clients of some
// versions. No versions: all.
func NewSite(t testing.TB, h jsonrpc.Handler, versions ...mcp.Version) *Site {
	t.Helper()
	s := &Site{handler: h, opts: mcphttp.HandlerOptions{Versions: versions}}
	s.Up()
	s.server = httptest.NewServer(http.HandlerFunc(s.route))
	s.URL = s.server.URL + "/mcp"
	t.Cleanup(func() {
		s.Down()
		s.server.Close()
	})
	return s
}

func (s *Site) route(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	serve, hook := s.serve, s.hook
	s.mu.Unlock()
	switch {
	case serve == nil:
		panic(http.ErrAbortHandler)
	case hook == nil || !hook(w, r):
		serve.ServeHTTP(w, r)
	}
}

// Hook has requests seen before they are served; one for which hook returns true
// is not served.
func (s *Site) Hook(hook func(http.ResponseWriter, *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Down cuts all connections, and new ones as soon as they are made, until Up.
func (s *Site) Down() {
	s.mu.Lock()
	serve := s.serve
	s.serve = nil
	s.mu.Unlock()
	if serve == nil {
		return
	}
	s.server.CloseClientConnections()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = serve.Close(ctx) // at once, whatever it still does
}

// Up brings the site back, as a new process would: it has no sessions.
func (s *Site) Up() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.serve == nil {
		s.serve = mcphttp.NewHandler(s.handler, s.opts)
	}
}

// Become has the site be another server from the next Up on that follows a Down.
// No versions: all.
func (s *Site) Become(h jsonrpc.Handler, versions ...mcp.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler, s.opts = h, mcphttp.HandlerOptions{Versions: versions}
}

// OnHTTP returns a Site that serves a backend in its version.
func (b *Backend) OnHTTP(t testing.TB) *Site {
	t.Helper()
	return NewSite(t, b, b.Version)
}
