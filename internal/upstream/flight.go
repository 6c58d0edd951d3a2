package upstream

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Request is a request to a server, and who is to hear what the server says
// because of it.
type Request struct {
	Method string
	Params jsonrpc.Object
	Edits  []mcp.Edit // made to Params before they are sent
	// Caller is on whose behalf a stateless server is asked.
	Caller mcp.Caller
	// Header has more header fields, for a server over HTTP.
	Header map[string]string

	// Notify gets progress, if the request has a progress token, and log
	// messages: those that the server provably sent because of this request. It
	// runs on the goroutine that reads and must not block; it may still run, or
	// run once more, when Call returns. nil: they are dropped.
	Notify func(method string, params jsonrpc.Object)
	// Ask answers the requests that the server provably makes because of this
	// one. nil: -32601.
	Ask func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error)
}

// flight is a request that is with the server. Its token is ours: the caller's
// stands in caller.
type flight struct {
	Request
	server *Server
	token  int64
	caller jsontext.Value // the caller's progress token; nil: it has none
	clock
}

func (f *flight) start(ctx context.Context, timeout, most time.Duration) context.Context {
	f.clock = clock{timeout: timeout, end: time.Now().Add(most)}
	return f.clock.start(ctx, &TimeoutError{f.server.opts.Name, f.Method, timeout})
}

// on returns the request for a connection.
func (f *flight) on(c *connection) client.Request {
	return client.Request{
		Method: f.Method, Params: f.Params, Edits: f.Edits, Caller: f.Caller, Header: f.Header,
		Token: strconv.AppendInt(nil, f.token, 10),
		Message: func(m *jsonrpc.Message) {
			if m.IsNotification() && !f.hear(m) {
				c.notification(m)
			}
		},
		Handler: jsonrpc.HandlerFunc(f.answer),
	}
}

// hear takes a notification that belongs to this request; false if it is about
// something else. It runs on a reader.
func (f *flight) hear(m *jsonrpc.Message) bool {
	switch {
	case m.Method == mcp.MethodProgress:
		f.progress(m)
	case m.Method != mcp.MethodMessage:
		return false
	case f.Notify != nil:
		f.Notify(m.Method, m.Params)
	}
	return true
}

// progress moves the deadline, and tells the caller under its own token. A token
// that was never given out is not followed.
func (f *flight) progress(m *jsonrpc.Message) {
	if string(m.Params.Get("progressToken")) != strconv.FormatInt(f.token, 10) {
		return
	}
	f.extend()
	if f.caller == nil || f.Notify == nil {
		return
	}
	params, err := jsonrpc.ParseObject(mcp.Splice(m.Params, mcp.Edit{Name: "progressToken", Value: f.caller}))
	if err == nil {
		f.Notify(m.Method, params)
	}
}

// answer answers a request of the server. Its deadline waits meanwhile, as far as
// the longest goes.
func (f *flight) answer(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	if f.Ask == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })()
	f.hold()
	defer f.extend()
	return f.Ask(ctx, req)
}

// flights are the requests that are with a server.
type flights struct {
	mu      sync.Mutex // guards the fields below
	last    int64
	byToken map[int64]*flight
}

func (fs *flights) add(f *flight) {
	meta := f.Params.Get("_meta")
	if obj, err := jsonrpc.ParseObject(meta); err == nil {
		f.caller = obj.Get(mcp.MetaProgressToken)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.last++
	f.token = fs.last
	if fs.byToken == nil {
		fs.byToken = make(map[int64]*flight)
	}
	fs.byToken[f.token] = f
}

func (fs *flights) remove(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.byToken, f.token)
}

// find returns the request with a progress token; nil if there is none.
func (fs *flights) find(token jsontext.Value) *flight {
	n, err := strconv.ParseInt(string(token), 10, 64)
	if err != nil {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.byToken[n]
}

// only returns the one request that is with the server; nil if there is none, or
// more than one, so that what the server says cannot be told to be about one.
func (fs *flights) only() *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if len(fs.byToken) != 1 {
		return nil
	}
	for _, f := range fs.byToken {
		return f
	}
	return nil
}

// hear takes a notification that came on the connection and not on a request's
// own stream, if it is clear which request it is about.
func (fs *flights) hear(m *jsonrpc.Message) bool {
	var f *flight
	if m.Method == mcp.MethodProgress {
		f = fs.find(m.Params.Get("progressToken"))
	} else if m.Method == mcp.MethodMessage {
		f = fs.only()
	}
	return f != nil && f.hear(m)
}

// answer answers a request that the server made on the connection.
func (fs *flights) answer(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	f := fs.only()
	if f == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"%s: it is not clear which of this server's calls this is about, so nobody can be asked", req.Method)
	}
	return f.answer(ctx, req)
}

// clock is the deadline of one request, which progress moves.
type clock struct {
	timeout time.Duration
	end     time.Time // beyond which it is not moved
	ctx     context.Context
	cancel  context.CancelFunc
	timer   *time.Timer
}

func (c *clock) start(ctx context.Context, late error) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(c.timeout, func() { cancel(late) })
	c.ctx, c.cancel = context.WithDeadlineCause(ctx, c.end, late)
	return c.ctx
}

func (c *clock) stop() {
	c.timer.Stop()
	c.cancel()
}

// extend gives the request its timeout again. It runs on a reader.
func (c *clock) extend() {
	if left := min(c.timeout, time.Until(c.end)); left > 0 {
		c.timer.Reset(left)
	}
}

// hold lets the request wait for as long as any may.
func (c *clock) hold() { c.timer.Reset(max(time.Until(c.end), 0)) }
