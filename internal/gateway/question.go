package gateway

import (
	"context"
	"strconv"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// questions are requests of servers that are with clients and about which the
// client may report progress. Their tokens are ours, since those of two servers
// may be the same.
type questions struct {
	mu      sync.Mutex // guards the fields below
	last    int64
	byToken map[int64]openQuestion
}

type openQuestion struct {
	session *jsonrpc.Session
	server  *upstream.Server
	token   jsontext.Value // the server's
}

// begin returns the params of a question with a progress token of ours, if it has
// one, and what to call when it is answered.
func (qs *questions) begin(srv *upstream.Server, r *server.Request, params jsonrpc.Object) (jsonrpc.Object, func()) {
	meta, err := jsonrpc.ParseObject(params.Get("_meta"))
	if err != nil || meta.Get(mcp.MetaProgressToken) == nil || r.Session == nil {
		return params, func() {}
	}
	qs.mu.Lock()
	qs.last++
	n := qs.last
	if qs.byToken == nil {
		qs.byToken = make(map[int64]openQuestion)
	}
	qs.byToken[n] = openQuestion{r.Session, srv, meta.Get(mcp.MetaProgressToken)}
	qs.mu.Unlock()
	own := mcp.Splice(meta, mcp.Edit{Name: mcp.MetaProgressToken, Value: strconv.AppendInt(nil, n, 10)})
	if out, err := splice(params, mcp.Edit{Name: "_meta", Value: own}); err == nil {
		params = out
	}
	return params, func() {
		qs.mu.Lock()
		defer qs.mu.Unlock()
		delete(qs.byToken, n)
	}
}

// find returns the question that a client's progress is about, if it was this
// client that was asked.
func (qs *questions) find(session *jsonrpc.Session, token jsontext.Value) (openQuestion, bool) {
	n, err := strconv.ParseInt(string(token), 10, 64)
	if err != nil || session == nil {
		return openQuestion{}, false
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q, ok := qs.byToken[n]
	return q, ok && q.session == session
}

// Told takes a notification of a client: progress with a question goes to the
// server that asked. See server.NotificationSource.
func (s *Source) Told(ctx context.Context, r *server.Request) {
	if r.Method == mcp.MethodRootsChanged {
		s.rootsChanged(ctx, r)
		return
	}
	if r.Method != mcp.MethodProgress {
		return
	}
	q, ok := s.questions.find(r.Session, r.Params.Get("progressToken"))
	if !ok {
		return
	}
	params := mcp.Splice(r.Params, mcp.Edit{Name: "progressToken", Value: q.token})
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	_ = q.server.Notify(ctx, r.Method, params) // a server that is gone does not wait for it
}
