package gateway

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

const (
	// maxParked is how many calls of one principal may wait for answers.
	maxParked = 64
	// answerKey is the key of the one question that a parked call asks.
	answerKey = "answer"
)

// conversation is a call to a server with sessions, made for a client of a
// stateless version. While the server waits for an answer the call is parked: its
// client has been given the question as a result, and comes back with the answer
// in a request of its own.
type conversation struct {
	principal string
	server    string
	cancel    context.CancelCauseFunc
	questions chan asking    // from the server, one at a time
	result    chan callEnded // has room for the one
	expire    *time.Timer    // of what is parked
	gone      bool           // its client is; guarded by parked.mu
	open      asking         // asked and not answered; only whoever holds the conversation touches it

	mu    sync.Mutex // guards relay
	relay *relay     // of the request that waits now; nil while parked
}

type asking struct {
	method string
	params jsonrpc.Object
	answer chan<- answered // has room for the one
}

type answered struct {
	result jsontext.Value
	err    error
}

type callEnded struct {
	result jsonrpc.Object
	err    error
}

// parked has the conversations whose clients were given a question.
type parked struct {
	calls sync.WaitGroup // of all conversations, parked or not

	mu     sync.Mutex // guards the fields below
	byID   map[string]*conversation
	closed bool
}

// converse makes a call that may be parked.
func (s *Source) converse(ctx context.Context, srv *upstream.Server, r *server.Request, req upstream.Request) (jsonrpc.Object, error) {
	c := &conversation{
		principal: r.Principal, server: srv.Name(),
		questions: make(chan asking), result: make(chan callEnded, 1),
	}
	callCtx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	c.cancel = cancel
	req.Notify, req.AllProgress, req.Client = c.notify, true, clientOf(r)
	req.Ask = func(ctx context.Context, q *jsonrpc.Request) (jsontext.Value, error) {
		if err := canAnswer(r.Caller, q.Method, q.Params); err != nil {
			return nil, err
		}
		return c.ask(ctx, q)
	}
	return s.await(ctx, r, c, func() { s.start(callCtx, srv, r, c, req) })
}

// start makes the call of a conversation. It does not wait for it.
func (s *Source) start(ctx context.Context, srv *upstream.Server, r *server.Request, c *conversation, req upstream.Request) {
	if r.Session != nil { // on pipes, where one can see that the client is gone
		s.parked.calls.Go(func() { // ends with the session or the call
			select {
			case <-r.Session.Done():
				s.parked.forget(c)
				c.cancel(jsonrpc.ErrSessionClosed)
			case <-ctx.Done():
			}
		})
	}
	s.parked.calls.Go(func() { // ends with the call, which ctx and the server's own deadline bound
		defer c.cancel(nil)
		result, err := s.call(ctx, srv, req)
		c.result <- callEnded{result, err}
	})
}

// notify takes what the server says during the call; while it is parked, nobody
// is there to hear it.
func (c *conversation) notify(method string, params jsonrpc.Object) {
	c.mu.Lock()
	relay := c.relay
	c.mu.Unlock()
	if relay == nil {
		return
	}
	if method == mcp.MethodProgress { // each request of the client has its own token
		meta, err := jsonrpc.ParseObject(relay.r.Params.Get("_meta"))
		if err != nil || meta.Get(mcp.MetaProgressToken) == nil {
			return
		}
		if params, err = splice(params, mcp.Edit{Name: "progressToken", Value: meta.Get(mcp.MetaProgressToken)}); err != nil {
			return
		}
	}
	relay.push(method, params)
}

func (c *conversation) listenTo(l *relay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.relay = l
}

