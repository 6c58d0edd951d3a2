package upstream

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
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
	// AllProgress: Notify gets progress also if Params has no progress token,
	// and always under the token that the server was given.
	AllProgress bool
	// Ask answers the requests that the server provably makes because of this
	// one. nil: -32601.
	Ask func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error)
	// Client is who asks, a comparable value. nil: it cannot be told from others.
	Client any
}

// flight is a request that is with the server. Its token is ours: the caller's
// stands in caller.
type flight struct {
	Request
	server *Server
	token  int64
	caller jsontext.Value // the caller's progress token; nil: it has none
	slot   slot
	// answered: the response has come. What the server says from then on is not
	// about this request, even while it is still among the flights.
	answered atomic.Bool
	haunted  bool  // there was a ghost of another client when it began
	ghosts   int64 // the newest ghost then
	clock
}

func (f *flight) start(ctx context.Context, timeout, most time.Duration) context.Context {
	f.timeout, f.end = timeout, time.Now().Add(most)
	return f.clock.start(ctx, &TimeoutError{f.server.opts.Name, f.Method, timeout})
}

// on returns the request for a connection.
func (f *flight) on(c *connection) client.Request {
	req := client.Request{
		Method: f.Method, Params: f.Params, Edits: f.Edits, Caller: f.Caller, Header: f.Header,
		Token:    strconv.AppendInt(nil, f.token, 10),
		Answered: f.over,
	}
	f.answered.Store(false) // it may be sent again
	if f.server.opts.HTTP { // where a request has a stream of its own
		req.Message = func(m *jsonrpc.Message) {
			if m.IsNotification() && !f.hear(m) {
				c.notification(m)
			}
		}
		req.Handler = jsonrpc.HandlerFunc(f.answer)
	}
	return req
}

// over notes that the response has come. On a pipe the server then has also read
// that the requests are over which were cancelled before this one was sent.
func (f *flight) over() {
	f.answered.Store(true)
	if f.haunted && !f.server.opts.HTTP {
		f.server.flights.lay(f)
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
	switch {
	case f.Notify == nil:
		return
	case f.AllProgress:
		f.Notify(m.Method, m.Params)
		return
	case f.caller == nil:
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
	if req.Method == mcp.MethodRootsList && f.server.opts.Roots != nil {
		return f.server.opts.Roots, nil
	}
	if f.Ask == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)
	}
	if f.ctx.Err() != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s: the call that this is about has ended", req.Method)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(f.ctx, func() { cancel(context.Cause(f.ctx)) })()
	f.hold()
	defer f.release()
	f.server.lend(&f.slot)
	defer f.server.takeBack(&f.slot)
	return f.Ask(ctx, req)
}

// ghostTime is how long a server may go on talking about a request that has
// ended here without an answer, unless it shows before that it has read so.
// maxGhosts is how many such are remembered.
const (
	ghostTime = 10 * time.Second
	maxGhosts = 1024
)

// flights are the requests that are with a server.
type flights struct {
	mu      sync.Mutex // guards the fields below
	last    int64
	byToken map[int64]*flight
	ghosts  []ghost // the oldest first
	died    int64   // the newest ghost that there was

	others jsonrpc.Handler // of requests of the server that are about none
}

// ghost is a request that ended here without an answer, be it that it was
// cancelled or took too long. What the server says next may be about it.
type ghost struct {
	n      int64
	client any
	until  time.Time
}

// add takes in a request.
func (fs *flights) add(f *flight) {
	if meta, err := f.Params.Meta(); err == nil {
		f.caller = meta.Get(mcp.MetaProgressToken)
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.last++
	f.token = fs.last
	if fs.byToken == nil {
		fs.byToken = make(map[int64]*flight)
	}
	fs.byToken[f.token] = f
	f.haunted, f.ghosts = fs.hauntedLocked(f), fs.died
}

// remove takes a request out that has ended, and leaves a ghost of one that was
// not answered.
func (fs *flights) remove(f *flight, answered bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.byToken, f.token)
	if answered {
		return
	}
	fs.died++
	fs.ghosts = append(fs.ghosts, ghost{fs.died, f.Client, time.Now().Add(ghostTime)})
	if len(fs.ghosts) > maxGhosts {
		fs.ghosts = fs.ghosts[len(fs.ghosts)-maxGhosts:]
	}
}

// lay forgets the ghosts that there were when a request began.
func (fs *flights) lay(f *flight) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.ghosts = slices.DeleteFunc(fs.ghosts, func(g ghost) bool { return g.n <= f.ghosts })
}

// exorcise forgets the ghosts: the process that might talk about them is gone.
func (fs *flights) exorcise() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.ghosts = nil
}

// count returns how many requests are with the server.
func (fs *flights) count() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(fs.byToken)
}

// find returns the request with a progress token; nil if there is none.
func (fs *flights) find(token jsontext.Value) *flight {
	n, err := strconv.ParseInt(string(token), 10, 64)
	if err != nil {
		return nil
	}
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f := fs.byToken[n]; f != nil && !f.answered.Load() {
		return f
	}
	return nil
}

// only returns the one request that is with the server; nil if there is none, or
// if what the server says may be about another client's.
func (fs *flights) only() *flight {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var one *flight
	for _, f := range fs.byToken {
		switch {
		case f.answered.Load():
		case one != nil:
			return nil
		default:
			one = f
		}
	}
	if one == nil || fs.hauntedLocked(one) {
		return nil
	}
	return one
}

// hauntedLocked reports whether what the server says may be about another client's
// request than this.
func (fs *flights) hauntedLocked(f *flight) bool {
	now := time.Now()
	for len(fs.ghosts) > 0 && !now.Before(fs.ghosts[0].until) {
		fs.ghosts = fs.ghosts[1:]
	}
	for _, g := range fs.ghosts {
		if g.client == nil || g.client != f.Client {
			return true
		}
	}
	return false
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

// route returns who answers a request that the server made on the connection. It
// runs on the reader, so that no request that begins or ends later is taken for
// the one that the server means.
func (fs *flights) route(*jsonrpc.Message) jsonrpc.Handler {
	if f := fs.only(); f != nil {
		return jsonrpc.HandlerFunc(f.answer)
	}
	return fs.others
}

// answer routes a request when it is handled.
func (fs *flights) answer(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	return fs.route(nil).Handle(ctx, req)
}

// answerStray answers a question that belongs to no call.
func (s *Server) answerStray(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	switch {
	case req.Method == mcp.MethodRootsList && s.opts.Roots != nil:
		return s.opts.Roots, nil
	case s.opts.Ask != nil:
		return s.opts.Ask(ctx, s, req)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
		"%s: it is not clear which of this server's calls this is about, so nobody can be asked", req.Method)
}
