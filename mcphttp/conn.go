package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
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
// POSTs, those that come are their responses. For versions with sessions it
// also has what a session is: its id, the stream for messages that belong to no
// request, and a new session in its place when the server has forgotten it.
type Conn struct {
	url    *url.URL
	opts   DialOptions
	http   *http.Client
	ctx    context.Context // of the connection; ends with Close
	cancel context.CancelCauseFunc
	done   chan struct{}
	nextID atomic.Int64
	tasks  sync.WaitGroup

	session  atomic.Pointer[session] // nil: none was begun
	renewing chan struct{}           // holds a token while a session is renewed

	mu     sync.Mutex // guards closed, so that no task starts after Close
	closed bool
}

// session is what an initialize began. It does not change but for its stream.
type session struct {
	id      string // "": the server gave none
	version mcp.Version
	params  jsontext.Value // of the initialize request
	begun   atomic.Bool    // notifications/initialized was sent
	end     context.CancelFunc
	ctx     context.Context // of the session's stream
}

// Done is closed by Close: HTTP has no connection that could end by itself.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err returns nil.
func (c *Conn) Err() error { return nil }

// Close ends the connection: what waits on it fails, and the server is told that
// the session is over.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		<-c.done
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.cancel(jsonrpc.ErrClosed)
	c.tasks.Wait()
	if s := c.session.Load(); s != nil {
		c.end(s)
	}
	c.http.CloseIdleConnections()
	close(c.done)
	return nil
}

// end tells the server that a session is over.
func (c *Conn) end(s *session) {
	s.end()
	if s.id == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), noticeTime)
	defer cancel()
	resp, err := c.send(ctx, http.MethodDelete, nil, s, nil)
	if err != nil {
		c.opts.Logger.Debug("session not ended", "err", err)
		return
	}
	_ = resp.Body.Close()
}

// start runs a task that ends with c.ctx; not after Close.
func (c *Conn) start(task func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.tasks.Go(task)
	}
}

// Call sends a request and returns its result; see Do.
func (c *Conn) Call(ctx context.Context, method string, params jsontext.Value) (jsonrpc.Object, error) {
	return c.Do(ctx, &jsonrpc.Call{Method: method, Params: params})
}

// Do sends a request and returns its result. An error that the server answered
// is or wraps a *jsonrpc.Error; a response that is none of the protocol's is a
// *StatusError. A request is sent again only if the server said that its session
// is unknown, once, in a new session.
func (c *Conn) Do(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(jsonrpc.ErrClosed) })()
	if call.Method == mcp.MethodInitialize {
		return c.initialize(ctx, call)
	}
	s := c.session.Load()
	if mcp.Version(call.Header[mcp.HeaderVersion]).Stateless() {
		s = nil
	}
	result, err := c.exchange(ctx, call, s)
	if s != nil && s.id != "" && isExpired(err) {
		if s, err = c.renew(ctx, s, err); err == nil {
			result, err = c.exchange(ctx, call, s)
		}
	}
	return result, err
}

// exchange sends a request once and waits for its answer.
func (c *Conn) exchange(ctx context.Context, call *jsonrpc.Call, s *session) (jsonrpc.Object, error) {
	id := jsonrpc.IntID(c.nextID.Add(1))
	if call.Sent != nil {
		call.Sent(id)
	}
	frame := jsonrpc.AppendRequest(make([]byte, 0, len(call.Params)+len(call.Method)+64), id, call.Method, call.Params)
	resp, err := c.send(ctx, http.MethodPost, frame, s, call.Header)
	if err == nil {
		var m jsonrpc.Message
		m, err = c.answer(ctx, resp, id, call, s)
		_ = resp.Body.Close()
		if err == nil {
			if m.Error != nil {
				return jsonrpc.Object{}, m.Error
			}
			return m.Result, nil
		}
	}
	if ctx.Err() == nil {
		return jsonrpc.Object{}, err
	}
	cause := context.Cause(ctx)
	if s != nil && !call.KeepOnCancel {
		c.start(func() { c.sendCancel(s, id, cause) }) // ends within noticeTime
	}
	return jsonrpc.Object{}, cause
}

