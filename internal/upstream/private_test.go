package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// perClient runs a server that runs for each client apart, until the test ends.
func perClient(t *testing.T, host *mcptest.Host) *upstream.Server {
	t.Helper()
	s := upstream.New(upstream.Options{Name: "s", PerClient: func(c upstream.Client) upstream.Options {
		return upstream.Options{Name: "s", Dial: host.Dial, Capabilities: c.Capabilities}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return s
}

// answering is a host whose servers answer calls when release is closed.
func answering(release <-chan struct{}) *mcptest.Host {
	host := &mcptest.Host{}
	host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		switch {
		case !m.IsRequest():
		case m.Method == mcp.MethodDiscover:
			p.Refuse(m, jsonrpc.CodeMethodNotFound, "no", "")
		case m.Method == mcp.MethodInitialize:
			p.Reply(m, mcptest.Initialized("2025-11-25", `{}`))
		case m.Method == mcp.MethodToolsCall:
			<-release
			p.Reply(m, `{"content":[]}`)
		default:
			p.Reply(m, `{}`)
		}
	}
	return host
}

func released() <-chan struct{} {
	release := make(chan struct{})
	close(release)
	return release
}

func callFor(ctx context.Context, s *upstream.Server, c upstream.Client) error {
	one, err := s.For(c)
	if err != nil {
		return err
	}
	_, err = one.Call(ctx, upstream.Request{Method: mcp.MethodToolsCall, Client: c.ID})
	return err
}

// TestPerClientOne: there is one server for a client, however many ask at once.
func TestPerClientOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := answering(released())
		s := perClient(t, host)
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if err := callFor(t.Context(), s, upstream.Client{ID: i % 2, Name: fmt.Sprint(i % 2)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if host.Dials() != 2 {
			t.Errorf("%d servers for two clients", host.Dials())
		}
		if st := s.Status(); st.State != upstream.Ready || len(st.Clients) != 2 || st.Clients[0].Client != "0" {
			t.Errorf("status %+v", st)
		}
	})
}

// TestPerClientIdle: a client's server is stopped when it has had nothing to do for
// long, not while a call runs or a resource is watched, and started again.
func TestPerClientIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		host := answering(release)
		s := perClient(t, host)
		c := upstream.Client{ID: 1}
		called := make(chan error, 1)
		go func() { called <- callFor(t.Context(), s, c) }()
		synctest.Wait()
		time.Sleep(4 * time.Minute)
		close(release)
		if err := <-called; err != nil {
			t.Fatal(err)
		}
		time.Sleep(28 * time.Minute)
		synctest.Wait()
		if s.Of(1) == nil {
			t.Fatal("stopped less than 30 minutes after a call")
		}
		s.Of(1).Subscribe([]string{"x:y"})
		time.Sleep(2 * time.Hour)
		if s.Of(1) == nil {
			t.Fatal("stopped while a resource is watched")
		}
		s.Of(1).Subscribe(nil)
		time.Sleep(32 * time.Minute)
		synctest.Wait()
		if s.Of(1) != nil || s.Status().State != upstream.Idle {
			t.Fatalf("not stopped: %s", s.Status().State)
		}
		if err := callFor(t.Context(), s, c); err != nil || host.Dials() != 2 {
			t.Errorf("%v after %d starts", err, host.Dials())
		}
	})
}

// TestPerClientLimits: a principal may have 32, and all together 256; one that
// has been idle for a minute makes room for another of the same principal.
func TestPerClientLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := answering(released())
		s := perClient(t, host)
		start := func(principal string, n int) error {
			return callFor(t.Context(), s, upstream.Client{ID: fmt.Sprint(principal, n), Principal: principal})
		}
		for p := range 8 {
			for n := range 32 {
				if err := start(fmt.Sprint("p", p), n); err != nil {
					t.Fatal(err)
				}
			}
		}
		var limit *upstream.LimitError
		if err := start("p0", 32); !errors.As(err, &limit) || !limit.Yours || limit.Most != 32 {
			t.Errorf("one more of the same principal: %v", err)
		}
		if err := start("other", 0); !errors.As(err, &limit) || limit.Yours || limit.Most != 256 {
			t.Errorf("one more of another: %v", err)
		}
		time.Sleep(time.Minute)
		if err := start("p1", 1); err != nil { // it is not idle any more
			t.Fatal(err)
		}
		if err := start("p1", 32); err != nil {
			t.Errorf("one more after a minute: %v", err)
		}
		if s.Of("p11") == nil || s.Of("p132") == nil || len(s.Status().Clients) != 256 {
			t.Errorf("%d run", len(s.Status().Clients))
		}
	})
}

// TestPerClientGone: when a client has left, its server is stopped and none is
// started.
func TestPerClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := answering(released())
		s := perClient(t, host)
		done := make(chan struct{})
		c := upstream.Client{ID: 1, Done: done}
		if err := callFor(t.Context(), s, c); err != nil {
			t.Fatal(err)
		}
		close(done)
		synctest.Wait()
		if s.Of(1) != nil {
			t.Error("it runs on")
		}
		var away *upstream.UnavailableError
		if err := callFor(t.Context(), s, c); !errors.As(err, &away) {
			t.Errorf("a call for a client that has left: %v", err)
		}
		if host.Dials() != 1 {
			t.Errorf("%d starts", host.Dials())
		}
	})
}

// TestPerClientOrders: the operator's orders count for the servers of all clients.
func TestPerClientOrders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := answering(released())
		s := perClient(t, host)
		for i := range 3 {
			if err := callFor(t.Context(), s, upstream.Client{ID: i}); err != nil {
				t.Fatal(err)
			}
		}
		s.SetLevel("debug")
		synctest.Wait()
		if n := host.Count(mcp.MethodSetLevel); n != 3 {
			t.Errorf("%d were asked for a log level", n)
		}
		s.Restart()
		synctest.Wait()
		time.Sleep(time.Second)
		if host.Dials() != 6 {
			t.Errorf("%d starts after a restart of three", host.Dials())
		}
		s.Enable(false)
		synctest.Wait()
		var away *upstream.UnavailableError
		if err := callFor(t.Context(), s, upstream.Client{ID: 0}); !errors.As(err, &away) || s.Status().State != upstream.Disabled {
			t.Errorf("switched off: %v, %s", err, s.Status().State)
		}
		s.Enable(true)
		synctest.Wait()
		if err := callFor(t.Context(), s, upstream.Client{ID: 0}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := host.Count(mcp.MethodSetLevel); n != 7 {
			t.Errorf("%d were asked for a log level", n)
		}
	})
}
