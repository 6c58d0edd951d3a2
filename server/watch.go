package server

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/mcp"
)

// watchers are those who want to hear when a resource of a Memory changes.
type watchers struct {
	mu sync.Mutex                       // guards by
	by map[string]map[*watcher]struct{} // by folded URI
}

type watcher struct{ updated func(params jsontext.Value) }

// WatchResource has updated called by ResourceUpdated; see ResourceWatcher. A
// resource that cannot be read cannot be watched.
func (m *Memory) WatchResource(_ context.Context, r *Request, uri string, updated func(params jsontext.Value)) (stop func(), err error) {
	if !m.has(uri) {
		return nil, unknownResource(r, uri)
	}
	key, w := mcp.FoldURI(uri), &watcher{updated}
	m.watchers.mu.Lock()
	defer m.watchers.mu.Unlock()
	if m.watchers.by == nil {
		m.watchers.by = make(map[string]map[*watcher]struct{})
	}
	if m.watchers.by[key] == nil {
		m.watchers.by[key] = make(map[*watcher]struct{})
	}
	m.watchers.by[key][w] = struct{}{}
	return func() { m.unwatch(key, w) }, nil
}

func (m *Memory) unwatch(key string, w *watcher) {
	m.watchers.mu.Lock()
	defer m.watchers.mu.Unlock()
	delete(m.watchers.by[key], w)
	if len(m.watchers.by[key]) == 0 {
		delete(m.watchers.by, key)
	}
}

// ResourceUpdated tells the clients that watch a resource that what it holds has
// changed. It does not wait for them; a client that is slow to read hears of
// several updates as one.
func (m *Memory) ResourceUpdated(uri string) {
	m.watchers.mu.Lock()
	told := make([]*watcher, 0, len(m.watchers.by[mcp.FoldURI(uri)]))
	for w := range m.watchers.by[mcp.FoldURI(uri)] {
		told = append(told, w)
	}
	m.watchers.mu.Unlock()
	params := append(append(jsontext.Value(`{"uri":`), mcp.String(uri)...), '}')
	for _, w := range told {
		w.updated(params)
	}
}
