// Package app builds a gateway from its configuration, runs it, and takes it
// down in order.
package app

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/gateway"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// Options says what to run. Config and Files are required.
type Options struct {
	// Config is the configuration, Problems what was wrong with it, and Files
	// the absolute paths it was read from: gateways of the same files share
	// their state.
	Config   *config.Config
	Problems []config.Problem
	Files    []string
	// Load reads the files again, for Reload. nil: there is none.
	Load func() (*config.Config, []config.Problem, error)
	// Watch has the files watched, and read again when their content changes.
	Watch bool
	// Quiet is how long files must stay as they are before they are read; see
	// config.WatchOptions.
	Quiet time.Duration
	// Hosts are values of the Host header field that are answered beside those
	// of loopback; see mcphttp.Guard.
	Hosts []string
	// Private keeps other commands from finding this gateway: it will not live
	// long.
	Private bool
	// Alone has Start fail with ErrTaken if another gateway of the configuration is
	// found by commands.
	Alone bool
	// Brief: this gateway ends with a client of its own. Others on pipes that it
	// serves are told.
	Brief bool
	// Profile serves the profiles of net/http/pprof under /debug/pprof/ to those who
	// may use the control socket.
	Profile bool
	// Version is this program's.
	Version string
	// Logger gets everything. nil: nothing.
	Logger *slog.Logger
}

// App is a gateway that runs.
type App struct {
	opts    Options
	base    context.Context // for what closes: it has Start's values and does not end
	log     *slog.Logger
	store   *state.Store
	tokens  *state.Vault
	logins  logins
	catalog *catalog.Catalog
	servers *upstream.Set
	gateway *gateway.Source
	server  *server.Server
	status  *admin.Source
	id      string // of this process's gateway, see loopHeader
	opening *time.Timer

	// running is the configuration that runs. It does not change once it is there.
	running   atomic.Pointer[running]
	reloading *reloading
	tasks     sync.WaitGroup // what ends when reloading is closing
	// use has the servers run, and stops others.
	use func([]*upstream.Server) error

	handler  *mcphttp.Handler
	http     *http.Server // nil: no port
	operator *http.Server // for those who may read the state directory
	inside   *pipes       // for this process
	door     door         // of operator, for other processes
	seats    seats
	journal  admin.Journal
	serving  sync.WaitGroup
	cancel   context.CancelFunc
	url      atomic.Pointer[string]
}

// implementation is how this program names itself, to clients and to servers.
func implementation(version string) jsontext.Value {
	out := []byte(`{"name":"roster","title":"Roster","version":`)
	out = jsonrpc.AppendString(out, version)
	return append(out, '}')
}

// Start builds the gateway and starts its servers. It listens on nothing yet.
func Start(ctx context.Context, opts Options) (app *App, err error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	a := &App{opts: opts, base: context.WithoutCancel(ctx), log: opts.Logger, id: rand.Text()}
	dir := stateDir(opts.Config, opts.Files)
	if err := checkLoop(dir); err != nil {
		return nil, err
	}
	var socket socketLock
	if !opts.Private {
		socket = lockSocket(dir)
	}
	if opts.Alone && socket.taken() {
		return nil, ErrTaken
	}
	defer func() {
		if err != nil {
			socket.release()
		}
	}()
	store, err := state.Open(dir, a.log)
	if err != nil {
		return nil, err
	}
	a.store, a.tokens = store, tokenStore(opts.Config, opts.Files, a.log)
	set := opts.Config.Roster
	info := implementation(opts.Version)
	a.running.Store(a.newRunning(opts.Config, opts.Problems))
	a.reloading = newReloading()
	a.catalog = catalog.New(blocks(opts.Config), catalog.Options{
		Store: store, NameLength: set.NameLength, Page: mcp.PageLimits{Items: set.PageItems, Bytes: int(set.PageBytes)},
		Implementation: info, Logger: a.log,
	})
	a.servers = upstream.NewSet()
	key, err := store.Key()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("key for requestState: %w", err), store.Close())
	}
	a.gateway, err = gateway.New(a.catalog, a.servers, gateway.Options{
		Implementation: info, Instructions: a.instructions, Key: key, StartWait: set.StartupWait, Login: a.offerLogin,
	})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	a.server = server.New(a.gateway, server.Options{Logger: a.log})
	a.status = a.source()
	a.handler = mcphttp.NewHandler(a.server, mcphttp.HandlerOptions{
		AllowedHosts:   slices.Concat(opts.Hosts, set.AllowedHosts),
		AllowedOrigins: set.AllowedOrigins,
		Principal:      auth.Principal, Logger: a.log,
	})
	a.operator, a.inside = a.local(), newPipes()
	ctx, a.cancel = context.WithCancel(ctx)
	a.use = func(servers []*upstream.Server) error { return a.servers.Apply(ctx, servers) }
	if err := a.use(a.upstreams(opts.Config)); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	if opts.Watch {
		a.tasks.Go(func() { a.watch(ctx) }) // ends with Close
	}
	a.opening = time.AfterFunc(set.StartupWait, a.catalog.Open) // stopped by Close
	a.serving.Go(func() { a.serveLocally(a.inside) })           // ends with Close
	if !opts.Private {
		a.announce(socket)
	}
	return a, nil
}

