package registry_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/mcp-roster/roster/registry"
)

func TestSeeds2_07_ReplaceIsTheSmallestChange(t *testing.T) {
	list := func(namesAndTexts ...string) []*tool {
		var out []*tool
		for i := 0; i < len(namesAndTexts); i += 2 {
			out = append(out, &tool{namesAndTexts[i], namesAndTexts[i+1]})
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		items  []*tool
		want   []string
		change registry.Change
	}{
		{"same", list("c", "1", "a", "1", "b", "1"), []string{"c", "a", "b"}, registry.Change{}},
		{"shuffled", list("b", "1", "c", "1", "a", "1"), []string{"c", "a", "b"}, registry.Change{}},
		{"other content", list("c", "1", "a", "2", "b", "1"), []string{"c", "a", "b"}, registry.Change{Updated: 1}},
		{"fewer", list("b", "1", "c", "1"), []string{"c", "b"}, registry.Change{Removed: 1}},
		{"newcomers first", list("z", "1", "y", "1", "a", "1", "b", "1", "c", "1"), []string{"c", "a", "b", "z", "y"}, registry.Change{Added: 2}},
		{"all at once", list("z", "1", "b", "2", "c", "1"), []string{"c", "b", "z"}, registry.Change{Added: 1, Updated: 1, Removed: 1}},
		{"all others", list("y", "1", "x", "1"), []string{"y", "x"}, registry.Change{Added: 2, Removed: 3}},
		{"nothing", nil, nil, registry.Change{Removed: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := registry.New(registry.Options[*tool]{Name: nameOf, Equal: sameText})
			mustAdd(t, s, list("c", "1", "a", "1", "b", "1")...)
			before := s.Snapshot()
			heard := record(t, s)
			change, err := s.Replace(tt.items)
			if err != nil || change != tt.change {
				t.Errorf("Replace = %+v, %v, want %+v", change, err, tt.change)
			}
			wantNames(t, s, tt.want...)
			if tt.change.Empty() {
				heard.want(t)
				if s.Snapshot() != before {
					t.Error("a new snapshot although nothing changed")
				}
			} else {
				heard.want(t, tt.change)
			}
			for _, it := range tt.items {
				now, _ := s.Snapshot().Lookup(it.name)
				was, known := before.Lookup(it.name)
				switch {
				case known && now.Ordinal != was.Ordinal:
					t.Errorf("%s had ordinal %d, now %d", it.name, was.Ordinal, now.Ordinal)
				case known && was.Value.text == it.text && now != was:
					t.Errorf("%s is equal, but its entry changed", it.name)
				case (!known || was.Value.text != it.text) && now.Value != it:
					t.Errorf("%s did not get its new value", it.name)
				}
			}
		})
	}
}

func TestReplaceRefusesDuplicates(t *testing.T) {
	s := newTools()
	mustAdd(t, s, tools("a")...)
	heard := record(t, s)
	var dup *registry.DuplicateError
	if change, err := s.Replace(tools("x", "y", "x")); !errors.As(err, &dup) || dup.Name != "x" || !change.Empty() {
		t.Errorf("Replace = %+v, %v, want a duplicate error for x", change, err)
	}
	wantNames(t, s, "a")
	heard.want(t)
}

// TestReplaceRace changes the set while Replace compares contents.
func TestReplaceRace(t *testing.T) {
	put := func(s *registry.Set[*tool], name, text string) {
		_ = s.Update(func(b *registry.Batch[*tool]) error { b.Set(&tool{name, text}); return nil })
	}
	for _, tt := range []struct {
		name   string
		during func(s *registry.Set[*tool])
		always bool
		want   []string
		change registry.Change
	}{
		{"newcomer", func(s *registry.Set[*tool]) { _ = s.Add(tools("n")...) }, false, []string{"a", "b", "z"}, registry.Change{Added: 1, Removed: 1}},
		{"same newcomer", func(s *registry.Set[*tool]) { _ = s.Add(tools("z")...) }, false, []string{"a", "b", "z"}, registry.Change{}},
		{"removed", func(s *registry.Set[*tool]) { s.RemoveName("a") }, false, []string{"b", "z", "a"}, registry.Change{Added: 2}},
		{"came back", func(s *registry.Set[*tool]) { s.RemoveName("a"); _ = s.Add(tools("a")...) }, false, []string{"b", "a", "z"}, registry.Change{Added: 1}},
		{"new value", func(s *registry.Set[*tool]) { put(s, "a", "other") }, false, []string{"a", "b", "z"}, registry.Change{Added: 1, Updated: 1}},
		{"new value each time", func(s *registry.Set[*tool]) { put(s, "a", "other") }, true, []string{"a", "b", "z"}, registry.Change{Added: 1, Updated: 1}},
		{"cleared", func(s *registry.Set[*tool]) { s.Clear() }, false, []string{"z", "a", "b"}, registry.Change{Added: 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s *registry.Set[*tool]
			armed, inside := false, false
			s = registry.New(registry.Options[*tool]{Name: nameOf, Equal: func(a, b *tool) bool {
				if armed && !inside {
					inside, armed = true, tt.always
					tt.during(s)
					inside = false
				}
				// From within, all is different, so that each time is a change.
				return !inside && (tt.always || a.text == b.text)
			}})
			mustAdd(t, s, tools("a", "b")...)
			armed = true
			items := tools("z", "a", "b")
			within(t, "Replace", func() {
				if change, err := s.Replace(items); err != nil || change != tt.change {
					t.Errorf("Replace = %+v, %v, want %+v", change, err, tt.change)
				}
			})
			wantNames(t, s, tt.want...)
			for _, it := range items {
				if got, ok := s.Get(it.name); !ok || got.text != it.text {
					t.Errorf("%s is %+v, %v", it.name, got, ok)
				}
			}
		})
	}
}

// TestReplaceAsksAgainOnlyWhereItMust counts comparisons when one entry changed.
func TestReplaceAsksAgainOnlyWhereItMust(t *testing.T) {
	var s *registry.Set[*tool]
	asked := make(map[string]int)
	s = registry.New(registry.Options[*tool]{Name: nameOf, Equal: func(a, b *tool) bool {
		asked[b.name]++
		if b.name == "c" && asked["c"] == 1 {
			s.RemoveName("b")
			mustAdd(t, s, tools("b")...)
		}
		return true
	}})
	mustAdd(t, s, tools("a", "b", "c")...)
	if change, err := s.Replace(tools("a", "b", "c")); err != nil || !change.Empty() {
		t.Errorf("Replace = %+v, %v", change, err)
	}
	if asked["a"] != 1 || asked["b"] != 2 || asked["c"] != 1 {
		t.Errorf("asked %v times", asked)
	}
}

func TestReplaceComparesOnlyPairs(t *testing.T) {
	asked := 0
	s := registry.New(registry.Options[*tool]{Name: nameOf, Equal: func(a, b *tool) bool {
		if a.name != b.name {
			t.Errorf("asked about %s and %s", a.name, b.name)
		}
		asked++
		return true
	}})
	mustAdd(t, s, tools("a", "b", "c")...)
	if _, err := s.Replace(tools("c", "x", "b", "y")); err != nil {
		t.Fatal(err)
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 2", asked)
	}
	if got := s.Snapshot().Names(); !slices.Equal(got, []string{"b", "c", "x", "y"}) {
		t.Errorf("names are %q", got)
	}
}
