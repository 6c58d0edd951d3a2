package gateway

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

const (
	// loginID is what the ids of elicitations for logins begin with.
	loginID = "login-"
	// loginWait is how long a call whose client says that its user went to log in
	// waits for that, and loginLook how often it is looked for.
	loginWait = 50 * time.Second
	loginLook = 50 * time.Millisecond
)

// wantsLogin returns the error of a call whose server wants a login first.
func wantsLogin(err error) (upstream.LoginError, bool) {
	if away, ok := errors.AsType[*upstream.UnavailableError](err); ok && away.State == upstream.NeedsLogin {
		return errors.AsType[upstream.LoginError](away.LastErr)
	}
	return errors.AsType[upstream.LoginError](err)
}

// sendToLogin asks the client of a call that cannot be made before a login to
// have its user log in, or says in the error where that is done.
func (s *Source) sendToLogin(ctx context.Context, r *server.Request, name string, err error) (jsonrpc.Object, error) {
	login, ok := wantsLogin(err)
	if !ok || s.opts.Login == nil {
		return jsonrpc.Object{}, err
	}
	url, failed := s.opts.Login(ctx, name)
	switch {
	case failed != nil:
		return jsonrpc.Object{}, &loginError{text: login.Error() + " (" + failed.Error() + ")"}
	case url == "":
		return jsonrpc.Object{}, &loginError{text: login.Error()}
	}
	message := "Log in to " + name + ": then the call can be made."
	out := []byte(`{"elicitations":[{"mode":"url","elicitationId":"` + loginID + rand.Text() + `","url":`)
	out = append(append(out, mcp.String(url)...), `,"message":`...)
	out = append(append(out, mcp.String(message)...), `}]}`...)
	ask := &jsonrpc.Error{Code: mcp.CodeURLElicitation, Message: login.Error(), Data: jsontext.Value(out)}
	switch {
	case canAnswer(r.Caller, mcp.MethodElicit, elicitations(ask)[0]) != nil, !mayAsk[r.Method]:
		return jsonrpc.Object{}, &loginError{text: login.Error() + ", or open " + url + " and log in there; then call again"}
	case r.Caller.Version.Stateless():
		return s.askToVisit(r, name, ask)
	}
	s.visits.noteError(s.targetOf(r, name), ask, r.Session)
	return jsonrpc.Object{}, ask
}

// loginError is an error to show.
type loginError struct{ text string }

func (e *loginError) Error() string { return e.text }

// LoggedIn tells the clients that were asked to log in to a server that it is
// done. It does not block.
func (s *Source) LoggedIn(ctx context.Context, name string) {
	for _, key := range s.visits.of(name, loginID) {
		params, err := jsonrpc.ParseObject(jsontext.Value(`{"elicitationId":` + string(mcp.String(key.id)) + `}`))
		if err == nil {
			s.visits.complete(ctx, key.server, params)
		}
	}
}

// of returns the visits to a server whose ids begin with a prefix.
func (v *visits) of(server, prefix string) []visit {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []visit
	for key := range v.by {
		if key.server.name == server && strings.HasPrefix(key.id, prefix) {
			out = append(out, key)
		}
	}
	return out
}

// awaitLogin waits for the login that the user of a call has agreed to.
func awaitLogin(ctx context.Context, srv *upstream.Server) {
	ctx, cancel := context.WithTimeout(ctx, loginWait)
	defer cancel()
	for {
		switch srv.Status().State {
		case upstream.NeedsLogin, upstream.Starting:
		default:
			return
		}
		if sleep(ctx, loginLook) != nil {
			return
		}
	}
}
