package jsonrpc

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// frame is a message to be written. Its memory is used again.
type frame struct{ bytes []byte }

// maxKept is the largest frame whose memory is kept.
const maxKept = 64 << 10

var frames = sync.Pool{New: func() any { return new(frame) }}

// newFrame returns an empty frame that has room for an envelope and size bytes.
func newFrame(size int) *frame {
	f := frames.Get().(*frame)
	f.bytes = slices.Grow(f.bytes[:0], size+64)
	return f
}

// outbox is the sending half of a Conn: the queue of its writer. Frames leave in
// the order in which they were taken in.
//
// The writer could be spared where nobody else writes, but it is what makes
// senders free to give up, and it gathers the frames of many senders into one
// write.
type outbox struct {
	stream              Stream
	maxFrames, maxBytes int
	failed              func(error)   // told once when a write fails
	wake                chan struct{} // one slot: the writer is to flush
	broken              chan struct{} // closed when a write has failed

	batch []*frame // what the writer writes, and as slices; the writer's
	lines [][]byte

	mu    sync.Mutex // guards the fields below
	queue []*frame
	size  int           // bytes in queue
	busy  bool          // the writer writes, or is woken to
	err   error         // frames are not taken any more
	room  chan struct{} // closed when the queue was taken; nil: nobody waits
	empty chan struct{} // closed when all is written; nil: nobody waits
}

func newOutbox(stream Stream, maxFrames, maxBytes int, failed func(error)) *outbox {
	return &outbox{
		stream: stream, maxFrames: maxFrames, maxBytes: maxBytes, failed: failed,
		wake: make(chan struct{}, 1), broken: make(chan struct{}),
	}
}

// send queues a frame. It waits, while there is no room, for as long as ctx
// allows.
func (o *outbox) send(ctx context.Context, f *frame) error {
	o.mu.Lock()
	for o.err == nil && o.fullLocked(1) {
		if err := o.waitLocked(ctx); err != nil {
			o.mu.Unlock()
			return err
		}
	}
	if o.err != nil {
		o.mu.Unlock()
		return o.err
	}
	idle := o.addLocked(f)
	o.mu.Unlock()
	if idle {
		o.wake <- struct{}{} // has room: only who makes the outbox busy wakes
	}
	return nil
}

// offer queues a frame if there is room, of which it has a reserve.
func (o *outbox) offer(f *frame) bool {
	o.mu.Lock()
	if o.err != nil || o.fullLocked(2) {
		o.mu.Unlock()
		return false
	}
	idle := o.addLocked(f)
	o.mu.Unlock()
	if idle {
		o.wake <- struct{}{}
	}
	return true
}

func (o *outbox) fullLocked(times int) bool {
	return len(o.queue) >= times*o.maxFrames || o.size >= times*o.maxBytes
}

// waitLocked waits until frames have left the queue. It gives up the lock
// meanwhile.
func (o *outbox) waitLocked(ctx context.Context) error {
	if o.room == nil {
		o.room = make(chan struct{})
	}
	room := o.room
	o.mu.Unlock()
	defer o.mu.Lock()
	select {
	case <-room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (o *outbox) addLocked(f *frame) (idle bool) {
	o.queue = append(o.queue, f)
	o.size += len(f.bytes)
	idle = !o.busy
	o.busy = true
	return idle
}

// flush writes until the queue is empty. Only the writer calls it.
func (o *outbox) flush() {
	for o.take() {
		if err := o.stream.WriteFrames(o.lines); err != nil {
			o.fail(fmt.Errorf("write: %w", err))
			return
		}
		o.recycle()
	}
}

// take moves the queue into the batch. Without anything to move the outbox is
// not busy any more.
func (o *outbox) take() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.queue) == 0 {
		o.busy = false
		release(&o.empty)
		return false
	}
	o.batch, o.queue, o.size = o.queue, o.batch, 0
	release(&o.room)
	for _, f := range o.batch {
		o.lines = append(o.lines, f.bytes)
	}
	return true
}

// recycle empties the batch after it was written: nobody has its frames any more.
func (o *outbox) recycle() {
	for _, f := range o.batch {
		if cap(f.bytes) <= maxKept {
			frames.Put(f)
		}
	}
	clear(o.batch)
	clear(o.lines)
	o.batch, o.lines = o.batch[:0], o.lines[:0]
}

// release wakes those who wait on a channel.
func release(c *chan struct{}) {
	if *c != nil {
		close(*c)
		*c = nil
	}
}

// drained returns a channel that is closed as soon as nothing is left to write.
func (o *outbox) drained() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	empty := make(chan struct{})
	if o.err != nil || !o.busy {
		close(empty)
	} else {
		o.empty = empty
	}
	return empty
}

// fail closes the outbox after a failed write.
func (o *outbox) fail(err error) {
	if o.close(fmt.Errorf("%w: %w", ErrClosed, err)) {
		close(o.broken)
		o.failed(err)
	}
}

// close refuses frames from now on, and drops those that wait. It reports
// whether the outbox was open.
func (o *outbox) close(err error) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return false
	}
	o.err = err
	o.queue, o.size = nil, 0
	release(&o.room)
	release(&o.empty)
	return true
}

// failure returns the error of the write that failed, nil if none did.
func (o *outbox) failure() error {
	select {
	case <-o.broken:
	default:
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
