package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/registry"
)

func TestSeeds2_01_ScopeIsOneEvent(t *testing.T) {
	s := newTools()
	heard := record(t, s)
	end := s.Defer()
	for i := range 16 {
		mustAdd(t, s, &tool{name: fmt.Sprint(i)})
	}
	if s.Snapshot().Len() != 16 {
		t.Error("changes in a scope are not visible at once")
	}
	heard.want(t)
	end()
	heard.want(t, registry.Change{Added: 16})

	end = s.Defer()
	_ = s.Add(tools("3")...)
	s.RemoveName("nobody")
	end()
	heard.want(t)
	mustAdd(t, s, tools("after")...)
	heard.want(t, registry.Change{Added: 1})
}

func TestSeeds2_02_ScopesNestAndOverlap(t *testing.T) {
	s := newTools()
	heard := record(t, s)
	first, second := s.Defer(), s.Defer()
	mustAdd(t, s, tools("a")...)
	first()
	first()
	first()
	heard.want(t)
	third := s.Defer()
	second()
	heard.want(t)
	mustAdd(t, s, tools("b")...)
	third()
	heard.want(t, registry.Change{Added: 2})
	first()
	second()
	third()
	heard.want(t)
	mustAdd(t, s, tools("c")...)
	heard.want(t, registry.Change{Added: 1})
}

func TestSeeds2_02_EventOnTheGoroutineThatEndedTheLast(t *testing.T) {
	s := newTools()
	heard := record(t, s)
	end := s.Defer()
	mustAdd(t, s, tools("a")...)
	var ender string
	within(t, "end", func() {
		ender = goroutine()
		end()
	})
	if !slices.Equal(heard.goroutines, []string{ender}) {
		t.Errorf("told on goroutines %q, want %s", heard.goroutines, ender)
	}

	// Ended by many at once: still once.
	end = s.Defer()
	mustAdd(t, s, tools("b")...)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(end)
	}
	wg.Wait()
	heard.want(t, registry.Change{Added: 1}, registry.Change{Added: 1})
}

func TestSeeds2_03_AnyGoroutineAnyMix(t *testing.T) {
	s := newTools()
	mustAdd(t, s, tools("old1", "old2")...)
	heard := record(t, s)
	end := s.Defer()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() { // ends after three changes
			it := &tool{name: fmt.Sprint(g)}
			if s.Add(it) != nil || !s.Remove(it) || s.Add(it) != nil {
				t.Error("a change failed")
			}
		})
	}
	wg.Wait()
	if n := s.Clear(); n != 10 {
		t.Errorf("Clear = %d, want 10", n)
	}
	heard.want(t)
	end()
	heard.want(t, registry.Change{Added: 16, Removed: 18})

	end = s.Defer()
	it := &tool{name: "x"}
	mustAdd(t, s, it)
	s.Remove(it)
	end()
	heard.want(t, registry.Change{Added: 1, Removed: 1})
}

func TestSeeds2_04_PanicEndsTheScope(t *testing.T) {
	s := newTools()
	heard := record(t, s)
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		end := s.Defer()
		defer end()
		mustAdd(t, s, tools("a")...)
		panic("boom")
	}()
	heard.want(t, registry.Change{Added: 1})
	mustAdd(t, s, tools("b")...)
	heard.want(t, registry.Change{Added: 1})
}

func TestSeeds2_05_NothingHappenedNoEvent(t *testing.T) {
	s := newTools()
	s.Defer()() // no listener
	mustAdd(t, s, tools("a")...)
	heard := record(t, s)
	s.Defer()()
	mustAdd(t, s)
	s.RemoveName("b")
	s.Remove(&tool{name: "a"})
	if _, err := s.Replace(s.Snapshot().Items()); err != nil {
		t.Fatal(err)
	}
	if err := s.Update(func(b *registry.Batch[*tool]) error { b.RemoveName("b"); return nil }); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(nil); err != nil {
		t.Fatal(err)
	}
	heard.want(t)
	if s.Clear() != 1 || s.Clear() != 0 {
		t.Error("Clear miscounted")
	}
	heard.want(t, registry.Change{Removed: 1})
}

// TestNoEventIsLost opens and ends scopes everywhere while others change the
// set: what was announced in the end is what was done.
func TestNoEventIsLost(t *testing.T) {
	s := newTools()
	heard := record(t, s)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() { // ends after 200 scopes
			for range 200 {
				s.Defer()()
			}
		})
		wg.Go(func() { // ends after 200 changes
			it := &tool{name: fmt.Sprint(g)}
			for range 100 {
				if s.Add(it) != nil || !s.Remove(it) {
					t.Error("a change failed")
				}
			}
		})
	}
	within(t, "changes", wg.Wait)
	var sum registry.Change
	for _, c := range heard.changes {
		if c.Empty() {
			t.Error("an event without a change")
		}
		sum.Added, sum.Removed = sum.Added+c.Added, sum.Removed+c.Removed
	}
	if want := (registry.Change{Added: 400, Removed: 400}); sum != want {
		t.Errorf("announced %+v in all, want %+v", sum, want)
	}
}

