package mcphttp

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/mcp-roster/roster/jsonrpc"
)

// What a stream keeps for a client that is not there: to read it later, or to
// resume behind an event that was sent but may not have arrived. It is never more
// than half of what may wait for a writer, so that a client that comes back has
// time to read it.
const (
	maxKeptEvents = 512
	maxKeptBytes  = 1 << 20
)

var (
	errAnswered = errors.New("the request is answered: nothing more can be sent on its stream")
	errGone     = errors.New("the client has left the stream")
	errSlow     = errors.New("the client reads too slowly: its stream was dropped")
)

// sseEvent is one message on a stream. Its id is its number in the stream.
type sseEvent struct {
	data []byte // one JSON message without line breaks; never written to
	call int64  // the number of our request in it, 0: it is none
}

// sseStream is a stream of server-sent events as its senders see it: a queue
// that never makes them wait. An sseWriter takes from it for one HTTP response
// at a time.
type sseStream struct {
	maxEvents, maxBytes   int         // what may wait while a writer is at work
	keepEvents, keepBytes int         // what is kept for a client that may come back
	lost                  func(int64) // told of requests of ours that were dropped unsent; may be nil

	mu        sync.Mutex // guards the fields below
	prefix    string     // of event ids; "": events have none and are not kept once sent
	standing  bool       // outlives its writers even if events have no ids
	events    []sseEvent // numbers first, first+1, ...
	first     uint64     // number of events[0]
	next      uint64     // number of the first event that no writer has taken
	sentBytes int        // of the events before next
	waitBytes int        // of those from next on
	busy      bool       // the writer is at work on what it took last
	writer    *sseWriter // nil: no client is attached
	ended     bool       // no event will be added
	gone      error      // why no writer will come any more
}

func newSSEStream(maxEvents, maxBytes int) *sseStream {
	return &sseStream{
		maxEvents: maxEvents, maxBytes: maxBytes,
		keepEvents: min(maxKeptEvents, maxEvents/2), keepBytes: min(maxKeptBytes, maxBytes/2),
		first: 1, next: 1,
	}
}

// resumable makes the stream keep what it sent, and gives its events ids that
// begin with prefix. It is called before the first writer.
func (s *sseStream) resumable(prefix string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prefix = prefix
}

// send queues a message. If the client has let too much pile up, it is cut off.
func (s *sseStream) send(data []byte, call int64) error {
	data = oneLine(data)
	s.mu.Lock()
	switch {
	case s.ended:
		s.mu.Unlock()
		return errAnswered
	case s.gone != nil:
		s.mu.Unlock()
		return s.gone
	}
	s.addLocked(data, call)
	var slow *sseWriter
	var dropped []int64
	if s.writer != nil && s.overfullLocked() {
		slow = s.writer
		dropped = s.detachLocked(errSlow)
	}
	dropped = append(dropped, s.trimLocked()...)
	writer := s.writer
	s.mu.Unlock()
	s.report(dropped)
	if slow != nil {
		slow.abort(errSlow)
		return errSlow
	}
	writer.wake()
	return nil
}

// end queues the last messages, which no bound keeps out, and ends the stream
// behind them.
func (s *sseStream) end(last ...[]byte) {
	for i := range last {
		last[i] = oneLine(last[i])
	}
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	if s.gone == nil {
		for _, data := range last {
			s.addLocked(data, 0)
		}
	}
	s.ended = true
	writer := s.writer
	s.mu.Unlock()
	writer.wake()
}

// answer queues a message that no bound keeps out.
func (s *sseStream) answer(data []byte) {
	data = oneLine(data)
	s.mu.Lock()
	if s.gone == nil && !s.ended {
		s.addLocked(data, 0)
	}
	writer := s.writer
	s.mu.Unlock()
	writer.wake()
}

func (s *sseStream) addLocked(data []byte, call int64) {
	s.events = append(s.events, sseEvent{data: data, call: call})
	s.waitBytes += len(data)
}

// overfullLocked reports whether more waits than may, beyond the message that is
// being written.
func (s *sseStream) overfullLocked() bool {
	sent := int(s.next - s.first)
	n, size := len(s.events)-sent, s.waitBytes
	if !s.busy && n > 0 { // the writer is about to take it
		n--
		size -= len(s.events[sent].data)
	}
	return n > s.maxEvents || size > s.maxBytes
}

// trimLocked forgets events beyond what may be kept, the oldest first, but never
// the newest one. It returns our requests among those that were never sent.
func (s *sseStream) trimLocked() (dropped []int64) {
	for s.first < s.next && (s.prefix == "" ||
		len(s.events) > 1 && (int(s.next-s.first) > s.keepEvents || s.sentBytes > s.keepBytes)) {
		s.sentBytes -= len(s.events[0].data)
		s.shiftLocked()
	}
	if s.writer != nil {
		return nil
	}
	for len(s.events) > 1 && (len(s.events) > s.keepEvents || s.sentBytes+s.waitBytes > s.keepBytes) {
		if s.first < s.next {
			s.sentBytes -= len(s.events[0].data)
		} else {
			s.waitBytes -= len(s.events[0].data)
			if call := s.events[0].call; call != 0 {
				dropped = append(dropped, call)
			}
			s.next++
		}
		s.shiftLocked()
	}
	return dropped
}

