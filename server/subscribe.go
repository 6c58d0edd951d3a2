package server

import (
	"context"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const (
	// maxWatched is how many resources one session or subscription may watch.
	maxWatched = 1000
	// maxUpdates is how many updates may wait for one client; of more, the
	// oldest are dropped.
	maxUpdates = 1024
	// maxUpdate is how many bytes the params of an update may have that waits.
	maxUpdate = 64 << 10
)

// updates are notifications of watched resources on their way to one client. An
// update that waits stands for all of its resource that come meanwhile.
type updates struct {
	most   int
	signal chan struct{} // one slot

	mu    sync.Mutex // guards the fields below
	order []string   // URIs, in the order of their first update that waits
	by    map[string]jsontext.Value
}

func newUpdates(most int) *updates {
	return &updates{most: most, signal: make(chan struct{}, 1), by: make(map[string]jsontext.Value)}
}

// ready tells when there is something to take; never for a nil u.
func (u *updates) ready() <-chan struct{} {
	if u == nil {
		return nil
	}
	return u.signal
}

// add puts an update of a resource behind those that wait. Of one that is too long
// to wait only the URI is kept.
func (u *updates) add(uri string, params jsontext.Value) {
	if len(params) > maxUpdate {
		params = withURI(nil, uri)
	}
	u.put(uri, params, true)
}

// putBack is add for an update that could not be sent: one that came meanwhile is
// newer.
func (u *updates) putBack(uri string, params jsontext.Value) { u.put(uri, params, false) }

func (u *updates) put(uri string, params jsontext.Value, newer bool) {
	u.mu.Lock()
	_, waits := u.by[uri]
	if !waits {
		if len(u.order) == u.most {
			delete(u.by, u.order[0])
			u.order = u.order[1:]
		}
		u.order = append(u.order, uri)
	}
	if !waits || newer {
		u.by[uri] = params
	}
	u.mu.Unlock()
	u.wake()
}

// next takes the update that has waited longest; false if there is none. If there
// are more, ready says so.
func (u *updates) next() (uri string, params jsontext.Value, ok bool) {
	u.mu.Lock()
	more := len(u.order) > 1
	if ok = len(u.order) > 0; ok {
		uri = u.order[0]
		params = u.by[uri]
		u.order = u.order[1:]
		delete(u.by, uri)
	}
	u.mu.Unlock()
	if more {
		u.wake()
	}
	return uri, params, ok
}

// drop takes back what waits of a resource that is not watched any more.
func (u *updates) drop(uri string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, waits := u.by[uri]; waits {
		delete(u.by, uri)
		u.order = slices.DeleteFunc(u.order, func(other string) bool { return other == uri })
	}
}

func (u *updates) wake() {
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

// watchAll watches the resources of a filter, all at once since a source may have
// to ask for each, and leaves in it those that can be watched.
func (s *Server) watchAll(ctx context.Context, r *Request, f *filter, u *updates) (stop func()) {
	if s.watch == nil {
		f.uris = nil
		return func() {}
	}
	stops, can := make([]func(), len(f.uris)), make([]bool, len(f.uris))
	var all sync.WaitGroup
	for i, uri := range f.uris {
		all.Go(func() { // ends when the source has answered; ctx is the request's
			stop, err := s.watch.WatchResource(ctx, r, uri, func(params jsontext.Value) { u.add(uri, withURI(params, uri)) })
			if err != nil {
				s.opts.Logger.Debug("resource not watched", "uri", uri, "err", err)
				return
			}
			stops[i], can[i] = stop, true
		})
	}
	all.Wait()
	var watched []string
	for i, uri := range f.uris {
		if can[i] {
			watched = append(watched, uri)
		}
	}
	f.uris = watched
	return func() {
		for _, stop := range stops {
			if stop != nil {
				stop()
			}
		}
	}
}

// withURI returns the params of an update with the URI as its watcher spells it.
func withURI(params jsontext.Value, uri string) jsontext.Value {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return append(append([]byte(`{"uri":`), mcp.String(uri)...), '}')
	}
	if was, ok := obj.Text("uri"); ok && was == uri {
		return params
	}
	return mcp.Splice(obj, mcp.Edit{Name: "uri", Value: mcp.String(uri)})
}

// tag adds a subscription's id to the params of a notification, in place of one
// that another server may have put there.
func tag(params jsontext.Value, id jsonrpc.ID) (jsontext.Value, error) {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return nil, err
	}
	meta := jsonrpc.Object{}
	if raw := obj.Get("_meta"); raw != nil {
		if meta, err = jsonrpc.ParseObject(raw); err != nil {
			return nil, err
		}
	}
	return mcp.Splice(obj, mcp.Edit{Name: "_meta", Value: mcp.Splice(meta, mcp.Edit{Name: mcp.MetaSubscriptionID, Value: id.Raw()})}), nil
}

// subscribe answers resources/subscribe (2025-11-25, server/resources).
func (s *Server) subscribe(ctx context.Context, r *Request) (jsontext.Value, error) {
	uri, err := s.subscription(r)
	if err != nil {
		return nil, err
	}
	state := r.state
	if again, err := state.reserve(uri); again || err != nil {
		return jsontext.Value("{}"), err
	}
	stop, err := s.watch.WatchResource(ctx, r, uri, func(params jsontext.Value) { state.listener.updates.add(uri, withURI(params, uri)) })
	if !state.keep(uri, stop) && stop != nil {
		stop()
	}
	if err != nil {
		return nil, mcp.ErrorFor(r.Caller.Version, jsonrpc.AsError(err))
	}
	state.tell()
	return jsontext.Value("{}"), nil
}

// unsubscribe answers resources/unsubscribe.
func (s *Server) unsubscribe(_ context.Context, r *Request) (jsontext.Value, error) {
	uri, err := s.subscription(r)
	if err != nil {
		return nil, err
	}
	r.state.mu.Lock()
	stop := r.state.watched[uri]
	delete(r.state.watched, uri)
	r.state.mu.Unlock()
	if stop != nil {
		stop()
	}
	r.state.listener.updates.drop(uri)
	return jsontext.Value("{}"), nil
}

// subscription returns the URI that a request is about.
func (s *Server) subscription(r *Request) (string, error) {
	if s.watch == nil {
		return "", methodNotFound(r.Method)
	}
	uri, ok := r.Params.Text("uri")
	if !ok {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be a string")
	}
	return uri, nil
}

// reserve makes room for a subscription that is about to begin; again says that
// the session has it already.
func (s *session) reserve(uri string) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again := s.watched[uri]; again {
		return true, nil
	}
	switch {
	case s.ended:
		return false, jsonrpc.Errorf(jsonrpc.CodeInternal, "this session has ended")
	case len(s.watched) >= maxWatched:
		return false, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "this session watches %d resources already", maxWatched)
	}
	s.watched[uri] = nil
	return false, nil
}

// keep puts what ends a subscription into its reserved place; a nil one gives the
// place up. It is false if the place is gone: the session has ended, or the client
// has unsubscribed meanwhile.
func (s *session) keep(uri string, stop func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before, ok := s.watched[uri]; !ok || before != nil {
		return false
	}
	if stop == nil {
		delete(s.watched, uri)
		return true
	}
	s.watched[uri] = stop
	return true
}
