package upstream

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// idleTime is how long a client's server goes on without a call that runs and
	// a resource that is watched, before it is stopped.
	idleTime = 30 * time.Minute
	// spareTime is how long it must have been so to make room for another one.
	spareTime = time.Minute
	// maxOfPrincipal and maxOfServer are how many clients of one principal, and
	// in all, have one of a server running for them at once.
	maxOfPrincipal = 32
	maxOfServer    = 256
)

// Client is for whom a server runs apart.
type Client struct {
	// ID tells it from the others, and is comparable.
	ID any
	// Principal is who it is, as far as that is known; "": anybody.
	Principal string
	// Name is what Status calls it.
	Name string
	// Capabilities are the client's: what a server with sessions is told.
	Capabilities jsontext.Value
	// Done is closed when the client is gone. nil: that is never known.
	Done <-chan struct{}
}

// errGone is why nothing is started for a client that has left.
var errGone = errors.New("the client has left")

// LimitError says that as many servers run for a principal's clients, or for all,
// as may.
type LimitError struct {
	Server string
	Most   int
	// Yours: they are those of the one principal.
	Yours bool
}

func (e *LimitError) Error() string {
	whose := "all clients together"
	if e.Yours {
		whose = "your clients"
	}
	return fmt.Sprintf("server %q runs for each client apart, and for %s it runs %d times already, none of them idle: end a session that is not needed, or try again later",
		e.Server, whose, e.Most)
}

// private has what runs of a server whose clients do not share it. The Server that
// it belongs to is connected to nothing; it stands for all of them.
type private struct {
	server *Server

	mu     sync.Mutex // guards the fields below
	start  func(*instance)
	over   bool // Run has ended, or is about to
	by     map[any]*instance
	ending map[any]*instance // by client, those that are being stopped
	level  string
}

// instance is a server that runs for one client.
type instance struct {
	*Server
	client Client
	used   time.Time     // when it was asked for last, or seen at work
	stop   chan struct{} // closed to stop it
	done   chan struct{} // closed when it has ended
	before *instance     // that it waits for; nil: for none
}

// PerClient reports whether the server runs for each client apart. It then has no
// connection of its own: For returns the server to call.
func (s *Server) PerClient() bool { return s.private != nil }

// For returns the server that runs for a client: s itself if clients share it,
// else one that is the client's alone, which is started if it does not run. However
// many ask at once, there is one.
//
// It is stopped when the client is gone, and when it has had nothing to do for
// 30 minutes; then the next For starts another. There are at most 32 for the
// clients of one principal and 256 in all. For one more, the one of the same
// principal that has had nothing to do for longest is stopped, if that is a minute;
// else the error is a *LimitError.
func (s *Server) For(c Client) (*Server, error) {
	p := s.private
	if p == nil {
		return s, nil
	}
	on := s.isEnabled()
	p.mu.Lock()
	defer p.mu.Unlock()
	if inst := p.by[c.ID]; inst != nil {
		inst.used = time.Now()
		return inst.Server, nil
	}
	if p.over || !on {
		return nil, &UnavailableError{Server: s.Name(), State: Disabled}
	}
	select {
	case <-c.Done:
		return nil, &UnavailableError{Server: s.Name(), State: Disabled, LastErr: errGone}
	default:
	}
	if err := p.makeRoomLocked(c.Principal); err != nil {
		return nil, err
	}
	inst := &instance{
		Server: New(p.optionsLocked(c)), client: c, used: time.Now(),
		stop: make(chan struct{}), done: make(chan struct{}), before: p.ending[c.ID],
	}
	inst.parent = s
	inst.SetLevel(p.level)
	p.by[c.ID] = inst
	if p.start != nil {
		p.start(inst)
	}
	return inst.Server, nil
}

func (p *private) optionsLocked(c Client) Options {
	opts := p.server.opts.PerClient(c)
	opts.PerClient, opts.Disabled = nil, false
	if info, known := p.server.Info(); known {
		opts.Known.Server = info
	}
	return opts
}

// Of returns the server that runs for a client; nil if there is none. For a server
// that clients share it is s itself.
func (s *Server) Of(id any) *Server {
	if s.private == nil {
		return s
	}
	s.private.mu.Lock()
	defer s.private.mu.Unlock()
	if inst := s.private.by[id]; inst != nil {
		return inst.Server
	}
	return nil
}

