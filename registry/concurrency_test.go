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

// numbered is an item that counts.
type numbered struct {
	name string
	n    int
}

func newNumbers() *registry.Set[numbered] {
	return registry.New(registry.Options[numbered]{Name: func(v numbered) string { return v.name }})
}

// TestSeeds4_09_NoLostUpdate is C-128: 4 adders, 4 refreshers and 4 readers, 200 rounds
// each. A refresher counts a shared counter up and swaps its own tool for the
// next one, in one batch.
func TestSeeds4_09_NoLostUpdate(t *testing.T) {
	const workers, rounds = 4, 200
	s := newNumbers()
	if err := s.Add(numbered{"counter", 0}); err != nil {
		t.Fatal(err)
	}
	for w := range workers {
		if err := s.Add(numbered{fmt.Sprintf("refreshed%d/0", w), w}); err != nil {
			t.Fatal(err)
		}
	}
	var events atomic.Int32
	t.Cleanup(s.OnChange(func(registry.Change) { events.Add(1) }))
	var wg sync.WaitGroup
	within(t, "200 rounds", func() {
		for w := range workers {
			wg.Go(func() { // adder: ends after its rounds
				for r := range rounds {
					if err := s.Add(numbered{fmt.Sprintf("added%d/%d", w, r), r}); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() { // refresher: ends after its rounds
				for r := range rounds {
					if err := s.Update(refresh(w, r)); err != nil {
						t.Error(err)
					}
				}
			})
			wg.Go(func() { // reader: ends after its rounds
				counted := 0
				for range rounds {
					n, err := check(s.Snapshot(), workers)
					if err == nil && n < counted {
						err = fmt.Errorf("the counter went back from %d to %d", counted, n)
					}
					if err != nil {
						t.Error(err)
					}
					counted = n
				}
			})
		}
		wg.Wait()
	})
	if n := events.Load(); n != 2*workers*rounds {
		t.Errorf("%d events, want one for each change, %d", n, 2*workers*rounds)
	}
	snap := s.Snapshot()
	if counter, _ := s.Get("counter"); counter.n != workers*rounds {
		t.Errorf("counted to %d, want %d", counter.n, workers*rounds)
	}
	if want := 1 + workers + workers*rounds; snap.Len() != want {
		t.Errorf("%d items, want %d", snap.Len(), want)
	}
	for w := range workers {
		last := uint64(0)
		for r := range rounds {
			e, ok := snap.Lookup(fmt.Sprintf("added%d/%d", w, r))
			if !ok || e.Value.n != r || e.Ordinal <= last {
				t.Fatalf("added%d/%d: %+v, %v, after ordinal %d", w, r, e, ok, last)
			}
			last = e.Ordinal
		}
		if _, ok := snap.Lookup(fmt.Sprintf("refreshed%d/%d", w, rounds)); !ok {
			t.Errorf("the last tool of refresher %d is not there", w)
		}
	}
}

// refresh is round r of refresher w.
func refresh(w, r int) func(*registry.Batch[numbered]) error {
	return func(b *registry.Batch[numbered]) error {
		counter, ok := b.Get("counter")
		if !ok {
			return errors.New("no counter")
		}
		counter.n++
		b.Set(counter)
		if !b.RemoveName(fmt.Sprintf("refreshed%d/%d", w, r)) {
			return fmt.Errorf("refresher %d: no tool of round %d", w, r)
		}
		return b.Add(numbered{fmt.Sprintf("refreshed%d/%d", w, r+1), w})
	}
}

// check returns the counter of a snapshot, and an error if that has not
// exactly one tool of each refresher: never a gap, never a mixture.
func check(snap *registry.Snapshot[numbered], workers int) (int, error) {
	if err := coherent(snap); err != nil {
		return 0, err
	}
	tools := make([]int, workers)
	rounds := 0
	for _, e := range snap.All() {
		var w, r int
		if !strings.HasPrefix(e.Name, "refreshed") {
			continue
		}
		if _, err := fmt.Sscanf(e.Name, "refreshed%d/%d", &w, &r); err != nil {
			return 0, err
		}
		tools[w]++
		rounds += r
	}
	for w, n := range tools {
		if n != 1 {
			return 0, fmt.Errorf("%d tools of refresher %d, want 1", n, w)
		}
	}
	counter, ok := snap.Lookup("counter")
	if !ok || counter.Value.n != rounds {
		return 0, fmt.Errorf("the counter is %+v, but the tools say %d", counter, rounds)
	}
	return counter.Value.n, nil
}

// TestSeeds4_09_ReplaceIsNeverSeenInPart has refreshers replace whole lists,
// whose items all carry the number of their list.
func TestSeeds4_09_ReplaceIsNeverSeenInPart(t *testing.T) {
	s := newNumbers()
	list := func(n int) []numbered {
		var items []numbered
		for i := range 20 {
			items = append(items, numbered{fmt.Sprint("kept", i), n}, numbered{fmt.Sprint("of ", n%2, "/", i), n})
		}
		return items
	}
	if _, err := s.Replace(list(0)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() { // refresher: ends after 100 replacements
			for r := range 100 {
				if _, err := s.Replace(list(w + 4*r)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() { // reader: ends after 100 lists
			for range 100 {
				snap := s.Snapshot()
				err := coherent(snap)
				if n := snap.At(0).Value.n; err == nil && (snap.Len() != 40 || slices.ContainsFunc(snap.Items(), func(v numbered) bool { return v.n != n })) {
					err = fmt.Errorf("a mixture of %d items: %v", snap.Len(), snap.Items())
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	within(t, "replacements", wg.Wait)
}

// TestSeeds4_09_WhatWasGivenDoesNotChange keeps every snapshot of a busy set
// and looks at all of them again at the end.
func TestSeeds4_09_WhatWasGivenDoesNotChange(t *testing.T) {
	type given struct {
		snap    *registry.Snapshot[numbered]
		entries []registry.Entry[numbered]
	}
	s := newNumbers()
	var kept []given
	keep := func() {
		snap := s.Snapshot()
		kept = append(kept, given{snap, snap.Entries()})
	}
	for i := range 300 {
		name := fmt.Sprint(i % 40)
		switch i % 7 {
		case 0, 1, 2, 3:
			_ = s.Add(numbered{name, i})
		case 4:
			s.RemoveName(name)
		case 5:
			_ = s.Update(func(b *registry.Batch[numbered]) error { b.Set(numbered{name, i}); return nil })
		default:
			if i%5 == 0 {
				s.Clear()
			}
		}
		if i%3 > 0 {
			keep()
		}
	}
	for i, g := range kept {
		if !slices.Equal(g.snap.Entries(), g.entries) {
			t.Errorf("snapshot %d was %v and became %v", i, g.entries, g.snap.Entries())
		}
		if err := coherent(g.snap); err != nil {
			t.Errorf("snapshot %d: %v", i, err)
		}
	}
}

// TestSeeds1_05_NoItemMovesUnderLoad: of any two lists, the later one shows
// the survivors of the earlier one first, in the same order.
func TestSeeds1_05_NoItemMovesUnderLoad(t *testing.T) {
	s := newNumbers()
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() { // ends after 300 changes
			for i := range 300 {
				name := fmt.Sprint(w, "/", i%10)
				if !s.RemoveName(name) {
					_ = s.Add(numbered{name, i})
				}
			}
		})
	}
	wg.Go(func() { // ends after 500 lists
		before := s.Snapshot().Entries()
		for range 500 {
			now := s.Snapshot()
			var survivors []registry.Entry[numbered]
			for _, e := range before {
				if again, ok := now.Lookup(e.Name); ok && again.Ordinal == e.Ordinal {
					survivors = append(survivors, e)
				}
			}
			entries := now.Entries()
			if len(entries) < len(survivors) || !slices.Equal(entries[:len(survivors)], survivors) {
				t.Errorf("survivors %v, but the list is %v", survivors, entries)
				return
			}
			before = entries
		}
	})
	within(t, "load", wg.Wait)
}
