package gateway

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

const (
	// maxVisits is how many URL elicitations are remembered until their servers
	// say that they are complete; of more, the oldest are forgotten.
	maxVisits = 1000
	// notifyTime is how long a peer's queue may take to accept a notification.
	notifyTime = 30 * time.Second
)

// visits are the URLs that clients with sessions were asked to open, by the id
// under which the server will say that it is done.
type visits struct {
	mu    sync.Mutex // guards the fields below
	by    map[visit]*jsonrpc.Session
	order []visit
	tasks sync.WaitGroup
}

type visit struct {
	server target
	id     string
}

// note takes note of whom a server's URL elicitation went to.
func (v *visits) note(server target, params jsonrpc.Object, session *jsonrpc.Session) {
	id, ok := params.Text("elicitationId")
	if !ok || session == nil {
		return
	}
	key := visit{server, id}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.by == nil {
		v.by = make(map[visit]*jsonrpc.Session)
	}
	if v.by[key] == nil {
		v.order = append(v.order, key)
	}
	v.by[key] = session
	for len(v.order) > maxVisits {
		delete(v.by, v.order[0])
		v.order = v.order[1:]
	}
}

// noteError does so for those in an error that wants URLs visited first.
func (v *visits) noteError(server target, err error, session *jsonrpc.Session) {
	for _, params := range elicitations(err) {
		v.note(server, params, session)
	}
}

func (v *visits) take(key visit) *jsonrpc.Session {
	v.mu.Lock()
	defer v.mu.Unlock()
	session := v.by[key]
	delete(v.by, key)
	for i, other := range v.order {
		if other == key {
			v.order = append(v.order[:i:i], v.order[i+1:]...)
			break
		}
	}
	return session
}

// complete tells the client whose visit is done. It does not block.
func (v *visits) complete(ctx context.Context, server target, params jsonrpc.Object) {
	id, _ := params.Text("elicitationId")
	session := v.take(visit{server, id})
	if session == nil {
		return
	}
	v.tasks.Go(func() { // ends within notifyTime; there is one for each visit
		ctx, cancel := context.WithTimeout(ctx, notifyTime)
		defer cancel()
		_ = session.Peer.Notify(ctx, mcp.MethodElicitComplete, params.Raw) // a client that is gone does not wait for it
	})
}

// elicitations returns what a server wants visited before it acts on a call
// (2025-11-25, client/elicitation, URL Elicitation Required Error).
func elicitations(err error) []jsonrpc.Object {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || e.Code != mcp.CodeURLElicitation {
		return nil
	}
	data, err := jsonrpc.ParseObject(e.Data)
	if err != nil {
		return nil
	}
	items, err := jsonrpc.Elements(data.Get("elicitations"))
	if err != nil {
		return nil
	}
	var out []jsonrpc.Object
	for _, item := range items {
		if params, err := jsonrpc.ParseObject(item); err == nil && isURLMode(params) {
			out = append(out, params)
		}
	}
	return out
}

// askToVisit makes of such an error a result that asks for more, if the client
// can open URLs.
func (s *Source) askToVisit(r *server.Request, name string, err error) (jsonrpc.Object, error) {
	list := elicitations(err)
	if len(list) == 0 || !mayAsk[r.Method] || canAnswer(r.Caller, mcp.MethodElicit, list[0]) != nil {
		return jsonrpc.Object{}, err
	}
	out := []byte(`{"resultType":"` + inputRequired + `","inputRequests":{`)
	for i, params := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonrpc.AppendString(out, "visit"+strconv.Itoa(i+1)), `:{"method":"`+mcp.MethodElicit+`","params":`...)
		out = append(append(out, mcp.Splice(params, mcp.Edit{Name: "elicitationId"})...), '}')
	}
	out = append(out, `},"requestState":`...)
	out = jsonrpc.AppendString(out, s.sealer.seal(r, state{kind: stateURL, server: name}))
	return jsonrpc.ParseObject(append(out, '}'))
}

// visited returns an error unless the client says that its user has agreed to
// open every URL.
func visited(r *server.Request) error {
	answers, err := jsonrpc.ParseObject(r.Params.Get("inputResponses"))
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.inputResponses: %v", err)
	}
	for key, raw := range answers.All() {
		answer, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.inputResponses[%q]: %v", key, err)
		}
		if action, _ := answer.Text("action"); action != "accept" {
			return jsonrpc.Errorf(jsonrpc.CodeInternal, "the server needs a URL to be visited first, and the user did not agree to that")
		}
	}
	return nil
}
