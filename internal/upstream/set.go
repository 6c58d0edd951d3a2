package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mcp-roster/roster/mcp"
)

// Set is an ordered set of servers that run. Get and All take no lock.
type Set struct {
	view atomic.Pointer[view]

	mu      sync.Mutex // serialises Apply and Close; held while servers stop
	running map[*Server]*run
}

// view is what readers see; never written to once published.
type view struct {
	order  []*Server
	byName map[string]*Server
}

// run is a server's Run under way.
type run struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// NewSet returns an empty set.
func NewSet() *Set {
	s := &Set{running: make(map[*Server]*run)}
	s.view.Store(&view{byName: map[string]*Server{}})
	return s
}

// Get returns the server of a name, nil if there is none.
func (s *Set) Get(name string) *Server { return s.view.Load().byName[name] }

// All returns the servers in order. The slice is the caller's.
func (s *Set) All() []*Server { return slices.Clone(s.view.Load().order) }

// Stale tells every server that a client listed a kind; see Server.Stale.
func (s *Set) Stale(k mcp.Kind) {
	for _, server := range s.view.Load().order {
		server.Stale(k)
	}
}

// Why a server was stopped.
var (
	ErrRemoved  = errors.New("it was removed from the configuration, or switched off there")
	ErrReplaced = errors.New("it was started anew because its configuration has changed")
)

// Apply makes the set consist of these servers, in this order: those that it has
// already go on undisturbed, new ones are started, and those that are not
// among them are stopped, which Apply waits for: their requests fail with
// ErrRemoved, or with ErrReplaced if there is another server of the name, which
// starts when they have ended. Servers run until they are stopped or ctx ends. A name that stands twice is an error and changes nothing.
func (s *Set) Apply(ctx context.Context, servers []*Server) error {
	next := &view{order: slices.Clone(servers), byName: make(map[string]*Server, len(servers))}
	for _, server := range servers {
		if next.byName[server.Name()] != nil {
			return fmt.Errorf("two servers are named %q", server.Name())
		}
		next.byName[server.Name()] = server
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running == nil {
		return errors.New("the set is closed")
	}
	s.view.Store(next)
	gone := make(map[string]*run)
	for server, r := range s.running {
		if other := next.byName[server.Name()]; other != server {
			server.dismiss(ErrRemoved)
			if other != nil {
				server.dismiss(ErrReplaced)
			}
			r.cancel()
			gone[server.Name()] = r
			delete(s.running, server)
		}
	}
	for _, server := range servers {
		if s.running[server] == nil {
			s.running[server] = start(ctx, server, gone[server.Name()])
		}
	}
	for _, r := range gone {
		<-r.done
	}
	return nil
}

// start runs a server, once its predecessor of the same name, if there is one,
// has let go of what they may share.
func start(ctx context.Context, server *Server, before *run) *run {
	ctx, cancel := context.WithCancel(ctx)
	r := &run{cancel: cancel, done: make(chan struct{})}
	go func() { // ends with ctx; Apply or Close waits for it
		defer close(r.done)
		if before != nil {
			<-before.done
		}
		server.Run(ctx)
	}()
	return r
}

// Close stops all servers and waits for them. The set stays readable and takes
// no more servers.
func (s *Set) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.running {
		r.cancel()
	}
	for _, r := range s.running {
		<-r.done
	}
	s.running = nil
}
