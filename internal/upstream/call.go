package upstream

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"
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
func (s *Server) Call(ctx context.Context, req Request) (jsonrpc.Object, error) {
	c, err := s.connected(ctx)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	f := &flight{Request: req, server: s}
	ctx = f.start(ctx, s.opts.RequestTimeout, s.opts.MaxTimeout)
	defer f.stop()
	if err := s.enter(ctx, &f.slot); err != nil {
		return jsonrpc.Object{}, err
	}
	defer s.leave(&f.slot)
	if s.flights.add(f); f.haunted && !s.opts.HTTP {
		go s.lay(context.WithoutCancel(ctx), c, f) // ends with the answer, with the connection, or after ghostTime
	}
	result, err := s.exchange(ctx, c, f)
	answer, _ := errors.AsType[*jsonrpc.Error](err)
	s.flights.remove(f, err == nil || answer != nil)
	return result, s.explain(ctx, req.Method, err)
}

// lay lets the ghosts of earlier requests go as soon as the server has answered
// something that was sent after they were cancelled.
func (s *Server) lay(ctx context.Context, c *connection, f *flight) {
	ctx, cancel := context.WithTimeout(ctx, ghostTime)
	defer cancel()
	if c.client.Ping(ctx) == nil {
		s.flights.lay(f)
	}
}

// exchange sends a request, and once more if the server says that it did not act
// on it.
func (s *Server) exchange(ctx context.Context, c *connection, f *flight) (jsonrpc.Object, error) {
	result, err := s.send(ctx, c, f)
	if err == nil {
		return result, nil
	}
	answer, _ := errors.AsType[*jsonrpc.Error](err)
	stateless := c.client.Server().Version.Stateless()
	switch {
	case answer == nil:
	case stateless && answer.Code == mcp.CodeHeaderMismatch && f.Method == mcp.MethodToolsCall && s.opts.HTTP:
		if c.refresh(ctx) == nil {
			result, err = s.send(ctx, c, f)
		}
	case answer.Code == mcp.CodeUnsupportedVersion && (stateless || s.opts.HTTP && namesVersions(answer)):
		if next := s.successor(ctx, c); next != nil {
			result, err = s.send(ctx, next, f)
		} else if s.conn.Load() == nil {
			err = s.unavailable()
		}
	}
	return result, err
}

// namesVersions reports whether an error with the code for an unsupported version
// says which are supported. From a server with sessions, to which the code means
// nothing, that is the sign that it has become a stateless one.
func namesVersions(answer *jsonrpc.Error) bool {
	data, err := jsonrpc.ParseObject(answer.Data)
	if err != nil {
		return false
	}
	versions, err := jsonrpc.Elements(data.Get("supported"))
	return err == nil && len(versions) > 0
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
	if why := s.dismissed(); why != nil {
		return &CallError{s.opts.Name, method, why}
	}
	return &CallError{s.opts.Name, method, s.hide(err)}
}

// send sends a request over a connection, or over the one that has taken its
// place before anything was sent.
func (s *Server) send(ctx context.Context, c *connection, f *flight) (jsonrpc.Object, error) {
	if !c.begin() {
		c = s.conn.Load()
		if c == nil || !c.begin() {
			return jsonrpc.Object{}, s.unavailable()
		}
	}
	defer c.end()
	result, err := c.client.Call(ctx, f.on(c))
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
	if left := time.Until(s.deadline); left > 0 && s.isEnabled() && s.dismissed() == nil {
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
	if st.State == Ready || st.State == Degraded { // the status does not say so yet
		st.State, st.LastErr = Down, errLost
	}
	if why := s.dismissed(); why != nil {
		st.State, st.LastErr, st.NextTry = Disabled, why, time.Time{}
	}
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
