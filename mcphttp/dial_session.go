package mcphttp

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// renewTime is how long a new session may take to begin.
const renewTime = time.Minute

// session is what an initialize began.
type session struct {
	id      string // "": the server gave none
	version mcp.Version
	params  jsontext.Value    // of the initialize request
	header  map[string]string // likewise
	fields  fields
	ctx     context.Context // of what the session has running
	cancel  context.CancelFunc
	opened  sync.Once // its stream
	// answered is closed when the server has answered, well or not, the first GET
	// that asks for the stream.
	answered chan struct{}
	answer   sync.Once

	mu   sync.Mutex // guards asks
	asks map[string]context.CancelCauseFunc
}

func (c *Conn) newSession(id string, version mcp.Version, call *jsonrpc.Call) *session {
	s := &session{id: id, version: version, params: call.Params, header: call.Header, answered: make(chan struct{})}
	s.fields = newFields(c.common.get, s)
	s.ctx, s.cancel = context.WithCancel(c.ctx)
	return s
}

// forgotten reports whether a failure says that the server does not know the
// session and therefore did not take the request. Servers should say so by 404;
// some say it by 400 and in words. An error that is the answer of the method's
// own is not meant, nor one that came later than the response to the POST.
func (s *session) forgotten(err error) bool {
	e, ok := err.(*StatusError) //nolint:errorlint // a wrapped one is not about the POST
	if !ok || s.id == "" {
		return false
	}
	switch e.Status {
	case http.StatusNotFound:
		return e.rpc == nil || e.rpc.Code != jsonrpc.CodeMethodNotFound
	case http.StatusBadRequest:
		return e.rpc != nil && !e.identified && strings.Contains(strings.ToLower(e.rpc.Message), "session")
	}
	return false
}

// end drops a session and tells the server that it is over.
func (c *Conn) end(s *session) {
	s.cancel()
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), noticeTime)
	defer cancel()
	if err := c.delete(ctx, s); err != nil {
		c.opts.Logger.Debug("session not ended", "err", err)
	}
}

// initialize begins a session with the request that begins it. A session that
// was there before is ended.
func (c *Conn) initialize(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	s, result, err := c.begin(ctx, call)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	if old := c.session.Swap(s); old != nil {
		c.tasks.Go(func() { c.end(old) }) // ends within noticeTime
	}
	return result, nil
}

// begin sends an initialize request. It is never cancelled, but a session that
// nobody waits for any more is ended.
func (c *Conn) begin(ctx context.Context, call *jsonrpc.Call) (*session, jsonrpc.Object, error) {
	m, header, err := c.exchange(ctx, jsonrpc.IntID(c.nextID.Add(1)), call, nil)
	version, _ := m.Result.Text("protocolVersion")
	s := c.newSession(header.Get(mcp.HeaderSession), mcp.Version(version), call)
	if err != nil {
		c.tasks.Go(func() { c.end(s) }) // ends within noticeTime
		return nil, jsonrpc.Object{}, err
	}
	return s, m.Result, nil
}

// renewal is a session on its way. All calls that met the loss of the old one
// wait for the same.
type renewal struct {
	done    chan struct{} // closed when the fields below are set
	session *session
	err     error
}

// renew returns a session in place of one that the server does not know any
// more: begun for this call, or for another one that met the same. why is what
// the server said.
func (c *Conn) renew(ctx context.Context, lost *session, why error) (*session, error) {
	c.mu.Lock()
	if s := c.session.Load(); s != lost {
		c.mu.Unlock()
		return s, nil
	}
	r := c.renewal
	if r == nil {
		r = &renewal{done: make(chan struct{})}
		c.renewal = r
		c.tasks.Go(func() { // ends within renewTime and noticeTime
			r.session, r.err = c.replace(lost)
			c.mu.Lock()
			c.renewal = nil
			c.mu.Unlock()
			close(r.done)
		})
	}
	c.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	switch {
	case c.ctx.Err() != nil:
		return nil, jsonrpc.ErrClosed
	case r.err != nil: // not wrapped: it is no answer to the caller's request
		return nil, fmt.Errorf("the server has forgotten the session (%s), and a new one cannot be begun: %s", why.Error(), r.err.Error())
	}
	return r.session, nil
}

// replace begins a session like a lost one and puts it in its place.
func (c *Conn) replace(lost *session) (*session, error) {
	ctx, cancel := context.WithTimeout(c.ctx, renewTime)
	defer cancel()
	s, _, err := c.begin(ctx, &jsonrpc.Call{Method: mcp.MethodInitialize, Params: lost.params, Header: lost.header})
	if err != nil {
		return nil, err
	}
	if !s.version.Known() || s.version.Stateless() {
		c.end(s)
		return nil, fmt.Errorf("it answered initialize with version %q", s.version)
	}
	if err := c.deliver(ctx, s, jsonrpc.AppendNotification(nil, mcp.MethodInitialized, nil)); err != nil {
		c.end(s)
		return nil, fmt.Errorf("%s: %w", mcp.MethodInitialized, err)
	}
	if !c.session.CompareAndSwap(lost, s) { // an initialize was faster
		c.end(s)
		return c.session.Load(), nil
	}
	lost.cancel()
	c.open(s)
	s.awaitStream(c.ctx)
	c.opts.Gap()
	return s, nil
}
