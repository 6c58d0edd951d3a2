package upstream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// TestFirstLists: one publication, with all kinds and what the server said.
func TestFirstLists(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v, "zeta", "alpha")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		if g.published() != 1 {
			t.Fatalf("published %d times", g.published())
		}
		l := g.news(1)
		if l.Server.Version != v || l.Server.Instructions != "be brief" {
			t.Errorf("server %+v", l.Server)
		}
		for _, k := range mcp.Kinds {
			if l.Kinds[k].List == nil || l.Kinds[k].Err != nil {
				t.Errorf("%s: %+v", k, l.Kinds[k])
			}
		}
		if g.tools() != "zeta alpha" || g.items(mcp.Resources) != "x:1" {
			t.Errorf("tools %q, resources %q", g.tools(), g.items(mcp.Resources))
		}
		g.wantState(t, upstream.Ready)
		st := g.server.Status()
		if st.Version != v || st.Kinds[mcp.Tools].Count != 2 || st.LastErr != nil || st.Restarts != 0 {
			t.Errorf("status %+v", st)
		}
	})
}

// TestHandshakeOnce is C-129: 100 calls are 100 calls.
func TestHandshakeOnce(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v, "a")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		for range 100 {
			if _, err := g.call(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		handshakes := b.host.Count(mcp.MethodInitialize)
		if v.Stateless() {
			handshakes = b.host.Count(mcp.MethodDiscover)
		}
		if handshakes != 1 || b.listed() != 1 || b.host.Count(mcp.MethodToolsCall) != 100 || b.host.Dials() != 1 {
			t.Errorf("%d handshakes, %d listings, %d calls, %d dials", handshakes, b.listed(), b.host.Count(mcp.MethodToolsCall), b.host.Dials())
		}
	})
}

// TestDownAtStart is C-024 and C-026 for one server: the reason is known, it is
// tried again, and joins when it is there.
func TestDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.host.Refuse = func(n int) error {
			if n <= 3 {
				return errors.New("connection refused")
			}
			return nil
		}
		g := run(t, upstream.Options{Dial: b.host.Dial})
		_, err := g.call(t.Context(), "a") // that waits for the first attempt
		if err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Error(err)
		}
		synctest.Wait()
		g.wantState(t, upstream.Down)
		began := time.Now()
		_, err = g.call(t.Context(), "a")
		away, ok := errors.AsType[*upstream.UnavailableError](err)
		if !ok || away.Server != "b1" || away.State != upstream.Down || !away.NextTry.After(time.Now()) || time.Since(began) > 0 {
			t.Errorf("%#v after %v", err, time.Since(began))
		}
		for _, want := range []string{`"b1"`, "down", "connection refused", "tried again in"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("error %q does not say %q", err, want)
			}
		}
		pass(30 * time.Second)
		g.wantState(t, upstream.Ready)
		if g.tools() != "a" || g.published() != 1 {
			t.Errorf("tools %q", g.tools())
		}
	})
}

// TestSilentAtStart is C-025 for one server: calls do not wait longer than
// StartWait, and the attempt ends.
func TestSilentAtStart(t *testing.T) {
	for _, http := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newBackend(mcp.V20251125)
			b.script(func(*mcptest.Peer, *jsonrpc.Message) bool { return true })
			g := run(t, upstream.Options{Dial: b.host.Dial, HTTP: http})
			began := time.Now()
			_, err := g.call(t.Context(), "a")
			if _, ok := errors.AsType[*upstream.UnavailableError](err); !ok || time.Since(began) != 10*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			began = time.Now()
			if _, err = g.call(t.Context(), "a"); time.Since(began) > 0 {
				t.Errorf("a later call: %v after %v", err, time.Since(began))
			}
			pass(50*time.Second + time.Millisecond)
			g.wantState(t, upstream.Down)
			if err := g.server.Status().LastErr; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1m0s") {
				t.Error(err)
			}
		})
	}
}

