package registry_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/registry"
)

// model is a set without any cleverness: a slice.
type model struct {
	entries []registry.Entry[numbered]
	last    uint64
}

func key(name string) string { return strings.ToLower(name) }

func (m *model) find(name string) int {
	return slices.IndexFunc(m.entries, func(e registry.Entry[numbered]) bool { return key(e.Name) == key(name) })
}

func (m *model) push(v numbered, c *registry.Change) {
	m.last++
	m.entries = append(m.entries, registry.Entry[numbered]{Ordinal: m.last, Name: v.name, Value: v})
	c.Added++
}

func (m *model) drop(i int, c *registry.Change) {
	m.entries = slices.Delete(m.entries, i, i+1)
	c.Removed++
}

// set is what Batch.Set does, and what Replace does to each item it is given.
func (m *model) set(v numbered, c *registry.Change) {
	switch i := m.find(v.name); {
	case i < 0:
		m.push(v, c)
	case m.entries[i].Value.n != v.n:
		m.entries[i].Name, m.entries[i].Value = v.name, v
		c.Updated++
	}
}

// add returns the name of the first duplicate and adds nothing, or adds all.
func (m *model) add(items []numbered, c *registry.Change) (dup string) {
	for i, v := range items {
		if slices.ContainsFunc(items[:i], func(w numbered) bool { return key(w.name) == key(v.name) }) {
			return v.name
		}
	}
	for _, v := range items {
		if m.find(v.name) >= 0 {
			return v.name
		}
	}
	for _, v := range items {
		m.push(v, c)
	}
	return ""
}

// run is a set and its model side by side.
type run struct {
	t     *testing.T
	rnd   *rand.Rand
	set   *registry.Set[numbered]
	model model
	want  registry.Change // of the current step
	heard []registry.Change
}

func (r *run) item() numbered {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return numbered{string(letters[r.rnd.IntN(len(letters))]), r.rnd.IntN(3)}
}

func (r *run) items() []numbered {
	items := make([]numbered, r.rnd.IntN(5))
	for i := range items {
		items[i] = r.item()
	}
	return items
}

func (r *run) checkDup(what string, err error, dup string) {
	r.t.Helper()
	var is *registry.DuplicateError
	if errors.As(err, &is) != (dup != "") || is != nil && is.Name != dup || err != nil && is == nil {
		r.t.Fatalf("%s = %v, want a duplicate error for %q", what, err, dup)
	}
}

// step makes one random change to both and returns its description.
func (r *run) step() string {
	v := r.item()
	switch op := r.rnd.IntN(20); {
	case op < 7:
		items := r.items()
		r.checkDup("Add", r.set.Add(items...), r.model.add(items, &r.want))
		return fmt.Sprint("Add ", items)
	case op < 10:
		i := r.model.find(v.name)
		if got := r.set.RemoveName(v.name); got != (i >= 0) {
			r.t.Fatalf("RemoveName(%s) = %v", v.name, got)
		}
		if i >= 0 {
			r.model.drop(i, &r.want)
		}
		return "RemoveName " + v.name
	case op < 12:
		i := r.model.find(v.name)
		same := i >= 0 && r.model.entries[i].Value == v
		if got := r.set.Remove(v); got != same {
			r.t.Fatalf("Remove(%v) = %v", v, got)
		}
		if same {
			r.model.drop(i, &r.want)
		}
		return fmt.Sprint("Remove ", v)
	case op < 15:
		return r.replace()
	case op < 19:
		return r.update()
	default:
		if r.rnd.IntN(4) > 0 {
			return "nothing"
		}
		n := len(r.model.entries)
		r.model.entries, r.want.Removed = nil, n
		if got := r.set.Clear(); got != n {
			r.t.Fatalf("Clear = %d, want %d", got, n)
		}
		return "Clear"
	}
}

