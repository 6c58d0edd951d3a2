package registry_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/registry"
)

func TestSequence(t *testing.T) {
	var zero registry.Sequence
	if zero.Last() != 0 || zero.Next() != 1 || zero.Next() != 2 || zero.Last() != 2 {
		t.Error("the zero Sequence does not count from 1")
	}
	if q := registry.NewSequence(41); q.Last() != 41 || q.Next() != 42 {
		t.Error("a Sequence does not go on after its last ordinal")
	}
}

func TestSharedSequence(t *testing.T) {
	q := registry.NewSequence(100)
	options := registry.Options[*tool]{Name: nameOf, Ordinals: q}
	sets := []*registry.Set[*tool]{registry.New(options), registry.New(options), registry.New(options)}
	var wg sync.WaitGroup
	for _, s := range sets {
		for g := range 2 {
			wg.Go(func() { // ends after 100 adds
				for i := range 100 {
					if err := s.Add(tools(fmt.Sprint(g, "-", i))...); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	seen := make(map[uint64]bool)
	for _, s := range sets {
		if err := coherent(s.Snapshot()); err != nil {
			t.Error(err)
		}
		for _, e := range s.Snapshot().All() {
			if seen[e.Ordinal] || e.Ordinal <= 100 || e.Ordinal > q.Last() {
				t.Fatalf("ordinal %d: seen before: %v, last is %d", e.Ordinal, seen[e.Ordinal], q.Last())
			}
			seen[e.Ordinal] = true
		}
	}
	if len(seen) != 600 || q.Last() != 700 {
		t.Errorf("%d ordinals, the last is %d", len(seen), q.Last())
	}
}

func TestAfter(t *testing.T) {
	s := newTools()
	mustAdd(t, s, tools("a", "b", "c", "d")...) // 1 to 4
	s.RemoveName("b")
	mustAdd(t, s, tools("b")...) // 5
	snap := s.Snapshot()
	for ordinal, want := range []int{0, 1, 1, 2, 3, 4, 4} {
		if got := snap.After(uint64(ordinal)); got != want {
			t.Errorf("After(%d) = %d, want %d", ordinal, got, want)
		}
	}
	if newTools().Snapshot().After(0) != 0 {
		t.Error("After in an empty snapshot")
	}
}

// TestWalkDuringChange pages by ordinal while the set changes between any two
// pages: items that were there all along come exactly once.
func TestWalkDuringChange(t *testing.T) {
	for size := 1; size <= 7; size++ {
		s := newTools()
		for i := range 20 {
			mustAdd(t, s, tools(fmt.Sprint("stays", i), fmt.Sprint("goes", i))...)
		}
		var walked []string
		last, page := uint64(0), 0
		for {
			snap := s.Snapshot()
			from := snap.After(last)
			if from == snap.Len() || page > 100 {
				break
			}
			for i := from; i < min(from+size, snap.Len()); i++ {
				walked = append(walked, snap.At(i).Name)
				last = snap.At(i).Ordinal
			}
			s.RemoveName(fmt.Sprint("goes", page%20))
			if page%2 == 0 {
				mustAdd(t, s, tools(fmt.Sprint("new", page))...)
			}
			page++
		}
		count := make(map[string]int)
		for _, name := range walked {
			count[name]++
		}
		for i := range 20 {
			if n := count[fmt.Sprint("stays", i)]; n != 1 {
				t.Errorf("pages of %d: stays%d came %d times", size, i, n)
			}
		}
		for name, n := range count {
			if n > 1 {
				t.Errorf("pages of %d: %s came %d times", size, name, n)
			}
		}
	}
}

func TestRestore(t *testing.T) {
	old := newTools()
	mustAdd(t, old, tools("c", "gone", "a", "b")...)
	old.RemoveName("gone")
	saved := old.Snapshot().Entries()
	saved[0].Value.name = "renamed since"

	q := registry.NewSequence(2)
	s := registry.New(registry.Options[*tool]{Name: nameOf, Ordinals: q})
	heard := record(t, s)
	if err := s.Restore(saved); err != nil {
		t.Fatal(err)
	}
	heard.want(t, registry.Change{Added: 3})
	wantNames(t, s, "c", "a", "b")
	if got := s.Snapshot().Entries(); !slices.Equal(got, saved) {
		t.Errorf("restored %+v, want %+v", got, saved)
	}
	if q.Last() != 4 {
		t.Errorf("the sequence is at %d, want 4", q.Last())
	}
	mustAdd(t, s, tools("0")...)
	if got := s.Snapshot().At(3).Ordinal; got != 5 {
		t.Errorf("the next ordinal is %d, want 5", got)
	}

	ahead := registry.NewSequence(1000)
	s = registry.New(registry.Options[*tool]{Name: nameOf, Ordinals: ahead})
	if err := s.Restore(saved); err != nil || ahead.Last() != 1000 {
		t.Errorf("Restore = %v, and turned the sequence to %d", err, ahead.Last())
	}
}

func TestRestoreRefuses(t *testing.T) {
	entry := func(ordinal uint64, name string) registry.Entry[*tool] {
		return registry.Entry[*tool]{Ordinal: ordinal, Name: name, Value: &tool{name: name}}
	}
	for _, tt := range []struct {
		name    string
		entries []registry.Entry[*tool]
		dup     string
	}{
		{"zero", []registry.Entry[*tool]{entry(0, "x")}, ""},
		{"equal", []registry.Entry[*tool]{entry(8, "x"), entry(8, "y")}, ""},
		{"too high", []registry.Entry[*tool]{entry(8, "x"), entry(1<<62+1, "y")}, ""},
		{"falling", []registry.Entry[*tool]{entry(9, "x"), entry(8, "y")}, ""},
		{"not above what is there", []registry.Entry[*tool]{entry(2, "x")}, ""},
		{"not above what was there", []registry.Entry[*tool]{entry(3, "x")}, ""},
		{"twice", []registry.Entry[*tool]{entry(8, "x"), entry(9, "x")}, "x"},
		{"taken", []registry.Entry[*tool]{entry(8, "x"), entry(9, "b")}, "b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newTools()
			mustAdd(t, s, tools("a", "b", "c")...)
			s.RemoveName("c")
			heard := record(t, s)
			err := s.Restore(tt.entries)
			var dup *registry.DuplicateError
			if err == nil || errors.As(err, &dup) != (tt.dup != "") || dup != nil && dup.Name != tt.dup {
				t.Errorf("Restore = %v", err)
			}
			heard.want(t)
			wantNames(t, s, "a", "b")
			mustAdd(t, s, tools("d")...)
			if got := s.Snapshot().At(2).Ordinal; got != 4 {
				t.Errorf("the next ordinal is %d, want 4", got)
			}
		})
	}
}