// TestFirstCallWaits: a call that comes while the server starts is served.
func TestFirstCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodDiscover {
				pass(1500 * time.Millisecond)
			}
			return false
		})
		g := run(t, upstream.Options{Dial: b.host.Dial})
		if _, err := g.call(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestCrashLoop is C-053: (a) ever longer pauses with a cap, (b) no giving up,
// (c) a connection that held starts the count anew.
func TestCrashLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		var mu sync.Mutex
		var dials []time.Time
		b.host.Refuse = func(int) error {
			mu.Lock()
			defer mu.Unlock()
			dials = append(dials, time.Now())
			return nil
		}
		var healthy atomic.Bool
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodInitialized && !healthy.Load() {
				time.AfterFunc(100*time.Millisecond, p.Close)
			}
			return false
		})
		g := run(t, upstream.Options{Dial: b.host.Dial})
		pass(30 * time.Minute)
		mu.Lock()
		n := len(dials)
		var pauses []time.Duration
		for i := 1; i < n; i++ {
			pauses = append(pauses, dials[i].Sub(dials[i-1]))
		}
		mu.Unlock()
		if n < 30 || n > 70 {
			t.Errorf("%d attempts in 30 minutes", n)
		}
		if pauses[0] > 1500*time.Millisecond || slices.Max(pauses) > 61*time.Second || pauses[len(pauses)-1] < 30*time.Second {
			t.Errorf("pauses %v", pauses)
		}
		if slices.Index(pauses[7:], pauses[6]) >= 0 {
			t.Errorf("pauses without jitter: %v", pauses)
		}
		healthy.Store(true)
		pass(2 * time.Minute) // (b)
		g.wantState(t, upstream.Ready)
		b.host.Peer().Close() // (c)
		synctest.Wait()
		if st := g.server.Status(); st.State != upstream.Down || time.Until(st.NextTry) > 1500*time.Millisecond {
			t.Errorf("after a crash: %s, next try in %v", st.State, time.Until(st.NextTry))
		}
		pass(2 * time.Second)
		g.wantState(t, upstream.Ready)
	})
}

// TestRestarted is C-054: a new process is asked everything anew.
func TestRestarted(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v, "a")
		b.caps = `{"tools":{"listChanged":true}}`
		g := run(t, upstream.Options{Dial: b.host.Dial})
		g.server.Subscribe([]string{"x:1"})
		g.server.SetLevel("debug")
		synctest.Wait()
		if g.items(mcp.Resources) != "" {
			t.Errorf("resources %q", g.items(mcp.Resources))
		}
		old := b.host.Peer()
		b.set("a", "b")
		b.mu.Lock()
		b.caps = changing
		b.mu.Unlock()
		old.Close()
		pass(3 * time.Second)
		g.wantState(t, upstream.Ready)
		if g.tools() != "a b" || g.items(mcp.Resources) != "x:1" || g.published() != 2 {
			t.Errorf("tools %q, resources %q, published %d times", g.tools(), g.items(mcp.Resources), g.published())
		}
		if info, _ := g.server.Info(); !info.Lists(mcp.Resources) {
			t.Error("the new capability is not known")
		}
		p := b.host.Peer()
		if p == old || g.server.Status().Restarts != 1 {
			t.Error("not a new connection")
		}
		if v.Stateless() {
			log := p.Log()
			i := slices.IndexFunc(log, func(m jsonrpc.Message) bool { return m.Method == mcp.MethodListen })
			if i < 0 || !strings.Contains(string(log[i].Params.Raw), `"resourceSubscriptions":["x:1"]`) {
				t.Error("subscription was not made again")
			}
			return
		}
		if p.Count(mcp.MethodSubscribe) != 1 || p.Count(mcp.MethodSetLevel) != 1 || p.Count(mcp.MethodInitialized) != 1 {
			t.Error("subscription or log level was not made again")
		}
	})
}

