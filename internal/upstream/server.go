package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Server is one configured server, whether it is there or not. Its methods may
// be called from any goroutine.
type Server struct {
	opts     Options
	info     atomic.Pointer[client.ServerInfo] // of the last connection; nil: none
	conn     atomic.Pointer[connection]        // nil: not connected
	deadline time.Time                         // until when calls wait for the first connection
	tried    chan struct{}                     // closed when the first attempt to connect has ended
	slots    chan struct{}                     // one per request that runs
	queued   atomic.Int64
	lent     atomic.Int64 // slots given up by requests that wait for an answer
	flights  flights
	private  *private // nil: clients share the server
	parent   *Server  // of a client's own server, what stands for them all; else nil
	agreed   agreed
	kick     chan struct{} // one slot: something for Run to look at
	// shelves has what is known of each kind. It belongs to the goroutine that
	// walks lists, of which there is one at a time.
	shelves [len(mcp.Kinds)]shelf
	// news is what Hooks.Lists is to be told next. It outlives a connection that
	// ends between two walks. As shelves.
	news Lists
	// shown is what Hooks.Lists was told of the server; nil: nothing yet. It
	// belongs to the same goroutine.
	shown   *client.ServerInfo
	served  bool           // a connection has been in use; belongs to Run
	closing sync.WaitGroup // connections that wait for their last calls

	mu      sync.Mutex // guards the fields below
	status  Status
	enabled bool
	restart bool
	gone    error    // why it was stopped for good; nil: it was not
	uris    []string // resources to be told about
	level   string   // of log messages; "": not asked for
}

// New returns a server. It does nothing before Run.
func New(opts Options) *Server {
	opts = opts.withDefaults()
	now := time.Now()
	s := &Server{
		opts: opts, enabled: !opts.Disabled,
		deadline: now.Add(opts.StartWait),
		tried:    make(chan struct{}),
		slots:    make(chan struct{}, opts.MaxInFlight),
		kick:     make(chan struct{}, 1),
		status:   Status{Name: opts.Name, State: Starting, Since: now, Version: opts.Known.Server.Version},
	}
	if opts.Disabled {
		s.status.State = Disabled
	}
	if opts.Known.Server.Version != "" {
		info := opts.Known.Server
		s.info.Store(&info)
	}
	if opts.PerClient != nil {
		s.private = &private{server: s, by: make(map[any]*instance), ending: make(map[any]*instance)}
	}
	s.flights.others = jsonrpc.HandlerFunc(s.answerStray)
	for i, list := range opts.Known.Lists {
		s.shelves[i] = newShelf(list, opts.BackoffMin, opts.BackoffMax)
		if list != nil {
			s.status.Kinds[i].Count = len(list.Items)
		}
	}
	return s
}

// Name returns the server's name.
func (s *Server) Name() string { return s.opts.Name }

// Forwards returns Options.Forward. It must not be written to.
func (s *Server) Forwards() []string { return s.opts.Forward }

// Info returns what the server said of itself last, be it in an earlier process;
// false if it never did.
func (s *Server) Info() (client.ServerInfo, bool) {
	info := s.info.Load()
	if info == nil {
		return client.ServerInfo{}, false
	}
	return *info, true
}

// Status returns what is known of the server now.
func (s *Server) Status() Status {
	s.mu.Lock()
	st := s.status
	s.mu.Unlock()
	st.InFlight, st.Queued = s.flights.count(), int(s.queued.Load())
	if s.private != nil {
		return s.private.status(st)
	}
	return st
}

// Enable switches the server on or off. Off, its connection is closed and it is
// not connected again; what it listed stays known.
func (s *Server) Enable(on bool) {
	s.mu.Lock()
	s.enabled = on
	s.mu.Unlock()
	wake(s.kick)
}

// Restart closes the connection and connects anew, at once.
func (s *Server) Restart() {
	s.mu.Lock()
	s.restart = true
	s.mu.Unlock()
	wake(s.kick)
}

// dismiss says why the server is about to be stopped for good. Requests that run
// then, or come later, fail with it.
func (s *Server) dismiss(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = why
}

func (s *Server) dismissed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// orders returns whether the server is to run, and whether to connect anew,
// which is asked for once.
func (s *Server) orders() (enabled, restart bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	restart = s.restart
	s.restart = false
	return s.enabled, restart
}

// wake fills a one-slot signal.
func wake(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}

// setStatus changes the status and tells State if it is news.
func (s *Server) setStatus(change func(*Status)) {
	s.mu.Lock()
	old := s.status
	change(&s.status)
	if s.status.State != old.State {
		s.status.Since = time.Now()
	}
	now := s.status
	s.mu.Unlock()
	if s.opts.Hooks.State != nil && differ(&old, &now) {
		s.opts.Hooks.State(now)
	}
}

