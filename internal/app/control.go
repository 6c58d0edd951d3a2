package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/pprof"
	"path/filepath"
	"sync"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/state"
)

func stateDir(cfg *config.Config, files []string) string {
	return filepath.Join(cfg.Roster.StateDir, state.DirFor(files))
}

// Find returns what makes requests to the gateway that runs with a configuration,
// see admin.LocalURL; false if none answers.
func Find(ctx context.Context, cfg *config.Config, files []string) (*http.Transport, bool) {
	t := admin.Transport(stateDir(cfg, files))
	return t, admin.Alive(ctx, t)
}

// Transport returns what makes requests to this gateway from this process, as Find
// does from others.
func (a *App) Transport() *http.Transport { return admin.TransportOver(a.inside.dial) }

// local makes the server for those who may read the state directory: they need no
// key.
func (a *App) local() *http.Server {
	mux := http.NewServeMux()
	a.status.Register(mux)
	a.status.RegisterControls(mux, admin.Controls{Reload: a.Reload, Plan: a.Plan, Journal: &a.journal})
	mux.Handle(mcpPath, a.handler)
	if a.opts.Profile {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	mux.HandleFunc("POST "+bridgePath, a.bridge)
	mux.HandleFunc("POST "+yieldPath, a.yield)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return a.base },
		ErrorLog:    a.errorLog(),
	}
}

func (a *App) serveLocally(l net.Listener) {
	defer func() { _ = l.Close() }() // Serve does not if it comes after Shutdown
	if err := a.operator.Serve(l); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		a.log.Error("commands do not find this gateway any more", "err", err)
	}
}

// pipes is a listener for this process alone.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Accept is that of a net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close is that of a net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is that of a net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }
