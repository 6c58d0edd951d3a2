package mcphttp

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const (
	// maxRunning is how many requests of one session may be in the works,
	// as on a stdio connection.
	maxRunning = 1024
	// Streams whose request is answered can be resumed for a while, some of
	// each session and so many bytes in all.
	maxDoneStreams = 8
	maxDoneBytes   = 256 << 20
	doneStreamTime = time.Minute
)

var errDropped = errors.New("the request was dropped before the client fetched it: too much was waiting for it")

// serverSession is one session: what an Mcp-Session-Id names.
type serverSession struct {
	public    *jsonrpc.Session
	principal string
	sse       bool          // its id is good for the endpoints of SSE only, else for all but those
	version   mcp.Version   // set before the session is registered
	standing  *sseStream    // what belongs to no request; GET reads it
	notes     chan struct{} // one slot: taken while a notification is handled
	kept      *atomic.Int64 // bytes of done streams in all sessions

	mu       sync.Mutex // guards the fields below
	closed   bool
	running  map[*serverCall]struct{} // what ends when the session does
	byID     map[string]*serverCall   // requests among them, by the key of their id
	asked    map[int64]chan askReply  // our requests that wait for an answer
	lastAsk  int64
	streams  map[string]*sseStream // of requests, by prefix of event ids; resumable versions only
	streamNo int64
	done     []doneStream // the oldest first

	// Guarded by the mu of the table the session is in.
	active   int // HTTP requests at work
	lastUsed time.Time
}

// serverCall is something that runs for a session.
type serverCall struct {
	key    string // of the request's id; "": a notification
	cancel context.CancelCauseFunc
}

type askReply struct {
	message jsonrpc.Message
	err     error
}

type doneStream struct {
	prefix string
	size   int64
	at     time.Time
}

func newServerSession(principal string, kept *atomic.Int64, o *HandlerOptions) *serverSession {
	s := &serverSession{
		principal: principal,
		kept:      kept,
		standing:  newSSEStream(o.QueueMessages, o.QueueBytes),
		notes:     make(chan struct{}, 1),
		running:   make(map[*serverCall]struct{}),
		byID:      make(map[string]*serverCall),
		asked:     make(map[int64]chan askReply),
		streams:   make(map[string]*sseStream),
	}
	s.standing.standing = true
	s.standing.lost = func(n int64) { s.settle(n, askReply{err: errDropped}) }
	s.public = jsonrpc.NewSession(rand.Text(), sessionPeer{s}) // rand.Text has at least 128 random bits
	return s
}

// speak sets the version that initialize has agreed on.
func (s *serverSession) speak(v mcp.Version) {
	s.version = v
	if v.HasPriming() {
		s.standing.resumable("0-")
	}
}

// begin notes that something runs for the session, until end or, if the session
// ends before, its cancellation.
func (s *serverSession) begin(id jsonrpc.ID, cancel context.CancelCauseFunc) (*serverCall, *refusal) {
	c := &serverCall{cancel: cancel}
	if !id.IsZero() {
		c.key = id.Key()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, sessionNotFound()
	case c.key != "" && s.byID[c.key] != nil:
		return nil, refused(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
			"this id is in use by a request that is not answered yet")
	case len(s.running) >= maxRunning:
		return nil, refused(http.StatusTooManyRequests, jsonrpc.CodeInternal,
			"more than %d requests at once in this session: wait for answers before sending more", maxRunning)
	}
	s.running[c] = struct{}{}
	if c.key != "" {
		s.byID[c.key] = c
	}
	return c, nil
}

func (s *serverSession) end(c *serverCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, c)
	if s.byID[c.key] == c {
		delete(s.byID, c.key)
	}
}

// cancelRequest takes back a request of the client, as notifications/cancelled
// asks for.
func (s *serverSession) cancelRequest(params jsonrpc.Object) {
	id, err := jsonrpc.ParseID(params.Get("requestId"))
	if err != nil {
		return
	}
	s.mu.Lock()
	c := s.byID[id.Key()]
	s.mu.Unlock()
	if c != nil {
		c.cancel(jsonrpc.ErrCanceled)
	}
}

// close ends the session and all that belongs to it.
func (s *serverSession) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	running := s.running
	s.running = make(map[*serverCall]struct{})
	asked := s.asked
	s.asked = make(map[int64]chan askReply)
	s.expireLocked(0)
	s.mu.Unlock()
	s.public.Close()
	for c := range running {
		c.cancel(jsonrpc.ErrSessionClosed)
	}
	for _, reply := range asked {
		reply <- askReply{err: jsonrpc.ErrSessionClosed} // has room: one reply per request
	}
	s.standing.end()
}

