//go:build unix

package app_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/upstream"
)

// How long a soak lasts, and how its faults are chosen; without the latter, at
// random.
const (
	soakVariable = "ROSTER_SOAK"
	seedVariable = "ROSTER_SOAK_SEED"
)

// Sizes of a soak.
const (
	soakServers = 35
	soakGood    = 5 // every fifth is good
	soakClients = 16
	// recovery is how long servers may take to be back: the longest pause before
	// an attempt to connect, and some time for it.
	recovery = 100 * time.Second
	// growth is how many bytes of heap may be left when all is closed.
	growth = 16 << 20
)

// TestSoak has 16 clients of all eras on both wires use 35 servers, of which most
// are at random killed, stopped, flooded, made to lie and upgraded to the other
// era. The good servers answer every call; a failed one names the server at
// fault; every list is whole, in order and without anything twice. When all is
// over, nothing is left: no memory, no goroutine, no descriptor, no process.
func TestSoak(t *testing.T) {
	text := os.Getenv(soakVariable)
	if text == "" {
		t.Skipf("what happens in it is random, so it does not decide on a change: `make soak`, or %s=5s, runs it", soakVariable)
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	seed := rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		seed = n
	}
	t.Logf("%s=%v %s=%d", soakVariable, length, seedVariable, seed)
	k := &soak{rand: rand.New(rand.NewPCG(seed, 0))}
	var entries []entry
	for i := range soakServers {
		good := i%soakGood == 0
		name := fmt.Sprintf("bad%d", i)
		if good {
			name = fmt.Sprintf("good%d", i)
		}
		s, e := newSubject(t, i, name, good)
		k.subjects, entries = append(k.subjects, s), append(entries, e)
		if good {
			k.good = append(k.good, s)
		}
	}
	goroutines, before := goleak.IgnoreCurrent(), measure(t)
	t.Run("use", func(t *testing.T) { k.use(t, length, entries) })
	if t.Failed() {
		return
	}
	for _, s := range k.subjects {
		if s.site != nil {
			s.site.Down() // with the sessions that nobody could end
		}
	}
	if err := goleak.Find(goroutines); err != nil {
		t.Error(err)
	}
	var left []string
	eventually(t, "all descriptors are closed", func() bool {
		left = slices.DeleteFunc(descriptors(t), func(f string) bool { return slices.Contains(before.files, f) })
		return len(left) == 0
	})
	eventually(t, "all processes are gone", func() bool { return len(children(t)) <= len(before.children) })
	after := measure(t)
	t.Logf("before: %v", before)
	t.Logf("after:  %v", after)
	if after.heap > before.heap+growth {
		t.Errorf("the heap had %d bytes and has %d", before.heap, after.heap)
	}
}

// soak is a test that is under way.
type soak struct {
	subjects, good []*subject
	rand           *rand.Rand // of the goroutine that chooses faults
	done           map[string]int
}

func (k *soak) use(t *testing.T, length time.Duration, entries []entry) {
	g := newGateway(t, `"pageItems":60`, entries...)
	g.ready()
	clients := g.soakClients(soakClients, k.subjects, k.good)
	start := measure(t)
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	failed := make(chan error, len(clients))
	var users sync.WaitGroup
	for _, c := range clients {
		users.Go(func() { // ends with ctx, or an error
			if err := c.run(ctx); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	k.disturb(ctx)
	users.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	var all figures
	for _, c := range clients {
		all.add(&c.figures)
	}
	t.Logf("%d calls: %d answered, %d refused, %d answered oddly by servers that lie; %d lists", all.calls, all.fine, all.refused, all.odd, all.lists)
	t.Logf("faults: %v", k.done)
	t.Logf("calls to good servers: %s", spread(all.good))
	t.Logf("walks of all tools: %s", spread(all.walks))
	if t.Failed() {
		return
	}
	k.recover(g, clients)
	t.Logf("connected, before: %v", start)
	t.Logf("connected, after:  %v", measure(t))
}

// recover sees that all is as if nothing had happened.
func (k *soak) recover(g *gateway, clients []*soakClient) {
	g.t.Helper()
	within(g.t, recovery, "all servers are back", func() bool {
		return !slices.ContainsFunc(g.Status().Servers, func(s admin.Server) bool { return s.State != upstream.Ready })
	})
	for _, s := range k.subjects { // one that became another last is known as that when it is called
		c := clients[0]
		within(g.t, recovery, s.name+" answers", func() bool {
			refused := c.refused
			return c.call(s) == nil && c.refused == refused
		})
	}
	for _, c := range clients {
		for _, s := range k.subjects {
			refused := c.refused
			if err := c.call(s); err != nil || c.refused > refused {
				g.t.Errorf("%s, at the end, of %s: %v", c.name, s.name, err)
			}
		}
		if err := c.tools(); err != nil {
			g.t.Errorf("%s, at the end: %v", c.name, err)
		}
	}
	for _, s := range k.good {
		if st := g.server(s.name); st.Restarts != 0 || st.Error != "" {
			g.t.Errorf("a good server: %+v", st)
		}
	}
}

// disturb does things to servers until ctx ends, and returns when all are well.
func (k *soak) disturb(ctx context.Context) {
	k.done = make(map[string]int)
	var tasks sync.WaitGroup
	defer tasks.Wait()
	weights := 0
	for _, f := range faults {
		weights += f.weight
	}
	for ctx.Err() == nil {
		pause(ctx, time.Duration(k.rand.Int64N(int64(40*time.Millisecond))))
		s := k.subjects[k.rand.IntN(len(k.subjects))]
		f, dice := 0, k.rand.IntN(weights)
		for ; dice >= faults[f].weight; f++ {
			dice -= faults[f].weight
		}
		chosen, lie := faults[f], lies[k.rand.IntN(len(lies))]
		d := time.Duration(k.rand.Int64N(int64(2 * time.Second)))
		if s.good {
			chosen = changing
		}
		if !s.busy.CompareAndSwap(false, true) {
			continue
		}
		k.done[chosen.name]++
		tasks.Go(func() { // ends after d, or with ctx
			defer s.busy.Store(false)
			chosen.do(ctx, s, d, lie)
		})
	}
}

// spread says how durations are spread.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	at := func(percent int) time.Duration { return all[(len(all)-1)*percent/100].Round(10 * time.Microsecond) }
	return fmt.Sprintf("%d, 50 %% within %v, 99 %% within %v, the longest %v", len(all), at(50), at(99), at(100))
}

// usage is what this process uses.
type usage struct {
	heap       uint64
	goroutines int
	files      []string
	children   []string
}

func (u usage) String() string {
	return fmt.Sprintf("heap %d KiB, %d goroutines, %d descriptors, %d processes", u.heap>>10, u.goroutines, len(u.files), len(u.children))
}

func measure(t testing.TB) usage {
	runtime.GC()
	runtime.GC() // what had a finalizer
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{m.HeapAlloc, runtime.NumGoroutine(), descriptors(t), children(t)}
}

// children lists the child processes of this one, dead ones that nobody waited
// for among them; none where that is not known.
func children(t testing.TB) []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		data, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // no process, or none any more
		}
		// The name, in brackets, may have anything in it; state and parent follow.
		fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			out = append(out, e.Name())
		}
	}
	return out
}
