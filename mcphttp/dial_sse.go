package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const (
	// endpointTime is how long a server may take to say where messages go.
	endpointTime = 10 * time.Second
	// A message is given postGrace to be taken before the next one is sent
	// beside it, so that they arrive in order, and postTime in all.
	postGrace = 250 * time.Millisecond
	postTime  = 5 * time.Minute
	// maxPosts is how many messages may be on their way at once.
	maxPosts = 256
)

// errStreamEnded is why a connection is over whose server ended the stream.
var errStreamEnded = errors.New("the server ended the stream of events")

// DialSSE opens a connection over HTTP+SSE of version 2024-11-05 (2024-11-05,
// basic/transports, HTTP with SSE): a GET of the URL, whose first event says where
// messages are POSTed. It takes until ctx ends, at most 10 s behind the response's
// header.
//
// Unlike another Conn, this one is done when its stream ends.
func DialSSE(ctx context.Context, endpoint string, opts DialOptions) (*Conn, error) {
	c, err := Dial(ctx, endpoint, opts)
	if err != nil {
		return nil, err
	}
	if _, err := c.openSSE(ctx); err != nil {
		_ = c.Close() // nothing was begun
		return nil, err
	}
	return c, nil
}

// fallBack opens HTTP+SSE if a failed initialize says that the server may know
// nothing newer (2026-07-28, basic/transports/streamable-http, HTTP+SSE Transport).
// nil: it does not, or there is no such stream.
func (c *Conn) fallBack(ctx context.Context, err error) *sseWire {
	e, ok := err.(*StatusError) //nolint:errorlint // a wrapped one is not about the POST
	if !ok {
		return nil
	}
	switch e.Status {
	case http.StatusMethodNotAllowed: // whatever it says of it
	case http.StatusBadRequest, http.StatusNotFound:
		if e.rpc != nil { // it has read the message
			return nil
		}
	default:
		return nil
	}
	w, err := c.openSSE(ctx)
	if err != nil {
		c.opts.Logger.Debug("no HTTP+SSE either", "err", err)
		return nil
	}
	return w
}

// sseWire is HTTP+SSE from the client's side: a jsonrpc.Conn over a stream whose
// frames come as events and go as POSTs.
type sseWire struct {
	conn *Conn // makes the requests
	rpc  *jsonrpc.Conn

	request *http.Request // what all POSTs have in common
	body    io.ReadCloser
	events  *eventReader
	bound   *binding // the stream's context
	slots   chan struct{}
	posts   sync.WaitGroup

	mu    sync.Mutex // guards calls
	calls map[string]context.CancelCauseFunc
}

// openSSE opens the stream and makes it the connection's only wire.
func (c *Conn) openSSE(ctx context.Context) (*sseWire, error) {
	b := c.bind(ctx)
	w := &sseWire{
		conn: c, bound: b, slots: make(chan struct{}, maxPosts),
		events: newEventReader(c.opts.MaxMessage), calls: make(map[string]context.CancelCauseFunc),
	}
	if err := w.begin(); err != nil {
		err = because(b, err)
		b.end()
		return nil, err
	}
	b.caller()
	w.rpc = jsonrpc.NewConn(b.ctx, w, jsonrpc.ConnOptions{
		Handler: c.opts.Handler, Notification: c.opts.Notification,
		Invalid:     func(_ []byte, err error) { c.opts.Logger.Debug("message dropped", "err", err) },
		MuteInvalid: true,
		Cancel:      jsonrpc.CancelNotification{Method: mcp.MethodCanceled, Member: "requestId"},
		Logger:      c.opts.Logger,
	})
	if !c.sse.CompareAndSwap(nil, w) { // another initialize was faster
		w.close()
		return c.sse.Load(), nil
	}
	c.tasks.Go(func() { // ends with the stream
		<-w.rpc.Done()
		c.over()
	})
	return w, nil
}

// begin opens the stream and reads the event that says where messages go.
func (w *sseWire) begin() error {
	resp, err := w.conn.get(w.bound.ctx, nil, "")
	if err != nil {
		return err
	}
	w.body = resp.Body
	late := time.AfterFunc(endpointTime, func() {
		w.bound.cancel(fmt.Errorf("no endpoint event on the stream within %v", endpointTime))
	})
	defer late.Stop()
	w.events.reset(resp.Body, "", 0)
	for {
		ev, err := w.events.next()
		switch {
		case err != nil:
			_ = resp.Body.Close()
			return fmt.Errorf("stream without an endpoint event: %w", err)
		case ev.kind != "endpoint":
			continue
		}
		base := w.conn.request.URL
		if resp.Request != nil && resp.Request.URL != nil { // it may have been redirected
			base = resp.Request.URL
		}
		if err := w.aim(base, string(bytes.TrimSpace(ev.data))); err != nil {
			_ = resp.Body.Close()
			return err
		}
		return nil
	}
}

