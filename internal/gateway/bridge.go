package gateway

import (
	"context"
	"crypto/rand"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

type jsonValue = jsontext.Value

// inputRequired is the resultType of a result that asks for more.
const inputRequired = "input_required"

// maxRounds is how often one call of a session's client may be asked for more.
const maxRounds = 32

// askable has the requests that servers may make of clients, and the capability
// that a client declares for each.
var askable = map[string]string{
	mcp.MethodElicit:    "elicitation",
	mcp.MethodSampling:  "sampling",
	mcp.MethodRootsList: "roots",
}

// canAnswer returns an error for a question that the caller cannot be asked.
func canAnswer(c mcp.Caller, method string, params jsonrpc.Object) error {
	capability, known := askable[method]
	if !known {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
	}
	caps, err := jsonrpc.ParseObject(c.Capabilities)
	if err != nil || caps.Get(capability).Kind() != '{' {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client of this call has not declared the capability %q", method, capability)
	}
	if mode, _ := params.Text("mode"); method == mcp.MethodElicit && mode == "url" {
		modes, err := jsonrpc.ParseObject(caps.Get(capability))
		if err != nil || modes.Get("url").Kind() != '{' || !c.Version.HasURLElicitation() {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the client of this call has not declared URL mode", method)
		}
	}
	return nil
}

// exchange calls a server, and has what it asks for on the way answered by the
// client, whichever versions the two speak.
func (s *Source) exchange(ctx context.Context, srv *upstream.Server, r *server.Request, req upstream.Request) (jsonrpc.Object, error) {
	state, given := r.Params.Text("requestState")
	if !r.Caller.Version.Stateless() {
		return s.exchangeSession(ctx, srv, r, req)
	}
	if given {
		kind, content, err := s.sealer.open(r, state)
		switch {
		case err != nil:
			return jsonrpc.Object{}, err
		case kind == stateParked:
			return s.resume(ctx, r, content)
		case kind == stateNone:
			req.Edits = append(req.Edits, mcp.Edit{Name: "requestState"})
		default:
			req.Edits = append(req.Edits, mcp.Edit{Name: "requestState", Value: mcp.String(content)})
		}
	}
	if info, known := srv.Info(); known && !info.Version.Stateless() && canAnswerSomething(r.Caller) {
		return s.converse(ctx, srv, r, req)
	}
	result, err := s.simple(ctx, srv, r, req)
	if err != nil || !asksForMore(result) {
		return result, err
	}
	return s.wrapState(r, result)
}

func canAnswerSomething(c mcp.Caller) bool {
	caps, err := jsonrpc.ParseObject(c.Capabilities)
	if err != nil {
		return false
	}
	for _, capability := range askable {
		if caps.Get(capability).Kind() == '{' {
			return true
		}
	}
	return false
}

func asksForMore(result jsonrpc.Object) bool {
	kind, _ := result.Text("resultType")
	return kind == inputRequired
}

// wrapState puts a requestState of ours in place of the server's, so that it
// comes back only for this call.
func (s *Source) wrapState(r *server.Request, result jsonrpc.Object) (jsonrpc.Object, error) {
	kind, content := byte(stateNone), ""
	if inner, ok := result.Text("requestState"); ok {
		kind, content = stateWrapped, inner
	}
	return splice(result, mcp.Edit{Name: "requestState", Value: mcp.String(s.sealer.seal(r, kind, content))})
}

// simple makes one call whose questions, if it has any, are asked at once over
// the client's session.
func (s *Source) simple(ctx context.Context, srv *upstream.Server, r *server.Request, req upstream.Request) (jsonrpc.Object, error) {
	notes := newRelay(ctx, r)
	defer notes.flush()
	req.Notify = notes.push
	if req.Ask == nil {
		req.Ask = func(ctx context.Context, q *jsonrpc.Request) (jsontext.Value, error) {
			return ask(ctx, r, q.Method, q.Params)
		}
	}
	return srv.Call(ctx, req)
}

// ask asks a session's client.
func ask(ctx context.Context, r *server.Request, method string, params jsonrpc.Object) (jsontext.Value, error) {
	if err := canAnswer(r.Caller, method, params); err != nil {
		return nil, err
	}
	if r.Caller.Version.Stateless() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client of this call has not declared that it can be asked", method)
	}
	answer, err := r.Peer.Call(ctx, method, params.Raw)
	if err != nil {
		return nil, err
	}
	return answer.Raw, nil
}

// exchangeSession makes a call for a client with a session. What a stateless
// server asks for in its result is asked over the session, and the call made
// again with the answers.
func (s *Source) exchangeSession(ctx context.Context, srv *upstream.Server, r *server.Request, req upstream.Request) (jsonrpc.Object, error) {
	base := req.Edits
	for range maxRounds {
		result, err := s.simple(ctx, srv, r, req)
		if err != nil || !asksForMore(result) {
			return result, err
		}
		answers, err := gather(ctx, r, result.Get("inputRequests"))
		if err != nil {
			return jsonrpc.Object{}, err
		}
		req.Edits = append(base[:len(base):len(base)], mcp.Edit{Name: "inputResponses", Value: answers},
			mcp.Edit{Name: "requestState", Value: result.Get("requestState")})
	}
	return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeInternal, "the server asked for more input %d times in one call", maxRounds)
}

// gather asks a session's client everything that a result asks for, one after
// the other, and returns the answers under the same keys.
func gather(ctx context.Context, r *server.Request, requests jsontext.Value) (jsontext.Value, error) {
	if requests == nil {
		return jsontext.Value("{}"), nil
	}
	all, err := jsonrpc.ParseObject(requests)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the server's inputRequests: %v", err)
	}
	out := []byte{'{'}
	for key, raw := range all.All() {
		q, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the server's inputRequests[%q]: %v", key, err)
		}
		method, _ := q.Text("method")
		params, err := jsonrpc.ParseObject(q.Get("params"))
		if err != nil {
			params = jsonrpc.Object{}
		}
		answer, err := ask(ctx, r, method, withElicitationID(method, params))
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsonrpc.AppendString(out, key), ':')
		out = append(out, answer...)
	}
	return append(out, '}'), nil
}

// withElicitationID gives a URL elicitation the id that session versions have
// and stateless ones have not.
func withElicitationID(method string, params jsonrpc.Object) jsonrpc.Object {
	mode, _ := params.Text("mode")
	if method != mcp.MethodElicit || mode != "url" || params.Get("elicitationId") != nil {
		return params
	}
	out, err := splice(params, mcp.Edit{Name: "elicitationId", Value: mcp.String("roster-" + strings.ToLower(rand.Text()))})
	if err != nil {
		return params
	}
	return out
}
