package jsonrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Stream carries whole frames, one message each. ReadFrame is called by one
// goroutine, WriteFrames by one other; Close may come from any goroutine and
// makes both return.
type Stream interface {
	// ReadFrame returns the next frame, which is then the caller's. io.EOF
	// is the orderly end.
	ReadFrame() ([]byte, error)
	// WriteFrames writes frames in order. It does not keep them.
	WriteFrames(frames [][]byte) error
	Close() error
}

// CancelNotification names the notification by which either side takes back a
// request, and the member of its params that has the request's id.
type CancelNotification struct {
	Method string // "": there is none
	Member string
}

// ConnOptions configures a Conn. The zero value serves a peer that sends no
// requests and drops its notifications.
type ConnOptions struct {
	// Handler answers the peer's requests; nil answers each with
	// CodeMethodNotFound. It also gets notifications, unless Notification is set.
	Handler Handler
	// Notification gets each notification on the goroutine that reads, in
	// order with the responses. It must not block.
	Notification func(m *Message)
	// Invalid is told, on the goroutine that reads, of frames that were
	// dropped: not a message, or a response to nothing. It must not block.
	Invalid func(frame []byte, err error)
	// Cancel is how requests are taken back, in both directions.
	Cancel CancelNotification
	// MaxRequests is how many of the peer's requests may be in the works;
	// one more is refused with CodeInternal. 0: 1,024.
	MaxRequests int
	// MaxQueue is how many frames may wait for the writer before senders
	// wait, too. 0: 1,024.
	MaxQueue int
	// Logger gets what happens off the request path. nil: nothing.
	Logger *slog.Logger
}

// drainTime is how long a connection whose peer has stopped sending waits for
// its requests to be answered.
const drainTime = 5 * time.Second

// ErrClosed is returned for calls on a Conn that has ended; Conn.Err has why.
var ErrClosed = errors.New("connection closed")

// Conn is one JSON-RPC connection over a Stream, in both directions: requests
// sent with Call, the peer's requests answered by a Handler. One goroutine
// reads and one writes; each request of the peer has its own. Nothing that the
// peer does or fails to do makes the reader wait.
type Conn struct {
	stream   Stream
	opts     ConnOptions
	session  *Session
	ctx      context.Context // of the connection; ends when it closes
	cancel   context.CancelCauseFunc
	out      chan []byte   // for the writer; nil: write what came before, then end
	notes    chan *Message // notifications for the Handler
	nextID   atomic.Int64
	tasks    sync.WaitGroup // every goroutine of the connection
	handlers sync.WaitGroup // those that run the Handler for a request
	ended    chan struct{}  // closed when the reader and the writer have returned

	mu       sync.Mutex // guards the fields below
	pending  map[int64]chan Message
	incoming map[string]*incoming
	deaf     bool // the reader has ended: no reply can come
}

// incoming is one request of the peer that is being handled.
type incoming struct{ cancel context.CancelCauseFunc }

