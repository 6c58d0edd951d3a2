package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// noticeTime is how long a message that nobody waits for may take to be sent.
const noticeTime = 5 * time.Second

// Conn is a connection to a server over HTTP: the messages that go there are
// POSTs, those that come are their responses, but for HTTP+SSE. For versions with sessions it
// also has what a session is: its id, the stream for messages that belong to no
// request, and a new session in its place when the server has forgotten it.
//
// The methods of a Conn may be called from any goroutine, but Close not from one
// of its own hooks.
type Conn struct {
	opts      DialOptions
	transport http.RoundTripper
	closeIdle func()        // nil: the transport is not ours
	request   *http.Request // what all requests have in common
	common    fields        // of requests without a session

	ctx    context.Context // of the connection; ends with Close
	cancel context.CancelCauseFunc
	done   chan struct{}
	over   func()        // closes done
	gone   chan struct{} // closed when Close has nothing left to do
	nextID atomic.Int64
	// tasks has the calls in flight and every goroutine. Only enter adds to it
	// from outside; all else is begun by what is in it already.
	tasks   sync.WaitGroup
	readers sync.Pool // of *eventReader

	session atomic.Pointer[session] // nil: none was begun
	sse     atomic.Pointer[sseWire] // not nil: the wire of all messages

	mu      sync.Mutex // guards the fields below
	closed  bool
	renewal *renewal // under way
}

// Done is closed by Close, and on HTTP+SSE when its stream ends: otherwise HTTP has
// no connection that could end by itself.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended by itself, nil if it did not.
func (c *Conn) Err() error {
	if w := c.sse.Load(); w != nil {
		return w.err()
	}
	return nil
}

// Close ends the connection: what waits on it fails with jsonrpc.ErrClosed, and
// the server is told that the session is over. It returns when nothing of the
// connection runs any more, after at most some seconds.
func (c *Conn) Close() error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	c.mu.Unlock()
	if !first {
		<-c.gone
		return nil
	}
	c.cancel(jsonrpc.ErrClosed)
	c.tasks.Wait()
	if w := c.sse.Load(); w != nil {
		w.close()
	}
	if s := c.session.Load(); s != nil {
		c.end(s)
	}
	if c.closeIdle != nil {
		c.closeIdle()
	}
	c.over()
	close(c.gone)
	return nil
}

// enter adds the caller to the tasks that Close waits for; false after Close.
func (c *Conn) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.tasks.Add(1)
	return true
}

// Call sends a request and returns its result; see Do.
func (c *Conn) Call(ctx context.Context, method string, params jsontext.Value) (jsonrpc.Object, error) {
	return c.Do(ctx, &jsonrpc.Call{Method: method, Params: params})
}

// Do sends a request and returns its result. An error that the server answered
// is or wraps a *jsonrpc.Error; a response that is none of the protocol's is a
// *StatusError. A request is sent again only if the server said, by refusing to
// take it, that its session is unknown: once, in a new session.
//
// When ctx ends first, its cause is returned. In a session the server is told;
// else that the stream closes tells it.
//
// An initialize that a server refuses as one does that knows nothing but HTTP+SSE
// of 2024-11-05 is sent again over that, and all that follows, too; see DialSSE.
func (c *Conn) Do(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	if ctx.Err() != nil {
		return jsonrpc.Object{}, context.Cause(ctx)
	}
	if !c.enter() {
		return jsonrpc.Object{}, jsonrpc.ErrClosed
	}
	defer c.tasks.Done()
	if w := c.sse.Load(); w != nil {
		return w.do(ctx, call)
	}
	if call.Method == mcp.MethodInitialize {
		result, err := c.initialize(ctx, call)
		if err != nil {
			if w := c.fallBack(ctx, err); w != nil {
				return w.do(ctx, call)
			}
		}
		return result, err
	}
	s := c.session.Load()
	if mcp.Version(call.Header[mcp.HeaderVersion]).Stateless() {
		s = nil
	}
	result, err := c.do(ctx, call, s)
	if s == nil || !s.forgotten(err) {
		return result, err
	}
	if s, err = c.renew(ctx, s, err); err != nil {
		return jsonrpc.Object{}, err
	}
	return c.do(ctx, call, s)
}

// do sends a request once.
func (c *Conn) do(ctx context.Context, call *jsonrpc.Call, s *session) (jsonrpc.Object, error) {
	id := jsonrpc.IntID(c.nextID.Add(1))
	m, _, err := c.exchange(ctx, id, call, s)
	if err == nil {
		return m.Result, nil
	}
	if ctx.Err() != nil && s != nil && !call.KeepOnCancel && c.ctx.Err() == nil {
		c.tasks.Go(func() { c.sendCancel(s, id, context.Cause(ctx)) }) // ends within noticeTime
	}
	return jsonrpc.Object{}, err
}

