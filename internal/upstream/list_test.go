package upstream_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// change has a backend say that its tools changed, in the way of its era.
func (b *backend) change(p *mcptest.Peer) {
	params := ""
	if b.version.Stateless() {
		for _, m := range p.Log() {
			if m.Method == mcp.MethodListen {
				params = `{"_meta":{"io.modelcontextprotocol/subscriptionId":` + m.ID.String() + `}}`
			}
		}
	}
	p.Notify(mcp.Tools.ChangedMethod(), params)
}

// TestSeeds4_08_ChangeInsideCall is C-017: the walk runs off the reader, so that a call
// whose answer comes behind the walk ends, a thousand times.
func TestSeeds4_08_ChangeInsideCall(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v, "work")
		var call *jsonrpc.Message // of the peer's reader
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			switch {
			case m.Method == mcp.MethodToolsCall:
				call = m
				b.change(p)
				return true
			case m.Method == mcp.MethodToolsList && call != nil:
				p.Reply(m, b.list())
				p.Reply(call, `{"content":[{"type":"text","text":"done"}]}`)
				call = nil
				return true
			}
			return false
		})
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		for i := range 1000 {
			tool := fmt.Sprint("tool", i)
			b.set("work", tool)
			began := time.Now()
			if _, err := g.call(t.Context(), "work"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if took := time.Since(began); took > time.Second || g.tools() != "work "+tool {
				t.Fatalf("round %d: tools %q after %v", i, g.tools(), took)
			}
		}
	})
}

// TestBurst is C-019: 200 changes in 50 ms are a few walks, and none is lost.
func TestBurst(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v)
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		var tools []string
		for i := range 200 {
			tools = append(tools, fmt.Sprint("t", i))
			b.set(tools...)
			b.change(b.host.Peer())
			pass(250 * time.Microsecond)
		}
		pass(time.Second)
		if n := b.listed() - 1; n < 1 || n > 3 {
			t.Errorf("%d walks", n)
		}
		if got := len(g.news(g.published()).Kinds[mcp.Tools].List.Items); got != 200 {
			t.Errorf("%d tools", got)
		}
	})
}

// TestEndlessBurst: a server that never stops to announce changes is still
// walked, though not for each.
func TestEndlessBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125)
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		for i := range 1000 {
			b.set(fmt.Sprint("t", i))
			b.change(b.host.Peer())
			pass(10 * time.Millisecond)
		}
		if n := b.listed(); n < 10 || n > 50 {
			t.Errorf("%d walks in 10 s", n)
		}
		pass(time.Second)
		if g.tools() != "t999" {
			t.Errorf("tools %q", g.tools())
		}
	})
}

// TestNoNetChange is the half of C-022 that is ours: an identical list is no news.
func TestNoNetChange(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v, "a")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		for range 10 {
			b.change(b.host.Peer())
			pass(time.Second)
		}
		if b.listed() != 11 || g.published() != 1 {
			t.Errorf("%d walks, published %d times", b.listed(), g.published())
		}
		b.set("b")
		b.change(b.host.Peer())
		pass(time.Second)
		if g.published() != 2 || g.news(2).Kinds[mcp.Prompts].List != nil || g.tools() != "b" {
			t.Errorf("published %d times, tools %q", g.published(), g.tools())
		}
	})
}

// TestSeeds4_10_BadWalks is C-008 and C-014: a walk that fails publishes nothing, the
// state says so, and it is tried again.
func TestSeeds4_10_BadWalks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a", "b")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		var mu sync.Mutex
		broken := true
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case !broken || m.Method != mcp.MethodToolsList:
				return false
			case m.Params.Get("cursor") == nil:
				p.Reply(m, `{"tools":[{"name":"a"}],"nextCursor":"2"}`)
			default:
				p.Refuse(m, -32603, "page 2 is broken", "")
			}
			return true
		})
		b.change(b.host.Peer())
		pass(500 * time.Millisecond)
		g.wantState(t, upstream.Degraded)
		st := g.server.Status().Kinds[mcp.Tools]
		if w, ok := errors.AsType[*client.WalkError](st.Err); !ok || w.Page != 2 || st.Count != 2 || g.published() != 1 {
			t.Errorf("%+v, published %d times", st, g.published())
		}
		pass(time.Minute)
		if n := b.listed(); n < 8 || n > 20 {
			t.Errorf("%d requests in a minute of failures", n)
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		pass(61 * time.Second)
		g.wantState(t, upstream.Ready)
		if g.published() != 1 || g.tools() != "a b" {
			t.Errorf("published %d times, tools %q", g.published(), g.tools())
		}
	})
}

