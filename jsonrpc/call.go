package jsonrpc

import (
	"context"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Call is an outgoing request with what only some wires need.
type Call struct {
	Method string
	Params jsontext.Value // nil: left out

	// Header has fields for a wire that has headers.
	Header map[string]string
	// KeepOnCancel: the peer is not told when the caller gives up, as the
	// protocol wants for initialize.
	KeepOnCancel bool
	// Message gets what the wire can prove to belong to this call and that
	// came before its response: notifications on the call's own response
	// stream, and requests there before they are answered. It must not block.
	// nil: the connection's own hook gets the notifications.
	Message func(m *Message)
	// Handler answers the requests on the call's own response stream. nil: the
	// connection's does.
	Handler Handler
	// Sent, if not nil, is called with the id once the request is about to
	// be written.
	Sent func(id ID)
	// Answered, if not nil, is called when the response has come: where one
	// stream carries everything, before anything that came behind it is looked
	// at, on the goroutine that reads. It must not block.
	Answered func()
}

// waiter is where one call waits for its reply. It is used again.
type waiter struct {
	reply    Message
	answered func()        // of the call; nil: nobody
	closed   bool          // there is no reply: none can come any more
	done     chan struct{} // one slot: reply or closed is set
}

// put gives a waiter back. Nobody else may have it any more. The pool is the
// connection's own, because a channel must not leave the bubble of a test that
// runs in one.
func (c *Conn) put(w *waiter) {
	w.reply, w.answered, w.closed = Message{}, nil, false
	c.waiters.Put(w)
}

// Call sends a request and returns its result. A peer's error is an *Error.
// When ctx ends first, the peer is told by the cancel notification and a late
// answer is dropped.
func (c *Conn) Call(ctx context.Context, method string, params jsontext.Value) (Object, error) {
	return c.Do(ctx, &Call{Method: method, Params: params})
}

// Do is Call with the options of a Call value. Header and Message mean nothing
// here.
func (c *Conn) Do(ctx context.Context, call *Call) (Object, error) {
	if ctx.Err() != nil {
		return Object{}, context.Cause(ctx)
	}
	w := c.waiters.Get().(*waiter)
	w.answered = call.Answered
	n, ok := c.expect(w)
	if !ok {
		c.put(w)
		return Object{}, c.closedError()
	}
	if call.Sent != nil {
		call.Sent(IntID(n))
	}
	var id [20]byte
	f := newFrame(len(call.Method) + len(call.Params))
	f.bytes = appendRequest(f.bytes, strconv.AppendInt(id[:0], n, 10), call.Method, call.Params)
	if err := c.out.send(ctx, f); err != nil {
		if !c.forget(n) {
			<-w.done
		}
		c.put(w)
		return Object{}, err
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		if c.forget(n) {
			c.put(w)
			if !call.KeepOnCancel {
				c.sendCancel(n, context.Cause(ctx))
			}
			return Object{}, context.Cause(ctx)
		}
		<-w.done // the reply was faster
	}
	m, closed := w.reply, w.closed
	c.put(w)
	switch {
	case closed:
		return Object{}, c.closedError()
	case m.Error != nil:
		return Object{}, m.Error
	}
	return m.Result, nil
}

// expect registers a call and returns its id; false if no reply can come.
func (c *Conn) expect(w *waiter) (int64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		return 0, false
	}
	c.lastID++
	c.pending[c.lastID] = w
	return c.lastID, true
}

// forget drops a pending call; false if its reply is there or on its way.
func (c *Conn) forget(n int64) bool { return c.take(n) != nil }

// take returns the waiter of a pending call, nil if there is none. The call is
// then no longer pending, and the caller is the only one to have the waiter
// beside Do.
func (c *Conn) take(n int64) *waiter {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.pending[n]
	delete(c.pending, n)
	return w
}

// resolve hands a response to the call it is for, if there is one.
func (c *Conn) resolve(m Message) bool {
	n, ok := m.ID.Int()
	if !ok {
		return false
	}
	w := c.take(n)
	if w == nil {
		return false
	}
	if w.answered != nil {
		w.answered()
	}
	w.reply = m
	w.done <- struct{}{} // has room: who takes a waiter signals once
	return true
}

// failPending fails the calls that wait for a reply that will not come.
func (c *Conn) failPending() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.deaf {
		c.deaf = true
		c.idleLocked()
	}
	for n, w := range c.pending {
		delete(c.pending, n)
		w.closed = true
		w.done <- struct{}{} // has room
	}
}

// sendCancel tells the peer that a request is no longer wanted, if there is
// room: a peer that does not read is not worth waiting for.
func (c *Conn) sendCancel(n int64, cause error) {
	if c.opts.Cancel.Method == "" {
		return
	}
	params := append([]byte(nil), '{')
	params = AppendString(params, c.opts.Cancel.Member)
	params = append(params, ':')
	params = strconv.AppendInt(params, n, 10)
	params = append(params, `,"reason":`...)
	params = AppendString(params, cause.Error())
	params = append(params, '}')
	c.out.offer(&frame{AppendNotification(nil, c.opts.Cancel.Method, params)})
}

// Notify sends a notification. It waits while the queue is full.
func (c *Conn) Notify(ctx context.Context, method string, params jsontext.Value) error {
	f := newFrame(len(method) + len(params))
	f.bytes = AppendNotification(f.bytes, method, params)
	return c.out.send(ctx, f)
}
