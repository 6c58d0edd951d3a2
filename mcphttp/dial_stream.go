package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Waits between attempts to open a session's stream. They grow while attempts
// fail; a stream that was of use sets them back.
const (
	listenWait    = time.Second
	listenMaxWait = time.Minute
	steadyTime    = 10 * time.Second
)

// streamWait is how long a new session's stream may take to open before requests
// are made. Servers drop what they send on a stream that is not there yet, and
// some send there the questions that belong to a call. Others do not say that it is
// open until they have something to send, so that it is not waited for longer.
const streamWait = 250 * time.Millisecond

// open opens the stream of a session, once.
func (c *Conn) open(s *session) {
	s.opened.Do(func() {
		c.tasks.Go(func() { c.listen(s) }) // ends with the session's context
	})
}

// awaitStream waits until the stream is open, or there is none, for a while.
func (s *session) awaitStream(ctx context.Context) {
	timer := time.NewTimer(streamWait)
	defer timer.Stop()
	select {
	case <-s.answered:
	case <-timer.C:
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// listen keeps the stream open on which a session's server sends what belongs to
// no request (2025-11-25, basic/transports, Listening for Messages from the
// Server). A server that has no such stream is not asked again.
func (c *Conn) listen(s *session) {
	in := &intake{conn: c, session: s}
	wait := listenWait
	for known := false; ; {
		began, events := time.Now(), in.count
		err := c.listenOnce(s, in)
		var status *StatusError
		switch {
		case s.ctx.Err() != nil:
			return
		case err == nil:
			known = true
			if time.Since(began) >= steadyTime || in.count > events {
				wait = listenWait
			}
		case !errors.As(err, &status) || status.temporary():
			c.opts.Logger.Debug("stream of the session not opened", "err", err)
		case in.lastEvent != "":
			in.lastEvent = "" // it cannot be resumed; another may be opened
		case known && s.forgotten(status) && c.checkSession() != nil:
		default:
			c.opts.Logger.Debug("the server offers no stream of its own", "err", err)
			return
		}
		if !sleep(s.ctx, max(wait, in.retry)) {
			return
		}
		wait = min(2*wait, listenMaxWait)
	}
}

// listenOnce opens the stream and reads it to its end, whatever that is.
func (c *Conn) listenOnce(s *session, in *intake) error {
	resp, err := c.get(s.ctx, s, in.lastEvent)
	s.answer.Do(func() { close(s.answered) })
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if in.lastEvent == "" {
		c.opts.Gap()
	}
	_, err = in.events(resp.Body)
	if errors.Is(err, errEventSize) {
		in.lastEvent = "" // or it would be sent again
	}
	c.opts.Logger.Debug("stream of the session ended", "err", err)
	return nil
}

// checkSession has the server say whether it knows the session. If it does not,
// a new one is begun, with a stream of its own.
func (c *Conn) checkSession() error {
	ctx, cancel := context.WithTimeout(c.ctx, renewTime)
	defer cancel()
	_, err := c.Call(ctx, mcp.MethodPing, nil)
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
		return nil
	}
	return err
}

// temporary reports whether a response to GET is about the moment, and not about
// what the server offers.
func (e *StatusError) temporary() bool {
	switch e.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout,
		http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500 && e.Status != http.StatusNotImplemented
}

// sleep waits; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
