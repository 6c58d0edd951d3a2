package upstream

import (
	"context"
	"sync"
	"time"
)

// clock is the deadline of one request. Signs of progress move it, and while the
// server waits for an answer to a question it does not run; neither goes beyond
// the end.
type clock struct {
	timeout time.Duration
	end     time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc

	mu      sync.Mutex // guards the fields below
	timer   *time.Timer
	held    int // how many questions are open
	stopped bool
}

// start returns the context of the request, which ends with late as its cause.
func (c *clock) start(ctx context.Context, late error) context.Context {
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(min(c.timeout, time.Until(c.end)), func() { c.cancel(late) })
	return c.ctx
}

func (c *clock) stop() {
	c.mu.Lock()
	c.stopped = true
	c.timer.Stop()
	c.mu.Unlock()
	c.cancel(nil)
}

// extend gives the request its timeout again. It runs on a reader.
func (c *clock) extend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resetLocked()
}

// hold lets the request wait for as long as any may, until release.
func (c *clock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held++
	c.resetLocked()
}

func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held--
	c.resetLocked()
}

func (c *clock) resetLocked() {
	left := time.Until(c.end)
	if c.held == 0 {
		left = min(left, c.timeout)
	}
	if !c.stopped && left > 0 {
		c.timer.Reset(left)
	}
}
