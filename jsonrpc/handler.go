package jsonrpc

import (
	"context"
	"errors"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// Handler answers requests and takes notifications. A wire calls Handle on a
// goroutine of the request's own, never on the one that reads the wire;
// notifications of one connection are handled one after the other, in the order
// in which they came.
type Handler interface {
	// Handle returns the raw result of a request. An error that is or wraps
	// an *Error goes out as that; any other becomes CodeInternal. For a
	// notification what Handle returns is ignored. ctx ends with
	// ErrCanceled as its cause when the peer cancelled the request: what is
	// returned then is not sent.
	Handle(ctx context.Context, req *Request) (jsontext.Value, error)
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, req *Request) (jsontext.Value, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, req *Request) (jsontext.Value, error) {
	return f(ctx, req)
}

// Request is an incoming request or notification, with what its wire knows
// about it.
type Request struct {
	ID     ID // zero: a notification
	Method string
	Params Object

	// Header has the wire's header fields under their canonical names (as
	// http.Header has them); nil on a wire that has none. The body decides;
	// headers are there to be compared with it.
	Header map[string][]string

	// Principal is who is calling, as the wire has established it; "": nobody in
	// particular.
	Principal string

	// Session is the connection the request came on; nil for a request that
	// stands alone.
	Session *Session

	// Scratch, if not nil, has memory in which the result may be built, and
	// which may grow. The wire takes it back once it has written the response:
	// nothing else may be kept there.
	Scratch *[]byte

	// Peer reaches the sender on the stream that carries this request, until
	// the request is answered. Never nil.
	Peer Peer
}

// Peer sends messages to the other end of a wire. Its methods may be called
// from any goroutine, and block no longer than ctx allows.
type Peer interface {
	// Notify sends a notification; a nil params is left out.
	Notify(ctx context.Context, method string, params jsontext.Value) error
	// Call sends a request and waits for its result. An error answer is an
	// *Error.
	Call(ctx context.Context, method string, params jsontext.Value) (Object, error)
}

// ErrCanceled is the cause of the context of a request that its sender
// cancelled.
var ErrCanceled = errors.New("request cancelled by its sender")

// ErrSessionClosed is returned for what needs a session that has ended.
var ErrSessionClosed = errors.New("session closed")

// Session is a connection with state: the process at the other end of a pair
// of pipes, or what a session id names. The wire makes and closes it; the Handler
// may keep a value in it.
type Session struct {
	// ID names the session on its wire; empty where there can be only one.
	ID string
	// Peer sends messages that belong to no request.
	Peer Peer

	mu     sync.Mutex // guards value
	value  any
	done   chan struct{}
	closed sync.Once
}

// NewSession returns an open session.
func NewSession(id string, peer Peer) *Session {
	return &Session{ID: id, Peer: peer, done: make(chan struct{})}
}

// SetValue keeps a value of the handler's with the session.
func (s *Session) SetValue(v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.value = v
}

// Value returns the value kept last, nil if there is none.
func (s *Session) Value() any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value
}

// Done is closed when the session has ended.
func (s *Session) Done() <-chan struct{} { return s.done }

// Close ends the session. The wire calls it; more than once is harmless.
func (s *Session) Close() { s.closed.Do(func() { close(s.done) }) }
