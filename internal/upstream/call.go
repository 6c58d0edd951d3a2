package upstream

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Call sends a request and returns its result. An error that the server answered
// is or wraps a *jsonrpc.Error; others are an *UnavailableError, *BusyError,
// *TimeoutError, *CallError, or what ended ctx.
//
// The request is sent once, unless the server said that it did not act on it
// because of a header field (-32020) or the protocol version (-32022): then the
// tools are listed or the connection is made anew, and it is sent once more.
func (s *Server) Call(ctx context.Context, req client.Request) (jsonrpc.Object, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	clock := &clock{timeout: s.opts.RequestTimeout, end: time.Now().Add(s.opts.MaxTimeout)}
	ctx = clock.start(ctx, &TimeoutError{s.opts.Name, req.Method, s.opts.RequestTimeout})
	defer clock.stop()
	if err := s.enter(ctx); err != nil {
		return jsonrpc.Object{}, err
	}
	defer func() { <-s.slots }()
	if token := progressToken(req.Params); token != "" {
		s.tokens.add(token, clock)
		defer s.tokens.remove(token)
	}
	result, err := s.send(ctx, c, req, clock)
	if err == nil {
		return result, nil
	}
	switch answer, _ := errors.AsType[*jsonrpc.Error](err); {
	case answer == nil || !c.client.Server().Version.Stateless():
	case answer.Code == mcp.CodeHeaderMismatch && req.Method == mcp.MethodToolsCall && s.opts.HTTP:
		if c.refresh(ctx) == nil {
			result, err = s.send(ctx, c, req, clock)
		}
	case answer.Code == mcp.CodeUnsupportedVersion:
		if next := s.successor(ctx, c); next != nil {
			result, err = s.send(ctx, next, req, clock)
		}
	}
	return result, s.explain(ctx, req.Method, err)
}

// explain says of an error of ours which server it is about. Errors that the
// server answered stay as they are.
func (s *Server) explain(ctx context.Context, method string, err error) error {
	if err == nil {
		return nil
	}
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
		return err
	}
	if _, known := errors.AsType[*UnavailableError](err); known {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &CallError{s.opts.Name, method, err}
}

// send sends a request over a connection, or over the one that has taken its
// place before anything was sent.
func (s *Server) send(ctx context.Context, c *connection, req client.Request, clock *clock) (jsonrpc.Object, error) {
	if !c.begin() {
		c = s.conn.Load()
		if c == nil || !c.begin() {
			return jsonrpc.Object{}, s.unavailable()
		}
	}
	defer c.end()
	req.Message = c.hook(req.Message, clock)
	result, err := c.client.Call(ctx, req)
	c.doubt(err)
	return result, err
}

// Notify sends a notification to a server with sessions; others take none.
func (s *Server) Notify(ctx context.Context, method string, params jsontext.Value) error {
	c := s.conn.Load()
	if c == nil {
		return s.unavailable()
	}
	return c.client.Notify(ctx, method, params)
}

// connected returns the connection. It waits for the first, until the deadline
// that New set, and for no other.
func (s *Server) connected(ctx context.Context) (*connection, error) {
	if c := s.conn.Load(); c != nil {
		return c, nil
	}
	if left := time.Until(s.deadline); left > 0 && s.isEnabled() {
		wait(ctx, s.tried, left)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if c := s.conn.Load(); c != nil {
			return c, nil
		}
	}
	return nil, s.unavailable()
}

func (s *Server) unavailable() error {
	st := s.Status()
	return &UnavailableError{Server: st.Name, State: st.State, LastErr: st.LastErr, NextTry: st.NextTry}
}

// successorWait is how long a call waits for a connection in another version.
const successorWait = 15 * time.Second

// successor has a connection checked whose server said that it does not speak
// its version, and returns the next one; nil if there is none in time.
func (s *Server) successor(ctx context.Context, old *connection) *connection {
	wake(old.suspect)
	ctx, cancel := context.WithTimeout(ctx, successorWait)
	defer cancel()
	for ctx.Err() == nil {
		if c := s.conn.Load(); c != nil && c != old {
			return c
		}
		wait(ctx, nil, 50*time.Millisecond)
	}
	return nil
}

// enter takes a slot, or waits for one if not too many do already.
func (s *Server) enter(ctx context.Context) error {
	select {
	case s.slots <- struct{}{}:
		return nil
	default:
	}
	if n := s.queued.Add(1); n > int64(s.opts.MaxQueue) {
		s.queued.Add(-1)
		return &BusyError{s.opts.Name, s.opts.MaxInFlight, s.opts.MaxQueue}
	}
	defer s.queued.Add(-1)
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// clock is the deadline of one request, which progress moves.
type clock struct {
	timeout time.Duration
	end     time.Time // beyond which it is not moved
	cancel  context.CancelCauseFunc
	timer   *time.Timer
}

func (c *clock) start(ctx context.Context, late error) context.Context {
	ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(c.timeout, func() { c.cancel(late) })
	return ctx
}

func (c *clock) stop() {
	c.timer.Stop()
	c.cancel(nil)
}

// extend gives the request its timeout again. It runs on a reader.
func (c *clock) extend() {
	if left := min(c.timeout, time.Until(c.end)); left > 0 {
		c.timer.Reset(left)
	}
}

// progressToken returns the token of a request in a form that is equal for equal
// tokens; "" if it has none.
func progressToken(params jsonrpc.Object) string {
	raw := params.Get("_meta")
	if raw == nil {
		return ""
	}
	meta, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return ""
	}
	return tokenKey(meta.Get(mcp.MetaProgressToken))
}

func tokenKey(v jsontext.Value) string {
	if len(v) == 0 {
		return ""
	}
	id, err := jsonrpc.ParseID(v) // a token has the form of an id
	if err != nil {
		return ""
	}
	return id.Key()
}

// tokens finds the clocks of requests by their progress tokens.
type tokens struct {
	mu     sync.Mutex
	clocks map[string]*clock
}

func (t *tokens) add(token string, c *clock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.clocks == nil {
		t.clocks = make(map[string]*clock)
	}
	t.clocks[token] = c
}

func (t *tokens) remove(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.clocks, token)
}

// progress moves the deadline of the request that a notification is about.
func (t *tokens) progress(m *jsonrpc.Message) {
	token := tokenKey(m.Params.Get("progressToken"))
	t.mu.Lock()
	c := t.clocks[token]
	t.mu.Unlock()
	if c != nil {
		c.extend()
	}
}
