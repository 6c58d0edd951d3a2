package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// maxNotes and maxNoteBytes are how many notifications of one call, and how many
// bytes of them, may wait for its client; what comes beyond is dropped, since the
// goroutine that brings it must not wait.
const (
	maxNotes     = 1024
	maxNoteBytes = 16 << 20
)

// relay brings what a server says during a call to the call's client, in order,
// and before the call's result. It has a goroutine only if the server says
// something.
type relay struct {
	r    *server.Request
	ctx  context.Context // of the request, for its values
	want func(params jsonrpc.Object) bool
	size atomic.Int64  // bytes that wait
	done chan struct{} // closed when all is with the client; nil: nothing was said

	mu     sync.Mutex // guards the fields below
	notes  chan note  // nil: nothing was said yet
	closed bool
}

type note struct {
	method string
	params jsontext.Value
}

// newRelay returns a relay that passes on those log messages that are wanted.
func newRelay(ctx context.Context, r *server.Request, want func(params jsonrpc.Object) bool) *relay {
	return &relay{ctx: ctx, r: r, want: want}
}

// push takes a notification. It does not block.
func (l *relay) push(method string, params jsonrpc.Object) {
	if method == mcp.MethodMessage && !l.want(params) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return
	case l.notes == nil:
		l.notes, l.done = make(chan note, maxNotes), make(chan struct{})
		go l.run(l.notes, l.done) // ends with flush
	}
	size := int64(len(params.Raw))
	if l.size.Add(size) <= maxNoteBytes {
		select {
		case l.notes <- note{method, params.Raw}:
			return
		default:
		}
	}
	l.size.Add(-size)
}

// run brings the notes to the client. The wire bounds how long that may take: a
// client that does not read is dropped.
func (l *relay) run(notes <-chan note, done chan<- struct{}) {
	defer close(done)
	ctx := context.WithoutCancel(l.ctx)
	for n := range notes {
		l.size.Add(-int64(len(n.params)))
		_ = l.r.Peer.Notify(ctx, n.method, n.params) // a client that is gone hears of the end of its call otherwise
	}
}

// flush waits until everything pushed is with the client. What is pushed later is
// dropped.
func (l *relay) flush() {
	l.mu.Lock()
	l.closed = true
	notes, done := l.notes, l.done
	l.mu.Unlock()
	if notes != nil {
		close(notes)
		<-done
	}
}
