package mcphttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
)

// DialOptions configures a Conn. The zero value is sensible.
type DialOptions struct {
	// Header has fields for every request, such as Authorization. Host sets the
	// host to ask for. Fields that the protocol or this package sets itself are
	// not taken from it, nor is Idempotency-Key, which would have net/http send
	// a request twice.
	Header http.Header
	// Authorizer has the credentials, if they change: it is asked before each
	// request, and told when one was refused. nil: those of Header stay.
	Authorizer Authorizer
	// Transport makes the requests. As its contract says, it changes none:
	// their header maps are shared. nil: one of this Conn's own, without
	// compression, so that streams are not held back, and through the proxy that
	// the environment names (HTTPS_PROXY, HTTP_PROXY and NO_PROXY; see
	// http.ProxyFromEnvironment).
	Transport http.RoundTripper
	// RootCAs are the certificates that this Conn's own transport trusts. nil: the
	// system's.
	RootCAs *x509.CertPool
	// MaxMessage is the most bytes that one message from the server may have.
	// 0: 64 MiB.
	MaxMessage int
	// Notification gets the server's notifications, on the goroutine that
	// reads the stream they come on. It must not block. nil: they are dropped.
	Notification func(m *jsonrpc.Message)
	// Handler answers the server's requests, of which 1,024 may be in the works.
	// nil: -32601 for each.
	Handler jsonrpc.Handler
	// Route, if set, chooses who answers a request instead of Handler, but for
	// those on the stream of a call with a Handler of its own. It runs on the
	// goroutine that reads the stream and must not block.
	Route func(m *jsonrpc.Message) jsonrpc.Handler
	// Gap is called when messages that the server sent on its own may have been
	// lost: what it said before the stream for them was open, or while it was
	// broken and could not be resumed, or in a session that is no more. It must
	// not block. nil: nobody is told.
	Gap func()
	// Hide returns what may be shown of the body of a response that is not one
	// of the protocol, of which StatusError keeps a part. nil: everything.
	Hide func(text string) string
	// Logger gets what happens off the request path. nil: nothing.
	Logger *slog.Logger
}

func (o DialOptions) withDefaults() DialOptions {
	if o.MaxMessage == 0 {
		o.MaxMessage = 64 << 20
	}
	if o.Notification == nil {
		o.Notification = func(*jsonrpc.Message) {}
	}
	if o.Gap == nil {
		o.Gap = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Dial returns a connection to the server at an http or https URL. It makes no
// request; ctx gives the connection its values, not its end. Errors and logs
// never have the URL's user, password or query.
func Dial(ctx context.Context, endpoint string, opts DialOptions) (*Conn, error) {
	u, err := url.Parse(endpoint)
	if err != nil { // not told: it quotes the URL
		return nil, errors.New("server URL is malformed")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("server URL must begin with http:// or https:// and have a host")
	}
	c := &Conn{opts: opts.withDefaults(), done: make(chan struct{}), gone: make(chan struct{}), transport: opts.Transport}
	c.over = sync.OnceFunc(func() { close(c.done) })
	if c.transport == nil {
		own := newTransport(opts.RootCAs)
		c.transport, c.closeIdle = own, own.CloseIdleConnections
	}
	c.template(u)
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	return c, nil
}

// template prepares what all requests have in common.
func (c *Conn) template(u *url.URL) {
	common := make(http.Header, len(c.opts.Header)+3)
	for name, values := range c.opts.Header {
		if name = http.CanonicalHeaderKey(name); !ownField(name) && !callField(name) {
			common[name] = values
		}
	}
	if user := u.User; user != nil && common["Authorization"] == nil {
		password, _ := user.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		common["Authorization"] = []string{"Basic " + credentials}
	}
	plain := *u
	plain.User, plain.Fragment, plain.RawFragment = nil, "", ""
	c.request = &http.Request{
		URL: &plain, Host: plain.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if host := c.opts.Header.Get("Host"); host != "" {
		c.request.Host = host
	}
	c.common = newFields(common, nil)
}

// newTransport returns a transport for one server: enough idle connections for
// the calls that may be in flight at once, and no compression.
func newTransport(roots *x509.CertPool) *http.Transport {
	var security *tls.Config
	if roots != nil {
		security = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	dialer := &net.Dialer{Timeout: 30 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSClientConfig:        security,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		TLSHandshakeTimeout:    10 * time.Second,
		DisableCompression:     true,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    64,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}
}
