package client

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Defaults of Options.
const (
	DefaultProbeTimeout   = 2 * time.Second
	DefaultConnectTimeout = 60 * time.Second
	DefaultCallTimeout    = 5 * time.Minute
)

// Options says how to reach a server and who we are. Only Dial is required.
type Options struct {
	// Dial opens the wire.
	Dial Dial
	// HTTP: the wire is over HTTP. It decides by which of the two rules the
	// server's era is found out, and whether requests get header fields.
	HTTP bool

	// Info is our Implementation object. nil: the name of this package.
	Info jsontext.Value
	// Capabilities is the ClientCapabilities object for a server with sessions;
	// nil: {}. A stateless server gets those of each Request's Caller.
	Capabilities jsontext.Value

	// Remembered is the version that the last connection used, tried first;
	// "": not known. RememberedInfo is the server's Info from then: if it is
	// another now, the server is another program, and what is remembered does not
	// hold. nil: that is not looked at.
	Remembered     mcp.Version
	RememberedInfo jsontext.Value
	// ProbeTimeout is how long a server on pipes may be silent before it is
	// also spoken to with initialize. 0: DefaultProbeTimeout.
	ProbeTimeout time.Duration
	// CallTimeout is the deadline of a Call, and of each page of a List, whose
	// context has none. 0: DefaultCallTimeout; negative: none, for a caller that
	// ends its contexts itself.
	CallTimeout time.Duration

	// Handler answers the server's requests, except for ping, which is
	// answered here. nil: -32601 for each.
	Handler jsonrpc.Handler
	// Route, if set, chooses who answers a request instead of Handler, when it
	// is read, on the goroutine that reads. It must not block. nil from it:
	// -32601.
	Route func(m *jsonrpc.Message) jsonrpc.Handler
	// Notification gets the server's notifications that belong to no
	// subscription and no call's own stream, on the goroutine that reads. It
	// must not block. nil: they are dropped.
	Notification func(m *jsonrpc.Message)
	// Gap is called when such notifications may have been lost. It must not
	// block. nil: nobody is told.
	Gap func()
	// Logger gets what happens off the request path. nil: nothing.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Info == nil {
		o.Info = jsontext.Value(`{"name":"github.com/mcp-roster/roster/client","version":"0"}`)
	}
	if o.Capabilities == nil {
		o.Capabilities = jsontext.Value("{}")
	}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = DefaultProbeTimeout
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = DefaultCallTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Client is one connection to one server. Its methods may be called from any
// goroutine.
type Client struct {
	wire Wire
	opts Options
	info ServerInfo // set before Connect returns
	// headers has, by tool, the parameters that requests repeat in header
	// fields, as the last walk of the tools said.
	headers atomic.Pointer[map[string][]mcp.ParamHeader]

	mu   sync.Mutex // guards subs
	subs map[string]*subscription
}

// Server returns what the server said of itself.
func (c *Client) Server() ServerInfo { return c.info }

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.wire.Done() }

// Err says why the connection ended; nil while it is open and after Close.
func (c *Client) Err() error { return c.wire.Err() }

// Close ends the connection. Calls that wait fail.
func (c *Client) Close() error { return c.wire.Close() }

// Request is a request to a server.
type Request struct {
	Method string
	Params jsonrpc.Object // zero: {} or left out, as the server's version wants
	// Edits are made to Params before they are sent.
	Edits []mcp.Edit
	// Token is the progress token; nil: the one in Params, if there is one.
	Token jsontext.Value
	// Caller is on whose behalf a stateless server is asked; its Version is
	// ignored, an absent Info is ours. A server with sessions is not told.
	Caller mcp.Caller
	// Header has more header fields, for a wire that has them.
	Header map[string]string
	// Message gets what comes on the request's own response stream ahead of
	// its response, on the goroutine that reads. It must not block. nil: such
	// messages are treated as all others.
	Message func(m *jsonrpc.Message)
	// Handler answers the server's requests on that stream, but for ping. nil:
	// the Client's does.
	Handler jsonrpc.Handler
	// Sent is called with the id when the request is about to be written. It
	// must not block.
	Sent func(id jsonrpc.ID)
	// Answered is called when the response has come; see jsonrpc.Call.
	Answered func()
}

// ResultError says that a server answered with a result that is not one.
type ResultError struct {
	Method string
	Reason string
}

func (e *ResultError) Error() string {
	return fmt.Sprintf("%s: the server's result %s", e.Method, e.Reason)
}

// Call sends a request and returns its result, which is a JSON object. An error
// that the server answered is or wraps a *jsonrpc.Error; a result that is no
// object is a *ResultError; any other error is the wire's or the context's. The
// request is sent once.
func (c *Client) Call(ctx context.Context, req Request) (jsonrpc.Object, error) {
	if _, ok := ctx.Deadline(); !ok && c.opts.CallTimeout > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, c.opts.CallTimeout, &TimeoutError{req.Method, c.opts.CallTimeout})
		defer cancel()
		ctx = limited
	}
	return c.do(ctx, req)
}

