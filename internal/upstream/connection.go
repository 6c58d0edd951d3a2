package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// checkTimeout is how long a server may take to give a sign of life when a call
// has failed in a way that makes one doubt the connection.
// checkPause is the least time between two checks.
const (
	checkTimeout = 10 * time.Second
	checkPause   = time.Second
)

var (
	errDisabled = errors.New("switched off by the operator")
	errClosed   = errors.New("the connection was closed by the server")
	errLost     = errors.New("the connection was lost a moment ago")
)

// kindSet is a set of kinds, one bit each.
type kindSet = uint32

const allKinds kindSet = 1<<len(mcp.Kinds) - 1

func bit(k mcp.Kind) kindSet { return 1 << k }

// gate is what the reader of a connection touches: bits and signals, so that it
// never waits.
type gate struct {
	server *Server
	dirty  atomic.Uint32 // kinds that changed since their last walk began
	wanted atomic.Uint32 // kinds that somebody listed since
	wake   chan struct{} // one slot: look at the bits

	gaps    chan struct{} // one slot: there was a gap
	renewed atomic.Bool   // what the server was asked to tell may be forgotten
	wishes  chan struct{} // one slot: look at what we want to be told, and renewed
}

func newGate(s *Server) *gate {
	return &gate{
		server: s,
		wake:   make(chan struct{}, 1), gaps: make(chan struct{}, 1), wishes: make(chan struct{}, 1),
	}
}

// notification runs on the reader.
func (g *gate) notification(m *jsonrpc.Message) {
	var changed kindSet
	for _, k := range mcp.KindsChanged(m.Method) {
		changed |= bit(k)
	}
	if changed != 0 {
		g.mark(changed)
		return
	}
	if !g.server.flights.hear(m) {
		g.server.notify(m)
	}
}

// gap runs on any goroutine of the wire.
func (g *gate) gap() {
	g.mark(allKinds)
	g.renewed.Store(true)
	wake(g.gaps)
	wake(g.wishes)
}

func (g *gate) mark(kinds kindSet) {
	g.dirty.Or(kinds)
	wake(g.wake)
}

// connection is a client in use.
type connection struct {
	*gate
	client  *client.Client
	suspect chan struct{} // one slot: somebody doubts the connection
	lost    chan error    // one slot: somebody knows that it is lost
	told    atomic.Uint32 // kinds whose changes the server tells
	started atomic.Bool   // the first walk has begun

	mu      sync.Mutex      // guards the fields below
	waiters []chan struct{} // for the next walk of the tools to begin and end
	calls   int
	retired bool
	idle    chan struct{} // closed when retired and without calls
}

// serve uses a connection until it ends, and says why it did.
func (s *Server) serve(ctx context.Context, cl *client.Client, g *gate, connected func()) error {
	info := cl.Server()
	c := &connection{
		gate: g, client: cl,
		suspect: make(chan struct{}, 1), lost: make(chan error, 1), idle: make(chan struct{}),
	}
	if !info.Version.Stateless() {
		c.tellAll(&info)
	}
	s.info.Store(&info)
	if s.parent != nil {
		s.parent.info.Store(&info)
	}
	s.agreed.begin()
	if !s.opts.HTTP {
		s.flights.exorcise()
	}
	s.conn.Store(c)
	s.setStatus(func(st *Status) {
		st.State, st.Version, st.LastErr, st.NextTry = Starting, info.Version, nil, time.Time{}
		if s.served {
			st.Restarts++
		}
	})
	s.served = true
	connected()
	used, cancel := context.WithCancelCause(ctx)
	var tasks sync.WaitGroup
	tasks.Go(func() { s.keep(used, c) }) // ends with used
	err := s.watch(ctx, c)
	cancel(err)
	s.conn.CompareAndSwap(c, nil)
	tasks.Wait()
	s.retire(ctx, c)
	return err
}

// retire closes a connection. Over HTTP the calls that it still carries may end
// first, since they do not depend on what was wrong with it.
func (s *Server) retire(ctx context.Context, c *connection) {
	c.mu.Lock()
	c.retired = true
	calls := c.calls
	c.mu.Unlock()
	if calls == 0 || !s.opts.HTTP || ctx.Err() != nil {
		_ = c.client.Close() // why it ended is known
		return
	}
	s.closing.Go(func() { // ends with the last call, at the latest with ctx
		select {
		case <-c.idle:
		case <-ctx.Done():
		}
		_ = c.client.Close()
	})
}

// begin counts a call in; false if the connection is no longer in use.
func (c *connection) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.retired {
		return false
	}
	c.calls++
	return true
}

func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls--
	if c.retired && c.calls == 0 {
		close(c.idle)
	}
}

// watch waits for the end of a connection.
func (s *Server) watch(ctx context.Context, c *connection) error {
	var checked time.Time
	var later <-chan time.Time // when a doubt that came too soon is looked into
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-c.client.Done():
			if err := c.client.Err(); err != nil {
				return err
			}
			return errClosed
		case <-s.kick:
			if err := s.ordered(); err != nil {
				return err
			}
		case err := <-c.lost:
			return fmt.Errorf("connection lost: %w", err)
		case <-c.suspect:
			if later == nil {
				later = time.After(max(checkPause-time.Since(checked), 0))
			}
		case <-later:
			later = nil
			if err := s.check(ctx, c); err != nil {
				return fmt.Errorf("connection lost: %w", err)
			}
			checked = time.Now()
		}
	}
}

// check asks for a sign of life. Silence is none of death: a busy server is slow.
func (s *Server) check(ctx context.Context, c *connection) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	err := c.client.Ping(ctx)
	if err == nil || ctx.Err() != nil || !doubtful(c, err) {
		return nil
	}
	return err
}

// doubt takes note of a request that failed in a way that makes one doubt the
// connection.
func (c *connection) doubt(err error) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" && op.Timeout() {
		c.lose(err) // nobody is there to be asked for a sign of life
		return
	}
	if doubtful(c, err) {
		wake(c.suspect)
	}
}

// lose ends the connection because of an error.
func (c *connection) lose(err error) {
	select {
	case c.lost <- err:
	default: // somebody else knows already
	}
}

// doubtful reports whether a failed request makes one doubt the connection: not
// an answer of the server, not a timeout, nothing that is about the caller.
func doubtful(c *connection, err error) bool {
	if err == nil {
		return false
	}
	answer, answered := errors.AsType[*jsonrpc.Error](err)
	if answered && answer.Code == mcp.CodeUnsupportedVersion {
		return true
	}
	if e, ok := errors.AsType[client.HTTPError](err); ok {
		switch status := e.HTTPStatus(); {
		case status == 401, status == 403, status == 429:
			return false
		case status >= 400 && status < 500:
			// A stateless server answers errors of its own with these.
			server := c.client.Server()
			return !answered || !server.Version.Stateless()
		}
		return !answered
	}
	if _, odd := errors.AsType[*client.ResultError](err); odd || answered {
		return false
	}
	return !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

// tellAll notes which changes a server with sessions tells by itself.
func (c *connection) tellAll(info *client.ServerInfo) {
	for _, k := range mcp.Kinds {
		if info.ListChanged(k) {
			c.told.Or(bit(k))
		}
	}
}
