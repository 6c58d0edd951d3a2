package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

const (
	// maxRounds is how often one call of a session's client may be asked for
	// more.
	maxRounds = 32
	// firstPause and mostPause bound the wait before a call is made again for a
	// server that wants that and asks nothing.
	firstPause = 100 * time.Millisecond
	mostPause  = 5 * time.Second
)

// inputError says that a session's client could not give what a server asked for
// in its result. It is no answer of the server.
type inputError struct {
	method string
	err    error
}

func (e *inputError) Error() string {
	return fmt.Sprintf("the server needs more input, and the client could not give it: %s: %v", e.method, e.err)
}

// ask asks a session's client.
func (s *Source) ask(ctx context.Context, srv *upstream.Server, r *server.Request, method string, params jsonrpc.Object) (jsontext.Value, error) {
	if r.Caller.Version.Stateless() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client of this call has not declared that it can be asked", method)
	}
	if err := canAnswer(r.Caller, method, params); err != nil {
		return nil, err
	}
	if isURLMode(params) {
		s.visits.note(s.targetOf(r, srv.Name()), params, r.Session)
	}
	params, done := s.questions.begin(srv, r, params)
	defer done()
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
	base, pause := req.Edits, firstPause
	for range maxRounds {
		result, err := s.simple(ctx, srv, r, req)
		if err != nil {
			s.visits.noteError(s.targetOf(r, srv.Name()), err, r.Session)
			return result, err
		}
		if !asksForMore(result) {
			return result, nil
		}
		requests := result.Get("inputRequests")
		req.Edits = append(base[:len(base):len(base)], mcp.Edit{Name: "requestState", Value: result.Get("requestState")})
		if requests == nil {
			if err := sleep(ctx, pause); err != nil {
				return jsonrpc.Object{}, err
			}
			pause = min(2*pause, mostPause)
			continue
		}
		answers, err := s.gather(ctx, srv, r, requests)
		if err != nil {
			return jsonrpc.Object{}, err
		}
		req.Edits = append(req.Edits, mcp.Edit{Name: "inputResponses", Value: answers})
	}
	return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeInternal, "the server asked for more input %d times in one call", maxRounds)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// errUnanswered ends a question that nobody answers.
var errUnanswered = errors.New("no answer within " + stateTime.String())

// gather asks a session's client everything that a result asks for, one after
// the other, and returns the answers under the same keys.
func (s *Source) gather(ctx context.Context, srv *upstream.Server, r *server.Request, requests jsontext.Value) (jsontext.Value, error) {
	all, err := jsonrpc.ParseObject(requests)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the server's inputRequests: %v", err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, stateTime, errUnanswered)
	defer cancel()
	out := []byte{'{'}
	for key, raw := range all.All() {
		method, params, err := question(key, raw)
		if err != nil {
			return nil, err
		}
		answer, err := s.ask(limited, srv, r, method, withElicitationID(method, params))
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			return nil, &inputError{method, err}
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
	if method != mcp.MethodElicit || !isURLMode(params) || params.Get("elicitationId") != nil {
		return params
	}
	out, err := splice(params, mcp.Edit{Name: "elicitationId", Value: mcp.String("roster-" + strings.ToLower(rand.Text()))})
	if err != nil {
		return params
	}
	return out
}
