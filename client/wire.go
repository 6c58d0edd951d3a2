package client

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// Wire carries messages to one server and back. *jsonrpc.Conn is one.
type Wire interface {
	// Do sends a request and waits for its result. An error that the server
	// answered is or wraps a *jsonrpc.Error; any other is the wire's own. When
	// ctx ends first, the server is told unless call.KeepOnCancel is set.
	Do(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error)
	// Notify sends a notification; a nil params is left out.
	Notify(ctx context.Context, method string, params jsontext.Value) error
	// Done is closed when the connection has ended. A wire that has no
	// connection of its own, as HTTP has none, ends only with Close.
	Done() <-chan struct{}
	// Err says why it ended, nil if it is open or was closed by us.
	Err() error
	// Close ends the connection and fails what waits on it.
	Close() error
}

// Incoming is what a wire hands to its client. The functions are
// never nil, but for Route.
type Incoming struct {
	// Notification gets the server's notifications on the goroutine that
	// reads, in order with responses. It does not block.
	Notification func(m *jsonrpc.Message)
	// Handler answers the server's requests.
	Handler jsonrpc.Handler
	// Route, if not nil, chooses who answers a request instead; see
	// jsonrpc.ConnOptions.
	Route func(m *jsonrpc.Message) jsonrpc.Handler
	// Gap is called when messages that the server sent on its own may have
	// been lost: the wire began a new session, or a stream broke and could not
	// be resumed. It does not block.
	Gap func()
}

// Dial opens a wire to a server. ctx bounds the opening only; the wire lives
// until it is closed. It is called once or twice by a Connect.
type Dial func(ctx context.Context, in Incoming) (Wire, error)

// HTTPError is implemented by the errors of a wire over HTTP that are about a
// response whose status is not 2xx. Detection of the server's era depends on it.
type HTTPError interface {
	error
	HTTPStatus() int
	// HTTPBody returns the start of the body, as much as was kept.
	HTTPBody() []byte
}
