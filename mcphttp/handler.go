package mcphttp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// HandlerOptions configures a Handler. The zero value is safe on loopback.
type HandlerOptions struct {
	// AllowedHosts and AllowedOrigins are what Guard allows beside loopback.
	AllowedHosts, AllowedOrigins []string
	// Versions are the protocol versions to serve. nil: all of mcp.Versions.
	Versions []mcp.Version
	// Principal says who sends a request. A session can be used only by whom it
	// began with. nil: all are the same.
	Principal func(*http.Request) string

	// MaxBody is how long a request's body may be, in bytes. 0: 8 MiB.
	MaxBody int64
	// BodyTimeout is how long a body may take to arrive. 0: 2 min.
	BodyTimeout time.Duration
	// StreamAfter is how long a request may take before its response begins as
	// a stream, with comments to keep it alive. 0: 5 s; negative: for ever.
	StreamAfter time.Duration
	// KeepAlive is the time between comments on a stream on which nothing
	// else goes. 0: 15 s; negative: no comments.
	KeepAlive time.Duration
	// WriteTimeout is how long a client may let a write of at most 256 KiB
	// wait. 0: 30 s.
	WriteTimeout time.Duration
	// SessionIdle is how long a session lives without a request or an open
	// stream. 0: 30 min.
	SessionIdle time.Duration
	// MaxSessions is how many sessions there may be; for one more, the one that
	// was idle for longest is ended. 0: 10,000.
	MaxSessions int
	// QueueMessages and QueueBytes are what may wait on a stream beyond the
	// message being written; with more, its client is dropped. 0: 1,024, 16 MiB.
	QueueMessages, QueueBytes int

	// Logger gets panics of the handler, and at debug level streams that
	// ended early. nil: nothing.
	Logger *slog.Logger
}

func (o HandlerOptions) withDefaults() HandlerOptions {
	if o.Versions == nil {
		o.Versions = mcp.Versions()
	}
	if o.Principal == nil {
		o.Principal = func(*http.Request) string { return "" }
	}
	o.MaxBody = orDefault(o.MaxBody, 8<<20)
	o.BodyTimeout = orDefault(o.BodyTimeout, 2*time.Minute)
	o.StreamAfter = orDefault(o.StreamAfter, 5*time.Second)
	o.KeepAlive = orDefault(o.KeepAlive, 15*time.Second)
	o.WriteTimeout = orDefault(o.WriteTimeout, 30*time.Second)
	o.SessionIdle = orDefault(o.SessionIdle, 30*time.Minute)
	o.MaxSessions = orDefault(o.MaxSessions, 10_000)
	o.QueueMessages = orDefault(o.QueueMessages, 1024)
	o.QueueBytes = orDefault(o.QueueBytes, 16<<20)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func orDefault[T int | int64 | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// Handler serves a jsonrpc.Handler over HTTP, to clients of every version, under
// the one path it is mounted at. Requests reach the jsonrpc.Handler on the
// goroutine of their HTTP request.
//
// The context of a request has the values of its HTTP request's. It ends with
// jsonrpc.ErrCanceled when the client takes the request back, which in a session
// it does with a notification, and else by leaving; with jsonrpc.ErrSessionClosed
// when its session ends; and with http.ErrServerClosed when Close wants it to. In
// the last two cases the client is still there, and gets what is returned.
type Handler struct {
	handler  jsonrpc.Handler
	opts     HandlerOptions
	guard    Guard
	sessions sessionTable
	buffers  bufferPool

	keptBytes atomic.Int64 // of streams that are done and can be resumed

	mu     sync.Mutex // guards the fields below
	open   map[*exchange]struct{}
	closed bool
	empty  chan struct{} // closed when closed is set and no exchange is open
}

// NewHandler returns a Handler for h, which needs Close. A nil h has no methods.
func NewHandler(h jsonrpc.Handler, opts HandlerOptions) *Handler {
	if h == nil {
		h = jsonrpc.HandlerFunc(func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)
		})
	}
	opts = opts.withDefaults()
	return &Handler{
		handler:  h,
		opts:     opts,
		guard:    Guard{Hosts: opts.AllowedHosts, Origins: opts.AllowedOrigins},
		sessions: sessionTable{idle: opts.SessionIdle, most: opts.MaxSessions, byID: make(map[string]*serverSession)},
		open:     make(map[*exchange]struct{}),
		empty:    make(chan struct{}),
	}
}

