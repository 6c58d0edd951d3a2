package upstream

import (
	"context"
	"errors"
	"sync"
	"time"
)

// agreeTime is how long Watching waits for a server's answer.
const agreeTime = 5 * time.Second

// ErrNotWatched says that a server does not tell changes of a resource.
var ErrNotWatched = errors.New("the server does not tell changes of this resource")

// agreed is what a connection's server has said to our wishes to be told of
// resources.
type agreed struct {
	mu    sync.Mutex       // guards the fields below
	by    map[string]error // by URI; nil: it tells
	all   error            // if not nil, for every URI
	level string           // the log level that it was last asked for
	told  map[string]bool  // URIs of which it told changes, be it on an earlier connection
	news  chan struct{}    // closed when the fields change; nil: nobody waits
}

// begin forgets what another connection's server has said.
func (a *agreed) begin() {
	a.change(func() { a.by, a.all, a.level = make(map[string]error), nil, "" })
}

// settle takes the answer for one URI, and reports whether changes of it were told
// before.
func (a *agreed) settle(uri string, err error) (again bool) {
	a.change(func() {
		a.by[uri] = err
		again = err == nil && a.tellsLocked(uri)
	})
	return again
}

// tellsLocked notes that changes of a resource are told, and reports whether they
// were before.
func (a *agreed) tellsLocked(uri string) (again bool) {
	if a.told == nil {
		a.told = make(map[string]bool)
	}
	again = a.told[uri]
	a.told[uri] = true
	return again
}

func (a *agreed) forget(uri string) {
	a.change(func() {
		delete(a.by, uri)
		delete(a.told, uri)
	})
}

func (a *agreed) refuseAll(err error) { a.change(func() { a.all = err }) }

// replace takes the answer to a subscription for all URIs, and returns those of
// which changes were told before.
func (a *agreed) replace(asked, honoured []string) (again []string) {
	a.change(func() {
		clear(a.by)
		for _, uri := range asked {
			a.by[uri] = ErrNotWatched
		}
		for _, uri := range honoured {
			a.by[uri] = nil
			if a.tellsLocked(uri) {
				again = append(again, uri)
			}
		}
	})
	return again
}

func (a *agreed) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	if a.news != nil {
		close(a.news)
		a.news = nil
	}
}

func (a *agreed) look(uri string) (known bool, news <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all != nil {
		return true, nil, a.all
	}
	if err, known := a.by[uri]; known {
		return true, nil, err
	}
	return false, a.newsLocked(), nil
}

func (a *agreed) newsLocked() <-chan struct{} {
	if a.news == nil {
		a.news = make(chan struct{})
	}
	return a.news
}

func (a *agreed) lookLevel(name string) (known bool, news <-chan struct{}, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.level == name {
		return true, nil, nil
	}
	return false, a.newsLocked(), nil
}

// Watching waits until the server has answered to Subscribe for a resource, and
// returns its error if it refused. Without an answer in 5 s, and while there is
// no connection, it returns nil: what was asked for holds for when there is.
func (s *Server) Watching(ctx context.Context, uri string) error {
	return s.await(ctx, func() (bool, <-chan struct{}, error) { return s.agreed.look(uri) })
}

// Leveled waits in the same way until a server with sessions has been asked for
// the log level that SetLevel was given last.
func (s *Server) Leveled(ctx context.Context) error {
	_, name := s.wishes()
	if c := s.conn.Load(); name == "" || c == nil || c.client.Server().Version.Stateless() {
		return nil
	}
	return s.await(ctx, func() (bool, <-chan struct{}, error) { return s.agreed.lookLevel(name) })
}

func (s *Server) await(ctx context.Context, look func() (known bool, news <-chan struct{}, err error)) error {
	known, news, err := look()
	if known {
		return err
	}
	timer := time.NewTimer(agreeTime)
	defer timer.Stop()
	for s.conn.Load() != nil {
		select {
		case <-news:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if known, news, err = look(); known {
			return err
		}
	}
	return nil
}
