package server

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Source is what a Server serves. Its methods are called from any number of
// goroutines at once.
type Source interface {
	// Info describes the source as it is now.
	Info() Info

	// List returns one page of a list, complete as the result of the request
	// in the caller's version. cursor is nil for the first page. A cursor that
	// the source did not give out for this kind is an error with code -32602.
	List(ctx context.Context, req *Request, kind mcp.Kind, cursor *string) (jsontext.Value, error)

	// Do answers tools/call, prompts/get, resources/read and
	// completion/complete. The result is an indexed object, as read off a wire
	// or by jsonrpc.ParseObject; the server adds to it what the caller's version
	// requires. An *InputRequired for an error has a stateless client send the
	// request again with more.
	Do(ctx context.Context, req *Request) (jsonrpc.Object, error)

	// Fingerprint identifies what List returns, over all pages, to the client
	// of a request: it is equal as long as every byte is. It does not wait for
	// anything. The request of a client with a session may be the one that began
	// it, without its params.
	Fingerprint(req *Request, kind mcp.Kind) uint64

	// Watch has signal called whenever a fingerprint may have changed, of
	// whichever client, until stop is called. signal does not block.
	Watch(signal func()) (stop func())
}

// ParamSource is a Source that knows which arguments of its tools HTTP clients
// repeat in headers. The server then compares the two.
type ParamSource interface {
	// ParamHeaders returns the annotated parameters of a tool; nil if it has
	// none or is unknown.
	ParamHeaders(req *Request, tool string) []mcp.ParamHeader
}

// Info describes a Source.
type Info struct {
	// Implementation names the server software: an object with name and
	// version (2026-07-28, schema, Implementation). It does not change.
	Implementation jsontext.Value
	// Capabilities is the ServerCapabilities object.
	Capabilities jsontext.Value
	// Instructions say how to use the server; "" if there are none.
	Instructions string
	// Hints are those of server/discover.
	Hints mcp.Hints
}

// Request is a request on its way to a Source.
type Request struct {
	*jsonrpc.Request
	// Caller is who asks, whichever way its version has of saying so.
	Caller mcp.Caller

	state *session // nil: the request stands alone
}

// ResourceWatcher is a Source that tells of changes to what resources hold. The
// server then answers resources/subscribe, and takes resourceSubscriptions in
// subscriptions/listen.
type ResourceWatcher interface {
	// WatchResource has updated called, with the params of the notification,
	// each time the resource changes, until stop is called. updated does not
	// block. That a resource cannot be watched is an error.
	WatchResource(ctx context.Context, req *Request, uri string, updated func(params jsontext.Value)) (stop func(), err error)
}

// LogSource is a Source that sends log messages. It is told of the levels that
// sessions ask for by logging/setLevel; a stateless request has its own in
// Caller.LogLevel.
type LogSource interface {
	SetLevel(req *Request, level string)
}

// NotificationSource is a Source that takes what clients with sessions tell and
// the server has no use for: progress with a request that the source made of them.
type NotificationSource interface {
	// Told is called with the notifications of one client in order, and keeps
	// the next one waiting.
	Told(ctx context.Context, req *Request)
}

// StartingSource is a Source whose List waits, at first, until its lists are
// complete. A client that wanted to be told of changes before that knows what was
// listed then.
type StartingSource interface {
	// Ready is closed when the lists of a request's client are complete.
	Ready(req *Request) <-chan struct{}
	// FirstFingerprint is what Fingerprint was at that moment. It is not called
	// before.
	FirstFingerprint(req *Request, kind mcp.Kind) uint64
}
