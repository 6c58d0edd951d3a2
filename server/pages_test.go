package server_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// walker lists the tools of a server page by page.
type walker struct {
	t      testing.TB
	srv    *server.Server
	cursor string
	begun  bool
	names  []string
	pages  []string // as they came
}

// next reads one page; false if it was the last.
func (w *walker) next() bool {
	w.t.Helper()
	params := `{` + meta
	if w.begun {
		params += `,"cursor":` + string(mcp.String(w.cursor))
	}
	w.begun = true
	page, err := w.srv.Handle(w.t.Context(), &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: "tools/list", Params: parse(w.t, params+`}`), Peer: &stuckPeer{}})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.pages = append(w.pages, string(page)); len(w.pages) > 1000 {
		w.t.Fatal("the walk does not end")
	}
	obj := parse(w.t, string(page))
	items, err := jsonrpc.Elements(obj.Get("tools"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, item := range items {
		name, _ := parse(w.t, string(item)).Text("name")
		w.names = append(w.names, name)
	}
	var more bool
	w.cursor, more = obj.Text("nextCursor")
	return more
}

func (w *walker) all() *walker {
	for w.next() {
	}
	return w
}

func pagedMemory(size int) *server.Memory {
	return server.NewMemory(server.MemoryOptions{Name: "p", Version: "1", Page: mcp.PageLimits{Items: size}})
}

func TestSeeds5_01_WalksAreExactAndIdentical(t *testing.T) {
	var names []string
	for s := range 35 {
		for i := range 12 {
			names = append(names, fmt.Sprintf("server%d__tool%d", (s*17)%35, (i*7)%12))
		}
	}
	tools := emptyTools(t, names...)
	for _, size := range []int{1, 2, 3, 7, 50, 100, 419, 420, 421, 5000} {
		m := pagedMemory(size)
		add(t, m.Tools, tools...)
		srv := server.New(m, server.Options{})
		first := (&walker{t: t, srv: srv}).all()
		if !slices.Equal(first.names, names) {
			t.Fatalf("page size %d: not the order of registration", size)
		}
		if want := (len(names) + size - 1) / size; len(first.pages) != want {
			t.Errorf("page size %d: %d pages, want %d", size, len(first.pages), want)
		}
		for range 3 {
			if again := (&walker{t: t, srv: srv}).all(); !slices.Equal(again.pages, first.pages) {
				t.Errorf("page size %d: another walk differs", size)
			}
		}
		// The same configuration in another process.
		other := pagedMemory(size)
		add(t, other.Tools, tools...)
		if again := (&walker{t: t, srv: server.New(other, server.Options{})}).all(); !slices.Equal(again.pages, first.pages) {
			t.Errorf("page size %d: a server started anew lists other bytes", size)
		}
	}
}

// For any adds and removes during a walk, what was there all along is returned once,
// nothing twice, and newcomers wait.
func TestSeeds5_03_WalksSurviveChange(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		m := pagedMemory(1 + rnd.IntN(9))
		srv := server.New(m, server.Options{})
		count := 1 + rnd.IntN(60)
		for i := range count {
			add(t, m.Tools, emptyTool(t, fmt.Sprint("t", i)))
		}
		stayed := m.Tools.Snapshot().Names()
		next := count
		w := &walker{t: t, srv: srv}
		for w.next() {
			if len(w.pages) > 500 {
				t.Fatalf("seed %d: the walk does not end", seed)
			}
			for range rnd.IntN(6) {
				switch names := m.Tools.Snapshot().Names(); {
				case rnd.IntN(2) == 0 || len(names) == 0:
					add(t, m.Tools, emptyTool(t, fmt.Sprint("t", next)))
					next++
				default:
					gone := names[rnd.IntN(len(names))]
					m.Tools.RemoveName(gone)
					stayed = slices.DeleteFunc(stayed, func(n string) bool { return n == gone })
					if rnd.IntN(3) == 0 {
						add(t, m.Tools, emptyTool(t, gone)) // comes back, as a newcomer
					}
				}
			}
		}
		seen := make(map[string]int)
		for _, n := range w.names {
			if seen[n]++; seen[n] > 1 {
				t.Fatalf("seed %d: %s twice", seed, n)
			}
		}
		var got []string
		for _, n := range w.names {
			if slices.Contains(stayed, n) {
				got = append(got, n)
			}
		}
		if !slices.Equal(got, stayed) {
			t.Fatalf("seed %d: of %v came %v", seed, stayed, got)
		}
	}
}

// Walks under way while others add and remove at the same time.
func TestSeeds5_04_WalksRaceChanges(t *testing.T) {
	m := pagedMemory(5)
	srv := server.New(m, server.Options{})
	var fixed []string
	for i := range 40 {
		add(t, m.Tools, emptyTool(t, fmt.Sprint("fixed", i)))
		fixed = append(fixed, fmt.Sprint("fixed", i))
	}
	comers := emptyTools(t, "a", "b", "c", "d")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, tool := range comers {
		wg.Go(func() {
			for ctx.Err() == nil {
				_ = m.Tools.Add(tool)
				m.Tools.Remove(tool)
			}
		})
	}
	var walks sync.WaitGroup
	for range 4 {
		walks.Go(func() {
			for range 30 {
				w := (&walker{t: t, srv: srv}).all()
				got := slices.DeleteFunc(w.names, func(n string) bool { return len(n) == 1 })
				if !slices.Equal(got, fixed) {
					t.Errorf("came %v", got)
					return
				}
			}
		})
	}
	walks.Wait()
	stop()
	wg.Wait()
}

// A list is never frozen when a session begins.
func TestSeeds5_06_LatecomersAreInTheNextList(t *testing.T) {
	m := pagedMemory(2)
	srv := server.New(m, server.Options{})
	add(t, m.Tools, emptyTools(t, "a", "b", "c")...)
	w := &walker{t: t, srv: srv}
	w.next()
	add(t, m.Tools, emptyTool(t, "late"))
	if w.all(); !slices.Equal(w.names, []string{"a", "b", "c"}) {
		t.Errorf("a newcomer did not wait: %v", w.names)
	}
	if w = (&walker{t: t, srv: srv}).all(); !slices.Equal(w.names, []string{"a", "b", "c", "late"}) {
		t.Errorf("%v", w.names)
	}
	m.Tools.Clear()
	if w = (&walker{t: t, srv: srv}).all(); len(w.names) != 0 || len(w.pages) != 1 {
		t.Errorf("after Clear: %v", w.pages)
	}
}

// A page of outputs that only newer clients may have.
func TestListsAreOfTheClientsVersion(t *testing.T) {
	m := pagedMemory(10)
	tool, err := server.NewTool(jsontext.Value(`{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`),
		func(context.Context, *server.ToolCall) (jsontext.Value, error) { return nil, nil })
	if err != nil {
		t.Fatal(err)
	}
	add(t, m.Tools, tool)
	for v, want := range map[mcp.Version]string{
		mcp.V20260728: `{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}],"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"p","version":"1"}}}`,
		mcp.V20251125: `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`,
	} {
		page, err := m.List(t.Context(), &server.Request{Caller: mcp.Caller{Version: v}}, mcp.Tools, nil)
		if err != nil || string(page) != want {
			t.Errorf("%s: %s, %v", v, page, err)
		}
	}
}
