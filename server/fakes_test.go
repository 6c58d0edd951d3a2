package server_test

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/server"
)

// watched is a Memory that lets some resources be watched.
type watched struct {
	*server.Memory
	may     map[string]bool
	onWatch func(uri string)
	onStop  func()

	mu      sync.Mutex // guards the fields below
	by      map[*int]watch
	started int
}

type watch struct {
	uri     string
	updated func(jsontext.Value)
}

func (w *watched) WatchResource(_ context.Context, _ *server.Request, uri string, updated func(jsontext.Value)) (func(), error) {
	if !w.may[uri] {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource %q", uri)
	}
	key := new(int)
	w.mu.Lock()
	if w.by == nil {
		w.by = make(map[*int]watch)
	}
	w.by[key] = watch{uri, updated}
	w.started++
	w.mu.Unlock()
	if w.onWatch != nil {
		w.onWatch(uri)
	}
	return func() {
		if w.onStop != nil {
			w.onStop()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.by, key)
	}, nil
}

// update tells those who watch a resource.
func (w *watched) update(uri, params string) {
	w.mu.Lock()
	var tell []watch
	for _, who := range w.by {
		if who.uri == uri {
			tell = append(tell, who)
		}
	}
	w.mu.Unlock()
	for _, who := range tell {
		who.updated(jsontext.Value(params))
	}
}

// count returns how many watches there are.
func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.by)
}

// stuckPeer is a Peer that takes nothing while it is blocked.
type stuckPeer struct {
	mu   sync.Mutex // guards the fields below
	gate chan struct{}
	shut bool
	n    int
	said []string // "method params"
}

// heard returns what it was told.
func (p *stuckPeer) heard() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.said)
}

func (p *stuckPeer) block() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = true
}

func (p *stuckPeer) unblock() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut = false
	close(p.gate)
}

func (p *stuckPeer) told() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

func (p *stuckPeer) Notify(ctx context.Context, method string, params jsontext.Value) error {
	p.mu.Lock()
	shut, gate := p.shut, p.gate
	p.mu.Unlock()
	if shut {
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	p.said = append(p.said, method+" "+string(params))
	return nil
}

func (p *stuckPeer) Call(context.Context, string, jsontext.Value) (jsonrpc.Object, error) {
	return jsonrpc.Object{}, errors.New("not asked")
}
