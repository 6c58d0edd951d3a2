package gateway

import (
	"context"
	"maps"
	"slices"
	"strings"
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
	mu sync.Mutex                     // guards by, and keeps a server's wishes in order
	by map[target]map[string]*watched // by server and folded URI
}

// target is a server as its clients know it: by its name, or if it runs for each of
// them apart, by whose it is, too.
type target struct {
	name   string
	client *own // nil: clients share it
}

// targetOf returns the server of a name that serves the client of a request.
func (s *Source) targetOf(r *server.Request, name string) target {
	if srv := s.servers.Get(name); srv == nil || !srv.PerClient() {
		return target{name: name}
	}
	return target{name, s.client(r)}
}

// among returns the server that runs now; nil if none does.
func (t target) among(servers *upstream.Set) *upstream.Server {
	srv := servers.Get(t.name)
	if srv == nil || t.client == nil {
		return srv
	}
	return srv.Of(t.client)
}

// watched is a resource that somebody watches.
type watched struct {
	uri string // as the server is asked for it
	by  map[*watcher]struct{}
}

type watcher struct{ updated func(jsontext.Value) }

// WatchResource tells of changes to a resource; see server.ResourceWatcher. It
// returns when the server has agreed, or has had time to.
func (s *Source) WatchResource(ctx context.Context, r *server.Request, uri string, updated func(jsontext.Value)) (stop func(), err error) {
	all, err := s.ready(ctx, r)
	if err != nil {
		return nil, err
	}
	name, own, ok := s.owner(all, r, uri)
	if !ok {
		return nil, unknownResource(r, uri)
	}
	srv, err := s.instance(r, name)
	if err != nil {
		return nil, err
	}
	if info, known := srv.Info(); known && !tellsUpdates(info.Capabilities) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "the server %q does not tell changes of resources", name)
	}
	w, t := &watcher{updated}, s.targetOf(r, name)
	own = s.watches.add(s.servers, t, own, w)
	stop = sync.OnceFunc(func() { s.watches.remove(s.servers, t, own, w) })
	if err := srv.Watching(ctx, own); err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// tellsUpdates reports whether a server declares that it tells changes of
// resources.
func tellsUpdates(capabilities jsonrpc.Object) bool {
	resources, err := jsonrpc.ParseObject(capabilities.Get(mcp.Resources.Capability()))
	return err == nil && string(resources.Get("subscribe")) == "true"
}

// owner returns the server that a resource is read from, and the URI as that
// server spells it.
func (s *Source) owner(all lists, r *server.Request, uri string) (name, own string, ok bool) {
	if e, ok := all.Find(mcp.Resources, uri); ok {
		return e.Server, e.Own, true
	}
	if name, ok := templateOwner(all, uri); ok {
		return name, uri, true
	}
	name, ok = s.links.owner(r, uri)
	return name, uri, ok
}

// add returns the URI under which the server is asked.
func (w *watches) add(servers *upstream.Set, t target, uri string, who *watcher) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[target]map[string]*watched)
	}
	uris := w.by[t]
	if uris == nil {
		uris = make(map[string]*watched)
		w.by[t] = uris
	}
	res := uris[mcp.FoldURI(uri)]
	if res == nil {
		res = &watched{uri: uri, by: make(map[*watcher]struct{})}
		uris[mcp.FoldURI(uri)] = res
		subscribe(t.among(servers), uris)
	}
	res.by[who] = struct{}{}
	return res.uri
}

func (w *watches) remove(servers *upstream.Set, t target, uri string, who *watcher) {
	w.mu.Lock()
	defer w.mu.Unlock()
	uris := w.by[t]
	res := uris[mcp.FoldURI(uri)]
	if res == nil {
		return
	}
	delete(res.by, who)
	if len(res.by) > 0 {
		return
	}
	delete(uris, mcp.FoldURI(uri))
	subscribe(t.among(servers), uris)
	if len(uris) == 0 {
		delete(w.by, t)
	}
}

// renew asks a server for what the one in whose place it has come was asked for.
func (w *watches) renew(t target, srv *upstream.Server) {
	w.mu.Lock()
	defer w.mu.Unlock()
	subscribe(srv, w.by[t])
}

// renewAll does so for a server that clients share, and has one that does not run
// for those who watch something there started for them.
func (w *watches) renewAll(srv *upstream.Server) {
	if !srv.PerClient() {
		w.renew(target{name: srv.Name()}, srv)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for t := range w.by {
		if t.name == srv.Name() && t.client != nil {
			_, _ = srv.For(t.client.Client) // which asks for them when it begins; who cannot have one hears of it when calling
		}
	}
}

// subscribe asks a server for resources; nil: it is gone.
func subscribe(srv *upstream.Server, uris map[string]*watched) {
	if srv != nil {
		srv.Subscribe(spellings(uris))
	}
}

// spellings returns the URIs as the server is asked for them, sorted.
func spellings(uris map[string]*watched) []string {
	out := make([]string, 0, len(uris))
	for _, res := range uris {
		out = append(out, res.uri)
	}
	slices.Sort(out)
	return out
}

// of returns who is to be told of an update: those who watch the resource, and
// those who watch one that it is a part of.
func (w *watches) of(server target, uri string) []*watcher {
	folded := mcp.FoldURI(uri)
	w.mu.Lock()
	defer w.mu.Unlock()
	if res := w.by[server][folded]; res != nil {
		return slices.Collect(maps.Keys(res.by))
	}
	var out []*watcher
	for whole, res := range w.by[server] {
		if rest, ok := strings.CutPrefix(folded, whole); ok && (strings.HasSuffix(whole, "/") || strings.ContainsAny(rest[:1], "/?#")) {
			out = slices.AppendSeq(out, maps.Keys(res.by))
		}
	}
	return out
}

// Notification takes what a server says on its own: a resource has changed, or the
// visit of a URL is complete. It does not block; what it starts has ctx, which is not
// to end with it.
func (s *Source) Notification(ctx context.Context, server string, m *jsonrpc.Message) {
	s.told(ctx, target{name: server}, m)
}

func (s *Source) told(ctx context.Context, server target, m *jsonrpc.Message) {
	switch m.Method {
	case mcp.MethodUpdated:
		uri, _ := m.Params.Text("uri")
		for _, w := range s.watches.of(server, uri) {
			w.updated(m.Params.Raw)
		}
	case mcp.MethodElicitComplete:
		s.visits.complete(ctx, server, m.Params)
	}
}
