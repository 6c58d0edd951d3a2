package mcphttp

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
)

// What the server may ask of us at once, and how long an answer may take to be
// sent.
const (
	maxAsks    = 1024
	answerTime = 30 * time.Second
)

// ask answers a request of the server on a goroutine of its own. Only sessions
// have such requests: outside there is no way to answer.
func (in *intake) ask(m *jsonrpc.Message) {
	c, s := in.conn, in.session
	if s == nil {
		c.opts.Logger.Debug("request of a server without a session dropped", "method", m.Method)
		return
	}
	handler := c.opts.Handler
	switch {
	case in.call != nil && in.call.Handler != nil:
		handler = in.call.Handler
	case c.opts.Route != nil:
		handler = c.opts.Route(m)
	}
	ctx, cancel := context.WithCancelCause(s.ctx)
	if !s.addAsk(m.ID, cancel) {
		cancel(nil)
		c.opts.Logger.Debug("request of the server dropped: its id is in use, or there are too many", "method", m.Method)
		return
	}
	c.tasks.Go(func() { // ends when the handler returns, which ctx makes it do, and answerTime
		defer cancel(nil)
		defer s.removeAsk(m.ID)
		frame := c.answerAsk(ctx, handler, &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params, Peer: c})
		if errors.Is(context.Cause(ctx), jsonrpc.ErrCanceled) {
			return
		}
		ctx, cancel := context.WithTimeout(s.ctx, answerTime)
		defer cancel()
		if err := c.deliver(ctx, s, frame); err != nil {
			c.opts.Logger.Debug("answer to the server's request not sent", "method", m.Method, "err", err)
		}
	})
}

func (c *Conn) answerAsk(ctx context.Context, handler jsonrpc.Handler, req *jsonrpc.Request) []byte {
	if handler == nil {
		return jsonrpc.AppendError(nil, req.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method))
	}
	result, err := jsonrpc.Handle(ctx, handler, req, c.opts.Logger)
	if err != nil {
		return jsonrpc.AppendError(nil, req.ID, jsonrpc.AsError(err))
	}
	return jsonrpc.AppendResult(make([]byte, 0, len(result)+64), req.ID, result)
}

func (s *session) addAsk(id jsonrpc.ID, cancel context.CancelCauseFunc) bool {
	key := id.Key()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asks) == maxAsks || s.asks[key] != nil {
		return false
	}
	if s.asks == nil {
		s.asks = make(map[string]context.CancelCauseFunc)
	}
	s.asks[key] = cancel
	return true
}

func (s *session) removeAsk(id jsonrpc.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asks, id.Key())
}

// cancelAsk ends the request that a notifications/cancelled of the server names.
func (s *session) cancelAsk(params jsonrpc.Object) {
	id, err := jsonrpc.ParseID(params.Get("requestId"))
	if err != nil {
		return
	}
	s.mu.Lock()
	cancel := s.asks[id.Key()]
	s.mu.Unlock()
	if cancel != nil {
		cancel(jsonrpc.ErrCanceled)
	}
}

var _ jsonrpc.Peer = (*Conn)(nil)
