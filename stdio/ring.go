package stdio

import "sync"

// ring keeps the last bytes of what is written to it. It may be used from any
// goroutine.
type ring struct {
	mu   sync.Mutex // guards the fields below
	max  int
	buf  []byte // grows to max, then is overwritten from next on
	next int
}

func newRing(size int) *ring { return &ring{max: size} }

// write adds p, forgetting what is older than the last max bytes.
func (r *ring) write(p []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(p) > r.max {
		p = p[len(p)-r.max:]
	}
	if room := min(r.max-len(r.buf), len(p)); room > 0 {
		r.buf = append(r.buf, p[:room]...)
		p = p[room:]
	}
	for len(p) > 0 {
		n := copy(r.buf[r.next:], p)
		r.next = (r.next + n) % r.max
		p = p[n:]
	}
}

// tail returns a copy of what is kept, oldest first.
func (r *ring) tail() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	tail := make([]byte, 0, len(r.buf))
	tail = append(tail, r.buf[r.next:]...)
	return append(tail, r.buf[:r.next]...)
}