// TestSilentWalk is the variant of C-008 in which a page never comes.
func TestSilentWalk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		silent := func(_ *mcptest.Peer, m *jsonrpc.Message) bool { return m.Method == mcp.MethodPromptsList }
		b.script(silent)
		g := run(t, upstream.Options{Dial: b.host.Dial})
		pass(6 * time.Second) // the other kinds do not wait for it
		if g.tools() != "a" || g.published() != 1 {
			t.Errorf("tools %q, published %d times", g.tools(), g.published())
		}
		pass(time.Minute)
		g.wantState(t, upstream.Degraded)
		if g.items(mcp.Resources) != "x:1" {
			t.Errorf("resources %q", g.items(mcp.Resources))
		}
		if _, err := g.call(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		b.script(nil)
		pass(3 * time.Minute)
		g.wantState(t, upstream.Ready)
		if g.items(mcp.Prompts) != "" {
			t.Errorf("prompts %q", g.items(mcp.Prompts))
		}
	})
}

// TestTrippedWalks is C-007 and the policy for walks that a guard ended.
func TestTrippedWalks(t *testing.T) {
	endless := func(b *backend) func(p *mcptest.Peer, m *jsonrpc.Message) bool {
		n := 0
		return func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method != mcp.MethodToolsList {
				return false
			}
			if m.Params.Get("cursor") == nil {
				n = 0
			}
			n++
			p.Reply(m, fmt.Sprintf(`{"tools":[{"name":"t%d"}],"nextCursor":"c%d"}`, n, n))
			return true
		}
	}
	t.Run("no whole list is known", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBackend(mcp.V20251125)
			b.script(endless(b))
			g := run(t, upstream.Options{Dial: b.host.Dial, Limits: client.Limits{Pages: 3}})
			synctest.Wait()
			l := g.news(1).Kinds[mcp.Tools]
			if l.List == nil || names(l.List) != "t1 t2 t3" || l.List.Tripped != client.GuardPages || l.Err == nil {
				t.Errorf("%+v", l)
			}
			g.wantState(t, upstream.Degraded)
			pass(time.Hour)
			if n := b.listed(); n != 9 {
				t.Errorf("%d requests", n)
			}
			if g.published() != 1 {
				t.Errorf("published %d times", g.published())
			}
		})
	})
	t.Run("a whole list is known", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := newBackend(mcp.V20251125, "a", "b")
			g := run(t, upstream.Options{Dial: b.host.Dial, Limits: client.Limits{Pages: 3}})
			synctest.Wait()
			b.script(endless(b))
			b.change(b.host.Peer())
			pass(500 * time.Millisecond)
			g.wantState(t, upstream.Degraded)
			if g.published() != 1 || g.tools() != "a b" {
				t.Errorf("published %d times, tools %q", g.published(), g.tools())
			}
			pass(time.Minute)
			if g.published() != 2 || g.tools() != "t1 t2 t3" {
				t.Errorf("after three alike: published %d times, tools %q", g.published(), g.tools())
			}
			g.wantState(t, upstream.Degraded)
			b.script(nil)
			b.change(b.host.Peer())
			pass(time.Second)
			g.wantState(t, upstream.Ready)
			if g.tools() != "a b" {
				t.Errorf("tools %q", g.tools())
			}
		})
	})
}

