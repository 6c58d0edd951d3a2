package jsonrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Stream carries whole frames, one message each. ReadFrame and WriteFrames are
// each called by one goroutine at a time, not always the same; Close may come
// from any goroutine, more than once, and makes both return.
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
	// Route, if set, chooses who answers a request of the peer instead of
	// Handler, on the goroutine that reads, in order with the responses. It must
	// not block. nil from it: CodeMethodNotFound.
	Route func(m *Message) Handler
	// Notification gets each notification on the goroutine that reads, in
	// order with the responses. It must not block. nil: they go to the
	// Handler; those that come while 1,024 of them or 16 MiB wait are dropped.
	Notification func(m *Message)
	// Invalid is told, on the goroutine that reads, of frames that were
	// dropped: not a message, or a response to nothing. It must not block.
	Invalid func(frame []byte, err error)
	// MuteInvalid: a frame that is no message, and has no id to answer to,
	// gets no error back, because the peer may mix other output with its
	// messages.
	MuteInvalid bool
	// Cancel is how requests are taken back, in both directions.
	Cancel CancelNotification
	// First is the method of the request that a peer begins with, if its protocol
	// has one: what comes after it is handed to the Handler when it is handled,
	// so that a peer need not wait for the answer before it sends more.
	First string
	// MaxRequests is how many of the peer's requests may be in the works,
	// which a cancelled one is until its Handler returns; one more is refused
	// with CodeInternal. 0: 1,024.
	MaxRequests int
	// MaxQueue and MaxQueueBytes are how many frames, and how many bytes of
	// them, wait behind the write under way before senders wait, too. The
	// frame that reaches the second limit is still taken. 0: 1,024 and 16 MiB.
	MaxQueue      int
	MaxQueueBytes int
	// Logger gets what happens off the request path. nil: nothing.
	Logger *slog.Logger
}

const (
	// drainTime is how long a connection whose peer has stopped sending waits
	// for its requests to be answered and the answers to be written.
	drainTime = 5 * time.Second

	// lameTime is how long a connection that cannot write goes on reading.
	lameTime = time.Second

	// maxNotes and maxNoteBytes bound the notifications that wait for the
	// Handler.
	maxNotes     = 1024
	maxNoteBytes = 16 << 20
)

// ErrClosed is returned for calls on a Conn that has ended; Conn.Err has why.
var ErrClosed = errors.New("connection closed")

// Conn is one JSON-RPC connection over a Stream, in both directions: requests
// sent with Call, the peer's requests answered by a Handler. One goroutine
// reads and one writes; each request of the peer has its own. Nothing that the
// peer does or fails to do makes the reader wait.
type Conn struct {
	stream  Stream
	opts    ConnOptions
	session *Session
	ctx     context.Context // of the connection; ends when it closes
	cancel  context.CancelCauseFunc
	out     *outbox
	notes   chan *note     // notifications for the Handler; nil: it gets none
	tasks   sync.WaitGroup // every goroutine of the connection
	wires   atomic.Int32   // how many of reader and writer run
	ended   chan struct{}  // closed when the reader and the writer have returned
	idle    chan struct{}  // closed when the reader has ended and no Handler runs

	noteBytes atomic.Int64 // in notes
	begun     *incoming    // the last request with the method First; only the reader uses it
	waiters   sync.Pool    // of *waiter

	mu       sync.Mutex // guards the fields below
	lastID   int64
	pending  map[int64]*waiter
	incoming map[string]*incoming // by ID.Key; those that want an answer
	running  int                  // how many requests are being handled
	deaf     bool                 // no reply can come any more
}

// NewConn starts a connection; it ends when the stream does, when ctx does, or
// with Close. Values of ctx reach the Handler.
func NewConn(ctx context.Context, stream Stream, opts ConnOptions) *Conn {
	opts.MaxRequests = cmp.Or(opts.MaxRequests, 1024)
	opts.MaxQueue = cmp.Or(opts.MaxQueue, 1024)
	opts.MaxQueueBytes = cmp.Or(opts.MaxQueueBytes, 16<<20)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Conn{
		stream: stream, opts: opts,
		ended:    make(chan struct{}),
		idle:     make(chan struct{}),
		pending:  make(map[int64]*waiter),
		incoming: make(map[string]*incoming),
	}
	c.waiters.New = func() any { return &waiter{done: make(chan struct{}, 1)} }
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.session = NewSession("", c)
	c.out = newOutbox(stream, opts.MaxQueue, opts.MaxQueueBytes, c.writeFailed)
	c.wires.Store(2)
	if opts.Handler != nil && opts.Notification == nil {
		c.notes = make(chan *note, maxNotes)
		c.tasks.Go(c.handleNotes) // ends with c.ctx
	}
	c.tasks.Go(c.read)  // ends when the stream does
	c.tasks.Go(c.write) // ends with c.ctx
	c.tasks.Add(1)
	context.AfterFunc(c.ctx, c.shut)
	return c
}

