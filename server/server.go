package server

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Options configures a Server. The zero value is sensible.
type Options struct {
	// Settle is how long a change waits for more of its kind before clients
	// are told; SettleMax is how long it waits at most. 0: 50 ms and 500 ms.
	Settle, SettleMax time.Duration
	// Logger gets what happens off the request path. nil: nothing.
	Logger *slog.Logger
}

// Server answers the requests of clients of every version of the protocol from
// a Source. It is a jsonrpc.Handler, for the wires to call.
type Server struct {
	source Source
	params ParamSource     // source, if it is one
	watch  ResourceWatcher // likewise
	opts   Options
	name   jsontext.Value // the source's Implementation
	meta   jsontext.Value // a _meta that has only the name

	closing   chan struct{}
	closeOnce sync.Once

	mu      sync.Mutex // guards the change of a session's state, and listens
	listens map[listenKey]chan struct{}
}

// New returns a Server for a source.
func New(source Source, opts Options) *Server {
	if opts.Settle == 0 {
		opts.Settle = 50 * time.Millisecond
	}
	if opts.SettleMax == 0 {
		opts.SettleMax = 500 * time.Millisecond
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	params, _ := source.(ParamSource)
	watch, _ := source.(ResourceWatcher)
	name := source.Info().Implementation
	return &Server{
		source: source, params: params, watch: watch, opts: opts, name: name,
		meta:    mcp.Splice(jsonrpc.Object{}, mcp.Edit{Name: mcp.MetaServerInfo, Value: name}),
		closing: make(chan struct{}), listens: make(map[listenKey]chan struct{}),
	}
}

// Close ends all subscriptions in the orderly way: each client is told and its
// request answered. It does not wait; the wires do when they close.
func (s *Server) Close() { s.closeOnce.Do(func() { close(s.closing) }) }

// method is how one method is answered, by clients with and without a session.
// A nil function means that such clients do not have the method.
type method struct {
	stateless func(*Server, context.Context, *Request) (jsontext.Value, error)
	session   func(*Server, context.Context, *Request) (jsontext.Value, error)
}

// methods is the dispatch table: every method of every version.
var methods = map[string]method{
	mcp.MethodDiscover:      {stateless: (*Server).discover},
	mcp.MethodListen:        {stateless: (*Server).listen},
	mcp.MethodPing:          {session: (*Server).ping},
	mcp.MethodSetLevel:      {session: (*Server).setLevel},
	mcp.MethodToolsList:     {(*Server).list, (*Server).list},
	mcp.MethodPromptsList:   {(*Server).list, (*Server).list},
	mcp.MethodResourcesList: {(*Server).list, (*Server).list},
	mcp.MethodTemplatesList: {(*Server).list, (*Server).list},
	mcp.MethodToolsCall:     {(*Server).call, (*Server).do},
	mcp.MethodPromptsGet:    {(*Server).do, (*Server).do},
	mcp.MethodResourcesRead: {(*Server).do, (*Server).do},
	mcp.MethodComplete:      {(*Server).do, (*Server).do},
	mcp.MethodSubscribe:     {session: (*Server).subscribe},
	mcp.MethodUnsubscribe:   {session: (*Server).unsubscribe},
}

// Handle answers one request; see jsonrpc.Handler.
func (s *Server) Handle(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	caller, err := mcp.ReadCaller(req.Params)
	if err != nil {
		return nil, err
	}
	r := &Request{Request: req, Caller: caller}
	if req.ID.IsZero() {
		s.notification(ctx, r)
		return nil, nil
	}
	if req.Session != nil && !caller.Version.Stateless() && (caller.Version == "" || caller.Version.Known()) {
		return s.inSession(ctx, r)
	}
	return s.standingAlone(ctx, r)
}

// standingAlone answers a request that says itself who its client is.
func (s *Server) standingAlone(ctx context.Context, r *Request) (jsontext.Value, error) {
	switch {
	case r.Caller.Version == "":
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"params._meta lacks %q: name the protocol version there, or begin with initialize", mcp.MetaVersion)
	case !r.Caller.Version.Stateless():
		return nil, mcp.UnsupportedVersion(string(r.Caller.Version), nil)
	case r.Caller.Capabilities.Kind() != '{':
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"params._meta lacks %q: an object is required, {} if there are none", mcp.MetaCapabilities)
	case r.Caller.LogLevel != "" && !slices.Contains(mcp.LogLevels[:], r.Caller.LogLevel):
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta: %q must be one of %q", mcp.MetaLogLevel, mcp.LogLevels[:])
	}
	answer := methods[r.Method].stateless
	if answer == nil {
		return nil, methodNotFound(r.Method)
	}
	return answer(s, ctx, r)
}

