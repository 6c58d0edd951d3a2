package server

import (
	"context"
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

func (u *updates) add(uri string, params jsontext.Value) {
	u.mu.Lock()
	if _, waits := u.by[uri]; !waits {
		if len(u.order) == u.most {
			delete(u.by, u.order[0])
			u.order = u.order[1:]
		}
		u.order = append(u.order, uri)
	}
	u.by[uri] = params
	u.mu.Unlock()
	select {
	case u.signal <- struct{}{}:
	default:
	}
}

func (u *updates) take() []jsontext.Value {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]jsontext.Value, len(u.order))
	for i, uri := range u.order {
		out[i] = u.by[uri]
	}
	u.order = nil
	clear(u.by)
	return out
}

// watchAll watches the resources of a filter, all at once since a source may have
// to ask for each, and leaves in it those that can be watched.
func (s *Server) watchAll(ctx context.Context, r *Request, f *filter, u *updates) (stop func()) {
	if s.watch == nil {
		f.uris = nil
		return func() {}
	}
	stops := make([]func(), len(f.uris))
	var all sync.WaitGroup
	for i, uri := range f.uris {
		all.Go(func() { // ends when the source has answered; ctx is the request's
			stop, err := s.watch.WatchResource(ctx, r, uri, func(params jsontext.Value) { u.add(uri, withURI(params, uri)) })
			if err != nil {
				s.opts.Logger.Debug("resource not watched", "uri", uri, "err", err)
				return
			}
			stops[i] = stop
		})
	}
	all.Wait()
	var watched []string
	for i, uri := range f.uris {
		if stops[i] != nil {
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
	uri, state, err := s.subscription(r)
	if err != nil {
		return nil, err
	}
	s.tellSession(ctx, r.Session, state)
	state.mu.Lock()
	_, twice := state.watched[uri]
	full := len(state.watched) >= maxWatched
	state.mu.Unlock()
	switch {
	case twice:
		return jsontext.Value("{}"), nil
	case full:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "this session watches %d resources already", maxWatched)
	}
	stop, err := s.watch.WatchResource(ctx, r, uri, func(params jsontext.Value) { state.updates.add(uri, withURI(params, uri)) })
	if err != nil {
		return nil, mcp.ErrorFor(r.Caller.Version, jsonrpc.AsError(err))
	}
	if !state.keep(uri, stop) {
		stop()
	}
	return jsontext.Value("{}"), nil
}

// unsubscribe answers resources/unsubscribe.
func (s *Server) unsubscribe(_ context.Context, r *Request) (jsontext.Value, error) {
	uri, state, err := s.subscription(r)
	if err != nil {
		return nil, err
	}
	state.mu.Lock()
	stop := state.watched[uri]
	delete(state.watched, uri)
	state.mu.Unlock()
	if stop != nil {
		stop()
	}
	return jsontext.Value("{}"), nil
}

func (s *Server) subscription(r *Request) (string, *session, error) {
	state, ok := r.Session.Value().(*session)
	if !ok || s.watch == nil {
		return "", nil, methodNotFound(r.Method)
	}
	uri, ok := r.Params.Text("uri")
	if !ok {
		return "", nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be a string")
	}
	return uri, state, nil
}

// keep records what ends a subscription; false if the session has ended, or has
// the subscription already.
func (s *session) keep(uri string, stop func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, twice := s.watched[uri]; twice || s.ended {
		return false
	}
	s.watched[uri] = stop
	return true
}

// end stops all subscriptions.
func (s *session) end() {
	s.mu.Lock()
	stops := s.watched
	s.watched, s.ended = nil, true
	s.mu.Unlock()
	for _, stop := range stops {
		stop()
	}
}
