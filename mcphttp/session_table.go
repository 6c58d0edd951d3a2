package mcphttp

import (
	"sync"
	"time"
)

// sessionTable has the sessions of a Handler and ends those that nobody uses.
type sessionTable struct {
	idle time.Duration
	most int

	mu     sync.Mutex // guards the fields below and the use of each session
	byID   map[string]*serverSession
	sweep  *time.Timer // runs while there are sessions
	closed bool
}

// add registers a session. If the table is full, the session that was idle for
// longest makes room; false if none is idle.
func (t *sessionTable) add(s *serverSession) bool {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return false
	}
	var oldest *serverSession
	if len(t.byID) >= t.most {
		if oldest = t.oldestLocked(); oldest == nil {
			t.mu.Unlock()
			return false
		}
		delete(t.byID, oldest.public.ID)
	}
	s.lastUsed = time.Now()
	t.byID[s.public.ID] = s
	if t.sweep == nil {
		t.sweep = time.AfterFunc(t.interval(), t.expire) // runs again until there are no sessions
	}
	t.mu.Unlock()
	if oldest != nil {
		oldest.close()
	}
	return true
}

func (t *sessionTable) oldestLocked() *serverSession {
	var oldest *serverSession
	for _, s := range t.byID {
		if s.active == 0 && (oldest == nil || s.lastUsed.Before(oldest.lastUsed)) {
			oldest = s
		}
	}
	return oldest
}

// use returns a principal's session for one HTTP request; release it after. sse
// says which endpoint asks.
func (t *sessionTable) use(id, principal string, sse bool) (*serverSession, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.principal != principal || s.sse != sse {
		return nil, false
	}
	s.active++
	return s, true
}

func (t *sessionTable) release(s *serverSession) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.active--
	s.lastUsed = time.Now()
}

// remove takes a session out of the table and ends it.
func (t *sessionTable) remove(s *serverSession) {
	t.mu.Lock()
	delete(t.byID, s.public.ID)
	t.mu.Unlock()
	s.close()
}

func (t *sessionTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

func (t *sessionTable) interval() time.Duration { return min(t.idle/4+1, time.Minute) }

// expire ends sessions that were idle for too long.
func (t *sessionTable) expire() {
	var idle, rest []*serverSession
	t.mu.Lock()
	for id, s := range t.byID {
		if s.active == 0 && time.Since(s.lastUsed) > t.idle {
			idle = append(idle, s)
			delete(t.byID, id)
		} else {
			rest = append(rest, s)
		}
	}
	t.mu.Unlock()
	for _, s := range idle {
		s.close()
	}
	for _, s := range rest {
		s.expire()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.byID) == 0 {
		t.sweep = nil
		return
	}
	t.sweep.Reset(t.interval())
}

// close ends all sessions and takes no more.
func (t *sessionTable) close() {
	t.mu.Lock()
	all := t.byID
	t.byID = nil
	t.closed = true
	if t.sweep != nil {
		t.sweep.Stop()
	}
	t.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}

// each calls f for each session.
func (t *sessionTable) each(f func(*serverSession)) {
	t.mu.Lock()
	all := make([]*serverSession, 0, len(t.byID))
	for _, s := range t.byID {
		all = append(all, s)
	}
	t.mu.Unlock()
	for _, s := range all {
		f(s)
	}
}
