package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// maxInFlight is how many requests a relay carries at once; one more gets 503.
const maxInFlight = 1024

// A relay carries JSON-RPC messages between HTTP and the pipes of one stdio
// server, and does nothing else: it looks for the id of a message, puts its
// own in its place on the way in, and the caller's back on the way out. It is
// what a gateway cannot do without, so it is what one is compared with.
//
// It trusts both sides. A request is held until its reply comes, whether or not
// its caller is still there.
type relay struct {
	child io.Writer
	gone  chan struct{} // closed when no reply can come any more

	// slots are the requests under way. The id that the server sees is the
	// index of a slot. A slot belongs to the handler that took it, but for
	// the time between its request being queued and its done being
	// signalled, in which it belongs to read.
	slots [maxInFlight]slot

	mu      sync.Mutex
	free    []int  // the slots not in use, last used on top
	pending []byte // lines that wait for the write under way to end
	spare   []byte // the buffer that will be pending next
	writing bool   // somebody is in flushLocked
}

// A slot is one request under way. Its buffers stay with it, so a relay in its
// stride allocates nothing of its own.
type slot struct {
	body           []byte // as it came from the caller
	idStart, idEnd int    // where its id is
	reply          []byte // with the caller's id
	done           chan struct{}
}

// newRelay returns a relay that writes to child; somebody must run read.
func newRelay(child io.Writer) *relay {
	r := &relay{child: child, gone: make(chan struct{}), free: make([]int, maxInFlight)}
	for i := range r.slots {
		r.slots[i].done = make(chan struct{}, 1)
		r.free[i] = maxInFlight - 1 - i
	}
	return r
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	n, ok := r.take()
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s := &r.slots[n]
	defer r.give(n)
	var err error
	if s.body, err = readBody(req, s.body[:0]); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.idStart, s.idEnd, ok = member(s.body, "id")
	if !ok {
		r.send(s.body, nil, nil)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var own [8]byte
	r.send(s.body[:s.idStart], strconv.AppendInt(own[:0], int64(n), 10), s.body[s.idEnd:])
	select {
	case <-s.done:
		writeJSON(w, s.reply)
	case <-r.gone:
		w.WriteHeader(http.StatusBadGateway)
	}
}

func (r *relay) take() (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.free) == 0 {
		return 0, false
	}
	n := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	return n, true
}

func (r *relay) give(n int) {
	r.mu.Lock()
	r.free = append(r.free, n)
	r.mu.Unlock()
}

// send queues a line of three parts and sees that it is written: by this
// goroutine if nobody is writing, else by whoever is.
func (r *relay) send(head, id, tail []byte) {
	r.mu.Lock()
	at := len(r.pending)
	r.pending = append(r.pending, head...)
	r.pending = append(r.pending, id...)
	r.pending = append(r.pending, tail...)
	oneLine(r.pending[at:])
	r.pending = append(r.pending, '\n')
	if r.writing {
		r.mu.Unlock()
		return
	}
	r.writing = true
	r.flushLocked()
}

// flushLocked writes what is pending and unlocks r.mu. What came meanwhile is
// left to a goroutine, which ends when nothing is pending: the caller's own
// reply may be there by now.
func (r *relay) flushLocked() {
	out := r.pending
	r.pending, r.spare = r.spare[:0], nil
	r.mu.Unlock()
	_, err := r.child.Write(out)
	r.mu.Lock()
	r.spare = out
	if err != nil || len(r.pending) == 0 {
		r.writing = false
		r.mu.Unlock()
		return
	}
	go func() {
		r.mu.Lock()
		r.flushLocked()
	}()
	r.mu.Unlock()
}

// read hands out the replies of the server until its output ends, and returns
// why it did. What is under way then, and whatever comes later, gets 502.
func (r *relay) read(from io.Reader) error {
	defer close(r.gone)
	in := bufio.NewReaderSize(from, 256<<10)
	var long []byte
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, line...)
			continue
		}
		if err != nil {
			return err
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		r.deliver(line[:len(line)-1])
		long = long[:0]
	}
}

// deliver gives a reply to the slot its id names; notifications are dropped.
func (r *relay) deliver(line []byte) {
	a, b, ok := member(line, "id")
	if !ok {
		return
	}
	n, ok := atoi(line[a:b])
	if !ok || n >= maxInFlight {
		return
	}
	s := &r.slots[n]
	s.reply = append(s.reply[:0], line[:a]...)
	s.reply = append(s.reply, s.body[s.idStart:s.idEnd]...)
	s.reply = append(s.reply, line[b:]...)
	s.done <- struct{}{}
}

// oneLine replaces line breaks, which can only stand between the tokens of a
// JSON text, by spaces.
func oneLine(b []byte) {
	for _, c := range []byte{'\n', '\r'} {
		for i := bytes.IndexByte(b, c); i >= 0; i = bytes.IndexByte(b, c) {
			b[i] = ' '
		}
	}
}

// atoi reads a non-negative decimal of at most nine digits.
func atoi(b []byte) (int, bool) {
	if len(b) == 0 || len(b) > 9 {
		return 0, false
	}
	n := 0
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}