// exchange sends a request and waits for its answer. The header is that of the
// response, if there was one.
func (c *Conn) exchange(ctx context.Context, id jsonrpc.ID, call *jsonrpc.Call, s *session) (jsonrpc.Message, http.Header, error) {
	if call.Sent != nil {
		call.Sent(id)
	}
	frame := jsonrpc.AppendRequest(make([]byte, 0, len(call.Params)+len(call.Method)+64), id, call.Method, call.Params)
	b := c.bind(ctx)
	resp, err := c.post(b.ctx, frame, s, call.Header)
	if err != nil {
		err = because(b, err)
		b.end()
		return jsonrpc.Message{}, nil, err
	}
	in := &intake{conn: c, id: id, call: call, session: s}
	open, err := in.answer(b.ctx, resp)
	if call.Answered != nil {
		call.Answered()
	}
	switch {
	case err != nil:
		err = because(b, err)
	case in.result.Error != nil:
		err = in.result.Error
	}
	if open {
		c.drain(resp.Body, b)
	} else {
		_ = resp.Body.Close()
		b.end()
	}
	return in.result, resp.Header, err
}

// because returns what ended a request's context, or err if nothing did.
func because(b *binding, err error) error {
	if b.ctx.Err() != nil {
		return context.Cause(b.ctx)
	}
	return err
}

func (c *Conn) sendCancel(s *session, id jsonrpc.ID, cause error) {
	ctx, cancel := context.WithTimeout(s.ctx, noticeTime)
	defer cancel()
	params := append([]byte(`{"requestId":`), id.Raw()...)
	params = append(params, `,"reason":`...)
	params = append(jsonrpc.AppendString(params, cause.Error()), '}')
	if err := c.deliver(ctx, s, jsonrpc.AppendNotification(nil, mcp.MethodCanceled, params)); err != nil {
		c.opts.Logger.Debug("server not told of a cancelled request", "err", err)
	}
}

// Notify sends a notification. Whatever the server makes of it, as long as the
// status is 2xx, is fine; else the error is a *StatusError. It is sent once.
func (c *Conn) Notify(ctx context.Context, method string, params jsontext.Value) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !c.enter() {
		return jsonrpc.ErrClosed
	}
	defer c.tasks.Done()
	if w := c.sse.Load(); w != nil {
		return w.rpc.Notify(ctx, method, params)
	}
	s := c.session.Load()
	if err := c.deliver(ctx, s, jsonrpc.AppendNotification(nil, method, params)); err != nil {
		return err
	}
	if method == mcp.MethodInitialized && s != nil {
		c.open(s)
		s.awaitStream(ctx)
	}
	return nil
}

// deliver sends a message that gets no answer.
func (c *Conn) deliver(ctx context.Context, s *session, frame []byte) error {
	b := c.bind(ctx)
	resp, err := c.post(b.ctx, frame, s, nil)
	if err != nil {
		err = because(b, err)
		b.end()
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		err := c.statusError(resp)
		_ = resp.Body.Close()
		b.end()
		return err
	}
	if resp.ContentLength == 0 {
		_ = resp.Body.Close()
		b.end()
		return nil
	}
	c.drain(resp.Body, b)
	return nil
}

// readMessage reads a whole body up to a limit.
func readMessage(resp *http.Response, limit int) ([]byte, error) {
	const trusted = 1 << 20 // what is allocated on the server's word
	n := resp.ContentLength
	switch {
	case n > int64(limit):
		return nil, fmt.Errorf("the response of %d bytes is larger than the limit of %d", n, limit)
	case n >= 0 && n <= trusted:
		body := make([]byte, n)
		if _, err := io.ReadFull(resp.Body, body); err != nil {
			return nil, fmt.Errorf("reading the response: %w", err)
		}
		return body, nil
	}
	var buf bytes.Buffer
	read, err := buf.ReadFrom(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("reading the response: %w", err)
	}
	if read > int64(limit) {
		return nil, fmt.Errorf("the response is larger than the limit of %d bytes", limit)
	}
	return buf.Bytes(), nil
}

// answer reads a response until it has the answer to the call. It reports
// whether the body is still open behind it.
func (in *intake) answer(ctx context.Context, resp *http.Response) (open bool, err error) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return false, in.conn.statusError(resp)
	}
	switch mediaType(resp.Header.Get("Content-Type")) {
	case "text/event-stream":
		return in.stream(ctx, resp.Body)
	case "application/json":
		return false, in.whole(resp)
	case "":
		return false, in.untyped(resp)
	}
	return false, in.conn.statusError(resp)
}

// whole takes a body that is one message, or several as an array.
func (in *intake) whole(resp *http.Response) error {
	body, err := readMessage(resp, in.conn.opts.MaxMessage)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return &StatusError{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), Body: body}
	}
	found, err := in.take(body)
	if err == nil && !found {
		err = errors.New("the response body has no answer to the request")
	}
	return err
}

// untyped takes a body without a Content-Type: JSON if it looks like it.
func (in *intake) untyped(resp *http.Response) error {
	peeked := make([]byte, bodyHead)
	n, err := io.ReadFull(resp.Body, peeked)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("reading the response: %w", err)
	}
	peeked = peeked[:n]
	if text := bytes.TrimSpace(peeked); len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return &StatusError{Status: resp.StatusCode, Body: in.conn.shown(peeked)}
	}
	joined := *resp
	joined.Body = io.NopCloser(io.MultiReader(bytes.NewReader(peeked), resp.Body))
	joined.ContentLength = -1
	return in.whole(&joined)
}
