package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

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
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return a.base },
		ErrorLog:    a.errorLog(),
	}
}

// takeover is how often a gateway looks whether the one that commands use has
// ended.
const takeover = time.Second

// announce has commands find this gateway, as soon as no other one of its
// configuration is found. It returns when it has tried once; what it starts ends
// with Close.
func (a *App) announce() {
	done, err := a.listenLocally()
	if errors.Is(err, state.ErrLocked) {
		a.log.Info("commands go on using the gateway of this configuration that ran before")
		a.tasks.Go(func() { // ends when the other has, or with Close
			tick := time.NewTicker(takeover)
			defer tick.Stop()
			for errors.Is(err, state.ErrLocked) {
				select {
				case <-tick.C:
					done, err = a.listenLocally()
				case <-a.reloading.closing:
					return
				}
			}
			a.announced(err, done)
		})
		return
	}
	a.announced(err, done)
}

func (a *App) announced(err error, serve func()) {
	if err != nil {
		a.log.Warn("commands will not find this gateway", "err", err)
		return
	}
	a.serving.Go(serve) // ends with Close
}

// listenLocally takes the lock of the socket, and returns what serves it.
func (a *App) listenLocally() (serve func(), err error) {
	dir := a.store.Dir()
	lock, err := state.Lock(filepath.Join(dir, "control.lock"))
	if err != nil {
		return nil, err
	}
	l, err := admin.Listen(a.base, dir)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return func() {
		a.serveLocally(l)
		_ = lock.Close() // it ends with the process, too
	}, nil
}

func (a *App) serveLocally(l net.Listener) {
	defer func() { _ = l.Close() }() // Serve does not if it comes after Shutdown
	if err := a.operator.Serve(l); !errors.Is(err, http.ErrServerClosed) {
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