func (a *App) source() *admin.Source {
	return &admin.Source{
		Version: a.opts.Version, URL: a.URL, Since: time.Now(), StateDir: a.store.Dir(),
		Catalog: a.catalog, Servers: a.servers,
		Running: func() *admin.Running { return &a.running.Load().shown },
	}
}

// Status says how everything is.
func (a *App) Status() admin.Status { return a.status.Status() }

// URL is where clients connect; "" if there is no port.
func (a *App) URL() string {
	if url := a.url.Load(); url != nil {
		return *url
	}
	return ""
}

// Limits of the HTTP server. There is no limit on writing: streams last.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	maxHeader  = 64 << 10
)

// Listen serves MCP at http://address/mcp, with the routes of admin beside it.
// The error for a port that is taken says what to do. With a certificate in the
// configuration it is HTTPS, and with keys each request for data needs one.
func (a *App) Listen(ctx context.Context, address string) error {
	keys := a.keys()
	security, err := serverTLS(a.opts.Config.Roster)
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("%s is in use, perhaps by another roster: stop it, or choose another port with --listen", address)
		}
		return fmt.Errorf("cannot listen: %w", err)
	}
	url := "http://" + l.Addr().String() + mcpPath
	if security != nil {
		url = "https" + strings.TrimPrefix(url, "http")
		l = tls.NewListener(l, security)
	} else {
		l = mcphttp.Gather(l)
	}
	a.http = &http.Server{
		Handler: a.routes(keys), TLSConfig: security, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
		ConnContext: mcphttp.GatherContext,
		ErrorLog:    a.errorLog(),
	}
	a.url.Store(&url)
	a.serving.Go(func() { // ends with Close
		if err := a.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("HTTP server ended", "err", err)
		}
	})
	a.log.Info("listening", "url", url)
	return nil
}

// errorLog is where HTTP servers complain of clients.
func (a *App) errorLog() *log.Logger {
	return slog.NewLogLogger(a.log.Handler(), slog.LevelDebug)
}

// ServeStdio serves one client over a pair of pipes until in ends or ctx does.
func (a *App) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return stdio.Serve(ctx, in, out, a.server, &stdio.ServeOptions{Conn: jsonrpc.ConnOptions{Logger: a.log}})
}

// closeTime is how long clients may take to be told that the gateway closes.
const closeTime = 2 * time.Second

// Close takes everything down: clients are told, servers are stopped, and what
// must last is written.
func (a *App) Close() error {
	if a.opening != nil {
		a.opening.Stop()
	}
	a.reloading.close()
	a.door.shut(true)
	a.tasks.Wait()
	a.journal.Close()
	a.seats.close()
	a.server.Close()
	ctx, cancel := context.WithTimeout(a.base, closeTime)
	defer cancel()
	errs := []error{a.handler.Close(ctx)}
	for _, s := range []*http.Server{a.operator, a.http} {
		if s == nil {
			continue
		}
		if err := s.Shutdown(ctx); err != nil {
			errs = append(errs, s.Close())
		}
	}
	a.serving.Wait()
	a.gateway.Close()
	a.cancel()
	a.servers.Close()
	a.logins.end()
	return errors.Join(append(errs, a.store.Close())...)
}