// Session is the connection as the Handler sees it. It is done when the peer
// has stopped sending, even if requests of it are still to be answered.
func (c *Conn) Session() *Session { return c.session }

// Done is closed when the connection has ended and no reply will come any more.
func (c *Conn) Done() <-chan struct{} { return c.ended }

// Err returns why the connection ended: nil while it is open and after Close or
// an orderly end of the stream.
func (c *Conn) Err() error {
	err := context.Cause(c.ctx)
	if err == nil || err == ErrClosed || errors.Is(err, io.EOF) { //nolint:errorlint // what wraps it has a reason to tell
		return nil
	}
	return err
}

// Close ends the connection and waits for its goroutines, handlers included, so
// a Handler must not call it. Frames that wait to be written are dropped.
func (c *Conn) Close() error {
	c.cancel(ErrClosed)
	c.tasks.Wait()
	return c.Err()
}

// shut releases whoever waits for the connection once its context has ended.
func (c *Conn) shut() {
	defer c.tasks.Done()
	c.out.close(c.closedError())
	c.failPending()
	if err := c.stream.Close(); err != nil {
		c.opts.Logger.Debug("closing the stream", "err", err)
	}
}

func (c *Conn) closedError() error {
	if err := c.Err(); err != nil {
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
	return ErrClosed
}

func (c *Conn) wireEnded() {
	if c.wires.Add(-1) == 0 {
		close(c.ended)
	}
}

// write is the writer.
func (c *Conn) write() {
	defer c.wireEnded()
	for {
		select {
		case <-c.out.wake:
			c.out.flush()
		case <-c.ctx.Done():
			return
		}
	}
}

// writeFailed ends a connection that cannot write, but not at once: what the
// peer has said before it went can still be read.
func (c *Conn) writeFailed(err error) {
	time.AfterFunc(lameTime, func() { c.cancel(err) })
}

// read is the reader: it hands out and never waits.
func (c *Conn) read() {
	defer c.wireEnded()
	for {
		frame, err := c.stream.ReadFrame()
		if err != nil {
			c.finish(err)
			return
		}
		if m, err := Parse(frame); err != nil {
			c.invalid(m, frame, err)
		} else {
			c.dispatch(m, frame)
		}
	}
}

// finish ends the connection behind the last frame. After an orderly end the
// requests that came before it are still answered, for at most drainTime.
func (c *Conn) finish(err error) {
	c.session.Close()
	if !errors.Is(err, io.EOF) {
		c.cancel(err) // first, so that the calls that fail now know why
		c.failPending()
		return
	}
	c.failPending()
	timeout := time.NewTimer(drainTime)
	defer timeout.Stop()
	select {
	case <-c.idle:
	case <-c.out.broken:
	case <-timeout.C:
	case <-c.ctx.Done():
	}
	select {
	case <-c.out.drained():
	case <-timeout.C:
	case <-c.ctx.Done():
	}
	if cause := c.out.failure(); cause != nil {
		err = cause
	}
	c.cancel(err)
}

// dispatch hands one message to who waits for it.
func (c *Conn) dispatch(m Message, frame []byte) {
	switch {
	case m.IsRequest():
		c.request(m)
	case m.IsNotification():
		c.notification(m, len(frame))
	default:
		if !c.resolve(m) {
			c.dropped(frame, fmt.Errorf("a response to the id %q, under which no call waits", m.ID))
		}
	}
}

// invalid answers a frame that is not a message, if the peer can tell what the
// answer is about; a reply that cannot be read still ends the call it is for.
func (c *Conn) invalid(m Message, frame []byte, err error) {
	c.dropped(frame, err)
	e := AsError(err)
	switch {
	case m.Error != nil:
		c.resolve(m) // and no answer to an answer
	case !m.ID.IsZero():
		c.refuse(m.ID, e)
	case e.Code == CodeInvalidParams: // of a notification
	case c.opts.Handler != nil && !c.opts.MuteInvalid:
		c.refuse(m.ID, e)
	}
}

func (c *Conn) dropped(frame []byte, err error) {
	if c.opts.Invalid != nil {
		c.opts.Invalid(frame, err)
	}
}

// refuse answers from the reader, which must not wait: a peer that sends what we
// must refuse, and does not read the refusals, loses them.
func (c *Conn) refuse(id ID, e *Error) {
	c.out.offer(&frame{AppendError(nil, id, e)})
}