// TestBriefOutage is C-029: calls fail fast, and lists stay as they are.
func TestBriefOutage(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v, "a")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		until := time.Now().Add(3 * time.Second)
		b.host.Refuse = func(int) error {
			if time.Now().Before(until) {
				return errors.New("connection refused")
			}
			return nil
		}
		b.host.Peer().Close()
		synctest.Wait()
		began := time.Now()
		_, err := g.call(t.Context(), "a")
		if _, ok := errors.AsType[*upstream.UnavailableError](err); !ok || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		pass(20 * time.Second)
		g.wantState(t, upstream.Ready)
		if g.published() != 1 {
			t.Errorf("published %d times", g.published())
		}
		if _, err := g.call(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestEraChanges is C-204 while the gateway runs.
func TestEraChanges(t *testing.T) {
	for _, way := range [][2]mcp.Version{{mcp.V20251125, mcp.V20260728}, {mcp.V20260728, mcp.V20250618}} {
		synctest.Test(t, func(t *testing.T) {
			b := newBackend(way[0], "a")
			g := run(t, upstream.Options{Dial: b.host.Dial})
			synctest.Wait()
			b.mu.Lock()
			b.version = way[1]
			b.mu.Unlock()
			b.host.Peer().Close()
			pass(10 * time.Second)
			g.wantState(t, upstream.Ready)
			if v := g.server.Status().Version; v != way[1] {
				t.Errorf("version %s", v)
			}
			if _, err := g.call(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRemembered: what an earlier process learned is known before Run.
func TestRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		first := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		known := upstream.Known{Server: first.news(1).Server}
		for _, k := range mcp.Kinds {
			known.Lists[k] = first.news(1).Kinds[k].List
		}
		s := upstream.New(upstream.Options{Name: "b1", Known: known})
		if info, ok := s.Info(); !ok || info.Version != mcp.V20251125 || s.Status().Kinds[mcp.Tools].Count != 1 {
			t.Errorf("info %+v", info)
		}
		probes := b.host.Count(mcp.MethodDiscover)
		g := run(t, upstream.Options{Dial: b.host.Dial, Known: known})
		synctest.Wait()
		g.wantState(t, upstream.Ready)
		if b.host.Count(mcp.MethodDiscover) != probes {
			t.Error("probed again")
		}
		if g.published() != 1 || g.news(1).Kinds[mcp.Tools].List != nil {
			t.Error("published what was known")
		}
	})
}

// TestOperator: switched off, on, and restarted.
func TestOperator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		g := run(t, upstream.Options{Dial: b.host.Dial, Disabled: true})
		synctest.Wait()
		g.wantState(t, upstream.Disabled)
		if _, err := g.call(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "disabled") || b.host.Dials() != 0 {
			t.Errorf("%v, %d dials", err, b.host.Dials())
		}
		g.server.Enable(true)
		synctest.Wait()
		g.wantState(t, upstream.Ready)
		began := time.Now()
		g.server.Restart()
		synctest.Wait()
		g.wantState(t, upstream.Ready)
		if b.host.Dials() != 2 || time.Since(began) > 0 {
			t.Errorf("%d dials after %v", b.host.Dials(), time.Since(began))
		}
		g.server.Enable(false)
		synctest.Wait()
		g.wantState(t, upstream.Disabled)
		pass(time.Hour)
		if b.host.Dials() != 2 {
			t.Errorf("%d dials", b.host.Dials())
		}
	})
}

// TestSet: order, lookup, and a change that leaves the others alone.
func TestSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backends := make(map[string]*backend)
		server := func(name string, before *upstream.Server) *upstream.Server {
			b := newBackend(mcp.V20251125, name)
			backends[name] = b
			return upstream.New(upstream.Options{Name: name, Dial: func(ctx context.Context, in client.Incoming) (client.Wire, error) {
				if before != nil && before.Status().State != upstream.Disabled {
					t.Errorf("%s is dialled while its predecessor runs", name)
				}
				return b.host.Dial(ctx, in)
			}})
		}
		set := upstream.NewSet()
		z, a, m := server("z", nil), server("a", nil), server("m", nil)
		if err := set.Apply(t.Context(), []*upstream.Server{z, a}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := set.Apply(t.Context(), []*upstream.Server{m, m}); err == nil {
			t.Error("one name twice")
		}
		if !slices.Equal(set.All(), []*upstream.Server{z, a}) || set.Get("a") != a || set.Get("m") != nil {
			t.Errorf("set has %v", set.All())
		}
		oldA := backends["a"]
		next := server("a", a)
		if err := set.Apply(t.Context(), []*upstream.Server{next, m, z}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !slices.Equal(set.All(), []*upstream.Server{next, m, z}) || set.Get("a") != next {
			t.Errorf("set has %v", set.All())
		}
		if backends["z"].host.Dials() != 1 || z.Status().State != upstream.Ready || a.Status().State != upstream.Disabled || next.Status().State != upstream.Ready {
			t.Errorf("z %s, a %s, new a %s", z.Status().State, a.Status().State, next.Status().State)
		}
		if _, err := a.Call(t.Context(), upstream.Request{Method: "x"}); err == nil || oldA.host.Dials() != 1 {
			t.Error("a stopped server answers")
		}
		set.Close()
		if z.Status().State != upstream.Disabled || set.Get("z") != z {
			t.Errorf("after Close: z %s", z.Status().State)
		}
		if err := set.Apply(t.Context(), nil); err == nil {
			t.Error("a closed set takes servers")
		}
	})
}

