package mcphttp

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// reconnectTime is what clients are told to wait before they resume a stream.
const reconnectTime = 1000 * time.Millisecond

// sseWriter writes a stream as the response to one HTTP request. Its run method
// is the only one that touches the response; what others do to it, they do by
// its channels and the connection's deadline.
type sseWriter struct {
	stream    *sseStream
	response  http.ResponseWriter
	control   *http.ResponseController
	gone      <-chan struct{} // closed when the client has left
	keepAlive time.Duration   // between comments on a quiet stream; 0: none
	timeout   time.Duration   // for each piece of what is written

	first  string        // an event to begin with; "": none
	more   chan struct{} // one slot: there may be something to take
	quit   chan struct{} // closed: another writer has the stream, or it was cut off
	prefix string        // of event ids; set by attach, as is number
	number uint64        // of the next event

	mu       sync.Mutex // guards the fields below and the setting of deadlines
	stopped  error      // why quit is closed
	aborted  bool
	finished bool // run has ended: the response is no longer to be touched
}

func newSSEWriter(w http.ResponseWriter, r *http.Request, s *sseStream, o *HandlerOptions) *sseWriter {
	return &sseWriter{
		stream: s, response: w, control: http.NewResponseController(w), gone: r.Context().Done(),
		keepAlive: o.KeepAlive, timeout: o.WriteTimeout,
		more: make(chan struct{}, 1), quit: make(chan struct{}),
	}
}

// wake makes run look for events. A nil writer has nobody to wake.
func (w *sseWriter) wake() {
	if w == nil {
		return
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// replace ends run after the write it is in.
func (w *sseWriter) replace() { w.stop(errGone, false) }

// abort ends run and the write it is in.
func (w *sseWriter) abort(cause error) { w.stop(cause, true) }

func (w *sseWriter) stop(cause error, now bool) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped == nil {
		w.stopped = cause
		close(w.quit)
	}
	if now && !w.finished {
		w.aborted = true
		_ = w.control.SetWriteDeadline(time.Unix(1, 0)) // unsupported: the write ends with its connection
	}
}

// extend gives the next write its time; false if there must be none.
func (w *sseWriter) extend() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.aborted {
		return false
	}
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout)) // unsupported: the server's own limits hold
	return true
}

// run writes the stream to its end. It returns nil if the client got all of it
// or another writer has taken over, else why not. The stream is detached then.
func (w *sseWriter) run() error {
	err := w.loop()
	if err != nil {
		w.stream.detach(w, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finished = true // net/http takes the deadline off the connection when the request is done
	return err
}

func (w *sseWriter) loop() error {
	if err := w.begin(); err != nil {
		return err
	}
	var quiet <-chan time.Time
	var ticker *time.Ticker
	if w.keepAlive > 0 {
		ticker = time.NewTicker(w.keepAlive)
		defer ticker.Stop()
		quiet = ticker.C
	}
	for {
		events, number, end := w.stream.take(w)
		if err := w.writeEvents(events, number); err != nil {
			return err
		}
		switch {
		case errors.Is(end, io.EOF):
			return w.cause()
		case end != nil:
			return end
		}
		if len(events) > 0 {
			if ticker != nil {
				ticker.Reset(w.keepAlive)
			}
			continue
		}
		select {
		case <-w.more:
		case <-w.quit:
			return w.cause()
		case <-w.gone:
			return errGone
		case <-quiet:
			if err := w.write(": keep-alive\n\n"); err != nil {
				return err
			}
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
}

// cause is why the writer was cut off, nil if it was not.
func (w *sseWriter) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.aborted {
		return w.stopped
	}
	return nil
}

// begin sends the header at once, and on a stream that can be resumed an event
// from which it can (2025-11-25, basic/transports, Sending Messages to the
// Server, item 6).
func (w *sseWriter) begin() error {
	h := w.response.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	if !w.extend() {
		return w.cause()
	}
	w.response.WriteHeader(http.StatusOK)
	if w.prefix != "" {
		prime := "id: " + w.prefix + strconv.FormatUint(w.number-1, 10) +
			"\nretry: " + strconv.FormatInt(reconnectTime.Milliseconds(), 10) + "\ndata:\n\n"
		if err := w.write(prime); err != nil {
			return err
		}
	}
	if err := w.write(w.first); err != nil {
		return err
	}
	return w.flush()
}

func (w *sseWriter) writeEvents(events []sseEvent, number uint64) error {
	for i, e := range events {
		head := "data: "
		if w.prefix != "" {
			head = "id: " + w.prefix + strconv.FormatUint(number+uint64(i), 10) + "\ndata: "
		}
		if err := w.write(head); err != nil {
			return err
		}
		if err := w.writeData(e.data); err != nil {
			return err
		}
		if err := w.write("\n\n"); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	return w.flush()
}

// writeData writes in pieces, each with the time that a write may take, so that
// a big message may go to a client that is slow but reads.
func (w *sseWriter) writeData(data []byte) error {
	const piece = 256 << 10
	for len(data) > 0 {
		n := min(len(data), piece)
		if !w.extend() {
			return w.cause()
		}
		if _, err := w.response.Write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (w *sseWriter) write(s string) error {
	_, err := io.WriteString(w.response, s)
	return err
}

func (w *sseWriter) flush() error {
	if !w.extend() {
		return w.cause()
	}
	if err := w.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