func (r *run) replace() string {
	items := r.items()
	if r.rnd.IntN(2) == 0 { // most of what is there, shuffled
		items = items[:0]
		for _, e := range r.model.entries {
			if r.rnd.IntN(8) > 0 {
				items = append(items, numbered{e.Name, e.Value.n})
			}
		}
		r.rnd.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	}
	change, err := r.set.Replace(items)
	var scratch registry.Change
	if dup := new(model).add(items, &scratch); dup != "" || err != nil {
		r.checkDup("Replace", err, dup)
		return fmt.Sprint("Replace, refused ", items)
	}
	r.model.entries = slices.DeleteFunc(r.model.entries, func(e registry.Entry[numbered]) bool {
		keep := slices.ContainsFunc(items, func(v numbered) bool { return key(v.name) == key(e.Name) })
		if !keep {
			r.want.Removed++
		}
		return !keep
	})
	for _, v := range items {
		r.model.set(v, &r.want)
	}
	if change != r.want {
		r.t.Fatalf("Replace = %+v, want %+v", change, r.want)
	}
	return fmt.Sprint("Replace ", items)
}

// update runs a batch of random steps, of which one in four fails in the end.
func (r *run) update() string {
	before := model{slices.Clone(r.model.entries), r.model.last}
	var fail error
	if r.rnd.IntN(4) == 0 {
		fail = errors.New("batch refused")
	}
	err := r.set.Update(func(b *registry.Batch[numbered]) error {
		for range r.rnd.IntN(6) {
			v := r.item()
			i := r.model.find(v.name)
			switch r.rnd.IntN(6) {
			case 0, 1:
				b.Set(v)
				r.model.set(v, &r.want)
			case 2, 3:
				items := r.items()
				r.checkDup("Batch.Add", b.Add(items...), r.model.add(items, &r.want))
			case 4:
				if got := b.RemoveName(v.name); got != (i >= 0) {
					r.t.Fatalf("Batch.RemoveName(%s) = %v", v.name, got)
				}
				if i >= 0 {
					r.model.drop(i, &r.want)
				}
			default:
				if r.rnd.IntN(4) == 0 {
					b.Clear()
					r.want.Removed += len(r.model.entries)
					r.model.entries = nil
				}
			}
			j := r.model.find(v.name)
			if got, ok := b.Get(v.name); ok != (j >= 0) || ok && got != r.model.entries[j].Value {
				r.t.Fatalf("Batch.Get(%s) = %v, %v", v.name, got, ok)
			}
		}
		return fail
	})
	if err != fail {
		r.t.Fatalf("Update = %v, want %v", err, fail)
	}
	if fail != nil {
		r.model, r.want = before, registry.Change{}
	}
	return "Update"
}

// compare checks everything a reader can see against the model.
func (r *run) compare() error {
	snap := r.set.Snapshot()
	if got := snap.Entries(); !slices.Equal(got, r.model.entries) {
		return fmt.Errorf("entries are %v, want %v", got, r.model.entries)
	}
	if r.set.Len() != len(r.model.entries) {
		return fmt.Errorf("Len is %d, want %d", r.set.Len(), len(r.model.entries))
	}
	for c := 'a'; c <= 'z'; c++ {
		i := r.model.find(string(c))
		got, ok := r.set.Get(string(c))
		if ok != (i >= 0) || ok && got != r.model.entries[i].Value {
			return fmt.Errorf("Get(%c) = %v, %v", c, got, ok)
		}
	}
	return coherent(snap)
}

func TestModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := &run{t: t, rnd: rand.New(rand.NewPCG(seed, 1))}
			r.set = registry.New(registry.Options[numbered]{
				Name:  func(v numbered) string { return v.name },
				Fold:  key,
				Equal: func(a, b numbered) bool { return a.n == b.n },
			})
			t.Cleanup(r.set.OnChange(func(c registry.Change) { r.heard = append(r.heard, c) }))
			for i := range 200 {
				r.want, r.heard = registry.Change{}, nil
				did := r.step()
				if r.want.Empty() != (len(r.heard) == 0) || len(r.heard) > 0 && (len(r.heard) > 1 || r.heard[0] != r.want) {
					t.Fatalf("step %d (%s): announced %+v, want %+v", i, did, r.heard, r.want)
				}
				if r.rnd.IntN(3) == 0 { // not always: a list is built when it is asked for
					if err := r.compare(); err != nil {
						t.Fatalf("step %d (%s): %v", i, did, err)
					}
				}
				// The set may skip ordinals, the model does not.
				if last := r.set.Snapshot().After(r.model.last); last != r.set.Len() {
					t.Fatalf("step %d (%s): an ordinal above %d", i, did, r.model.last)
				}
			}
			if err := r.compare(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