// TestTripsThatDiffer: walks that a guard ends, each with other items, are never
// believed over a list that is known to be whole.
func TestTripsThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a", "b")
		g := run(t, upstream.Options{Dial: b.host.Dial, Limits: client.Limits{Pages: 2}})
		synctest.Wait()
		n := 0
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodToolsList {
				n++
				p.Reply(m, fmt.Sprintf(`{"tools":[{"name":"t%d"}],"nextCursor":"c%d"}`, n, n))
			}
			return m.Method == mcp.MethodToolsList
		})
		b.change(b.host.Peer())
		pass(time.Hour)
		if g.published() != 1 || g.tools() != "a b" || b.listed() < 20 {
			t.Errorf("published %d times after %d walks, tools %q", g.published(), b.listed()/2, g.tools())
		}
		g.wantState(t, upstream.Degraded)
	})
}

// TestDeathInFirstWalks: a connection that ends before its lists are walked
// publishes none of them, and no failures either.
func TestDeathInFirstWalks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodPromptsList && b.host.Dials() == 1 {
				p.Close()
				return true
			}
			return false
		})
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		g.wantState(t, upstream.Down)
		if g.published() != 0 || g.server.Status().Kinds[mcp.Prompts].Err != nil {
			t.Errorf("published %d times: %+v", g.published(), g.server.Status())
		}
		pass(5 * time.Second)
		g.wantState(t, upstream.Ready)
		if g.published() != 1 || g.tools() != "a" {
			t.Errorf("published %d times, tools %q", g.published(), g.tools())
		}
	})
}

// TestStale: who lists what has grown old has it walked again, unless the server
// says itself when it changes.
func TestStale(t *testing.T) {
	tests := []struct {
		name    string
		version mcp.Version
		caps    string
		ttl     string
		after   time.Duration // by then there is one more walk; 0: never
	}{
		{"says nothing", mcp.V20251125, `{"tools":{}}`, "", 60 * time.Second},
		{"says when", mcp.V20251125, `{"tools":{"listChanged":true}}`, "", 0},
		{"says when, stateless", mcp.V20260728, `{"tools":{"listChanged":true}}`, `,"ttlMs":0`, 0},
		{"ttl", mcp.V20260728, `{"tools":{"listChanged":true}}`, `,"ttlMs":20000`, 20 * time.Second},
		{"ttl without changes", mcp.V20260728, `{"tools":{}}`, `,"ttlMs":20000`, 20 * time.Second},
		{"ttl too short", mcp.V20260728, `{"tools":{}}`, `,"ttlMs":1`, 5 * time.Second},
		{"ttl of none", mcp.V20260728, `{"tools":{}}`, `,"ttlMs":0`, 60 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBackend(tt.version)
				b.caps = tt.caps
				b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
					if m.Method == mcp.MethodToolsList {
						p.Reply(m, `{"tools":[{"name":"a"}]`+tt.ttl+`}`)
					}
					return m.Method == mcp.MethodToolsList
				})
				g := run(t, upstream.Options{Dial: b.host.Dial})
				pass(5 * time.Minute)
				if b.listed() != 1 {
					t.Fatalf("%d walks though nobody asked", b.listed())
				}
				g.server.Stale(mcp.Tools) // long after it grew old: at once
				pass(100 * time.Millisecond)
				want := 1
				if tt.after > 0 {
					want = 2
				}
				if b.listed() != want {
					t.Errorf("%d walks, want %d", b.listed(), want)
				}
				if tt.after == 0 {
					return
				}
				g.server.Stale(mcp.Tools) // while it is fresh: when it has grown old
				g.server.Stale(mcp.Tools)
				pass(tt.after - 200*time.Millisecond)
				if b.listed() != 2 {
					t.Errorf("%d walks too early", b.listed()-2)
				}
				pass(time.Second)
				if b.listed() != 3 || g.published() != 1 {
					t.Errorf("%d walks, published %d times", b.listed(), g.published())
				}
			})
		})
	}
}