func differ(a, b *Status) bool {
	if a.State != b.State || text(a.LastErr) != text(b.LastErr) {
		return true
	}
	for i := range a.Kinds {
		if text(a.Kinds[i].Err) != text(b.Kinds[i].Err) {
			return true
		}
	}
	return false
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// newBackoff returns pauses that double from about first to at most most, each
// up to 30 % longer or shorter.
func newBackoff(first, most time.Duration) *backoff.ExponentialBackOff {
	const jitter = 0.3
	b := &backoff.ExponentialBackOff{
		InitialInterval: first, MaxInterval: time.Duration(float64(most) / (1 + jitter)),
		RandomizationFactor: jitter, Multiplier: 2,
	}
	b.Reset()
	return b
}

// Run keeps the server connected until ctx ends, and returns when all that it
// started has ended. It may be called once.
func (s *Server) Run(ctx context.Context) {
	if s.private != nil {
		s.private.run(ctx)
		return
	}
	if s.opts.Hooks.Begin != nil {
		s.opts.Hooks.Begin(s)
	}
	pause := newBackoff(s.opts.BackoffMin, s.opts.BackoffMax)
	remembered := s.opts.Known.Server.Version
	var first sync.Once
	over := func() { first.Do(func() { close(s.tried) }) }
	defer s.closing.Wait()
	defer over()
	for ctx.Err() == nil {
		if enabled, _ := s.orders(); !enabled {
			s.rest(ctx)
			continue
		}
		began := time.Now()
		cl, gate, err := s.connect(ctx, remembered)
		if err == nil {
			began = time.Now()
			remembered = cl.Server().Version
			err = s.serve(ctx, cl, gate, over)
		} else {
			remembered = "" // what was remembered may be what is wrong
		}
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) >= s.opts.BackoffMax {
			pause.Reset()
		}
		s.wait(ctx, s.hide(err), pause.NextBackOff(), over)
	}
	s.setStatus(func(st *Status) { st.State, st.NextTry = Disabled, time.Time{} })
}

// rest waits until the server is switched on.
func (s *Server) rest(ctx context.Context) {
	s.setStatus(func(st *Status) { st.State, st.NextTry = Disabled, time.Time{} })
	select {
	case <-s.kick:
	case <-ctx.Done():
	}
	if s.isEnabled() {
		s.setStatus(func(st *Status) { st.State = Starting })
	}
}

func (s *Server) isEnabled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.enabled
}

// errSettled ends what waits for the end of an attempt to connect.
var errSettled = errors.New("the attempt to connect has ended")

// errRestart ends a connection that an operator wants anew.
var errRestart = errors.New("restarted by the operator")

// wait lets the pause before the next attempt pass, unless somebody is in a hurry.
// Those who waited for the attempt that failed are let go by over, when the
// status says how it did.
func (s *Server) wait(ctx context.Context, err error, pause time.Duration, over func()) {
	switch {
	case errors.Is(err, errDisabled):
		over()
		return
	case errors.Is(err, errRestart):
		s.setStatus(func(st *Status) { st.State, st.LastErr = Starting, nil })
		over()
		return
	}
	state := Down
	if _, login := errors.AsType[LoginError](err); login {
		state = NeedsLogin
	}
	s.setStatus(func(st *Status) {
		st.State, st.LastErr, st.NextTry = state, err, time.Now().Add(pause)
	})
	over()
	s.opts.Logger.Debug("server is down", "server", s.opts.Name, "err", err, "pause", pause)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-s.kick:
			if enabled, restart := s.orders(); restart || !enabled {
				return
			}
		}
	}
}

// connect dials and detects the era, for at most ConnectTimeout.
func (s *Server) connect(ctx context.Context, remembered mcp.Version) (*client.Client, *gate, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.ConnectTimeout,
		&TimeoutError{s.opts.Name, "the attempt to connect", s.opts.ConnectTimeout})
	defer cancel()
	ctx, settle := s.interruptible(ctx)
	g := newGate(s)
	info, _ := s.Info()
	cl, err := client.Connect(ctx, client.Options{
		Dial: s.opts.Dial, HTTP: s.opts.HTTP,
		Info: s.opts.Info, Capabilities: s.opts.Capabilities,
		Remembered: remembered, RememberedInfo: info.Info, ProbeTimeout: s.opts.ProbeTimeout,
		CallTimeout:  -1,                                    // calls, walks and checks end their contexts themselves
		Handler:      jsonrpc.HandlerFunc(s.flights.answer), // on wires that do not route
		Route:        s.flights.route,
		Notification: g.notification,
		Gap:          g.gap,
		Logger:       s.opts.Logger,
	})
	cause := settle()
	if err == nil && cause != nil { // too late to be heard by who dialled
		_ = cl.Close() // nothing was done with it
		return nil, nil, cause
	}
	if err != nil {
		if cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	return cl, g, nil
}

// interruptible returns a context that ends when the operator wants something
// else, and what to call when it is no longer needed, which says why it ended
// before that.
func (s *Server) interruptible(ctx context.Context) (context.Context, func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher sync.WaitGroup
	var order error     // the watcher's until it has ended
	watcher.Go(func() { // ends with ctx
		for {
			select {
			case <-s.kick:
			case <-ctx.Done():
				return
			}
			if order = s.ordered(); order != nil {
				cancel(order)
				return
			}
		}
	})
	return ctx, func() error {
		cancel(errSettled)
		watcher.Wait()
		if cause := context.Cause(ctx); order == nil && !errors.Is(cause, errSettled) {
			return cause
		}
		return order
	}
}

// ordered returns an error if the operator wants the connection to end.
func (s *Server) ordered() error {
	switch enabled, restart := s.orders(); {
	case !enabled:
		return errDisabled
	case restart:
		return errRestart
	}
	return nil
}

// notify hands a notification on.
func (s *Server) notify(m *jsonrpc.Message) {
	if s.opts.Hooks.Notification != nil {
		s.opts.Hooks.Notification(m)
	}
}