// TestOperatorInterrupts: an attempt to connect ends when it is no longer wanted.
func TestOperatorInterrupts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(func(*mcptest.Peer, *jsonrpc.Message) bool { return true })
		g := run(t, upstream.Options{Dial: b.host.Dial})
		pass(time.Second)
		b.script(nil)
		g.server.Restart()
		synctest.Wait()
		g.wantState(t, upstream.Ready)
		b.script(func(*mcptest.Peer, *jsonrpc.Message) bool { return true })
		g.server.Restart()
		pass(time.Second)
		g.server.Enable(false)
		synctest.Wait()
		g.wantState(t, upstream.Disabled)
		if b.host.Dials() != 3 {
			t.Errorf("%d dials", b.host.Dials())
		}
	})
}

// TestRestartWhileConnecting: an order that comes when the attempt to connect has
// as good as succeeded is not lost.
func TestRestartWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, err := jsonrpc.ParseObject([]byte(`{"supportedVersions":["2026-07-28"],"capabilities":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		var wires []*instant
		var g *gateway
		ready := make(chan struct{})
		g = run(t, upstream.Options{HTTP: true, Dial: func(context.Context, client.Incoming) (client.Wire, error) {
			<-ready
			w := &instant{done: make(chan struct{}), hi: o}
			if len(wires) == 0 {
				w.asked = func() { g.server.Restart(); synctest.Wait() }
			}
			wires = append(wires, w)
			return w, nil
		}})
		close(ready)
		pass(time.Second)
		g.wantState(t, upstream.Ready)
		if len(wires) != 2 {
			t.Fatalf("%d connections", len(wires))
		}
		select {
		case <-wires[0].done:
		default:
			t.Error("the first is still open")
		}
	})
}

// TestSeeds4_10_Isolated is C-024 and C-025 for a set: what ails two servers is nothing to
// the third.
func TestSeeds4_10_Isolated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, silent, closed := newBackend(mcp.V20251125, "a"), newBackend(mcp.V20251125), newBackend(mcp.V20251125)
		silent.script(func(*mcptest.Peer, *jsonrpc.Message) bool { return true })
		closed.host.Refuse = func(int) error { return errors.New("connection refused") }
		var listed []string
		server := func(name string, b *backend) *upstream.Server {
			return upstream.New(upstream.Options{Name: name, Dial: b.host.Dial, Hooks: upstream.Hooks{
				Lists: func(upstream.Lists) { listed = append(listed, name) }, // only one server has any
			}})
		}
		set := upstream.NewSet()
		defer set.Close()
		if err := set.Apply(t.Context(), []*upstream.Server{server("b1", silent), server("b2", good), server("b3", closed)}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := set.Get("b2").Call(t.Context(), upstream.Request{Method: mcp.MethodToolsCall}); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if !slices.Equal(listed, []string{"b2"}) {
			t.Errorf("listed by %q", listed)
		}
		var states []upstream.State
		for _, s := range set.All() {
			states = append(states, s.Status().State)
		}
		if !slices.Equal(states, []upstream.State{upstream.Starting, upstream.Ready, upstream.Down}) {
			t.Errorf("states %v", states)
		}
	})
}