// makeRoomLocked stops one that is idle if there are too many.
func (p *private) makeRoomLocked(principal string) error {
	yours := 0
	var spare *instance
	for _, inst := range p.by {
		if inst.client.Principal != principal {
			continue
		}
		yours++
		if spare == nil || inst.used.Before(spare.used) {
			if !inst.busy() {
				spare = inst
			}
		}
	}
	if yours < maxOfPrincipal && len(p.by) < maxOfServer {
		return nil
	}
	if spare == nil || time.Since(spare.used) < spareTime {
		e := &LimitError{Server: p.server.Name(), Most: maxOfServer}
		if yours >= maxOfPrincipal {
			e.Most, e.Yours = maxOfPrincipal, true
		}
		return e
	}
	p.endLocked(spare)
	return nil
}

// busy reports whether there is something to do.
func (inst *instance) busy() bool {
	uris, _ := inst.wishes()
	return len(uris) > 0 || inst.flights.count() > 0
}

// endLocked has an instance stopped, if it is not already.
func (p *private) endLocked(inst *instance) {
	if p.by[inst.client.ID] != inst {
		return
	}
	delete(p.by, inst.client.ID)
	p.ending[inst.client.ID] = inst
	close(inst.stop)
}

func (p *private) end(inst *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(inst)
}

func (p *private) endAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, inst := range p.by {
		p.endLocked(inst)
	}
}

// run has a server run for each client that asks, until ctx ends.
func (p *private) run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	p.mu.Lock()
	p.start = func(inst *instance) {
		all.Go(func() { p.runOne(ctx, inst) }) // ends with ctx, with the client, or when it is stopped
	}
	for _, inst := range p.by {
		p.start(inst)
	}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.over = true
		p.mu.Unlock()
	}()
	const often = idleTime / 30
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			p.sweep()
		case <-p.server.kick:
			enabled, restart := p.server.orders()
			switch {
			case !enabled:
				p.endAll()
			case restart:
				for _, inst := range p.instances() {
					inst.Restart()
				}
			}
		}
	}
}

func (p *private) runOne(ctx context.Context, inst *instance) {
	defer close(inst.done)
	if inst.before != nil {
		<-inst.before.done
		inst.before = nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { // ends with ctx
		select {
		case <-inst.client.Done:
			p.end(inst)
		case <-inst.stop:
		case <-ctx.Done():
		}
		cancel()
	})
	inst.Run(ctx)
	cancel()
	watcher.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(inst) // if ctx ended it
	if p.ending[inst.client.ID] == inst {
		delete(p.ending, inst.client.ID)
	}
}

// sweep stops those that have had nothing to do for too long.
func (p *private) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, inst := range p.by {
		switch {
		case inst.busy():
			inst.used = time.Now()
		case time.Since(inst.used) >= idleTime:
			p.endLocked(inst)
		}
	}
}

// instances returns those that run, by the names of their clients.
func (p *private) instances() []*instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.SortedFunc(maps.Values(p.by), func(a, b *instance) int {
		return strings.Compare(a.client.Name, b.client.Name)
	})
}

func (p *private) setLevel(level string) {
	p.mu.Lock()
	p.level = level
	all := slices.Collect(maps.Values(p.by))
	p.mu.Unlock()
	for _, inst := range all {
		inst.SetLevel(level)
	}
}

// ClientStatus is the status of the server that runs for one client.
type ClientStatus struct {
	Client    string // its name
	Principal string
	Status
}

// status returns that of all together: of the one that is worst, with the counts
// of the one that has listed last.
func (p *private) status(st Status) Status {
	st.State = Idle
	if !p.server.isEnabled() {
		st.State = Disabled
	}
	grave := []State{Idle, Ready, Starting, Degraded, NeedsLogin, Down}
	var listed time.Time
	for _, inst := range p.instances() {
		one := inst.Server.Status()
		st.Clients = append(st.Clients, ClientStatus{inst.client.Name, inst.client.Principal, one})
		if slices.Index(grave, one.State) > slices.Index(grave, st.State) {
			st.State, st.Since, st.LastErr, st.NextTry = one.State, one.Since, one.LastErr, one.NextTry
		}
		if one.Version != "" {
			st.Version = one.Version
		}
		if at := one.Kinds[0].ListedAt; !at.Before(listed) {
			st.Kinds, listed = one.Kinds, at
		}
		st.Restarts += one.Restarts
		st.InFlight += one.InFlight
		st.Queued += one.Queued
	}
	return st
}
