package registry_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/mcp-roster/roster/registry"
)

const many = 100_000

func numbers(n int) []numbered {
	items := make([]numbered, n)
	for i := range items {
		items[i] = numbered{fmt.Sprint("server", i%35, "__tool", i), i}
	}
	return items
}

func filled(tb testing.TB, n int) *registry.Set[numbered] {
	tb.Helper()
	s := newNumbers()
	if err := s.Add(numbers(n)...); err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestReadsDoNotAllocate(t *testing.T) {
	s := filled(t, 1000)
	s.RemoveName("server3__tool3")
	snap := s.Snapshot()
	for name, read := range map[string]func() bool{
		"Get": func() bool { v, ok := s.Get("server5__tool5"); return ok && v.n == 5 },
		"Get of nobody": func() bool {
			_, ok := s.Get("nobody")
			return !ok
		},
		"Lookup":   func() bool { e, ok := snap.Lookup("server5__tool5"); return ok && e.Value.n == 5 },
		"Snapshot": func() bool { return s.Snapshot() == snap },
		"Len":      func() bool { return s.Len() == 999 },
		"At":       func() bool { return snap.At(3).Value.n == 4 },
		"After":    func() bool { return snap.After(4) == 3 },
		"All": func() bool {
			n := 0
			for range snap.All() {
				n++
			}
			return n == 999
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "All" && testing.CoverMode() != "" {
				t.Skip("the loop is not inlined when coverage is counted")
			}
			if n := testing.AllocsPerRun(100, func() {
				if !read() {
					t.Error("wrong result")
				}
			}); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// TestAddIsAmortised compares what adds cost when the set is small and when
// it is large, in bytes, which are the same on every machine. A copy of the
// whole set per add would be hundreds of times more.
func TestAddIsAmortised(t *testing.T) {
	remove := func(s *registry.Set[numbered]) { s.RemoveName("one") }
	list := func(s *registry.Set[numbered]) { s.Snapshot().Len() }
	nothing := func(*registry.Set[numbered]) {}
	for _, tt := range []struct {
		name          string
		before, after func(*registry.Set[numbered])
	}{
		{"adds", nothing, nothing},
		{"adds and lists", nothing, list},
		{"adds and lists after a removal", remove, list},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newNumbers()
			if err := s.Add(numbered{"one", 1}, numbered{"two", 2}, numbered{"three", 3}); err != nil {
				t.Fatal(err)
			}
			tt.before(s)
			items := numbers(20_000)
			cost := func(from, to int) uint64 {
				var before, now runtime.MemStats
				runtime.ReadMemStats(&before)
				for _, it := range items[from:to] {
					if err := s.Add(it); err != nil {
						t.Fatal(err)
					}
					tt.after(s)
				}
				runtime.ReadMemStats(&now)
				return (now.TotalAlloc - before.TotalAlloc) / uint64(to-from)
			}
			small := cost(0, 2_000)
			cost(2_000, 18_000)
			large := cost(18_000, 20_000)
			if large > 4*small {
				t.Errorf("an add allocates %d bytes in a small set, %d in a large one", small, large)
			}
		})
	}
}

func BenchmarkAdd100k(b *testing.B) {
	items := numbers(many)
	b.ReportAllocs()
	for b.Loop() {
		s := newNumbers()
		for _, it := range items {
			if err := s.Add(it); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/add")
}

func BenchmarkAdd100kAtOnce(b *testing.B) {
	items := numbers(many)
	b.ReportAllocs()
	for b.Loop() {
		if err := newNumbers().Add(items...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/many, "ns/add")
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{20, 420, many} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, items := filled(b, n), numbers(n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, ok := s.Get(items[i%n].name); !ok {
					b.Fatal("not found")
				}
				i += 7919
			}
		})
	}
}

func BenchmarkSnapshotUnchanged(b *testing.B) {
	s := filled(b, many)
	b.ReportAllocs()
	for b.Loop() {
		if s.Snapshot().Len() != many {
			b.Fatal("lost an item")
		}
	}
}

// BenchmarkSnapshotAfter lists after each change: an add needs no rebuild, a
// removal and a new value do.
func BenchmarkSnapshotAfter(b *testing.B) {
	for _, n := range []int{420, many} {
		for _, bb := range []struct {
			name   string
			change func(s *registry.Set[numbered], i int) error
		}{
			{"add", func(s *registry.Set[numbered], i int) error { return s.Add(numbered{fmt.Sprint(i), i}) }},
			{"remove and add", func(s *registry.Set[numbered], i int) error {
				first := s.Snapshot().At(0).Value
				s.Remove(first)
				return s.Add(first)
			}},
			{"set", func(s *registry.Set[numbered], i int) error {
				return s.Update(func(b *registry.Batch[numbered]) error {
					b.Set(numbered{"server0__tool0", -i})
					return nil
				})
			}},
		} {
			b.Run(fmt.Sprint(bb.name, "/", n), func(b *testing.B) {
				s := filled(b, n)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					i++
					if err := bb.change(s, i); err != nil {
						b.Fatal(err)
					}
					if s.Snapshot().Len() < n {
						b.Fatal("lost an item")
					}
				}
			})
		}
	}
}

// BenchmarkReplaceUnchanged is what a periodic re-list costs.
func BenchmarkReplaceUnchanged(b *testing.B) {
	s, items := filled(b, 420), numbers(420)
	b.ReportAllocs()
	for b.Loop() {
		if change, err := s.Replace(items); err != nil || !change.Empty() {
			b.Fatal(change, err)
		}
	}
}