// Sessions returns how many sessions there are.
func (h *Handler) Sessions() int { return h.sessions.len() }

// Guard returns the checks of Host and Origin, for the server's other routes.
func (h *Handler) Guard() *Guard { return &h.guard }

const methods = "GET, POST, DELETE, OPTIONS"

// ServeHTTP serves one HTTP request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.checked(w, r, methods, h.serveOwn)
}

func (h *Handler) serveOwn(w http.ResponseWriter, r *http.Request) *refusal {
	switch r.Method {
	case http.MethodPost:
		return h.post(w, r)
	case http.MethodGet:
		return h.get(w, r)
	case http.MethodDelete:
		return h.delete(w, r)
	}
	return notAllowed(methods)
}

// route returns a handler for another path than the Handler's own.
func (h *Handler) route(methods string, serve func(http.ResponseWriter, *http.Request) *refusal) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.checked(w, r, methods, serve) })
}

// checked serves a request that passes the Guard.
func (h *Handler) checked(w http.ResponseWriter, r *http.Request, methods string, serve func(http.ResponseWriter, *http.Request) *refusal) {
	if !h.guard.admit(w, r, methods) {
		return
	}
	if f := serve(w, r); f != nil {
		f.write(w)
	}
}

// Close ends the Handler: requests that come are refused, subscriptions and
// the streams of sessions that carry no answers are ended at once, and other requests may finish until
// ctx ends; then their contexts do. It returns when all are answered, or soon
// after ctx has ended with its cause. Call it before http.Server.Shutdown, which
// waits for streams and does not end them.
func (h *Handler) Close(ctx context.Context) error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		if len(h.open) == 0 {
			close(h.empty)
		}
	}
	h.mu.Unlock()
	h.cancelOpen(func(x *exchange) bool { return x.method == mcp.MethodListen })
	h.sessions.each(func(s *serverSession) {
		if !s.sse { // on which its requests are answered
			s.standing.end()
		}
	})
	defer h.sessions.close()
	select {
	case <-h.empty:
		return nil
	case <-ctx.Done():
	}
	h.cancelOpen(func(*exchange) bool { return true })
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-h.empty:
	case <-late.C:
	}
	return context.Cause(ctx)
}

func (h *Handler) cancelOpen(which func(*exchange) bool) {
	h.mu.Lock()
	var found []*exchange
	for x := range h.open {
		if which(x) {
			found = append(found, x)
		}
	}
	h.mu.Unlock()
	for _, x := range found {
		x.cancel(http.ErrServerClosed)
	}
}

// enter counts an exchange in; false once the Handler is closed.
func (h *Handler) enter(x *exchange) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.open[x] = struct{}{}
	}
	return !h.closed
}

func (h *Handler) leave(x *exchange) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, x)
	if h.closed && len(h.open) == 0 {
		close(h.empty)
	}
}

func (h *Handler) isClosed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func closing() *refusal {
	return refused(http.StatusServiceUnavailable, jsonrpc.CodeInternal, "the server is shutting down")
}

func (h *Handler) serves(v mcp.Version) bool { return slices.Contains(h.opts.Versions, v) }

// servesSessions reports whether any version is served that has sessions.
func (h *Handler) servesSessions() bool {
	return slices.ContainsFunc(h.opts.Versions, func(v mcp.Version) bool { return !v.Stateless() })
}

// call runs the handler.
func (h *Handler) call(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	return jsonrpc.Handle(ctx, h.handler, req, h.opts.Logger)
}

// canceled reports whether ctx ended because the client took its request back.
func canceled(ctx context.Context) bool {
	return errors.Is(context.Cause(ctx), jsonrpc.ErrCanceled)
}
