package gateway

import (
	"context"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// inputRequired is the resultType of a result that asks for more.
const inputRequired = "input_required"

// mayAsk has the methods whose results may ask for more (2026-07-28, basic/
// patterns/mrtr).
var mayAsk = map[string]bool{
	mcp.MethodToolsCall: true, mcp.MethodPromptsGet: true, mcp.MethodResourcesRead: true,
}

// exchange calls a server, and has what it asks for on the way answered by the
// client, whichever versions the two speak.
func (s *Source) exchange(ctx context.Context, srv *upstream.Server, r *server.Request, req upstream.Request) (jsonrpc.Object, error) {
	if !r.Caller.Version.Stateless() {
		return s.exchangeSession(ctx, srv, r, req)
	}
	st, err := s.sealer.open(r)
	switch {
	case err != nil:
		return jsonrpc.Object{}, err
	case st.kind != 0 && st.server != srv.Name():
		return jsonrpc.Object{}, errState // the name belongs to another server now
	case st.kind == stateParked:
		return s.resume(ctx, r, st.content)
	case st.kind == stateWrapped:
		req.Edits = append(req.Edits, mcp.Edit{Name: "requestState", Value: mcp.String(st.content)})
	case st.kind == stateNone:
		req.Edits = append(req.Edits, mcp.Edit{Name: "requestState"})
	case st.kind == stateURL:
		if err := visited(r); err != nil {
			return jsonrpc.Object{}, err
		}
		awaitLogin(ctx, srv)
		req.Edits = append(req.Edits, mcp.Edit{Name: "requestState"}, mcp.Edit{Name: "inputResponses"})
	}
	info, known := srv.Info()
	if mayAsk[r.Method] && canAnswerSomething(r.Caller) && !(known && info.Version.Stateless()) {
		return s.converse(ctx, srv, r, req)
	}
	result, err := s.simple(ctx, srv, r, req)
	return s.handOver(r, srv.Name(), result, err)
}

// handOver gives what a server answered the form in which a client of a stateless
// version can be asked for more.
func (s *Source) handOver(r *server.Request, name string, result jsonrpc.Object, err error) (jsonrpc.Object, error) {
	if err != nil {
		return s.askToVisit(r, name, err)
	}
	if !asksForMore(result) {
		return result, nil
	}
	if err := canAnswerAll(r.Caller, result.Get("inputRequests")); err != nil {
		return jsonrpc.Object{}, err
	}
	st := state{kind: stateNone, server: name}
	if inner, ok := result.Text("requestState"); ok {
		st.kind, st.content = stateWrapped, inner
	}
	return splice(result, mcp.Edit{Name: "requestState", Value: mcp.String(s.sealer.seal(r, st))})
}

func asksForMore(result jsonrpc.Object) bool {
	kind, _ := result.Text("resultType")
	return kind == inputRequired
}

// simple makes one call whose questions, if it has any, are asked at once over
// the client's session.
func (s *Source) simple(ctx context.Context, srv *upstream.Server, r *server.Request, req upstream.Request) (jsonrpc.Object, error) {
	notes := newRelay(ctx, r, s.filter(r))
	defer notes.flush()
	req.Notify, req.Client = notes.push, clientOf(r)
	req.Ask = func(ctx context.Context, q *jsonrpc.Request) (jsontext.Value, error) {
		return s.ask(ctx, srv, r, q.Method, q.Params)
	}
	return s.call(ctx, srv, req)
}

// call makes a call. If its server was started anew before anything was sent, the
// new one gets it.
func (s *Source) call(ctx context.Context, srv *upstream.Server, req upstream.Request) (jsonrpc.Object, error) {
	result, err := srv.Call(ctx, req)
	if away, ok := errors.AsType[*upstream.UnavailableError](err); ok && errors.Is(away.LastErr, upstream.ErrReplaced) {
		if next := s.servers.Get(srv.Name()); next != nil {
			return next.Call(ctx, req)
		}
	}
	return result, err
}

// principal is the client of requests that stand alone, as far as it is known.
type principal string

// clientOf returns who asks, so that one client can be told from another.
func clientOf(r *server.Request) any {
	if r.Session != nil {
		return r.Session
	}
	return principal(r.Principal)
}