// NewConn starts a connection; it ends when the stream does, when ctx does, or
// with Close. Values of ctx reach the Handler.
func NewConn(ctx context.Context, stream Stream, opts ConnOptions) *Conn {
	if opts.MaxRequests == 0 {
		opts.MaxRequests = 1024
	}
	if opts.MaxQueue == 0 {
		opts.MaxQueue = 1024
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Conn{
		stream: stream, opts: opts,
		out:      make(chan []byte, opts.MaxQueue),
		notes:    make(chan *Message, 1024),
		ended:    make(chan struct{}),
		pending:  make(map[int64]chan Message),
		incoming: make(map[string]*incoming),
	}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.session = NewSession("", c)
	var wires sync.WaitGroup
	wires.Go(c.read)          // ends when the stream does
	wires.Go(c.write)         // ends with c.ctx
	c.tasks.Go(c.handleNotes) // ends with c.ctx
	context.AfterFunc(c.ctx, func() { _ = stream.Close() })
	c.tasks.Go(func() { wires.Wait(); close(c.ended) })
	return c
}

// Session is the connection as the Handler sees it.
func (c *Conn) Session() *Session { return c.session }

// Done is closed when the connection has ended and no reply will come any more.
func (c *Conn) Done() <-chan struct{} { return c.ended }

// Err returns why the connection ended: nil while it is open and after Close or
// an orderly end of the stream.
func (c *Conn) Err() error {
	err := context.Cause(c.ctx)
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// Close ends the connection and waits for its goroutines, handlers included.
func (c *Conn) Close() error {
	c.cancel(ErrClosed)
	c.tasks.Wait()
	c.handlers.Wait()
	return c.Err()
}

// Call sends a request and returns its result. A peer's error is an *Error.
// When ctx ends first, the peer is told by the cancel notification and a late
// answer is dropped.
func (c *Conn) Call(ctx context.Context, method string, params jsontext.Value) (Object, error) {
	return c.Do(ctx, &Call{Method: method, Params: params})
}

// Call is an outgoing request with what only some wires need.
type Call struct {
	Method string
	Params jsontext.Value // nil: left out

	// Header has fields for a wire that has headers.
	Header map[string]string
	// KeepOnCancel: the peer is not told when the caller gives up, as the
	// protocol wants for initialize.
	KeepOnCancel bool
	// Message gets what the wire can prove to belong to this call and that
	// came before its response: notifications on the call's own response
	// stream, and requests there before they are answered. It must not block.
	// nil: the connection's own hook gets the notifications.
	Message func(m *Message)
	// Handler answers the requests on the call's own response stream. nil: the
	// connection's does.
	Handler Handler
	// Sent, if not nil, is called with the id once the request is about to
	// be written.
	Sent func(id ID)
}

// Do is Call with the options of a Call value.
func (c *Conn) Do(ctx context.Context, call *Call) (Object, error) {
	n := c.nextID.Add(1)
	id := IntID(n)
	reply := make(chan Message, 1)
	c.mu.Lock()
	if c.deaf || c.ctx.Err() != nil {
		c.mu.Unlock()
		return Object{}, c.closedError()
	}
	c.pending[n] = reply
	c.mu.Unlock()
	if call.Sent != nil {
		call.Sent(id)
	}
	size := len(call.Method) + len(call.Params) + 64
	frame := AppendRequest(make([]byte, 0, size), id, call.Method, call.Params)
	if err := c.send(ctx, frame); err != nil {
		c.forget(n)
		return Object{}, err
	}
	select {
	case m, ok := <-reply:
		return c.answer(m, ok)
	case <-ctx.Done():
	}
	if !c.forget(n) { // the reply was faster
		m, ok := <-reply
		return c.answer(m, ok)
	}
	if !call.KeepOnCancel {
		c.sendCancel(id, context.Cause(ctx))
	}
	return Object{}, context.Cause(ctx)
}

func (c *Conn) answer(m Message, ok bool) (Object, error) {
	switch {
	case !ok:
		return Object{}, c.closedError()
	case m.Error != nil:
		return Object{}, m.Error
	}
	return m.Result, nil
}

func (c *Conn) closedError() error {
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

// forget drops a pending call; false if its reply is there or on its way.
func (c *Conn) forget(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.pending[n]
	delete(c.pending, n)
	return ok
}

// sendCancel tells the peer that a request is no longer wanted, if the queue
// has room: a peer that does not read is not worth waiting for.
func (c *Conn) sendCancel(id ID, cause error) {
	if c.opts.Cancel.Method == "" {
		return
	}
	params := append([]byte(nil), '{')
	params = AppendString(params, c.opts.Cancel.Member)
	params = append(params, ':')
	params = append(params, id.text...)
	params = append(params, `,"reason":`...)
	params = AppendString(params, cause.Error())
	params = append(params, '}')
	select {
	case c.out <- AppendNotification(nil, c.opts.Cancel.Method, params):
	default:
	}
}

// Notify sends a notification. It waits while the queue is full.
func (c *Conn) Notify(ctx context.Context, method string, params jsontext.Value) error {
	return c.send(ctx, AppendNotification(nil, method, params))
}

func (c *Conn) send(ctx context.Context, frame []byte) error {
	select {
	case c.out <- frame:
		return nil
	default:
	}
	select {
	case c.out <- frame:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return c.closedError()
	}
}

// write is the writer: it takes what waits, up to a batch, in one go. A nil
// frame is the last.
func (c *Conn) write() {
	const most = 64
	batch := make([][]byte, 0, most)
	for {
		select {
		case frame := <-c.out:
			batch = append(batch, frame)
		case <-c.ctx.Done():
			return
		}
	fill:
		for len(batch) < most && batch[len(batch)-1] != nil {
			select {
			case frame := <-c.out:
				batch = append(batch, frame)
			default:
				break fill
			}
		}
		last := batch[len(batch)-1] == nil
		if last {
			batch = batch[:len(batch)-1]
		}
		if err := c.stream.WriteFrames(batch); err != nil {
			// What the peer has said before it went can still be read.
			err = fmt.Errorf("write: %w", err)
			time.AfterFunc(time.Second, func() { c.cancel(err) })
			return
		}
		if last {
			c.cancel(io.EOF)
			return
		}
		clear(batch)
		batch = batch[:0]
	}
}

// read is the reader: it hands out and never waits.
func (c *Conn) read() {
	for {
		frame, err := c.stream.ReadFrame()
		if err != nil {
			c.finish(err)
			return
		}
		m, err := Parse(frame)
		if err != nil {
			c.invalid(&m, frame, err)
			continue
		}
		c.dispatch(&m, frame)
	}
}

// finish ends the connection behind the last frame. After an orderly end the
// requests that came before it are still answered, for at most drainTime.
func (c *Conn) finish(err error) {
	c.session.Close()
	c.failPending()
	if !errors.Is(err, io.EOF) {
		c.cancel(err)
		return
	}
	idle := make(chan struct{})
	c.tasks.Go(func() { c.handlers.Wait(); close(idle) }) // handlers end with c.ctx at the latest
	timeout := time.NewTimer(drainTime)
	defer timeout.Stop()
	select {
	case <-idle:
		select {
		case c.out <- nil:
		case <-timeout.C:
			c.cancel(err)
		case <-c.ctx.Done():
		}
	case <-timeout.C:
		c.cancel(err)
	case <-c.ctx.Done():
	}
}

// failPending fails the calls that wait for a reply that will not come.
func (c *Conn) failPending() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, reply := range c.pending {
		delete(c.pending, n)
		close(reply)
	}
	c.deaf = true
}

// dispatch hands one message to who waits for it.
func (c *Conn) dispatch(m *Message, frame []byte) {
	switch {
	case m.IsRequest():
		c.request(m)
	case m.IsNotification():
		c.notification(m)
	default:
		c.response(m, frame)
	}
}

func (c *Conn) response(m *Message, frame []byte) {
	n, ok := m.ID.Int()
	if ok {
		c.mu.Lock()
		reply := c.pending[n]
		delete(c.pending, n)
		c.mu.Unlock()
		if reply != nil {
			reply <- *m // has room: one reply per pending call
			return
		}
	}
	c.dropped(frame, fmt.Errorf("a response to id %s, which waits for none", m.ID))
}

// invalid answers a frame that is not a message, if the peer can tell what the
// answer is about; a reply that cannot be read still ends the call it is for.
func (c *Conn) invalid(m *Message, frame []byte, err error) {
	c.dropped(frame, err)
	if n, ok := m.ID.Int(); ok && m.Method == "" {
		c.mu.Lock()
		reply := c.pending[n]
		delete(c.pending, n)
		c.mu.Unlock()
		if reply != nil {
			reply <- Message{ID: m.ID, Error: Errorf(CodeInternal, "the peer's answer is %v", err)}
			return
		}
	}
	if c.opts.Handler != nil {
		c.enqueue(AppendError(nil, m.ID, AsError(err)))
	}
}

func (c *Conn) dropped(frame []byte, err error) {
	if c.opts.Invalid != nil {
		c.opts.Invalid(frame, err)
	}
}

// enqueue sends from the reader, which must not wait: a peer that sends what we
// must refuse and does not read the refusals loses them.
func (c *Conn) enqueue(frame []byte) {
	select {
	case c.out <- frame:
	default:
	}
}

func (c *Conn) notification(m *Message) {
	if m.Method == c.opts.Cancel.Method {
		if id, err := ParseID(m.Params.Get(c.opts.Cancel.Member)); err == nil {
			c.CancelRequest(id)
		}
	}
	if c.opts.Notification != nil {
		c.opts.Notification(m)
		return
	}
	if c.opts.Handler == nil {
		return
	}
	select {
	case c.notes <- m:
	default: // a flood of notifications loses its tail, nothing else
	}
}

// handleNotes gives notifications to the Handler, one after the other.
func (c *Conn) handleNotes() {
	for {
		select {
		case m := <-c.notes:
			req := Request{Method: m.Method, Params: m.Params, Session: c.session, Peer: c}
			_, _ = c.opts.Handler.Handle(c.ctx, &req) // a notification has no answer
		case <-c.ctx.Done():
			return
		}
	}
}

// request starts a handler for a request of the peer.
func (c *Conn) request(m *Message) {
	refuse := func(code int, text string) {
		c.enqueue(AppendError(nil, m.ID, Errorf(code, "%s", text)))
	}
	if c.opts.Handler == nil {
		refuse(CodeMethodNotFound, "method not found: "+m.Method)
		return
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	in := &incoming{cancel}
	key := m.ID.Key()
	c.mu.Lock()
	_, taken := c.incoming[key]
	full := len(c.incoming) >= c.opts.MaxRequests
	if !taken && !full {
		c.incoming[key] = in
	}
	c.mu.Unlock()
	switch {
	case taken:
		cancel(nil)
		refuse(CodeInvalidRequest, "this id is in use by a request that is not answered yet")
	case full:
		cancel(nil)
		refuse(CodeInternal, fmt.Sprintf("more than %d requests at once: wait for answers before sending more", c.opts.MaxRequests))
	default:
		req := &Request{ID: m.ID, Method: m.Method, Params: m.Params, Session: c.session, Peer: c}
		c.handlers.Go(func() { // ends when the Handler returns, at the latest some time after c.ctx
			defer cancel(nil)
			c.handle(ctx, req, in)
		})
	}
}

// handle runs the Handler and sends the answer, unless the request was taken
// back meanwhile.
func (c *Conn) handle(ctx context.Context, req *Request, in *incoming) {
	result, err := c.opts.Handler.Handle(ctx, req)
	key := req.ID.Key()
	c.mu.Lock()
	wanted := c.incoming[key] == in
	if wanted {
		delete(c.incoming, key)
	}
	c.mu.Unlock()
	if !wanted {
		return
	}
	var frame []byte
	if err != nil {
		frame = AppendError(nil, req.ID, AsError(err))
	} else {
		frame = AppendResult(make([]byte, 0, len(result)+len(req.ID.text)+40), req.ID, result)
	}
	if err := c.send(c.ctx, frame); err != nil {
		c.opts.Logger.Debug("answer not sent", "method", req.Method, "err", err)
	}
}

// CancelRequest takes back one of the peer's requests, as its cancel
// notification does: its context ends with ErrCanceled and it gets no answer.
// It reports whether there was such a request.
func (c *Conn) CancelRequest(id ID) bool {
	key := id.Key()
	c.mu.Lock()
	in := c.incoming[key]
	delete(c.incoming, key)
	c.mu.Unlock()
	if in == nil {
		return false
	}
	in.cancel(ErrCanceled)
	return true
}