// TimeoutError says that a server did not answer in time. It is a
// context.DeadlineExceeded.
type TimeoutError struct {
	Method string
	After  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s: no answer within %v", e.Method, e.After)
}

// Unwrap returns context.DeadlineExceeded.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// do is Call without a deadline of its own.
func (c *Client) do(ctx context.Context, req Request) (jsonrpc.Object, error) {
	result, err := c.wire.Do(ctx, c.outgoing(c.info.Version, req))
	if err != nil {
		return jsonrpc.Object{}, err
	}
	if !result.IsObject() {
		return jsonrpc.Object{}, &ResultError{req.Method, "is " + mcp.TypeName(result.Raw) + ", not an object"}
	}
	return result, nil
}

// outgoing gives a request the form that a version wants.
func (c *Client) outgoing(v mcp.Version, req Request) *jsonrpc.Call {
	call := &jsonrpc.Call{Method: req.Method, Header: req.Header, Message: req.Message, Sent: req.Sent, Answered: req.Answered}
	if req.Handler != nil {
		call.Handler = answers{req.Handler}
	}
	var caller mcp.Caller
	if v.Stateless() {
		caller = req.Caller
		caller.Version = v
		if caller.Info == nil {
			caller.Info = c.opts.Info
		}
	}
	edits := req.Edits
	if meta, changed := mcp.EditCaller(req.Params, caller, req.Token); changed {
		edits = append(edits[:len(edits):len(edits)], meta)
	}
	call.Params = req.Params.Raw
	if len(edits) > 0 {
		call.Params = mcp.Splice(req.Params, edits...)
	}
	if !v.Stateless() {
		return call
	}
	if c.opts.HTTP {
		call.Header = c.fields(v, req)
	}
	return call
}

// fields returns the header fields of a stateless request (2026-07-28,
// basic/transports/streamable-http, Request Headers).
func (c *Client) fields(v mcp.Version, req Request) map[string]string {
	h := make(map[string]string, len(req.Header)+4)
	h[mcp.HeaderVersion] = string(v)
	h[mcp.HeaderMethod] = req.Method
	if member := mcp.NameMember(req.Method); member != "" {
		if name, ok := jsonrpc.Text(req.param(member)); ok {
			h[mcp.HeaderName] = mcp.EncodeHeader(name)
			if req.Method == mcp.MethodToolsCall {
				c.addParams(h, name, req.Params)
			}
		}
	}
	maps.Copy(h, req.Header)
	return h
}

// param returns a member of the params as they are sent.
func (r *Request) param(name string) jsontext.Value {
	for _, e := range r.Edits {
		if e.Name == name {
			return e.Value
		}
	}
	return r.Params.Get(name)
}

// addParams adds the Mcp-Param fields of a tool call.
func (c *Client) addParams(h map[string]string, tool string, params jsonrpc.Object) {
	table := c.headers.Load()
	if table == nil {
		return
	}
	if headers := (*table)[tool]; headers != nil {
		mcp.SetParamHeaders(h, headers, params.Get("arguments"))
	}
}

// Notify sends a notification to a server with sessions. A stateless server
// takes none, but for those the wire sends itself: nothing is sent.
func (c *Client) Notify(ctx context.Context, method string, params jsontext.Value) error {
	if c.info.Version.Stateless() {
		return nil
	}
	return c.wire.Notify(ctx, method, params)
}

// Ping asks for a sign of life: ping, or server/discover of a stateless server.
func (c *Client) Ping(ctx context.Context) error {
	method := mcp.MethodPing
	if c.info.Version.Stateless() {
		method = mcp.MethodDiscover
	}
	_, err := c.Call(ctx, Request{Method: method})
	return err
}

// incoming is what the wire is given.
func (c *Client) incoming() Incoming {
	gap := c.opts.Gap
	if gap == nil {
		gap = func() {}
	}
	in := Incoming{Notification: c.notification, Handler: answers{c.opts.Handler}, Gap: gap}
	if route := c.opts.Route; route != nil {
		in.Route = func(m *jsonrpc.Message) jsonrpc.Handler { return answers{route(m)} }
	}
	return in
}

// answers is a Handler for a server's requests. It may have none behind it.
type answers struct{ handler jsonrpc.Handler }

// Handle implements jsonrpc.Handler.
func (a answers) Handle(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	switch {
	case req.ID.IsZero():
		return nil, nil // a notification on a wire that does not tell them apart
	case req.Method == mcp.MethodPing:
		return jsontext.Value("{}"), nil
	case a.handler == nil:
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)
	}
	return a.handler.Handle(ctx, req)
}

// notification runs on the reader.
func (c *Client) notification(m *jsonrpc.Message) {
	if c.subscribed(m) {
		return
	}
	if c.opts.Notification != nil {
		c.opts.Notification(m)
	}
}
