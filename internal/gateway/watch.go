package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// watches has which resources are watched, on which server, and by whom. A server
// is asked once for each of its resources however many clients watch it.
type watches struct {
	mu sync.Mutex                                  // guards by
	by map[string]map[string]map[*watcher]struct{} // server, URI, watchers
}

type watcher struct{ updated func(jsontext.Value) }

// WatchResource tells of changes to a resource; see server.ResourceWatcher.
func (s *Source) WatchResource(ctx context.Context, _ *server.Request, uri string, updated func(jsontext.Value)) (stop func(), err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	e, ok := s.owner(uri)
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource %q: no server lists it or has a template for it", uri)
	}
	srv := s.servers.Get(e)
	if srv == nil {
		return nil, &upstream.UnavailableError{Server: e, State: upstream.Disabled}
	}
	w := &watcher{updated}
	s.watches.add(srv, uri, w)
	return func() { s.watches.remove(srv, uri, w) }, nil
}

// owner returns the server that a resource is read from.
func (s *Source) owner(uri string) (string, bool) {
	if e, ok := s.catalog.Find(mcp.Resources, uri); ok {
		return e.Server, true
	}
	return s.templateOwner(uri)
}

func (w *watches) add(srv *upstream.Server, uri string, who *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[string]map[string]map[*watcher]struct{})
	}
	uris := w.by[srv.Name()]
	if uris == nil {
		uris = make(map[string]map[*watcher]struct{})
		w.by[srv.Name()] = uris
	}
	if uris[uri] == nil {
		uris[uri] = make(map[*watcher]struct{})
	}
	uris[uri][who] = struct{}{}
	srv.Subscribe(slices.Sorted(maps.Keys(uris)))
}

func (w *watches) remove(srv *upstream.Server, uri string, who *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uris := w.by[srv.Name()]
	delete(uris[uri], who)
	if len(uris[uri]) == 0 {
		delete(uris, uri)
		srv.Subscribe(slices.Sorted(maps.Keys(uris)))
	}
}

// Updated takes a server's notification that a resource has changed, and tells
// those who watch it. It does not block.
func (s *Source) Updated(server string, params jsonrpc.Object) {
	uri, _ := params.Text("uri")
	s.watches.mu.Lock()
	all := slices.Collect(maps.Keys(s.watches.by[server][uri]))
	s.watches.mu.Unlock()
	for _, w := range all {
		w.updated(params.Raw)
	}
}
