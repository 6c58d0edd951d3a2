package mcphttp

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

var errNoRequests = errors.New("the client cannot be asked: its protocol version has no requests from servers")

// exchange is one POST that has a request, or several in a batch, and the state
// of its response: open until either everything is answered and goes out as
// JSON, or something has to go out before and it becomes a stream. It is the
// Peer of its requests.
type exchange struct {
	h        *Handler
	response http.ResponseWriter
	request  *http.Request
	session  *serverSession // nil: the request stands alone
	method   string         // of its request; a batch has none
	cancel   context.CancelCauseFunc
	timer    *time.Timer // makes it a stream; nil: nothing does

	mu      sync.Mutex // guards the fields below
	closed  bool       // all is answered: nothing may be sent any more
	stream  *sseStream // nil: not a stream, or not yet
	written chan struct{}
	held    [][]byte           // answers of a batch that is not a stream
	asked   map[int64]struct{} // our requests on the stream that wait for an answer
}

// arm makes the response a stream once it has taken a while, since clients and
// proxies give up on one that does not even begin; at once for a client that
// names streams first.
func (x *exchange) arm() {
	if prefersStream(x.request.Header) {
		_, _ = x.open() // an error: it was answered just now
		return
	}
	if d := x.h.opts.StreamAfter; d > 0 {
		x.timer = time.AfterFunc(d, func() { _, _ = x.open() }) // an error: it was answered just now
	}
}

// open makes the response a stream, if it is not one.
func (x *exchange) open() (*sseStream, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case x.closed:
		return nil, errAnswered
	case x.stream != nil:
		return x.stream, nil
	}
	if x.session != nil {
		x.stream = x.session.newStream(&x.h.opts)
	} else {
		x.stream = newSSEStream(x.h.opts.QueueMessages, x.h.opts.QueueBytes)
	}
	for _, answer := range x.held {
		x.stream.answer(answer)
	}
	x.held = nil
	x.written = make(chan struct{})
	writer := newSSEWriter(x.response, x.request, x.stream, &x.h.opts)
	x.stream.attach(writer, false, 0)
	go x.write(writer) // ends with the stream, or when its client leaves or is dropped
	return x.stream, nil
}

func (x *exchange) write(writer *sseWriter) {
	defer close(x.written)
	if err := writer.run(); err != nil {
		x.h.opts.Logger.Debug("stream ended early", "method", x.method, "err", err)
		if x.session == nil {
			x.cancel(jsonrpc.ErrCanceled)
		}
	}
}

// Notify sends a notification before the answer.
func (x *exchange) Notify(_ context.Context, method string, params jsontext.Value) error {
	stream, err := x.open()
	if err != nil {
		return err
	}
	return stream.send(jsonrpc.AppendNotification(nil, method, params), 0)
}

// Call asks the client before the answer.
func (x *exchange) Call(ctx context.Context, method string, params jsontext.Value) (jsonrpc.Object, error) {
	if x.session == nil {
		return jsonrpc.Object{}, errNoRequests
	}
	stream, err := x.open()
	if err != nil {
		return jsonrpc.Object{}, err
	}
	n, reply, err := x.session.newAsk()
	if err != nil {
		return jsonrpc.Object{}, err
	}
	if !x.track(n) {
		x.session.settle(n, askReply{err: errAnswered})
		return jsonrpc.Object{}, errAnswered
	}
	defer x.untrack(n)
	return x.session.ask(ctx, stream, n, reply, method, params)
}

func (x *exchange) track(n int64) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return false
	}
	if x.asked == nil {
		x.asked = make(map[int64]struct{})
	}
	x.asked[n] = struct{}{}
	return true
}

func (x *exchange) untrack(n int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.asked, n)
}

// answer takes the answer to one request of a batch.
func (x *exchange) answer(message []byte) {
	x.mu.Lock()
	stream := x.stream
	if stream == nil {
		x.held = append(x.held, message)
	}
	x.mu.Unlock()
	if stream != nil {
		stream.answer(message)
	}
}

