package upstream

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Subscribe says of which resources the server is to tell changes, instead of
// those that were named before. It holds for all connections to come.
func (s *Server) Subscribe(uris []string) {
	s.mu.Lock()
	before := s.uris
	s.uris = slices.Clone(uris)
	s.mu.Unlock()
	for _, uri := range before {
		if !slices.Contains(uris, uri) {
			s.agreed.forget(uri)
		}
	}
	s.wish()
}

// SetLevel says how severe the log messages of a server with sessions must be at
// least. It holds for all connections to come. "": the server is not asked.
func (s *Server) SetLevel(level string) {
	if s.private != nil {
		s.private.setLevel(level)
		return
	}
	s.mu.Lock()
	s.level = level
	s.mu.Unlock()
	s.wish()
}

// wish has the connection look at what is wanted.
func (s *Server) wish() {
	if c := s.conn.Load(); c != nil {
		wake(c.wishes)
	}
}

func (s *Server) wishes() (uris []string, level string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.uris, s.level
}

// express tells the server what we want to be told, for as long as a connection
// lasts. It closes subscribed when the first subscription is there, or will not
// come.
func (s *Server) express(ctx context.Context, c *connection, subscribed chan<- struct{}) {
	var once sync.Once
	ready := func() { once.Do(func() { close(subscribed) }) }
	defer ready()
	if c.client.Server().Version.Stateless() {
		s.listen(ctx, c, ready)
		return
	}
	ready()
	s.ask(ctx, c)
}

// listen keeps a subscription open. After each gap all its lists and resources
// count as changed.
func (s *Server) listen(ctx context.Context, c *connection, ready func()) {
	info := c.client.Server()
	var kinds []mcp.Kind
	for _, k := range mcp.Kinds {
		if info.ListChanged(k) {
			kinds = append(kinds, k)
		}
	}
	pause := newBackoff(s.opts.BackoffMin, s.opts.BackoffMax)
	gap := true
	for ctx.Err() == nil {
		uris, _ := s.wishes()
		if len(kinds) == 0 && len(uris) == 0 {
			ready()
			select {
			case <-c.wishes:
			case <-ctx.Done():
			}
			continue
		}
		began := time.Now()
		changed, err := s.listenOnce(ctx, c, client.Filter{Kinds: kinds, Resources: uris}, gap, ready)
		ready()
		gap = !changed
		switch {
		case changed:
			continue
		case isMethodNotFound(err):
			s.agreed.refuseAll(ErrNotWatched)
			return
		}
		c.doubt(err)
		s.pauseListen(ctx, c, pause, began, err)
	}
}

// steady is how long a subscription must have lasted for the next to be opened
// soon: many are cut by something between that does not like idle streams.
const steady = 10 * time.Second

func (s *Server) pauseListen(ctx context.Context, c *connection, pause *backoff.ExponentialBackOff, began time.Time, err error) {
	if time.Since(began) >= steady {
		pause.Reset()
	}
	s.opts.Logger.Debug("subscription ended", "server", s.opts.Name, "err", err)
	wait(ctx, c.wishes, pause.NextBackOff())
}

// listenOnce keeps one subscription open until it ends or the wishes change.
func (s *Server) listenOnce(ctx context.Context, c *connection, f client.Filter, gap bool, ready func()) (changed bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	watched, stop := context.WithCancel(ctx)
	defer stop()
	watcher.Go(func() { // ends with watched
		select {
		case <-c.wishes:
			cancel(errWishes)
		case <-watched.Done():
		}
	})
	uris := f.Resources
	err = c.client.Listen(ctx, client.Listen{
		Filter: f,
		Acknowledged: func(f client.Filter) {
			var told kindSet
			for _, k := range f.Kinds {
				told |= bit(k)
			}
			c.told.Store(told)
			again := s.agreed.replace(uris, f.Resources)
			if gap {
				s.missed(again...)
			}
			if c.started.Load() {
				c.mark(told)
			}
			ready()
		},
		Notification: c.notification,
	})
	c.told.Store(0)
	return errors.Is(context.Cause(ctx), errWishes), err
}

var errWishes = errors.New("other notifications are wanted")

func isMethodNotFound(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && e.Code == jsonrpc.CodeMethodNotFound
}

// ask asks a server with sessions for resource updates and a log level, and
// again when the session was begun anew.
func (s *Server) ask(ctx context.Context, c *connection) {
	asked := make(map[string]error) // by URI, what was answered
	level := ""
	for {
		if c.renewed.Swap(false) {
			clear(asked)
			level = ""
		}
		uris, wanted := s.wishes()
		if wanted != "" && wanted != level {
			level = wanted
			_ = s.tell(ctx, c, mcp.MethodSetLevel, "level", wanted)
			s.agreed.change(func() { s.agreed.level = wanted })
		}
		for uri := range asked {
			if !slices.Contains(uris, uri) {
				delete(asked, uri)
				_ = s.tell(ctx, c, mcp.MethodUnsubscribe, "uri", uri)
			}
		}
		for _, uri := range uris {
			err, known := asked[uri]
			if !known {
				err = s.tell(ctx, c, mcp.MethodSubscribe, "uri", uri)
				asked[uri] = err
			}
			if _, answered := errors.AsType[*jsonrpc.Error](err); err == nil || answered {
				if s.agreed.settle(uri, err) && !known {
					s.missed(uri)
				}
			}
		}
		select {
		case <-c.wishes:
		case <-ctx.Done():
			return
		}
	}
}

// missed says of resources that they may have changed while nobody told.
func (s *Server) missed(uris ...string) {
	for _, uri := range uris {
		params, err := jsonrpc.ParseObject(mcp.Splice(jsonrpc.Object{}, mcp.Edit{Name: "uri", Value: mcp.String(uri)}))
		if err == nil {
			s.notify(&jsonrpc.Message{Method: mcp.MethodUpdated, Params: params})
		}
	}
}

// tell sends a request with one parameter, whose answer says nothing more than
// that it was taken.
func (s *Server) tell(ctx context.Context, c *connection, method, name, value string) error {
	params, _ := jsonrpc.ParseObject(mcp.Splice(jsonrpc.Object{}, mcp.Edit{Name: name, Value: mcp.String(value)}))
	ctx, cancel := context.WithTimeout(ctx, s.opts.RequestTimeout)
	defer cancel()
	_, err := c.client.Call(ctx, client.Request{Method: method, Params: params})
	if err != nil {
		s.opts.Logger.Debug("request refused", "server", s.opts.Name, "method", method, "err", err)
	}
	return err
}
