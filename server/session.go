package server

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// session is what a client said of itself in initialize, and since.
type session struct {
	// listener tells the client of changes. It knows of those since initialize,
	// and begins to tell when ready is closed. cancel ends it.
	listener *listener
	cancel   context.CancelFunc
	ready    chan struct{}
	begin    sync.Once // closes ready

	mu     sync.Mutex // guards the fields below
	caller mcp.Caller
	// watched has, by URI as the client spells it, what ends a subscription;
	// a nil function is one that is about to begin.
	watched map[string]func()
	ended   bool
}

func (s *session) callerNow() mcp.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.caller
}

// initialize begins a session (2025-11-25, basic/lifecycle).
func (s *Server) initialize(ctx context.Context, r *Request) (jsontext.Value, error) {
	asked, ok := r.Params.Text("protocolVersion")
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.protocolVersion must be a string such as %q", mcp.LatestSession)
	}
	caller := mcp.Caller{
		Version:      mcp.Negotiate(mcp.Version(asked)),
		Info:         object(r.Params.Get("clientInfo")),
		Capabilities: object(r.Params.Get("capabilities")),
	}
	s.begin(ctx, r, caller)
	info := s.source.Info()
	out := []byte(`{"protocolVersion":"`)
	out = append(out, caller.Version...)
	out = append(out, `","capabilities":`...)
	out = append(out, info.Capabilities...)
	out = append(out, `,"serverInfo":`...)
	out = append(out, info.Implementation...)
	if info.Instructions != "" {
		out = append(out, `,"instructions":`...)
		out = jsonrpc.AppendString(out, info.Instructions)
	}
	return append(out, '}'), nil
}

// object returns a value that is an object, and nil for one that is not: what old
// clients get wrong about themselves is as good as not said.
func object(v jsontext.Value) jsontext.Value {
	if v.Kind() != '{' {
		return nil
	}
	return v
}

// begin gives a session its state, and ends what was before: a client that sends
// initialize again begins anew.
func (s *Server) begin(ctx context.Context, r *Request, caller mcp.Caller) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	sess := r.Session
	who := &Request{Caller: caller, Request: &jsonrpc.Request{
		Method: r.Method, Session: sess, Peer: sess.Peer, Principal: r.Principal,
	}}
	l := s.newListener(who, s.announced(mcp.Kinds[:]), func(ctx context.Context, k mcp.Kind) error {
		return sess.Peer.Notify(ctx, k.ChangedMethod(), nil)
	})
	l.updates = newUpdates(maxUpdates)
	l.updated = func(ctx context.Context, params jsontext.Value) error {
		return sess.Peer.Notify(ctx, mcp.MethodUpdated, params)
	}
	state := &session{listener: l, cancel: cancel, ready: make(chan struct{}), caller: caller, watched: make(map[string]func())}
	go func() { // ends with the session, the server, or the next initialize
		select {
		case <-state.ready:
			l.run(ctx, sess.Done())
		case <-ctx.Done():
		case <-sess.Done():
		case <-s.closing:
		}
		l.stop()
		state.end()
	}()
	s.mu.Lock()
	old, again := sess.Value().(*session)
	sess.SetValue(state)
	s.mu.Unlock()
	if again {
		old.end()
	}
}

// notification takes what clients tell. Cancellation is the wire's: it has the
// request.
func (s *Server) notification(ctx context.Context, r *Request) {
	if r.Session == nil {
		return
	}
	state, ok := r.Session.Value().(*session)
	if !ok {
		return
	}
	if r.Method == mcp.MethodInitialized {
		state.tell()
		return
	}
	if source, ok := s.source.(NotificationSource); ok {
		r.Caller = state.callerNow()
		source.Told(ctx, r)
	}
}

// tell has the listener begin to tell.
func (s *session) tell() { s.begin.Do(func() { close(s.ready) }) }

// end stops the listener and all subscriptions.
func (s *session) end() {
	s.mu.Lock()
	stops := s.watched
	s.watched, s.ended = nil, true
	s.mu.Unlock()
	s.cancel()
	for _, stop := range stops {
		if stop != nil {
			stop()
		}
	}
}

// setLevel sets the least severity of log messages that the session wants.
func (s *Server) setLevel(_ context.Context, r *Request) (jsontext.Value, error) {
	level, _ := r.Params.Text("level")
	if !slices.Contains(mcp.LogLevels[:], level) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level must be one of %q", mcp.LogLevels[:])
	}
	r.state.mu.Lock()
	r.state.caller.LogLevel = level
	r.state.mu.Unlock()
	if logs, ok := s.source.(LogSource); ok {
		logs.SetLevel(r, level)
	}
	return jsontext.Value("{}"), nil
}
