package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-roster/roster/registry"
)

func TestSeeds1_01_RegistrationOrder(t *testing.T) {
	for round := range 3 { // every set hashes with another seed
		s := newTools()
		mustAdd(t, s, tools("zebra")...)
		mustAdd(t, s, tools("mule", "ant", "yak")...)
		mustAdd(t, s, tools("bee")...)
		wantNames(t, s, "zebra", "mule", "ant", "yak", "bee")

		var want []string
		s.Clear()
		for i := range 500 {
			name := fmt.Sprintf("t%d", (i*7919+round)%500)
			want = append(want, name)
			mustAdd(t, s, tools(name)...)
		}
		wantNames(t, s, want...)
	}
}

func TestSeeds1_01_BlocksAddedConcurrentlyStayTogether(t *testing.T) {
	s := newTools()
	var wg sync.WaitGroup
	for _, block := range []string{"z", "m", "a", "k"} {
		wg.Go(func() { // ends after 50 adds
			for i := range 50 {
				if err := s.Add(tools(fmt.Sprint(block, i, "/z"), fmt.Sprint(block, i, "/a"), fmt.Sprint(block, i, "/m"))...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	names := s.Snapshot().Names()
	if len(names) != 600 {
		t.Fatalf("%d items, want 600", len(names))
	}
	for i := 0; i < len(names); i += 3 {
		block, _, _ := strings.Cut(names[i], "/")
		if want := []string{block + "/z", block + "/a", block + "/m"}; !slices.Equal(names[i:i+3], want) {
			t.Fatalf("items %d to %d are %q, want %q", i, i+2, names[i:i+3], want)
		}
	}
}

func TestSeeds1_02_ComesBackAtTheEnd(t *testing.T) {
	s := newTools()
	items := tools("c", "a", "b")
	mustAdd(t, s, items...)
	first := s.Snapshot().At(0).Ordinal
	if !s.Remove(items[0]) {
		t.Fatal("Remove(c) = false")
	}
	wantNames(t, s, "a", "b")
	mustAdd(t, s, items[0])
	wantNames(t, s, "a", "b", "c")
	if again := s.Snapshot().At(2).Ordinal; again <= first {
		t.Errorf("c came back with ordinal %d, had %d before", again, first)
	}
	s.Clear()
	wantNames(t, s)
	mustAdd(t, s, items[2], items[0])
	wantNames(t, s, "b", "c")
}

// TestSeeds1_03_LookupWhileOthersWrite has a reader look things up at every
// point of a write at which user code runs. That no lock is taken at all is
// tested from inside the package.
func TestSeeds1_03_LookupWhileOthersWrite(t *testing.T) {
	var s *registry.Set[*tool]
	looked := 0
	look := func() {
		looked++
		within(t, "lookup during a write", func() {
			if _, ok := s.Get("there"); !ok {
				t.Error("Get(there) = false during a write")
			}
		})
	}
	armed := false
	s = registry.New(registry.Options[*tool]{
		Name: func(it *tool) string {
			if armed {
				look()
			}
			return it.name
		},
	})
	mustAdd(t, s, tools("there")...)
	armed = true
	t.Cleanup(s.OnChange(func(registry.Change) { look() }))
	mustAdd(t, s, tools("other")...)
	s.RemoveName("other")
	if looked != 3 {
		t.Errorf("%d lookups during writes, want 3", looked)
	}
}

// TestSeeds1_04_OnePointInTheOrder has everybody fight for the same names. If
// each success has its point in the order, adds and removes of a name
// alternate, and what is left is the difference.
func TestSeeds1_04_OnePointInTheOrder(t *testing.T) {
	s := newTools()
	const names = 5
	var mu sync.Mutex
	balance := make([]int, names)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() { // ends after 300 changes
			for i := range 300 {
				n := (g + i) % names
				name, delta := fmt.Sprint(n), 0
				if (i/names+g)%2 == 0 {
					if s.Add(tools(name)...) == nil {
						delta = 1
					}
				} else if s.RemoveName(name) {
					delta = -1
				}
				mu.Lock()
				balance[n] += delta
				mu.Unlock()
				if err := coherent(s.Snapshot()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for n, b := range balance {
		_, there := s.Get(fmt.Sprint(n))
		if there != (b == 1) || b < 0 || b > 1 {
			t.Errorf("%d: adds minus removes is %d, there: %v", n, b, there)
		}
	}
}

// TestSeeds1_05_VisibleItemNeverMoves is C-016: an add stalls inside user code, a
// second one overtakes it and is seen, and then the first one completes.
func TestSeeds1_05_VisibleItemNeverMoves(t *testing.T) {
	for _, where := range []string{"Name", "Fold"} {
		t.Run(where, func(t *testing.T) {
			stalled, release := make(chan struct{}), make(chan struct{})
			var calls atomic.Int32
			stall := func(at, name string) {
				if at == where && name == "first" && calls.Add(1) == 1 {
					close(stalled)
					<-release
				}
			}
			var once sync.Once
			defer once.Do(func() { close(release) })
			s := registry.New(registry.Options[*tool]{
				Name: func(it *tool) string { stall("Name", it.name); return it.name },
				Fold: func(name string) string { stall("Fold", name); return "key of " + name },
			})
			done := make(chan struct{})
			go func() { // ends when released
				defer close(done)
				if err := s.Add(&tool{name: "first"}); err != nil {
					t.Error(err)
				}
			}()
			wait(t, "first add", stalled)
			within(t, "second add", func() { mustAdd(t, s, tools("second")...) })
			before := s.Snapshot()
			if got := before.Names(); !slices.Equal(got, []string{"second"}) {
				t.Errorf("while the first add is stalled: %q", got)
			}
			once.Do(func() { close(release) })
			wait(t, "first add after release", done)

			after := s.Snapshot()
			if got := after.Names(); !slices.Equal(got, []string{"second", "first"}) {
				t.Errorf("after both adds: %q, want second, first", got)
			}
			if err := coherent(after); err != nil {
				t.Error(err)
			}
			if before.At(0) != after.At(0) {
				t.Errorf("the visible entry changed from %+v to %+v", before.At(0), after.At(0))
			}
			if again := s.Snapshot(); again != after {
				t.Error("listing the unchanged set again built a new snapshot")
			}
		})
	}
}

func TestSeeds1_06_UnchangedListIsCached(t *testing.T) {
	s := newTools()
	mustAdd(t, s, tools("b", "a")...)
	snap := s.Snapshot()
	_ = s.Add(tools("a")...) // fails
	s.RemoveName("nobody")
	if _, err := s.Replace(snap.Items()); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(func(*registry.Batch[*tool]) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if s.Snapshot() != snap {
		t.Error("a new snapshot although nothing changed")
	}
	if n := testing.AllocsPerRun(100, func() {
		if s.Snapshot().Len() != 2 {
			t.Error("lost an item")
		}
	}); n != 0 {
		t.Errorf("listing an unchanged set allocates %v times", n)
	}
	mustAdd(t, s, tools("0")...)
	if s.Snapshot() == snap {
		t.Error("the old snapshot although the set changed")
	}
	wantNames(t, s, "b", "a", "0")
}

func TestSeeds1_07_CallersOwnTheirCopies(t *testing.T) {
	s := newTools()
	added := tools("c", "a", "b")
	mustAdd(t, s, added...)
	snap := s.Snapshot()
	added[0] = nil // the caller's slice, too
	items, names, entries := snap.Items(), snap.Names(), snap.Entries()
	items[0], names[0], entries[0] = nil, "spoilt", registry.Entry[*tool]{}
	_, _, _ = append(items[:1], nil), append(names[:1], "spoilt"), append(entries[:1], registry.Entry[*tool]{})
	wantNames(t, s, "c", "a", "b")
	if snap != s.Snapshot() {
		t.Error("the snapshot was not the same one")
	}
	for i, e := range snap.All() { // a loop may end early
		if i == 1 {
			if e.Name != "a" {
				t.Errorf("entry 1 is %q", e.Name)
			}
			break
		}
	}
}

func TestSeeds1_08_NamesAreCaptured(t *testing.T) {
	s := newTools()
	items := tools("old", "other")
	mustAdd(t, s, items...)
	items[0].name = "new"
	if got := s.Snapshot().Names(); !slices.Equal(got, []string{"old", "other"}) {
		t.Errorf("names are %q after a rename", got)
	}
	if _, ok := s.Get("new"); ok {
		t.Error("found under a name it was not added under")
	}
	if e, ok := s.Snapshot().Lookup("old"); !ok || e.Name != "old" || e.Value != items[0] {
		t.Errorf("Lookup(old) = %+v, %v", e, ok)
	}
	if s.Remove(items[0]) {
		t.Error("Remove found an item under a name it was not added under")
	}
	mustAdd(t, s, tools("new")...)
	if s.RemoveName("old") != true {
		t.Error("not removed by the name it was added under")
	}
	wantNames(t, s, "other", "new")
}

func TestSeeds1_09_RemoveMatchesNameAndInstance(t *testing.T) {
	reads := 0
	s := registry.New(registry.Options[*tool]{Name: func(it *tool) string { reads++; return it.name }})
	mine, other := &tool{name: "x"}, &tool{name: "x"}
	mustAdd(t, s, mine)
	reads = 0
	heard := record(t, s)
	if s.Remove(other) {
		t.Error("removed another instance under the same name")
	}
	heard.want(t)
	wantNames(t, s, "x")
	if !s.Remove(mine) {
		t.Error("did not remove the instance")
	}
	heard.want(t, registry.Change{Removed: 1})
	if s.Remove(mine) {
		t.Error("removed it twice")
	}
	if reads != 3 {
		t.Errorf("three removals read the name %d times", reads)
	}
	heard.want(t)
	wantNames(t, s)
}

func TestSeeds1_10_EqualityThatChangesTheSet(t *testing.T) {
	x, twin := &tool{name: "x"}, &tool{name: "x", text: "twin"}
	clear := func(s *registry.Set[*tool]) { s.Clear() }
	swap := func(s *registry.Set[*tool]) { s.RemoveName("x"); _ = s.Add(twin) }
	again := func(s *registry.Set[*tool]) { s.RemoveName("x"); _ = s.Add(x) }
	put := func(s *registry.Set[*tool]) {
		_ = s.Update(func(b *registry.Batch[*tool]) error { b.Set(&tool{name: "x", text: "put"}); return nil })
	}
	for _, tt := range []struct {
		name    string
		during  func(*registry.Set[*tool])
		always  bool // not only during the first comparison
		removed bool
		left    []string
	}{
		{"clear", clear, false, false, nil},
		{"clear, always", clear, true, false, nil},
		{"other instance", swap, false, false, []string{"y", "x"}},
		{"other instance, always", swap, true, false, []string{"y", "x"}},
		{"removed and added again", again, false, true, []string{"y"}},
		{"removed and added again, always", again, true, false, []string{"y", "x"}},
		{"new value", put, false, false, []string{"x", "y"}},
		{"new value, always", put, true, false, []string{"x", "y"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s *registry.Set[*tool]
			armed := true
			s = registry.New(registry.Options[*tool]{
				Name: nameOf,
				Same: func(a, b *tool) bool {
					same := a == b
					if armed {
						armed = tt.always
						tt.during(s)
					}
					return same || tt.always // whatever it is, "this is the one"
				},
				Equal: func(a, b *tool) bool { return a == b },
			})
			mustAdd(t, s, x, &tool{name: "y"})
			heard := record(t, s)
			within(t, "Remove", func() {
				if got := s.Remove(x); got != tt.removed {
					t.Errorf("Remove = %v, want %v", got, tt.removed)
				}
			})
			wantNames(t, s, tt.left...)
			removed, added := 0, 0
			for _, c := range heard.changes {
				removed, added = removed+c.Removed, added+c.Added
			}
			if got := 2 + added - removed; got != s.Len() {
				t.Errorf("events add up to %d items, the set has %d", got, s.Len())
			}
		})
	}
}

func TestSeeds1_11_DuplicateIsAnErrorAndNoEvent(t *testing.T) {
	s := newTools()
	mustAdd(t, s, tools("a")...)
	heard := record(t, s)
	for _, names := range [][]string{{"a"}, {"b", "a"}, {"b", "c", "b"}} {
		err := s.Add(tools(names...)...)
		var dup *registry.DuplicateError
		if want := names[len(names)-1]; !errors.As(err, &dup) || dup.Name != want {
			t.Errorf("Add(%q) = %v, want a duplicate error for %q", names, err, want)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %q", err, want)
		}
	}
	heard.want(t)
	wantNames(t, s, "a")
	mustAdd(t, s, tools("b", "c")...)
	heard.want(t, registry.Change{Added: 2})
}

func TestSeeds1_11_EventIsOutsideTheLock(t *testing.T) {
	s := newTools()
	seen := 0
	t.Cleanup(s.OnChange(func(registry.Change) {
		if seen++; seen > 1 {
			return
		}
		// Another goroutine: a lock that its holder may take again would not do.
		within(t, "changing the set from a listener", func() {
			wantNames(t, s, "a")
			mustAdd(t, s, tools("b")...)
		})
	}))
	mustAdd(t, s, tools("a")...)
	wantNames(t, s, "a", "b")
	if seen != 2 {
		t.Errorf("%d events, want 2", seen)
	}
}

func TestSeeds1_12_KeysCompareEverywhere(t *testing.T) {
	s := registry.New(registry.Options[*tool]{Name: nameOf, Fold: strings.ToLower, Equal: sameText})
	items := tools("Z://1", "m://2", "A://3")
	mustAdd(t, s, items...)
	var dup *registry.DuplicateError
	if err := s.Add(tools("a://3")...); !errors.As(err, &dup) || dup.Name != "a://3" {
		t.Errorf("Add of an equal key = %v", err)
	}
	if err := s.Add(tools("n://1", "N://1")...); !errors.As(err, &dup) || dup.Name != "N://1" {
		t.Errorf("Add of two equal keys = %v", err)
	}
	if _, err := s.Replace(tools("n://1", "N://1")); !errors.As(err, &dup) {
		t.Errorf("Replace by two equal keys = %v", err)
	}
	if got, ok := s.Get("z://1"); !ok || got != items[0] {
		t.Errorf("Get = %v, %v", got, ok)
	}
	if e, ok := s.Snapshot().Lookup("M://2"); !ok || e.Name != "m://2" {
		t.Errorf("Lookup = %+v, %v", e, ok)
	}
	if change, err := s.Replace(tools("a://3", "z://1", "M://2")); err != nil || !change.Empty() {
		t.Errorf("Replace by the same under other spellings = %+v, %v", change, err)
	}
	wantNames(t, s, "Z://1", "m://2", "A://3")
	if err := s.Update(func(b *registry.Batch[*tool]) error {
		if _, ok := b.Get("M://2"); !ok {
			t.Error("Batch.Get does not fold")
		}
		b.Set(&tool{name: "M://2", text: "new"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	wantNames(t, s, "Z://1", "M://2", "A://3")
	items[0].name = "z://1" // another spelling of the same
	if !s.Remove(items[0]) || !s.RemoveName("a://3") {
		t.Error("removal does not fold")
	}
	wantNames(t, s, "M://2")
}

// TestSeeds1_13_ReenteredKeyFunction adds a second item from within the key
// function of the first.
func TestSeeds1_13_ReenteredKeyFunction(t *testing.T) {
	for _, where := range []string{"Name", "Fold"} {
		t.Run(where, func(t *testing.T) {
			var s *registry.Set[*tool]
			entered := false
			enter := func(at string) {
				if at != where || entered {
					return
				}
				entered = true
				mustAdd(t, s, tools("second")...)
				wantNames(t, s, "second")
			}
			s = registry.New(registry.Options[*tool]{
				Name: func(it *tool) string { enter("Name"); return it.name },
				Fold: func(name string) string { enter("Fold"); return name },
			})
			within(t, "re-entrant add", func() { mustAdd(t, s, tools("first")...) })
			wantNames(t, s, "second", "first")
		})
	}
}

// TestSeeds1_13_DuplicateFromWithin takes the name while the add is on its way.
func TestSeeds1_13_DuplicateFromWithin(t *testing.T) {
	var s *registry.Set[*tool]
	entered := false
	s = registry.New(registry.Options[*tool]{
		Name: nameOf,
		Fold: func(name string) string {
			if !entered {
				entered = true
				mustAdd(t, s, &tool{name: "x", text: "inner"})
			}
			return name
		},
	})
	var dup *registry.DuplicateError
	if err := s.Add(&tool{name: "x", text: "outer"}); !errors.As(err, &dup) {
		t.Errorf("outer add = %v, want a duplicate error", err)
	}
	if got, _ := s.Get("x"); got.text != "inner" {
		t.Errorf("x is %q", got.text)
	}
	wantNames(t, s, "x")
}

func TestNewWithoutName(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("New accepted options without Name")
		}
	}()
	registry.New(registry.Options[*tool]{})
}

func TestDefaultSame(t *testing.T) {
	type raw struct {
		name string
		json []byte
	}
	for _, tt := range []struct {
		name string
		a, b any
		want bool
	}{
		{"equal strings", "x", "x", true},
		{"different strings", "x", "y", false},
		{"different types", "x", 1, false},
		{"nil and nil", nil, nil, true},
		{"nil and value", nil, "x", false},
		{"not comparable", raw{"x", nil}, raw{"x", nil}, false},
		{"comparable and not", "x", raw{"x", nil}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := registry.New(registry.Options[any]{Name: func(any) string { return "x" }})
			if err := s.Add(tt.a); err != nil {
				t.Fatal(err)
			}
			if got := s.Remove(tt.b); got != tt.want {
				t.Errorf("Remove = %v, want %v", got, tt.want)
			}
		})
	}
}