func (c *Conn) sendCancel(s *session, id jsonrpc.ID, cause error) {
	ctx, cancel := context.WithTimeout(c.ctx, noticeTime)
	defer cancel()
	params := append([]byte(`{"requestId":`), id.Raw()...)
	params = append(params, `,"reason":`...)
	params = append(jsonrpc.AppendString(params, cause.Error()), '}')
	if err := c.notify(ctx, s, mcp.MethodCanceled, params); err != nil {
		c.opts.Logger.Debug("server not told of a cancelled request", "err", err)
	}
}

// Notify sends a notification. Whatever the server makes of it, as long as the
// status is 2xx, is fine.
func (c *Conn) Notify(ctx context.Context, method string, params jsontext.Value) error {
	s := c.session.Load()
	if err := c.notify(ctx, s, method, params); err != nil {
		return err
	}
	if method == mcp.MethodInitialized && s != nil && !s.begun.Swap(true) {
		c.start(func() { c.listen(s) }) // ends with the session's context
	}
	return nil
}

func (c *Conn) notify(ctx context.Context, s *session, method string, params jsontext.Value) error {
	return c.deliver(ctx, s, jsonrpc.AppendNotification(nil, method, params))
}

// deliver sends a message that gets no answer.
func (c *Conn) deliver(ctx context.Context, s *session, frame []byte) error {
	resp, err := c.send(ctx, http.MethodPost, frame, s, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return statusError(resp)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be used again
	return nil
}

// send makes one HTTP request.
func (c *Conn) send(ctx context.Context, method string, body []byte, s *session, header map[string]string) (*http.Response, error) {
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.url.String(), r)
	if err != nil {
		return nil, err
	}
	for name, values := range c.opts.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if s != nil {
		req.Header.Set(mcp.HeaderVersion, string(s.version))
		if s.id != "" {
			req.Header.Set(mcp.HeaderSession, s.id)
		}
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, plainURLError(err)
	}
	return resp, nil
}

// plainURLError drops the URL from an error of net/http: it may have secrets.
func plainURLError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return fmt.Errorf("HTTP request: %w", u.Err)
	}
	return err
}

// answer reads a response until it has the answer to a request.
func (c *Conn) answer(ctx context.Context, resp *http.Response, id jsonrpc.ID, call *jsonrpc.Call, s *session) (jsonrpc.Message, error) {
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return jsonrpc.Message{}, statusError(resp)
	}
	in := &intake{conn: c, id: id, call: call, session: s}
	switch t := mediaType(resp.Header.Get("Content-Type")); t {
	case "text/event-stream":
		return in.stream(ctx, resp.Body)
	case "application/json", "":
		body, err := readMessage(resp, c.opts.MaxMessage)
		if err != nil {
			return jsonrpc.Message{}, err
		}
		if len(bytes.TrimSpace(body)) == 0 {
			return jsonrpc.Message{}, fmt.Errorf("HTTP status %d with an empty body in answer to a request", resp.StatusCode)
		}
		found, err := in.take(body)
		if err == nil && !found {
			err = errors.New("the response body has no answer to the request")
		}
		return in.result, err
	}
	return jsonrpc.Message{}, statusError(resp)
}

// readMessage reads a whole body up to a limit.
func readMessage(resp *http.Response, limit int) ([]byte, error) {
	if resp.ContentLength > int64(limit) {
		return nil, fmt.Errorf("the response of %s bytes is larger than the limit of %d", strconv.FormatInt(resp.ContentLength, 10), limit)
	}
	var buf bytes.Buffer
	if resp.ContentLength > 0 {
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("reading the response: %w", err)
	}
	if n > int64(limit) {
		return nil, fmt.Errorf("the response is larger than the limit of %d bytes", limit)
	}
	return buf.Bytes(), nil
}
