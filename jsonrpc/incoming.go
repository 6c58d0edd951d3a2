package jsonrpc

import "context"

// incoming is one request of the peer that is being handled.
type incoming struct {
	key    string // its id's
	cancel context.CancelCauseFunc
	req    Request
	by     Handler
	after  *incoming     // which is handled before this one; nil: none
	done   chan struct{} // closed when it is handled; nil: nobody waits for it
}

// wait waits until a request that has to be handled first is. A nil one is.
func (in *incoming) wait(ctx context.Context) {
	if in == nil {
		return
	}
	select {
	case <-in.done:
	case <-ctx.Done():
	}
}

// request starts a handler for a request of the peer.
func (c *Conn) request(m Message) {
	by := c.opts.Handler
	if c.opts.Route != nil {
		by = c.opts.Route(&m)
	}
	if by == nil {
		c.refuse(m.ID, Errorf(CodeMethodNotFound, "method not found: %s", m.Method))
		return
	}
	in := &incoming{
		key: m.ID.Key(),
		by:  by,
		req: Request{ID: m.ID, Method: m.Method, Params: m.Params, Session: c.session, Peer: c},

		after: c.begun,
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	in.cancel = cancel
	if err := c.admit(in); err != nil {
		cancel(nil)
		c.refuse(m.ID, err)
		return
	}
	if m.Method == c.opts.First && m.Method != "" {
		in.done = make(chan struct{})
		c.begun = in
	}
	c.tasks.Go(func() { // ends when the Handler returns
		defer c.handled(in) // here, since below handle it would outgrow a new goroutine's stack
		c.handle(ctx, in)
	})
}

// admit enters a request into the table, or says why it cannot be.
func (c *Conn) admit(in *incoming) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf { // what is read after Close
		return Errorf(CodeInternal, "the connection is closed")
	}
	if c.incoming[in.key] != nil {
		return Errorf(CodeInvalidRequest, "this id is in use by a request that is not answered yet")
	}
	if c.running >= c.opts.MaxRequests {
		return Errorf(CodeInternal, "more than %d requests at once: wait for answers before sending more", c.opts.MaxRequests)
	}
	c.incoming[in.key] = in
	c.running++
	return nil
}

// handle runs the Handler and sends the answer, unless the request was taken
// back meanwhile.
func (c *Conn) handle(ctx context.Context, in *incoming) {
	req := &in.req
	in.after.wait(ctx)
	in.after = nil // it may have waited for another in its turn
	result, err := Handle(ctx, in.by, req, c.opts.Logger)
	if in.done != nil {
		close(in.done)
	}
	if !c.settle(in) {
		return
	}
	f := newFrame(len(req.ID.text) + len(result))
	if err != nil {
		f.bytes = AppendError(f.bytes, req.ID, AsError(err))
	} else {
		f.bytes = AppendResult(f.bytes, req.ID, result)
	}
	if err := c.out.send(c.ctx, f); err != nil {
		c.opts.Logger.Debug("answer not sent", "method", req.Method, "err", err)
	}
}

// settle takes a request out of the table, so that its id can be used again;
// false if it was taken back.
func (c *Conn) settle(in *incoming) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.incoming[in.key] != in {
		return false
	}
	delete(c.incoming, in.key)
	return true
}

// handled ends the accounts of a request.
func (c *Conn) handled(in *incoming) {
	in.cancel(nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.idleLocked()
}

// idleLocked says so if the last request was handled.
func (c *Conn) idleLocked() {
	if c.deaf && c.running == 0 {
		close(c.idle)
	}
}

// CancelRequest takes back one of the peer's requests, as its cancel
// notification does: its context ends with ErrCanceled and it gets no answer.
// It reports whether there was such a request.
func (c *Conn) CancelRequest(id ID) bool {
	key := id.Key()
	c.mu.Lock()
	in := c.incoming[key]
	delete(c.incoming, key)
	c.mu.Unlock()
	if in == nil {
		return false
	}
	in.cancel(ErrCanceled)
	return true
}

// notification hands on a notification of size bytes.
func (c *Conn) notification(m Message, size int) {
	if m.Method == c.opts.Cancel.Method {
		if id, err := ParseID(m.Params.Get(c.opts.Cancel.Member)); err == nil {
			c.CancelRequest(id)
		}
	}
	switch {
	case c.opts.Notification != nil:
		c.opts.Notification(&m)
	case c.notes == nil:
	default:
		c.queueNote(&note{m, size, c.begun})
	}
}

// note is a notification that waits for the Handler.
type note struct {
	Message
	size  int       // bytes
	after *incoming // which is handled before this one; nil: none
}

// queueNote keeps a notification for the Handler. A flood of them loses its
// tail, nothing else.
func (c *Conn) queueNote(n *note) {
	if c.noteBytes.Add(int64(n.size)) <= maxNoteBytes {
		select {
		case c.notes <- n:
			return
		default:
		}
	}
	c.noteBytes.Add(-int64(n.size))
	c.opts.Logger.Debug("notification dropped: too many wait", "method", n.Method)
}

// handleNotes gives notifications to the Handler, one after the other.
func (c *Conn) handleNotes() {
	for {
		select {
		case n := <-c.notes:
			n.after.wait(c.ctx)
			req := Request{Method: n.Method, Params: n.Params, Session: c.session, Peer: c}
			_, _ = Handle(c.ctx, c.opts.Handler, &req, c.opts.Logger) // a notification has no answer
			c.noteBytes.Add(-int64(n.size))
		case <-c.ctx.Done():
			return
		}
	}
}