func TestStoppedListener(t *testing.T) {
	s := newTools()
	var told []string
	listen := func(name string) func() {
		return s.OnChange(func(registry.Change) { told = append(told, name) })
	}
	a, b, c := listen("a"), listen("b"), listen("c")
	mustAdd(t, s, tools("1")...)
	b()
	b()
	mustAdd(t, s, tools("2")...)
	a()
	c()
	mustAdd(t, s, tools("3")...)
	if want := []string{"a", "b", "c", "a", "c"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func TestListenerThatStopsItself(t *testing.T) {
	s := newTools()
	calls := 0
	var stop func()
	stop = s.OnChange(func(registry.Change) { calls++; stop() })
	heard := record(t, s)
	mustAdd(t, s, tools("1")...)
	mustAdd(t, s, tools("2")...)
	if calls != 1 {
		t.Errorf("told %d times, want 1", calls)
	}
	heard.want(t, registry.Change{Added: 1}, registry.Change{Added: 1})
}

func TestPanickingListener(t *testing.T) {
	s := newTools()
	stop := s.OnChange(func(registry.Change) { panic("boom") })
	heard := record(t, s)
	func() {
		defer func() {
			if recover() != "boom" {
				t.Error("the panic was swallowed")
			}
		}()
		mustAdd(t, s, tools("a")...)
	}()
	heard.want(t, registry.Change{Added: 1})
	stop()
	within(t, "a change after the panic", func() { mustAdd(t, s, tools("b")...) })
	wantNames(t, s, "a", "b")
}

func TestSeeds2_07_UpdateIsAllOrNothing(t *testing.T) {
	s := newTools()
	mustAdd(t, s, tools("a", "b", "c")...)
	heard := record(t, s)
	before := s.Snapshot()
	fill := func(b *registry.Batch[*tool]) {
		if !b.RemoveName("a") || b.RemoveName("a") {
			t.Error("Batch.RemoveName")
		}
		if err := b.Add(tools("d", "a")...); err != nil {
			t.Error(err)
		}
		b.Set(&tool{name: "b", text: "new"})
		b.Set(&tool{name: "e"})
		if got, ok := b.Get("b"); !ok || got.text != "new" {
			t.Errorf("Batch.Get(b) = %v, %v", got, ok)
		}
		if s.Snapshot() != before {
			t.Error("the list shows a batch that is not done")
		}
		if _, ok := s.Get("d"); ok {
			t.Error("lookup shows a batch that is not done")
		}
	}

	failed := errors.New("no")
	if err := s.Update(func(b *registry.Batch[*tool]) error { fill(b); return failed }); err != failed {
		t.Errorf("Update = %v, want its function's error", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.Update(func(b *registry.Batch[*tool]) error { fill(b); panic("boom") })
	}()
	var dup *registry.DuplicateError
	if err := s.Update(func(b *registry.Batch[*tool]) error { return b.Add(tools("x", "c")...) }); !errors.As(err, &dup) || dup.Name != "c" {
		t.Errorf("Update = %v, want a duplicate error for c", err)
	}
	if s.Snapshot() != before {
		t.Error("a failed batch left something behind")
	}
	heard.want(t)

	if err := s.Update(func(b *registry.Batch[*tool]) error { fill(b); return nil }); err != nil {
		t.Fatal(err)
	}
	wantNames(t, s, "b", "c", "d", "a", "e")
	if got := s.Snapshot().At(0); got.Value.text != "new" || got.Ordinal != before.At(1).Ordinal {
		t.Errorf("b is %+v, was %+v", got, before.At(1))
	}
	heard.want(t, registry.Change{Added: 3, Updated: 1, Removed: 1})
	if got := before.Names(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("the old snapshot became %q", got)
	}
}

func TestUpdateSteps(t *testing.T) {
	x := &tool{name: "x"}
	for _, tt := range []struct {
		name  string
		batch func(t *testing.T, b *registry.Batch[*tool])
		left  []string
		heard []registry.Change
	}{
		{"nothing", func(*testing.T, *registry.Batch[*tool]) {}, []string{"a", "x", "b"}, nil},
		{"set to the same", func(t *testing.T, b *registry.Batch[*tool]) {
			b.Set(x)
		}, []string{"a", "x", "b"}, nil},
		{"add and remove", func(t *testing.T, b *registry.Batch[*tool]) {
			if b.Add(tools("n")...) != nil || !b.RemoveName("n") {
				t.Error("failed")
			}
		}, []string{"a", "x", "b"}, []registry.Change{{Added: 1, Removed: 1}}},
		{"remove instance", func(t *testing.T, b *registry.Batch[*tool]) {
			if b.Remove(&tool{name: "x"}) || !b.Remove(x) || b.Remove(x) {
				t.Error("Batch.Remove does not match the instance")
			}
		}, []string{"a", "b"}, []registry.Change{{Removed: 1}}},
		{"remove and set", func(t *testing.T, b *registry.Batch[*tool]) {
			b.Remove(x)
			b.Set(x)
		}, []string{"a", "b", "x"}, []registry.Change{{Added: 1, Removed: 1}}},
		{"set twice", func(t *testing.T, b *registry.Batch[*tool]) {
			b.Set(&tool{name: "x"})
			b.Set(&tool{name: "x"})
			b.Set(&tool{name: "n"})
			b.Set(&tool{name: "n"})
		}, []string{"a", "x", "b", "n"}, []registry.Change{{Added: 1, Updated: 3}}},
		{"clear and add", func(t *testing.T, b *registry.Batch[*tool]) {
			b.Set(&tool{name: "x"})
			b.Clear()
			if _, ok := b.Get("a"); ok {
				t.Error("Batch.Get found something after Clear")
			}
			if b.RemoveName("b") || b.Add(tools("z", "a")...) != nil {
				t.Error("failed")
			}
		}, []string{"z", "a"}, []registry.Change{{Added: 2, Updated: 1, Removed: 3}}},
		{"failed add, carried on", func(t *testing.T, b *registry.Batch[*tool]) {
			if b.Add(tools("n", "a")...) == nil || b.Add(tools("n", "n")...) == nil {
				t.Error("duplicates were accepted")
			}
			if _, ok := b.Get("n"); ok {
				t.Error("half an add")
			}
			b.RemoveName("a")
		}, []string{"x", "b"}, []registry.Change{{Removed: 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTools()
			mustAdd(t, s, &tool{name: "a"}, x, &tool{name: "b"})
			heard := record(t, s)
			var kept *registry.Batch[*tool]
			if err := s.Update(func(b *registry.Batch[*tool]) error { kept = b; tt.batch(t, b); return nil }); err != nil {
				t.Fatal(err)
			}
			kept.Clear() // too late
			wantNames(t, s, tt.left...)
			heard.want(t, tt.heard...)
		})
	}
}

// TestUpdateIsRunAgain changes the set while the function of an Update runs.
func TestUpdateIsRunAgain(t *testing.T) {
	for _, tt := range []struct {
		name   string
		during func(s *registry.Set[*tool])
		batch  func(b *registry.Batch[*tool])
		runs   int
		left   []string
	}{
		{
			"other name", func(s *registry.Set[*tool]) { _ = s.Add(tools("n")...) },
			func(b *registry.Batch[*tool]) { b.Set(&tool{name: "a"}); _ = b.Add(tools("z")...) }, 1,
			[]string{"a", "b", "n", "z"},
		},
		{
			"name that was read", func(s *registry.Set[*tool]) { s.RemoveName("b") },
			func(b *registry.Batch[*tool]) {
				if _, ok := b.Get("b"); ok {
					_ = b.Add(tools("b is there")...)
				}
			}, 2,
			[]string{"a"},
		},
		{
			"name that was absent", func(s *registry.Set[*tool]) { _ = s.Add(tools("z")...) },
			func(b *registry.Batch[*tool]) {
				if b.Add(tools("z")...) != nil {
					b.RemoveName("z")
				}
			}, 2,
			[]string{"a", "b"},
		},
		{
			"came back", func(s *registry.Set[*tool]) { s.RemoveName("a"); _ = s.Add(tools("a")...) },
			func(b *registry.Batch[*tool]) { b.RemoveName("a") }, 2,
			[]string{"b"},
		},
		{
			"cleared", func(s *registry.Set[*tool]) { _ = s.Add(tools("n")...) },
			func(b *registry.Batch[*tool]) { b.Clear(); _ = b.Add(tools("n", "a")...) }, 1,
			[]string{"n", "a"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTools()
			mustAdd(t, s, tools("a", "b")...)
			runs := 0
			if err := s.Update(func(b *registry.Batch[*tool]) error {
				tt.batch(b)
				if runs++; runs == 1 {
					tt.during(s)
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if runs != tt.runs {
				t.Errorf("ran %d times, want %d", runs, tt.runs)
			}
			wantNames(t, s, tt.left...)
		})
	}
}

func TestUpdateConflict(t *testing.T) {
	s := newTools()
	mustAdd(t, s, tools("a")...)
	err := s.Update(func(b *registry.Batch[*tool]) error {
		b.RemoveName("a")
		s.RemoveName("a")
		return s.Add(tools("a")...)
	})
	if !errors.Is(err, registry.ErrConflict) {
		t.Errorf("Update = %v, want ErrConflict", err)
	}
	wantNames(t, s, "a")
}

// TestBatchAskedByItsOwnFunctions has equality change the batch that asks.
func TestBatchAskedByItsOwnFunctions(t *testing.T) {
	var batch *registry.Batch[*tool]
	s := registry.New(registry.Options[*tool]{
		Name:  nameOf,
		Same:  func(a, b *tool) bool { batch.RemoveName("a"); return true },
		Equal: func(a, b *tool) bool { batch.RemoveName("b"); return false },
	})
	mustAdd(t, s, tools("a", "b", "c")...)
	if err := s.Update(func(b *registry.Batch[*tool]) error {
		batch = b
		if b.Remove(&tool{name: "a"}) {
			t.Error("removed what was gone")
		}
		b.Set(&tool{name: "b"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	wantNames(t, s, "c", "b")
}
