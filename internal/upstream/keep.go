package upstream

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Times of the walks.
const (
	// quiet is how long no more changes must come before a list is walked
	// again; mostNoise, how long that may be put off.
	quiet     = 30 * time.Millisecond
	mostNoise = 300 * time.Millisecond
	// partly is how long the first walks may take before those that are done
	// are published alone.
	partly = 5 * time.Second
	// listenWait is how long the first walks wait for a subscription to begin,
	// so that no change falls between.
	listenWait = time.Second
	// streamWait is the same for the stream that a session over HTTP has for
	// them, of which one hears only if there is one.
	streamWait = 200 * time.Millisecond
)

// Stale says that somebody listed a kind. If what is known of it has grown old,
// it is walked again behind the one who asked.
func (s *Server) Stale(kind mcp.Kind) {
	c := s.conn.Load()
	if c != nil && c.wanted.Or(bit(kind))&bit(kind) == 0 {
		wake(c.wake)
	}
}

// keep walks the lists of a connection for as long as it lasts.
func (s *Server) keep(ctx context.Context, c *connection) {
	var tasks sync.WaitGroup
	defer tasks.Wait()
	subscribed := make(chan struct{})
	tasks.Go(func() { s.express(ctx, c, subscribed) }) // ends with ctx
	wait(ctx, subscribed, listenWait)
	if s.opts.HTTP && !c.client.Server().Version.Stateless() {
		wait(ctx, c.gaps, streamWait)
	}
	c.started.Store(true)
	if !s.listAll(ctx, c) {
		return
	}
	for {
		timer := time.NewTimer(s.untilDue(c))
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-c.wake:
			if c.dirty.Load() != 0 {
				settle(ctx, c.wake)
			}
		}
		timer.Stop()
		if ctx.Err() != nil || !s.listSome(ctx, c, s.due(c, time.Now())) {
			return
		}
	}
}

