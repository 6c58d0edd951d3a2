package app_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/mcp"
)

// TestSeeds5_04_WalksUnderWay has clients walk, in small pages, while servers come
// and go and their tools do. Each tool that is there all along is in every walk
// exactly once and in its place, and no tool is in a walk twice.
func TestSeeds5_04_WalksUnderWay(t *testing.T) {
	const stable, servers = 8, 5
	var backends []*mcptest.Backend
	var sites []*mcptest.Site
	var entries []entry
	var want []string
	for i := range servers {
		name := fmt.Sprintf("s%d", (i*3)%servers)
		b := &mcptest.Backend{Version: mcp.Versions()[i%4], Page: i}
		b.Set(mcp.Tools, tools("stable%d", stable)...)
		site := b.OnHTTP(t)
		backends, sites = append(backends, b), append(sites, site)
		entries = append(entries, remote(name, site.URL))
		want = append(want, exposed(name, tools("stable%d", stable))...)
	}
	g := newGateway(t, `"pageItems":3`, entries...)
	g.ready()
	stop := make(chan struct{})
	var walkers sync.WaitGroup
	walks := make(chan int, 2)
	for _, c := range []*mcptest.Caller{g.http(mcp.Latest), g.http(mcp.V20250326)} {
		walkers.Go(func() { // ends with stop
			n := 0
			defer func() { walks <- n }()
			for ; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				items, err := c.List(bounded(t), mcp.Tools)
				if err != nil {
					t.Error(err)
					return
				}
				if err := checkWalk(items, want); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	late := time.After(time.Duration(rounds(1500, 20_000)) * time.Millisecond)
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	for changing := true; changing; {
		select {
		case <-late:
			changing = false
		case <-tick.C:
			i := rand.IntN(servers)
			change(t, backends[i], sites[i], stable)
		}
	}
	close(stop)
	walkers.Wait()
	for range 2 {
		if n := <-walks; n < 5 && !t.Failed() {
			t.Errorf("only %d walks", n)
		}
	}
	for _, s := range sites {
		s.Up()
	}
}

// change makes a random change to a server whose first tools stay.
func change(t testing.TB, b *mcptest.Backend, site *mcptest.Site, stable int) {
	switch rand.IntN(10) {
	case 0:
		site.Down()
	case 1, 2:
		site.Up()
	default:
		var volatile, all []string
		for i := range 12 {
			if rand.IntN(2) == 0 {
				volatile = append(volatile, tool(fmt.Sprintf("volatile%d", i)))
			}
		}
		// The server's order is its own affair: those that stay keep their places.
		all = append(volatile, tools("stable%d", stable)...)
		if rand.IntN(2) == 0 {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		}
		b.Set(mcp.Tools, all...)
		b.Changed(bounded(t), mcp.Tools)
	}
}

// checkWalk looks for the tools that must be there and for such as are there
// twice.
func checkWalk(items, want []string) error {
	seen := make(map[string]bool)
	var stable []string
	for _, item := range items {
		if seen[item] {
			return fmt.Errorf("twice in one walk: %s", item)
		}
		seen[item] = true
		if strings.Contains(item, "stable") {
			stable = append(stable, item)
		}
	}
	for i := range max(len(stable), len(want)) {
		if i >= len(stable) || i >= len(want) || stable[i] != want[i] {
			return fmt.Errorf("a walk has %d of %d tools that were there all along, or in another order:\n%s", len(stable), len(want), strings.Join(stable, "\n"))
		}
	}
	return nil
}

// TestRestart_DeadServer has the gateway start again without one of its servers:
// its last good list is there at once, and calls say that it is down.
func TestRestart_DeadServer(t *testing.T) {
	alive, lost := answering(tool("t")), answering(tools("lost%d", 5)...)
	lost.Set(mcp.Prompts, `{"name":"p","x":1.0}`)
	lost.Set(mcp.Resources, `{"uri":"test://lost","name":"r"}`)
	site, socket := lost.OnHTTP(t), alive.OnPipes(t)
	g := newGateway(t, "", remote("lost", site.URL), piped("alive", socket))
	c := g.http(mcp.Latest)
	var first [len(mcp.Kinds)]string
	for _, k := range mcp.Kinds {
		first[k] = walk(t, c, k, nil)
	}
	g.ready()
	g.close()
	site.Down()
	g.run()
	c = g.http(mcp.Latest)
	for _, k := range mcp.Kinds {
		if got := walk(t, c, k, nil); got != first[k] {
			t.Errorf("%s after a restart without a server: %s", k, difference(got, first[k]))
		}
	}
	g.until("it is known to be down", func(admin.Status) bool { return g.server("lost").State == upstream.Down })
	if got := callTool(t, c, "lost__lost3"); !strings.Contains(got, `"isError":true`) || !strings.Contains(got, `server \"lost\" is down`) {
		t.Errorf("a call to a server that is down: %s", got)
	}
	for method, params := range map[string]string{
		mcp.MethodPromptsGet: `{"name":"lost__p"}`, mcp.MethodResourcesRead: `{"uri":"test://lost"}`,
	} {
		if a, err := c.Call(bounded(t), method, params); err != nil || !strings.Contains(a.Error, "is down") {
			t.Errorf("%s of a server that is down: %+v, %v", method, a, err)
		}
	}
	if got := callTool(t, c, "alive__t"); !strings.Contains(got, "done") {
		t.Error(got)
	}
	if s := g.server("lost"); s.Items.Tools != 5 || s.Error == "" || s.NextTry == nil {
		t.Errorf("the status of a server that is down: %+v", s)
	}
	site.Up()
	g.until("it is back", func(admin.Status) bool { return g.server("lost").State == upstream.Ready })
	if got := callTool(t, c, "lost__lost3"); !strings.Contains(got, "done") {
		t.Error(got)
	}
	for _, k := range mcp.Kinds {
		if got := walk(t, c, k, nil); got != first[k] {
			t.Errorf("%s with the server back: %s", k, difference(got, first[k]))
		}
	}
}

// TestKills has servers killed at random moments: the others go on as if nothing
// had happened, and the list stays what it was.
func TestKills(t *testing.T) {
	const victims, healthy = 6, 4
	var entries []entry
	var kills []func()
	for i := range victims {
		b := answering(tool("t"))
		if name := fmt.Sprintf("victim%d", i); i%2 == 0 {
			socket := b.OnPipes(t)
			entries = append(entries, piped(name, socket))
			kills = append(kills, socket.Kill)
		} else {
			site := b.OnHTTP(t)
			entries = append(entries, remote(name, site.URL))
			kills = append(kills, func() {
				site.Down()
				site.Up()
			})
		}
	}
	for i := range healthy {
		b := answering(tool("t"))
		if b.Version = mcp.Versions()[i]; i%2 == 0 {
			entries = append(entries, piped(fmt.Sprintf("healthy%d", i), b.OnPipes(t)))
		} else {
			entries = append(entries, remote(fmt.Sprintf("healthy%d", i), b.OnHTTP(t).URL))
		}
	}
	g := newGateway(t, "", entries...)
	g.ready()
	watcher := g.http(mcp.Latest)
	if _, err := watcher.Listen(bounded(t)); err != nil {
		t.Fatal(err)
	}
	first := walk(t, watcher, mcp.Tools, nil)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for i, c := range []*mcptest.Caller{g.http(mcp.Latest), g.pipes(mcp.V20241105), g.http(mcp.V20250618), g.pipes(mcp.Latest)} {
		callers.Go(func() { // ends with stop
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("healthy%d__t", (i+n)%healthy)
				a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`"}`)
				if err != nil || !strings.Contains(a.Result, "done") {
					t.Errorf("%s: %+v, %v", name, a, err)
					return
				}
				// A call to a victim has an answer, which does not contradict itself.
				name = fmt.Sprintf("victim%d__t", (i+n)%victims)
				if a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`"}`); err != nil || a.Result == "" || strings.Contains(a.Result, "is ready") {
					t.Errorf("%s: %+v, %v", name, a, err)
					return
				}
			}
		})
	}
	order := rand.Perm(victims)
	for range rounds(1, 4) {
		for _, i := range order {
			pause := time.NewTimer(time.Duration(rand.IntN(150)) * time.Millisecond)
			<-pause.C
			kills[i]()
			if got := walk(t, watcher, mcp.Tools, nil); got != first {
				t.Errorf("a kill changed the list: %s", difference(got, first))
			}
		}
	}
	g.ready()
	close(stop)
	callers.Wait()
	for i := range healthy {
		if s := g.server(fmt.Sprintf("healthy%d", i)); s.Restarts != 0 {
			t.Errorf("a healthy server was connected anew: %+v", s)
		}
	}
	if n := watcher.Notes.Count(mcp.Tools.ChangedMethod()); n != 0 {
		t.Errorf("kills were told as %d changes", n)
	}
}
