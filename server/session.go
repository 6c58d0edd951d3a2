package server

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// logLevels are the severities of log messages, least first
// (2025-11-25, server/utilities/logging).
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// session is what a client said of itself in initialize, and since.
type session struct {
	updates *updates // of watched resources

	mu     sync.Mutex // guards the fields below
	caller mcp.Caller
	// listener tells the client of changed lists; nil: not yet. cancel ends it.
	listener *listener
	cancel   context.CancelFunc
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
func (s *Server) initialize(r *Request) (jsontext.Value, error) {
	asked, ok := r.Params.Text("protocolVersion")
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.protocolVersion must be a string such as %q", mcp.LatestSession)
	}
	caller := mcp.Caller{
		Version:      mcp.Negotiate(mcp.Version(asked)),
		Info:         object(r.Params.Get("clientInfo")),
		Capabilities: object(r.Params.Get("capabilities")),
	}
	s.begin(r.Session, &session{caller: caller, updates: newUpdates(maxUpdates), watched: make(map[string]func())})
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

// begin makes state that of a session, and ends what was before: a client that
// sends initialize again begins anew.
func (s *Server) begin(sess *jsonrpc.Session, state *session) {
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
	if r.Method != mcp.MethodInitialized || r.Session == nil {
		return
	}
	state, ok := r.Session.Value().(*session)
	if !ok {
		return
	}
	s.tellSession(ctx, r.Session, state)
}

// tellSession begins to tell a session's client what it is to be told, if that has
// not begun.
func (s *Server) tellSession(ctx context.Context, sess *jsonrpc.Session, state *session) {
	l := s.newListener(state.callerNow().Version, s.announced(mcp.Kinds[:]), func(ctx context.Context, k mcp.Kind) error {
		return sess.Peer.Notify(ctx, k.ChangedMethod(), nil)
	})
	l.updates = state.updates
	l.updated = func(ctx context.Context, params jsontext.Value) error {
		return sess.Peer.Notify(ctx, mcp.MethodUpdated, params)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if !state.listen(l, cancel) {
		cancel()
		l.stop()
		return
	}
	go func() { // ends with the session, the server, or the next initialize
		defer l.stop()
		l.run(ctx, sess.Done())
		state.end()
	}()
}

// listen makes l the session's listener, which cancel ends; false if it has one, or
// has ended.
func (s *session) listen(l *listener, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil || s.ended {
		return false
	}
	s.listener, s.cancel = l, cancel
	return true
}

// end stops the listener and all subscriptions.
func (s *session) end() {
	s.mu.Lock()
	stops, cancel := s.watched, s.cancel
	s.watched, s.ended = nil, true
	s.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	for _, stop := range stops {
		if stop != nil {
			stop()
		}
	}
}

// setLevel sets the least severity of log messages that the session wants.
func (s *Server) setLevel(_ context.Context, r *Request) (jsontext.Value, error) {
	level, _ := r.Params.Text("level")
	if !slices.Contains(logLevels, level) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level must be one of %q", logLevels)
	}
	r.state.mu.Lock()
	r.state.caller.LogLevel = level
	r.state.mu.Unlock()
	if logs, ok := s.source.(LogSource); ok {
		logs.SetLevel(level)
	}
	return jsontext.Value("{}"), nil
}
