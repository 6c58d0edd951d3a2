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
	// listener tells the client of changed lists; nil: not yet.
	listener *listener
	// watched has, by URI as the client spells it, what ends a subscription.
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
		Info:         r.Params.Get("clientInfo"),
		Capabilities: r.Params.Get("capabilities"),
	}
	if old, ok := r.Session.Value().(*session); ok {
		old.end() // the client begins anew
	}
	r.Session.SetValue(&session{caller: caller, updates: newUpdates(maxUpdates), watched: make(map[string]func())})
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
		s.tellSession(ctx, r.Session, state)
		return
	}
	if source, ok := s.source.(NotificationSource); ok {
		r.Caller = state.callerNow()
		source.Told(ctx, r)
	}
}

// tellSession begins to tell a session's client what it is to be told, if that has
// not begun.
func (s *Server) tellSession(ctx context.Context, sess *jsonrpc.Session, state *session) {
	l := s.newListener(state.callerNow().Version, mcp.Kinds[:], func(ctx context.Context, k mcp.Kind) error {
		return sess.Peer.Notify(ctx, k.ChangedMethod(), nil)
	})
	state.mu.Lock()
	again := state.listener != nil
	if !again {
		state.listener = l
	}
	state.mu.Unlock()
	if again {
		l.stop()
		return
	}
	l.updates = state.updates
	l.updated = func(ctx context.Context, params jsontext.Value) error {
		return sess.Peer.Notify(ctx, mcp.MethodUpdated, params)
	}
	ctx = context.WithoutCancel(ctx)
	go func() { // ends with the session or the server
		l.run(ctx, sess.Done())
		state.end()
	}()
}

// setLevel sets the least severity of log messages that the session wants.
func (s *Server) setLevel(_ context.Context, r *Request) (jsontext.Value, error) {
	level, _ := r.Params.Text("level")
	if !slices.Contains(logLevels, level) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.level must be one of %q", logLevels)
	}
	if state, ok := r.Session.Value().(*session); ok {
		state.mu.Lock()
		state.caller.LogLevel = level
		state.mu.Unlock()
	}
	if logs, ok := s.source.(LogSource); ok {
		logs.SetLevel(level)
	}
	return jsontext.Value("{}"), nil
}
