package upstream

import (
	"context"
	"sync"
)

// slot is the place of one request among those that may run at once. While the
// server waits for the answer to a question, which may take a user minutes, the
// request gives its place up; it runs on without one if there is none when the
// answer comes.
type slot struct {
	mu     sync.Mutex // guards the fields below
	held   bool
	lent   bool // given up for a question
	asking int  // how many questions are open
	ended  bool
}

// enter takes a slot, or waits for one if not too many do already.
func (s *Server) enter(ctx context.Context, p *slot) error {
	select {
	case s.slots <- struct{}{}:
		p.held = true
		return nil
	default:
	}
	if n := s.queued.Add(1); n > int64(s.opts.MaxQueue) {
		s.queued.Add(-1)
		return &BusyError{s.opts.Name, s.opts.MaxInFlight, s.opts.MaxQueue}
	}
	defer s.queued.Add(-1)
	select {
	case s.slots <- struct{}{}:
		p.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave gives the place up for good.
func (s *Server) leave(p *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	if p.held {
		p.held = false
		<-s.slots
	}
	s.takeBackLocked(p)
}

func (s *Server) takeBackLocked(p *slot) {
	if p.lent {
		p.lent = false
		s.lent.Add(-1)
	}
}

// lend gives the place up until takeBack, unless as many requests as may wait have
// done so.
func (s *Server) lend(p *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking++
	if p.asking > 1 || !p.held {
		return
	}
	if s.lent.Add(1) > int64(s.opts.MaxQueue) {
		s.lent.Add(-1)
		return
	}
	p.held, p.lent = false, true
	<-s.slots
}

func (s *Server) takeBack(p *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking--
	if p.asking > 0 || !p.lent || p.ended {
		return
	}
	s.takeBackLocked(p)
	select {
	case s.slots <- struct{}{}:
		p.held = true
	default:
	}
}