// inSession answers a request of a client that has begun, or begins, with
// initialize.
func (s *Server) inSession(ctx context.Context, r *Request) (jsontext.Value, error) {
	if r.Method == mcp.MethodInitialize {
		return s.initialize(ctx, r)
	}
	state, ok := r.Session.Value().(*session)
	if !ok {
		if r.Method == mcp.MethodPing {
			return s.ping(ctx, r)
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"this session has not begun: send initialize first, or name the protocol version in params._meta under %q", mcp.MetaVersion)
	}
	answer := methods[r.Method].session
	if answer == nil {
		return nil, methodNotFound(r.Method)
	}
	r.Caller, r.state = state.callerNow(), state
	return answer(s, ctx, r)
}

func methodNotFound(method string) error {
	return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
}

func (s *Server) list(ctx context.Context, r *Request) (jsontext.Value, error) {
	kind, _ := mcp.KindOf(r.Method)
	cursor := r.Params.Get("cursor")
	if cursor == nil || cursor.Kind() == 'n' {
		return s.listFirst(ctx, r, kind)
	}
	text, ok := jsonrpc.Text(cursor)
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cursor must be a string")
	}
	page, err := s.source.List(ctx, r, kind, &text)
	if err != nil {
		return nil, mcp.ErrorFor(r.Caller.Version, jsonrpc.AsError(err))
	}
	return page, nil
}

// listFirst returns a list's first page. What a session has read it need not be
// told of.
func (s *Server) listFirst(ctx context.Context, r *Request, kind mcp.Kind) (jsontext.Value, error) {
	var l *listener
	if r.state != nil {
		l = r.state.listener
	}
	for tries := 1; ; tries++ {
		var told uint64
		if l != nil {
			told = l.knows(kind)
		}
		before := s.source.Fingerprint(r, kind)
		page, err := s.source.List(ctx, r, kind, nil)
		switch {
		case err != nil:
			return nil, mcp.ErrorFor(r.Caller.Version, jsonrpc.AsError(err))
		case l == nil || tries == 3 || ctx.Err() != nil:
			return page, nil
		case s.source.Fingerprint(r, kind) == before:
			l.replace(kind, told, before)
			return page, nil
		}
		// It has changed meanwhile, for one because the list waited for it.
	}
}

// call is do for a tools/call whose headers may repeat arguments.
func (s *Server) call(ctx context.Context, r *Request) (jsontext.Value, error) {
	if s.params != nil && r.Header != nil {
		name, _ := r.Params.Text("name")
		if err := mcp.CheckParamHeaders(s.params.ParamHeaders(r, name), r.Header, r.Params.Get("arguments")); err != nil {
			return nil, err
		}
	}
	return s.do(ctx, r)
}

func (s *Server) do(ctx context.Context, r *Request) (jsontext.Value, error) {
	result, err := s.source.Do(ctx, r)
	if missing, ok := errors.AsType[*InputRequired](err); ok {
		result, err = jsonrpc.ParseObject(missing.result())
	}
	if err != nil {
		return nil, mcp.ErrorFor(r.Caller.Version, jsonrpc.AsError(err))
	}
	return s.finish(r, result)
}

func (s *Server) ping(context.Context, *Request) (jsontext.Value, error) {
	return jsontext.Value("{}"), nil
}

// discover answers server/discover (2026-07-28, server/discover).
func (s *Server) discover(_ context.Context, _ *Request) (jsontext.Value, error) {
	info := s.source.Info()
	out := []byte(`{"resultType":"complete","supportedVersions":[`)
	for i, v := range mcp.Versions() {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendQuote(out, string(v))
	}
	out = append(out, `],"capabilities":`...)
	out = append(out, info.Capabilities...)
	if info.Instructions != "" {
		out = append(out, `,"instructions":`...)
		out = jsonrpc.AppendString(out, info.Instructions)
	}
	out = append(out, ',')
	out = info.Hints.AppendHints(out)
	out = append(out, `,"_meta":{"`+mcp.MetaServerInfo+`":`...)
	out = append(out, info.Implementation...)
	return append(out, "}}"...), nil
}
