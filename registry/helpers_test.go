package registry_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/registry"
)

// tool is an item whose name can be changed behind the set's back.
type tool struct {
	name string
	text string
}

func nameOf(t *tool) string { return t.name }

func sameText(a, b *tool) bool { return a.text == b.text }

func newTools() *registry.Set[*tool] {
	return registry.New(registry.Options[*tool]{Name: nameOf})
}

func tools(names ...string) []*tool {
	out := make([]*tool, len(names))
	for i, name := range names {
		out[i] = &tool{name: name}
	}
	return out
}

func mustAdd(t *testing.T, s *registry.Set[*tool], items ...*tool) {
	t.Helper()
	if err := s.Add(items...); err != nil {
		t.Errorf("Add: %v", err)
	}
}

// wantNames checks the list, and that everything else agrees with it.
func wantNames(t *testing.T, s *registry.Set[*tool], want ...string) {
	t.Helper()
	snap := s.Snapshot()
	if got := snap.Names(); !slices.Equal(got, want) {
		t.Errorf("names are %q, want %q", got, want)
	}
	if s.Len() != snap.Len() {
		t.Errorf("Len is %d, but %d are listed", s.Len(), snap.Len())
	}
	if err := coherent(snap); err != nil {
		t.Error(err)
	}
	for _, e := range snap.All() {
		if got, ok := s.Get(e.Name); !ok || got != e.Value {
			t.Errorf("Get(%q) = %v, %v, but it is listed", e.Name, got, ok)
		}
	}
}

// coherent checks that list and lookup of a snapshot agree and that ordinals
// grow. It returns an error so that any goroutine may call it.
func coherent[T comparable](snap *registry.Snapshot[T]) error {
	last := uint64(0)
	for i, e := range snap.All() {
		if e.Ordinal <= last {
			return fmt.Errorf("entry %d (%s) has ordinal %d after %d", i, e.Name, e.Ordinal, last)
		}
		last = e.Ordinal
		if got, ok := snap.Lookup(e.Name); !ok || got != e {
			return fmt.Errorf("entry %d is %v, but Lookup(%q) = %v, %v", i, e, e.Name, got, ok)
		}
	}
	return nil
}

// events records what a set announces, and on which goroutine.
type events struct {
	mu         sync.Mutex
	changes    []registry.Change
	goroutines []string
}

func record[T any](t *testing.T, s *registry.Set[T]) *events {
	e := new(events)
	t.Cleanup(s.OnChange(func(c registry.Change) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.changes = append(e.changes, c)
		e.goroutines = append(e.goroutines, goroutine())
	}))
	return e
}

// want checks what was announced since the last call.
func (e *events) want(t *testing.T, want ...registry.Change) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Equal(e.changes, want) {
		t.Errorf("announced %+v, want %+v", e.changes, want)
	}
	e.changes, e.goroutines = nil, nil
}

func goroutine() string {
	buf := make([]byte, 64)
	buf = buf[:runtime.Stack(buf, false)]
	id, _, _ := strings.Cut(strings.TrimPrefix(string(buf), "goroutine "), " ")
	return id
}

// within fails the test if f takes longer than any healthy run would.
func within(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		f()
	}()
	wait(t, what, done)
}

func wait(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s: still not done after a minute", what)
	}
}