// ask brings a question of the server to whoever waits for the call.
func (c *conversation) ask(ctx context.Context, q *jsonrpc.Request) (jsontext.Value, error) {
	answer := make(chan answered, 1)
	select {
	case c.questions <- asking{q.Method, q.Params, answer}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-answer:
		return a.result, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// await has the call begin, or go on, and waits until it has ended or asks
// something. It returns the result for the client either way.
func (s *Source) await(ctx context.Context, r *server.Request, c *conversation, begin func()) (jsonrpc.Object, error) {
	notes := newRelay(ctx, r, s.filter(r))
	c.listenTo(notes)
	defer notes.flush()
	defer c.listenTo(nil)
	begin()
	select {
	case end := <-c.result:
		return s.handOver(r, c.server, end.result, end.err)
	case q := <-c.questions:
		c.open = q
		return s.park(r, c)
	case <-ctx.Done():
		c.cancel(context.Cause(ctx))
		return jsonrpc.Object{}, context.Cause(ctx)
	}
}

// park gives the open question to the client, and keeps the conversation for
// when it comes back.
func (s *Source) park(r *server.Request, c *conversation) (jsonrpc.Object, error) {
	id := rand.Text()
	if err := s.parked.put(id, c); err != nil {
		c.cancel(err)
		return jsonrpc.Object{}, err
	}
	params := withoutToken(c.open.params)
	if obj, err := splice(params, mcp.Edit{Name: "elicitationId"}); err == nil {
		params = obj
	}
	out := []byte(`{"resultType":"` + inputRequired + `","inputRequests":{"` + answerKey + `":{"method":`)
	out = jsonrpc.AppendString(out, c.open.method)
	if !params.IsZero() {
		out = append(append(out, `,"params":`...), params.Raw...)
	}
	out = append(out, `}},"requestState":`...)
	out = jsonrpc.AppendString(out, s.sealer.seal(r, state{stateParked, c.server, id}))
	return jsonrpc.ParseObject(append(out, '}'))
}

// resume goes on with a parked call: its client has come back with an answer.
func (s *Source) resume(ctx context.Context, r *server.Request, id string) (jsonrpc.Object, error) {
	c := s.parked.take(id)
	if c == nil || c.principal != r.Principal {
		return jsonrpc.Object{}, errState
	}
	answers, err := jsonrpc.ParseObject(r.Params.Get("inputResponses"))
	if err != nil || answers.Get(answerKey).Kind() != '{' {
		return s.park(r, c) // not answered: asked again
	}
	answer := answered{result: answers.Get(answerKey)}
	return s.await(ctx, r, c, func() { c.open.answer <- answer })
}

// withoutToken returns params without a progress token: a client of a stateless
// version reports none.
func withoutToken(params jsonrpc.Object) jsonrpc.Object {
	meta, err := jsonrpc.ParseObject(params.Get("_meta"))
	if err != nil || meta.Get(mcp.MetaProgressToken) == nil {
		return params
	}
	edit := mcp.Edit{Name: "_meta"}
	if meta.Len() > 1 {
		edit.Value = mcp.Splice(meta, mcp.Edit{Name: mcp.MetaProgressToken})
	}
	if out, err := splice(params, edit); err == nil {
		return out
	}
	return params
}

// put keeps a conversation for stateTime; an error if its principal has too many.
func (p *parked) put(id string, c *conversation) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, other := range p.byID {
		if other.principal == c.principal {
			n++
		}
	}
	switch {
	case p.closed:
		return jsonrpc.ErrClosed
	case c.gone:
		return jsonrpc.ErrSessionClosed
	case n >= maxParked:
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "%d calls wait for answers of yours already: answer or give up some first", maxParked)
	}
	if p.byID == nil {
		p.byID = make(map[string]*conversation)
	}
	p.byID[id] = c
	c.expire = time.AfterFunc(stateTime, func() {
		if p.take(id) != nil {
			c.cancel(jsonrpc.Errorf(jsonrpc.CodeInternal, "the client did not answer within %v", stateTime))
		}
	})
	return nil
}

// take gives a conversation out, once; nil if there is none.
func (p *parked) take(id string) *conversation {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.byID[id]
	if c != nil {
		delete(p.byID, id)
		c.expire.Stop()
	}
	return c
}

// forget takes a conversation out whose client is gone.
func (p *parked) forget(c *conversation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, other := range p.byID {
		if other == c {
			delete(p.byID, id)
			c.expire.Stop()
		}
	}
	c.gone = true
}

// end gives up all conversations, and waits for their calls to end. Those that
// are not parked end with their requests.
func (p *parked) end() {
	p.mu.Lock()
	p.closed = true
	all := p.byID
	p.byID = nil
	p.mu.Unlock()
	for _, c := range all {
		c.expire.Stop()
		c.cancel(jsonrpc.ErrClosed)
	}
	p.calls.Wait()
}
