package registry

import (
	"fmt"
	"testing"
)

// TestLogIsKeptInBounds changes a set that nobody lists: its log must not
// grow with the number of changes, nor be rebuilt at each of them.
func TestLogIsKeptInBounds(t *testing.T) {
	const size, changes = 1000, 10_000
	for name, change := range map[string]func(s *Set[string], i int) error{
		"remove and add": func(s *Set[string], i int) error {
			v := fmt.Sprint(i % size)
			s.RemoveName(v)
			return s.Add(v)
		},
		"set": func(s *Set[string], i int) error {
			return s.Update(func(b *Batch[string]) error { b.Set(fmt.Sprint(i % size)); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Options[string]{
				Name:  func(v string) string { return v },
				Equal: func(a, b string) bool { return false },
			})
			for i := range size {
				if err := s.Add(fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			rebuilt := 0
			for i := range changes {
				was := s.current.Load().stale
				if err := change(s, i); err != nil {
					t.Fatal(err)
				}
				now := s.current.Load()
				if now.stale < was {
					rebuilt++
				}
				if len(now.log) > 2*size+2 {
					t.Fatalf("after %d changes the log has %d places for %d items", i+1, len(now.log), now.size)
				}
			}
			if rebuilt == 0 || rebuilt > 2*changes/size+1 {
				t.Errorf("the log was rebuilt %d times in %d changes", rebuilt, changes)
			}
		})
	}
}