// close ends what can be sent. A nil stream says that the response is still to
// be written, as JSON. Our requests that are open are taken back.
func (x *exchange) close() (stream *sseStream, held [][]byte) {
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Lock()
	x.closed = true
	stream, held = x.stream, x.held
	asked := x.asked
	x.asked = nil
	x.mu.Unlock()
	for n := range asked {
		if x.session.settle(n, askReply{err: errAnswered}) {
			_ = stream.send(appendCanceled(nil, jsonrpc.IntID(n), "the request it was asked for has ended"), 0)
		}
	}
	return stream, held
}

// finish ends a stream and waits until its client has it, or has left.
func (x *exchange) finish(stream *sseStream, last ...[]byte) {
	stream.end(last...)
	if x.session != nil {
		x.session.finished(stream)
	}
	<-x.written
}

// respond answers the one request. That it was cancelled is the reason for an
// answer without a message.
func (x *exchange) respond(id jsonrpc.ID, result jsontext.Value, err error, canceled bool) {
	stream, _ := x.close()
	switch {
	case canceled && stream != nil:
		x.finish(stream)
	case canceled:
		noMessage(x.response)
	case stream != nil:
		x.finish(stream, appendAnswer(nil, id, result, err))
	default:
		status := http.StatusOK
		if err != nil && x.session == nil {
			status = errorStatus(jsonrpc.AsError(err))
		}
		gather(x.response, x.request, len(result), func() { x.writeAnswer(status, id, result, err) })
	}
}

func (x *exchange) writeAnswer(status int, id jsonrpc.ID, result jsontext.Value, err error) {
	buf := x.h.buffers.get()
	defer x.h.buffers.put(buf)
	if err == nil && len(result) > bigAnswer {
		buf.b = jsonrpc.AppendResultPrefix(buf.b, id)
		writeWhole(x.response, status, x.h.opts.WriteTimeout, buf.b, result, resultSuffix)
		return
	}
	buf.b = appendAnswer(buf.b, id, result, err)
	writeWhole(x.response, status, x.h.opts.WriteTimeout, buf.b)
}

// respondAll answers a batch with what was kept of its answers.
func (x *exchange) respondAll() {
	stream, held := x.close()
	switch {
	case stream != nil:
		x.finish(stream)
	case len(held) == 0:
		noMessage(x.response)
	default:
		writeWhole(x.response, http.StatusOK, x.h.opts.WriteTimeout, appendMessages(nil, held))
	}
}

// noMessage is the response to what was cancelled: a stream of nothing.
func noMessage(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache, no-transform")
	w.WriteHeader(http.StatusOK)
}

// writeWhole writes a JSON response. A big one, which the connection does not
// take in at once, has to be read in time.
func writeWhole(w http.ResponseWriter, status int, timeout time.Duration, parts ...[]byte) {
	const big, rate = 64 << 10, 8 << 10 // bytes; bytes a second
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size > big {
		allowed := timeout + time.Duration(size/rate)*time.Second
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(allowed)) // unsupported: the server's own limits hold
	}
	writeParts(w, status, parts...)
}

// bigAnswer is the length from which writing a result by itself costs less than
// copying it next to its id.
const bigAnswer = 32 << 10

var resultSuffix = []byte{'}'}

func appendAnswer(dst []byte, id jsonrpc.ID, result jsontext.Value, err error) []byte {
	switch {
	case err != nil:
		return jsonrpc.AppendError(dst, id, jsonrpc.AsError(err))
	case len(result) == 0:
		return jsonrpc.AppendResult(dst, id, jsontext.Value("{}"))
	}
	return jsonrpc.AppendResult(dst, id, result)
}

// errorStatus returns the HTTP status for a handler's error to a request that
// stands alone (2026-07-28, basic/transports/streamable-http).
func errorStatus(err *jsonrpc.Error) int {
	switch err.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// bufferPool has buffers for responses that are written in one go.
type bufferPool struct{ pool sync.Pool }

type responseBuffer struct{ b []byte }

func (p *bufferPool) get() *responseBuffer {
	if buf, ok := p.pool.Get().(*responseBuffer); ok {
		return buf
	}
	return new(responseBuffer)
}

// put takes a buffer back, unless it has grown so big that it is better freed.
func (p *bufferPool) put(buf *responseBuffer) {
	if cap(buf.b) <= 1<<20 {
		buf.b = buf.b[:0]
		p.pool.Put(buf)
	}
}
