package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// errNoAnswer is for a stream that ended too soon.
var errNoAnswer = errors.New("stream closed before the response")

// intake takes the messages that come on one stream: that of a call, or that of
// a session.
type intake struct {
	conn    *Conn
	session *session
	id      jsonrpc.ID    // of the call; zero on a session's stream
	call    *jsonrpc.Call // likewise nil
	result  jsonrpc.Message

	lastEvent string
	retry     time.Duration
}

// stream reads the response stream of a call. One that breaks off in a session
// is resumed once, if the server gave the means.
func (in *intake) stream(ctx context.Context, body io.Reader) (jsonrpc.Message, error) {
	found, err := in.events(body)
	if !found && in.session != nil && in.lastEvent != "" && ctx.Err() == nil {
		found, err = in.resume(ctx)
	}
	switch {
	case found:
		return in.result, nil
	case ctx.Err() != nil:
		return jsonrpc.Message{}, context.Cause(ctx)
	case err == nil || errors.Is(err, io.EOF):
		return jsonrpc.Message{}, errNoAnswer
	}
	return jsonrpc.Message{}, fmt.Errorf("%w: %w", errNoAnswer, err)
}

// resume asks for the rest of a stream (2025-11-25, basic/transports,
// Resumability and Redelivery).
func (in *intake) resume(ctx context.Context) (found bool, err error) {
	wait := time.NewTimer(min(in.retry, time.Minute))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	resp, err := in.conn.send(ctx, http.MethodGet, nil, in.session, map[string]string{mcp.HeaderLastEvent: in.lastEvent})
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != "text/event-stream" {
		return false, statusError(resp)
	}
	return in.events(resp.Body)
}

// events takes the events of a stream until the call is answered or it ends.
func (in *intake) events(body io.Reader) (found bool, err error) {
	r := newEventReader(body, in.conn.opts.MaxMessage)
	for {
		ev, err := r.next()
		if err != nil {
			return false, err
		}
		in.lastEvent, in.retry = ev.id, ev.retry
		if len(bytes.TrimSpace(ev.data)) == 0 {
			continue // has only an id, from which to resume
		}
		if found, err := in.take(ev.data); found || err != nil {
			return found, err
		}
	}
}

// take handles the message or messages in one event or body, and reports whether
// the answer to the call was among them.
func (in *intake) take(data []byte) (found bool, err error) {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' {
		items, err := jsonrpc.Elements(data)
		if err != nil {
			return false, fmt.Errorf("the server's message is not valid JSON: %w", err)
		}
		for _, item := range items {
			one, err := in.message(item)
			if err != nil {
				return false, err
			}
			found = found || one
		}
		return found, nil
	}
	return in.message(data)
}

func (in *intake) message(data []byte) (found bool, err error) {
	m, err := jsonrpc.Parse(data)
	if err != nil {
		if in.call != nil {
			return false, fmt.Errorf("the server's message: %w", err)
		}
		in.conn.opts.Logger.Debug("message dropped", "err", err)
		return false, nil
	}
	switch {
	case m.IsResponse():
		// A server that could not read the id answers an error without one; on
		// the stream of a call it can only mean that call.
		if in.call == nil || m.ID != in.id && !(m.ID.IsZero() && m.Error != nil) {
			in.conn.opts.Logger.Debug("response to nothing dropped", "id", m.ID.String())
			return false, nil
		}
		in.result = m
		return true, nil
	case in.call != nil && in.call.Message != nil:
		in.call.Message(&m)
	case m.IsNotification():
		in.conn.opts.Notification(&m)
	default:
		in.conn.request(in.session, &m)
	}
	return false, nil
}

// request answers a request of the server on a goroutine of its own.
func (c *Conn) request(s *session, m *jsonrpc.Message) {
	c.start(func() { // ends when the handler returns, which its context makes it do
		req := &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params, Peer: c}
		var frame []byte
		if c.opts.Handler == nil {
			frame = jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", m.Method))
		} else if result, err := c.opts.Handler.Handle(c.ctx, req); err != nil {
			frame = jsonrpc.AppendError(nil, m.ID, jsonrpc.AsError(err))
		} else {
			frame = jsonrpc.AppendResult(nil, m.ID, result)
		}
		if err := c.deliver(c.ctx, s, frame); err != nil {
			c.opts.Logger.Debug("answer to the server's request not sent", "method", m.Method, "err", err)
		}
	})
}
