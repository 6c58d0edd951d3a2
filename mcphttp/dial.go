package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
)

// DialOptions configures a Conn. The zero value is sensible.
type DialOptions struct {
	// Header has fields for every request, such as Authorization. Those of the
	// protocol itself are not taken from it.
	Header http.Header
	// Transport makes the requests. nil: one of this Conn's own, without
	// compression, so that streams are not held back.
	Transport http.RoundTripper
	// MaxMessage is the most bytes that one message from the server may have.
	// 0: 64 MiB.
	MaxMessage int
	// Notification gets the server's notifications, on the goroutine that
	// reads the stream they come on. It must not block. nil: they are dropped.
	Notification func(m *jsonrpc.Message)
	// Handler answers the server's requests. nil: -32601 for each.
	Handler jsonrpc.Handler
	// Gap is called when messages that the server sent on its own may have been
	// lost. It must not block. nil: nobody is told.
	Gap func()
	// Logger gets what happens off the request path. nil: nothing.
	Logger *slog.Logger
}

// Dial returns a connection to the server at an http or https URL. It makes no
// request; ctx gives the connection its values, not its end.
func Dial(ctx context.Context, endpoint string, opts DialOptions) (*Conn, error) {
	u, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("server URL: %w", errors.Unwrap(err)) // without the URL, which may have secrets
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("server URL must begin with http:// or https:// and have a host")
	}
	if opts.MaxMessage == 0 {
		opts.MaxMessage = 64 << 20
	}
	if opts.Notification == nil {
		opts.Notification = func(*jsonrpc.Message) {}
	}
	if opts.Gap == nil {
		opts.Gap = func() {}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	transport := opts.Transport
	if transport == nil {
		transport = newTransport()
	}
	c := &Conn{
		url: u, opts: opts, done: make(chan struct{}), renewing: make(chan struct{}, 1),
		http: &http.Client{Transport: transport, CheckRedirect: sameOrigin},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return c, nil
}

// newTransport returns a transport for one server: enough idle connections for
// the calls that may be in flight at once, and no compression.
func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConnsPerHost = 64
	t.MaxIdleConns = 64
	t.IdleConnTimeout = 90 * time.Second
	return t
}

// sameOrigin follows a redirect only if it repeats the request as it is to the
// same origin: others would send credentials elsewhere, or turn a POST into a GET.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.Method != first.Method || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host || len(via) > 5 {
		return http.ErrUseLastResponse
	}
	return nil
}