// TestListenGap: a subscription that breaks is opened again, and what it may have
// missed is looked for.
func TestListenGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20260728, "a")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		p := b.host.Peer()
		var open jsonrpc.Message
		for _, m := range p.Log() {
			if m.Method == mcp.MethodListen {
				open = m
			}
		}
		b.set("a", "b") // in the gap, unsaid
		p.Reply(&open, `{"resultType":"complete"}`)
		pass(3 * time.Second)
		if g.tools() != "a b" || p.Count(mcp.MethodListen) != 2 {
			t.Errorf("tools %q after %d subscriptions", g.tools(), p.Count(mcp.MethodListen))
		}
		g.server.Subscribe([]string{"x:1"})
		pass(time.Second)
		if p.Count(mcp.MethodListen) != 3 || p.Count(mcp.MethodCanceled) != 1 {
			t.Errorf("%d subscriptions, %d ended", p.Count(mcp.MethodListen), p.Count(mcp.MethodCanceled))
		}
	})
}

// TestListenCut: streams that are cut again and again are opened again soon.
func TestListenCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20260728, "a")
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodListen {
				time.AfterFunc(30*time.Second, func() { p.Refuse(m, -32603, "cut", "") })
			}
			return false
		})
		run(t, upstream.Options{Dial: b.host.Dial})
		pass(10 * time.Minute)
		if n := b.host.Peer().Count(mcp.MethodListen); n < 18 {
			t.Errorf("%d subscriptions in 10 minutes", n)
		}
	})
}

// TestListenRefused: a server that has no subscriptions is not asked in a loop.
func TestListenRefused(t *testing.T) {
	for code, most := range map[int]int{-32601: 1, -32603: 35} {
		synctest.Test(t, func(t *testing.T) {
			b := newBackend(mcp.V20260728, "a")
			b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				if m.Method == mcp.MethodListen {
					p.Refuse(m, code, "no", "")
				}
				return m.Method == mcp.MethodListen
			})
			g := run(t, upstream.Options{Dial: b.host.Dial})
			pass(15 * time.Minute)
			if n := b.host.Peer().Count(mcp.MethodListen); n < 1 || n > most || g.tools() != "a" || b.listed() != 1 {
				t.Errorf("%d: %d subscriptions, tools %q, %d walks", code, n, g.tools(), b.listed())
			}
		})
	}
}

// TestListenLate: a change between the first walk and a late acknowledgement is
// not missed.
func TestListenLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20260728, "a")
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method != mcp.MethodListen {
				return false
			}
			time.AfterFunc(5*time.Second, func() {
				b.set("a", "b")
				p.Notify(mcp.MethodAcknowledged, `{"_meta":{"io.modelcontextprotocol/subscriptionId":`+m.ID.String()+`},"notifications":{"toolsListChanged":true}}`)
			})
			return true
		})
		g := run(t, upstream.Options{Dial: b.host.Dial})
		pass(2 * time.Second)
		if g.tools() != "a" {
			t.Errorf("tools %q", g.tools())
		}
		pass(10 * time.Second)
		if g.tools() != "a b" || b.listed() != 2 {
			t.Errorf("tools %q after %d walks", g.tools(), b.listed())
		}
	})
}

// TestConcurrentUse is C-128 for a server: readers, callers and changes at once,
// under the race detector.
func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		var tasks sync.WaitGroup
		for i := range 4 {
			tasks.Go(func() { // adders
				for j := range 200 {
					b.mu.Lock()
					b.tools = append(slices.Clone(b.tools), fmt.Sprintf("t%d-%d", i, j))
					b.mu.Unlock()
					b.change(b.host.Peer())
					pass(time.Millisecond)
				}
			})
			tasks.Go(func() { // refreshers
				for range 200 {
					g.server.Stale(mcp.Kinds[i])
					pass(time.Millisecond)
				}
			})
			tasks.Go(func() { // readers
				for range 200 {
					_ = g.server.Status()
					if _, err := g.call(t.Context(), "a"); err != nil {
						t.Error(err)
					}
				}
			})
		}
		tasks.Wait()
		pass(time.Second)
		if got := len(g.news(g.published()).Kinds[mcp.Tools].List.Items); got != 801 {
			t.Errorf("%d tools", got)
		}
	})
}