func (s *sseStream) shiftLocked() {
	s.events[0] = sseEvent{}
	s.events = s.events[1:]
	s.first++
}

// size returns how many bytes the stream keeps.
func (s *sseStream) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.sentBytes + s.waitBytes)
}

func (s *sseStream) report(dropped []int64) {
	if s.lost != nil {
		for _, call := range dropped {
			s.lost(call)
		}
	}
}

// attach gives the stream to a writer, in place of the one before. With resume
// the events behind number after are sent again, as far as they are kept.
func (s *sseStream) attach(w *sseWriter, resume bool, after uint64) {
	s.mu.Lock()
	old := s.writer
	s.writer, s.busy = w, false
	if resume {
		s.seekLocked(after + 1)
	}
	w.prefix, w.number = s.prefix, s.next
	s.mu.Unlock()
	old.replace()
}

func (s *sseStream) seekLocked(number uint64) {
	number = min(max(number, s.first), s.first+uint64(len(s.events)))
	for s.next > number {
		s.next--
		n := len(s.events[s.next-s.first].data)
		s.sentBytes, s.waitBytes = s.sentBytes-n, s.waitBytes+n
	}
	for s.next < number {
		n := len(s.events[s.next-s.first].data)
		s.sentBytes, s.waitBytes = s.sentBytes+n, s.waitBytes-n
		s.next++
	}
}

// take moves events that wait to the writer: at least one if there is one, more
// while they are small. io.EOF says that nothing will come after them for this
// writer, another error that the client has lost the stream.
func (s *sseStream) take(w *sseWriter) (events []sseEvent, number uint64, err error) {
	const most, mostBytes = 64, 64 << 10
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.writer == w:
	case s.gone != nil:
		return nil, 0, s.gone
	default:
		return nil, 0, io.EOF
	}
	number = s.next
	size := 0
	for len(events) < most && int(s.next-s.first) < len(s.events) {
		e := s.events[s.next-s.first]
		if size += len(e.data); len(events) > 0 && size > mostBytes {
			break
		}
		events = append(events, e)
		s.sentBytes += len(e.data)
		s.waitBytes -= len(e.data)
		s.next++
	}
	s.busy = len(events) > 0
	s.trimLocked() // with a writer attached nothing unsent is dropped
	if s.ended && int(s.next-s.first) == len(s.events) {
		err = io.EOF
	}
	return events, number, err
}

// detach takes the stream from a writer whose client has gone.
func (s *sseStream) detach(w *sseWriter, cause error) {
	s.mu.Lock()
	if s.writer != w {
		s.mu.Unlock()
		return
	}
	dropped := append(s.detachLocked(cause), s.trimLocked()...)
	s.mu.Unlock()
	s.report(dropped)
}

// detachLocked leaves the stream without a writer, which is the end of one that
// no other can take up. It returns our requests that were never sent.
func (s *sseStream) detachLocked(cause error) (dropped []int64) {
	s.writer, s.busy = nil, false
	if s.prefix != "" || s.standing {
		return nil
	}
	s.gone = cause
	for _, e := range s.events {
		if e.call != 0 {
			dropped = append(dropped, e.call)
		}
	}
	s.events, s.sentBytes, s.waitBytes, s.first = nil, 0, 0, s.next
	return dropped
}

// eventNumber splits an event id into the prefix of its stream and its number.
func eventNumber(id string) (stream string, number uint64, ok bool) {
	for i := len(id) - 1; i > 0; i-- {
		if id[i] == '-' {
			n, err := strconv.ParseUint(id[i+1:], 10, 64)
			return id[:i+1], n, err == nil
		}
	}
	return "", 0, false
}

// oneLine returns a JSON message without line breaks, which can only stand
// between its tokens and would end a line of the event.
func oneLine(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	out := bytes.Clone(data)
	for i, c := range out {
		if c == '\n' || c == '\r' {
			out[i] = ' '
		}
	}
	return out
}

// appendMessages joins messages to a JSON array.
func appendMessages(dst []byte, messages [][]byte) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m...)
	}
	return append(dst, ']')
}

// appendCanceled appends the notification that takes a request of ours back.
func appendCanceled(dst []byte, id jsonrpc.ID, reason string) []byte {
	params := append([]byte(`{"requestId":`), id.Raw()...)
	params = append(params, `,"reason":`...)
	params = append(jsonrpc.AppendString(params, reason), '}')
	return jsonrpc.AppendNotification(dst, "notifications/cancelled", params)
}