// newStream returns the stream of a request, which the client can resume if the
// session's version has that.
func (s *serverSession) newStream(o *HandlerOptions) *sseStream {
	stream := newSSEStream(o.QueueMessages, o.QueueBytes)
	stream.lost = s.standing.lost
	if !s.version.HasPriming() {
		return stream
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streamNo++
	prefix := strconv.FormatInt(s.streamNo, 36) + "-"
	stream.resumable(prefix)
	s.streams[prefix] = stream
	return stream
}

// finished says that a request's stream has all it will have. It can be resumed
// for some time.
func (s *serverSession) finished(stream *sseStream) {
	if !s.version.HasPriming() {
		return
	}
	size := stream.size()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.kept.Add(size) > maxDoneBytes {
		s.kept.Add(-size)
		delete(s.streams, stream.prefix)
		return
	}
	s.done = append(s.done, doneStream{stream.prefix, size, time.Now()})
	s.expireLocked(maxDoneStreams)
}

// expireLocked forgets the oldest done streams, down to a number, and those that
// are too old to resume.
func (s *serverSession) expireLocked(most int) {
	for len(s.done) > 0 && (len(s.done) > most || time.Since(s.done[0].at) > doneStreamTime) {
		s.kept.Add(-s.done[0].size)
		delete(s.streams, s.done[0].prefix)
		s.done = s.done[1:]
	}
}

// resume returns the stream that an event id belongs to and the event's number.
func (s *serverSession) resume(eventID string) (*sseStream, uint64, bool) {
	prefix, number, ok := eventNumber(eventID)
	if !ok {
		return nil, 0, false
	}
	if prefix == s.standing.prefix {
		return s.standing, number, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(maxDoneStreams)
	stream := s.streams[prefix]
	return stream, number, stream != nil
}

// expire forgets streams that are too old to resume.
func (s *serverSession) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expireLocked(maxDoneStreams)
}

// answered hands the client's answer to the request that waits for it.
func (s *serverSession) answered(m *jsonrpc.Message) bool {
	n, ok := m.ID.Int()
	return ok && s.settle(n, askReply{message: *m})
}

// settle ends one of our requests; false if it has ended already.
func (s *serverSession) settle(n int64, r askReply) bool {
	s.mu.Lock()
	reply := s.asked[n]
	delete(s.asked, n)
	s.mu.Unlock()
	if reply == nil {
		return false
	}
	reply <- r // has room: one reply per request
	return true
}

// newAsk returns the number of a new request of ours, and where its answer goes.
func (s *serverSession) newAsk() (int64, <-chan askReply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, nil, jsonrpc.ErrSessionClosed
	}
	s.lastAsk++
	reply := make(chan askReply, 1)
	s.asked[s.lastAsk] = reply
	return s.lastAsk, reply, nil
}

// ask sends the request numbered n to the client on a stream and waits for the
// answer. When ctx ends first, the client is told.
func (s *serverSession) ask(ctx context.Context, stream *sseStream, n int64, reply <-chan askReply, method string, params jsontext.Value) (jsonrpc.Object, error) {
	id := jsonrpc.IntID(n)
	if err := stream.send(jsonrpc.AppendRequest(nil, id, method, params), n); err != nil {
		s.settle(n, askReply{err: err})
		return jsonrpc.Object{}, err
	}
	var r askReply
	select {
	case r = <-reply:
	case <-ctx.Done():
		if s.settle(n, askReply{err: context.Cause(ctx)}) {
			_ = stream.send(appendCanceled(nil, id, context.Cause(ctx).Error()), 0) // nobody waits for it
		}
		r = <-reply // there by now, whoever was first
	}
	switch {
	case r.err != nil:
		return jsonrpc.Object{}, r.err
	case r.message.Error != nil:
		return jsonrpc.Object{}, r.message.Error
	}
	return r.message.Result, nil
}

// sessionPeer sends what belongs to no request.
type sessionPeer struct{ s *serverSession }

func (p sessionPeer) Notify(_ context.Context, method string, params jsontext.Value) error {
	err := p.s.standing.send(jsonrpc.AppendNotification(nil, method, params), 0)
	if errors.Is(err, errAnswered) {
		return jsonrpc.ErrSessionClosed
	}
	return err
}

func (p sessionPeer) Call(ctx context.Context, method string, params jsontext.Value) (jsonrpc.Object, error) {
	n, reply, err := p.s.newAsk()
	if err != nil {
		return jsonrpc.Object{}, err
	}
	return p.s.ask(ctx, p.s.standing, n, reply, method, params)
}

func sessionNotFound() *refusal {
	return refused(http.StatusNotFound, mcp.CodeSessionNotFound,
		"session not found: it has ended or never was; begin a new one with initialize, without %s", "Mcp-Session-Id")
}
