package registry

import (
	"fmt"
	"testing"
	"time"
)

// TestSeeds1_03_ReadersTakeNoLock reads while the writers' lock is held, also
// the list that nobody built yet.
func TestSeeds1_03_ReadersTakeNoLock(t *testing.T) {
	s := New(Options[string]{Name: func(v string) string { return v }})
	if err := s.Add("b", "a", "c"); err != nil {
		t.Fatal(err)
	}
	s.RemoveName("a")
	s.mu.Lock()
	defer s.mu.Unlock()
	read := make(chan string, 1)
	go func() { // ends when it has read
		v, ok := s.Get("b")
		snap := s.Snapshot()
		again := s.Snapshot() == snap
		e, _ := snap.Lookup("c")
		read <- fmt.Sprint(v, ok, s.Len(), snap.Names(), again, e.Value)
	}()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case got := <-read:
		if want := fmt.Sprint("b", true, 2, []string{"b", "c"}, true, "c"); got != want {
			t.Errorf("read %q, want %q", got, want)
		}
	case <-timer.C:
		t.Fatal("a reader waits for the writers' lock")
	}
}

// TestFunctionsRunOutsideTheLock has every function of the user try the lock.
func TestFunctionsRunOutsideTheLock(t *testing.T) {
	var s *Set[string]
	calls := make(map[string]int)
	outside := func(what string) {
		calls[what]++
		if !s.mu.TryLock() {
			t.Errorf("%s runs under the lock", what)
			return
		}
		s.mu.Unlock()
	}
	s = New(Options[string]{
		Name:  func(v string) string { outside("Name"); return v },
		Fold:  func(name string) string { outside("Fold"); return name },
		Same:  func(a, b string) bool { outside("Same"); return a == b },
		Equal: func(a, b string) bool { outside("Equal"); return a == b },
	})
	defer s.OnChange(func(Change) { outside("OnChange") })()
	end := s.Defer()
	_ = s.Add("a", "b")
	end()
	s.Remove("a")
	s.RemoveName("b")
	_, _ = s.Replace([]string{"a", "b"})
	_, _ = s.Replace([]string{"b", "c"})
	_ = s.Update(func(b *Batch[string]) error {
		outside("Update")
		b.Set("b")
		b.Remove("c")
		b.RemoveName("b")
		b.Clear()
		return b.Add("x")
	})
	s.Get("x")
	s.Snapshot().Lookup("x")
	s.Clear()
	_ = s.Restore([]Entry[string]{{100, "y", "y"}})
	for _, what := range []string{"Name", "Fold", "Same", "Equal", "OnChange", "Update"} {
		if calls[what] == 0 {
			t.Errorf("%s was never called", what)
		}
	}
}
