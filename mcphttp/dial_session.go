package mcphttp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// initialize begins a session with the request that begins it. A session that
// was there before is ended.
func (c *Conn) initialize(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	s, result, err := c.begin(ctx, call)
	if err != nil {
		return result, err
	}
	if old := c.session.Swap(s); old != nil {
		c.start(func() { c.end(old) }) // ends within noticeTime
	}
	return result, nil
}

func (c *Conn) begin(ctx context.Context, call *jsonrpc.Call) (*session, jsonrpc.Object, error) {
	id := jsonrpc.IntID(c.nextID.Add(1))
	if call.Sent != nil {
		call.Sent(id)
	}
	resp, err := c.send(ctx, http.MethodPost, jsonrpc.AppendRequest(nil, id, call.Method, call.Params), nil, call.Header)
	if err != nil {
		return nil, jsonrpc.Object{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	m, err := c.answer(ctx, resp, id, call, nil)
	switch {
	case ctx.Err() != nil:
		return nil, jsonrpc.Object{}, context.Cause(ctx)
	case err != nil:
		return nil, jsonrpc.Object{}, err
	case m.Error != nil:
		return nil, jsonrpc.Object{}, m.Error
	}
	version, _ := m.Result.Text("protocolVersion")
	s := &session{id: resp.Header.Get(mcp.HeaderSession), version: mcp.Version(version), params: call.Params}
	s.ctx, s.end = context.WithCancel(c.ctx)
	return s, m.Result, nil
}

// renew returns a session in place of one that the server does not know any
// more: begun by this call, or by another one that met the same. why is what the
// server said.
func (c *Conn) renew(ctx context.Context, lost *session, why error) (*session, error) {
	select {
	case c.renewing <- struct{}{}:
		defer func() { <-c.renewing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s := c.session.Load(); s != lost {
		return s, nil
	}
	s, _, err := c.begin(ctx, &jsonrpc.Call{Method: mcp.MethodInitialize, Params: lost.params, KeepOnCancel: true})
	if err != nil {
		return nil, fmt.Errorf("the server has forgotten the session (%w), and a new one cannot be begun: %w", why, err)
	}
	lost.end()
	c.session.Store(s)
	if err := c.Notify(ctx, mcp.MethodInitialized, nil); err != nil {
		return nil, fmt.Errorf("new session: %w", err)
	}
	c.opts.Gap()
	return s, nil
}

// Waits between attempts to open a session's stream.
const (
	listenWait    = time.Second
	listenMaxWait = time.Minute
)

// listen keeps the stream open on which a session's server sends what belongs to
// no request. A server that has no such stream is not asked again.
func (c *Conn) listen(s *session) {
	in := &intake{conn: c, session: s}
	wait := listenWait
	for first := true; ; first = false {
		began := time.Now()
		err := c.listenOnce(s, in, first)
		if e, ok := errors.AsType[*StatusError](err); ok && e.Status < 500 && e.Status != http.StatusTooManyRequests {
			c.opts.Logger.Debug("the server offers no stream of its own", "err", err)
			return
		}
		if time.Since(began) > listenMaxWait {
			wait = listenWait
		}
		pause := time.NewTimer(max(wait, min(in.retry, listenMaxWait)))
		select {
		case <-pause.C:
		case <-s.ctx.Done():
			pause.Stop()
			return
		}
		wait = min(2*wait, listenMaxWait)
	}
}

func (c *Conn) listenOnce(s *session, in *intake, first bool) error {
	var header map[string]string
	if in.lastEvent != "" {
		header = map[string]string{mcp.HeaderLastEvent: in.lastEvent}
	}
	resp, err := c.send(s.ctx, http.MethodGet, nil, s, header)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != "text/event-stream" {
		return statusError(resp)
	}
	if !first && in.lastEvent == "" {
		c.opts.Gap()
	}
	if _, err := in.events(resp.Body); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