func wait(ctx context.Context, signal <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-signal:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// settle returns when no more signals come, or too many came.
func settle(ctx context.Context, signal <-chan struct{}) {
	end := time.Now().Add(mostNoise)
	for {
		timer := time.NewTimer(min(quiet+rand.N(quiet/3), time.Until(end)))
		select {
		case <-signal:
			timer.Stop()
			if time.Now().Before(end) {
				continue
			}
			return
		case <-timer.C:
			return
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// due returns the kinds to walk now.
func (s *Server) due(c *connection, now time.Time) kindSet {
	dirty, wanted, told := c.dirty.Load(), c.wanted.Load(), c.told.Load()
	var out kindSet
	for _, k := range mcp.Kinds {
		sh := &s.shelves[k]
		if !sh.due.IsZero() { // a failure: changes wait for the next attempt
			if !now.Before(sh.due) {
				out |= bit(k)
			}
			continue
		}
		expires := sh.expires(told&bit(k) != 0)
		old := wanted&bit(k) != 0 && !expires.IsZero() && !now.Before(expires)
		if dirty&bit(k) != 0 || old {
			out |= bit(k)
		}
	}
	return out
}

// untilDue returns how long nothing is due unless something happens.
func (s *Server) untilDue(c *connection) time.Duration {
	next := time.Now().Add(time.Hour)
	earlier := func(t time.Time) {
		if !t.IsZero() && t.Before(next) {
			next = t
		}
	}
	for _, k := range mcp.Kinds {
		sh := &s.shelves[k]
		earlier(sh.due)
		if sh.due.IsZero() && c.wanted.Load()&bit(k) != 0 {
			earlier(sh.expires(c.told.Load()&bit(k) != 0))
		}
	}
	return max(time.Until(next), 0)
}

// walked is the outcome of one walk.
type walked struct {
	kind mcp.Kind
	list client.List
	err  error
}

// listAll walks all kinds of a new connection and publishes them together. False
// if the connection ended meanwhile.
func (s *Server) listAll(ctx context.Context, c *connection) bool {
	for k := range s.shelves {
		s.shelves[k].renew()
	}
	results := make(chan walked) // unbuffered: the walks stop when nobody takes them
	stop := make(chan struct{})
	var walker sync.WaitGroup
	defer walker.Wait()
	defer close(stop)
	walker.Go(func() { // ends with the last kind, with ctx, or when stop closes
		for _, k := range mcp.Kinds {
			select {
			case results <- s.walk(ctx, c, k):
			case <-stop:
				return
			}
		}
	})
	late := time.NewTimer(partly)
	defer late.Stop()
	for range mcp.Kinds {
		for waiting := true; waiting; {
			select {
			case w := <-results:
				if ended(ctx, w.err) {
					return false
				}
				s.shelve(w)
				waiting = false
			case <-late.C:
				if s.news.any() {
					s.publish(c)
				}
			}
		}
	}
	s.publish(c)
	return true
}

// listSome walks some kinds again and publishes what changed. False if the
// connection ended meanwhile.
func (s *Server) listSome(ctx context.Context, c *connection, kinds kindSet) bool {
	for _, k := range mcp.Kinds {
		if kinds&bit(k) == 0 {
			continue
		}
		w := s.walk(ctx, c, k)
		if ended(ctx, w.err) {
			return false
		}
		s.shelve(w)
	}
	if kinds != 0 {
		s.publish(c)
	}
	return true
}

// ended reports whether a walk failed only because the connection is over.
func ended(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, jsonrpc.ErrClosed))
}

// walk walks one kind. What changes from now on is for the next walk.
func (s *Server) walk(ctx context.Context, c *connection, k mcp.Kind) walked {
	c.dirty.And(^bit(k))
	c.wanted.And(^bit(k))
	var waiters []chan struct{}
	if k == mcp.Tools {
		c.mu.Lock()
		waiters, c.waiters = c.waiters, nil
		c.mu.Unlock()
	}
	list, err := c.client.List(ctx, k, s.opts.Limits)
	for _, w := range waiters {
		close(w)
	}
	if _, login := errors.AsType[LoginError](err); login {
		if wanted := s.check(ctx, c); wanted != nil { // not for this list alone
			c.lose(wanted)
			return walked{kind: k, err: jsonrpc.ErrClosed}
		}
	}
	c.doubt(err)
	return walked{k, list, err}
}

// shelve takes the outcome of a walk and adds what is new of it to the news.
func (s *Server) shelve(w walked) {
	sh := &s.shelves[w.kind]
	w.err = s.hide(w.err)
	for i, text := range w.list.Warnings {
		w.list.Warnings[i] = s.opts.Hide(text)
	}
	list := sh.put(&w.list, w.err, time.Now())
	s.news.Kinds[w.kind].Err = w.err
	if list != nil {
		s.news.Kinds[w.kind].List = list
	}
	if w.err != nil {
		s.opts.Logger.Debug("walk of a list failed", "server", s.opts.Name, "kind", w.kind.String(), "err", w.err)
	}
	s.setStatus(func(st *Status) {
		k := &st.Kinds[w.kind]
		k.Err, k.ListedAt = w.err, sh.listedAt
		if sh.list != nil {
			k.Count = len(sh.list.Items)
		}
		if w.err == nil {
			k.Warnings = w.list.Warnings
		}
	})
}

func (l *Lists) any() bool {
	for i := range l.Kinds {
		if l.Kinds[i].List != nil {
			return true
		}
	}
	return false
}

// publish tells Lists what is new, if anything is. Only then the server counts as
// ready, so that who waits for that finds what it lists.
func (s *Server) publish(c *connection) {
	s.announce(c.client.Server())
	s.setStatus(func(st *Status) {
		st.State = Ready
		for i := range st.Kinds {
			if st.Kinds[i].Err != nil {
				st.State = Degraded
			}
		}
	})
}

func (s *Server) announce(info client.ServerInfo) {
	if !s.news.any() && s.shown != nil && sameInfo(s.shown, &info) {
		return
	}
	s.shown = &info
	news := s.news
	s.news = Lists{}
	news.Server = info
	if s.opts.Hooks.Lists != nil {
		s.opts.Hooks.Lists(news)
	}
}

func sameInfo(a, b *client.ServerInfo) bool {
	return a.Version == b.Version && a.Instructions == b.Instructions &&
		bytes.Equal(a.Info, b.Info) && bytes.Equal(a.Capabilities.Raw, b.Capabilities.Raw)
}

// refresh asks for a walk of the tools and waits for one that begins after now.
func (c *connection) refresh(ctx context.Context) error {
	done := make(chan struct{})
	c.mu.Lock()
	c.waiters = append(c.waiters, done)
	c.mu.Unlock()
	c.mark(bit(mcp.Tools))
	select {
	case <-done:
		return nil
	case <-c.client.Done():
		return errClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
