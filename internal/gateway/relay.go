package gateway

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// maxNotes is how many notifications of one call may wait for its client; what
// comes beyond is dropped, since the goroutine that brings it must not wait.
const maxNotes = 1024

// relay brings what a server says during a call to the call's client, in order,
// and before the call's result. It has a goroutine only if the server says
// something.
type relay struct {
	r    *server.Request
	ctx  context.Context // of the request, for its values
	done chan struct{}   // closed when all is with the client; nil: nothing was said

	mu     sync.Mutex // guards the fields below
	notes  chan note  // nil: nothing was said yet
	closed bool
}

type note struct {
	method string
	params jsontext.Value
}

func newRelay(ctx context.Context, r *server.Request) *relay { return &relay{ctx: ctx, r: r} }

// push takes a notification. It does not block.
func (l *relay) push(method string, params jsonrpc.Object) {
	if method == mcp.MethodMessage && !wantsMessage(l.r.Caller, params) {
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
	select {
	case l.notes <- note{method, params.Raw}:
	default:
	}
}

// run brings the notes to the client. The wire bounds how long that may take: a
// client that does not read is dropped.
func (l *relay) run(notes <-chan note, done chan<- struct{}) {
	defer close(done)
	ctx := context.WithoutCancel(l.ctx)
	for n := range notes {
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

// wantsMessage reports whether a caller wants a log message: a stateless one if
// it named a level, one with a session if it named no higher one.
func wantsMessage(c mcp.Caller, params jsonrpc.Object) bool {
	if c.LogLevel == "" {
		return !c.Version.Stateless()
	}
	level, _ := params.Text("level")
	return slices.Index(logLevels, level) >= slices.Index(logLevels, c.LogLevel)
}