// aim sets where messages are sent. Credentials go there, so it has to be where
// they have gone already.
func (w *sseWire) aim(base *url.URL, ref string) error {
	to, err := base.Parse(ref)
	switch {
	case err != nil:
		return errors.New("the endpoint that the server names is no URL")
	case !sameOrigin(to, base):
		return fmt.Errorf("the endpoint that the server names is at another origin, %s://%s: refused", to.Scheme, to.Host)
	}
	to.User, to.Fragment, to.RawFragment = nil, "", ""
	w.request = w.conn.request.WithContext(w.bound.ctx)
	w.request.Method, w.request.URL, w.request.Header = http.MethodPost, to, w.conn.common.post
	return nil
}

// do sends a request. It fails with its POST. That a server has server/discover
// is not asked: where this wire is spoken, it has not, and may never answer.
func (w *sseWire) do(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	if call.Method == mcp.MethodDiscover {
		return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "HTTP+SSE of %s has no %s", mcp.V20241105, call.Method)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var key string
	own := *call
	own.Sent = func(id jsonrpc.ID) {
		key = id.Key()
		w.mu.Lock()
		w.calls[key] = cancel
		w.mu.Unlock()
		if call.Sent != nil {
			call.Sent(id)
		}
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.calls, key)
	}()
	return w.rpc.Do(ctx, &own)
}

// failed ends the call whose request could not be sent.
func (w *sseWire) failed(frame []byte, err error) {
	m, parseErr := jsonrpc.Parse(frame)
	if parseErr != nil || !m.IsRequest() {
		w.conn.opts.Logger.Debug("message not sent", "err", err)
		return
	}
	w.mu.Lock()
	cancel := w.calls[m.ID.Key()]
	w.mu.Unlock()
	if cancel != nil {
		cancel(err)
	}
}

// ReadFrame returns the next message of the stream.
func (w *sseWire) ReadFrame() ([]byte, error) {
	for {
		ev, err := w.events.next()
		switch {
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		case err != nil:
			return nil, fmt.Errorf("stream of events: %w", because(w.bound, err))
		case ev.kind == "" && len(bytes.TrimSpace(ev.data)) > 0:
			return ev.data, nil
		}
	}
}

// WriteFrames sends messages in order, as far as the server takes them in time.
func (w *sseWire) WriteFrames(frames [][]byte) error {
	for _, frame := range frames {
		select {
		case w.slots <- struct{}{}:
		case <-w.bound.ctx.Done():
			return context.Cause(w.bound.ctx)
		}
		taken := make(chan struct{})
		frame = bytes.Clone(frame)
		w.posts.Go(func() { // ends within postTime, or with the stream
			defer func() { <-w.slots }()
			w.post(frame, taken)
		})
		grace := time.NewTimer(postGrace)
		select {
		case <-taken:
		case <-grace.C:
		}
		grace.Stop()
	}
	return nil
}

// post sends one message. A server that knows the session no more has lost the
// stream, too.
func (w *sseWire) post(frame []byte, taken chan<- struct{}) {
	ctx, cancel := context.WithTimeout(w.bound.ctx, postTime)
	defer cancel()
	req := w.request.WithContext(ctx)
	req.ContentLength = int64(len(frame))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(frame)), nil }
	req.Body, _ = req.GetBody()
	resp, err := w.conn.roundTrip(req)
	close(taken)
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) { // it may have been taken all the same
			w.failed(frame, because(w.bound, err))
		}
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		err := w.conn.statusError(resp)
		w.failed(frame, err)
		if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
			w.bound.cancel(err)
		}
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, drainMax) // "Accepted", or nothing
}

// Close ends the stream.
func (w *sseWire) Close() error {
	w.bound.cancel(jsonrpc.ErrClosed)
	return w.body.Close()
}

// close ends the connection and waits for what runs on it.
func (w *sseWire) close() {
	_ = w.rpc.Close() // what it returns, Err does
	w.posts.Wait()
	w.bound.end()
}

// err returns why the wire has ended.
func (w *sseWire) err() error {
	select {
	case <-w.rpc.Done():
	default:
		return nil
	}
	if w.conn.ctx.Err() != nil {
		return nil // closed by us
	}
	if err := w.rpc.Err(); err != nil {
		return err
	}
	return errStreamEnded
}

var _ jsonrpc.Stream = (*sseWire)(nil)
