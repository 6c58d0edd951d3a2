package registry_test

import (
	"fmt"

	"github.com/mcp-roster/roster/registry"
)

type prompt struct {
	Name string
	Text string
}

func Example() {
	prompts := registry.New(registry.Options[prompt]{
		Name: func(p prompt) string { return p.Name },
	})
	stop := prompts.OnChange(func(c registry.Change) {
		fmt.Printf("changed: %d added, %d updated, %d removed\n", c.Added, c.Updated, c.Removed)
	})
	defer stop()

	if err := prompts.Add(prompt{"review", "Review this."}, prompt{"explain", "Explain this."}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(prompts.Add(prompt{"review", "Again."}))

	if p, ok := prompts.Get("explain"); ok {
		fmt.Println("got:", p.Text)
	}
	for i, entry := range prompts.Snapshot().All() {
		fmt.Println(i, entry.Name)
	}
	// Output:
	// changed: 2 added, 0 updated, 0 removed
	// registry: duplicate name "review"
	// got: Explain this.
	// 0 review
	// 1 explain
}

// A batch is seen as a whole, and announced once.
func ExampleSet_Update() {
	prompts := registry.New(registry.Options[prompt]{
		Name: func(p prompt) string { return p.Name },
	})
	_ = prompts.Add(prompt{"a", "1"}, prompt{"b", "1"}, prompt{"c", "1"})
	defer prompts.OnChange(func(registry.Change) { fmt.Println("changed") })()

	err := prompts.Update(func(b *registry.Batch[prompt]) error {
		b.RemoveName("b")
		b.Set(prompt{"a", "2"})
		return b.Add(prompt{"d", "2"})
	})
	fmt.Println(err, prompts.Snapshot().Items())
	// Output:
	// changed
	// <nil> [{a 2} {c 1} {d 2}]
}

// Replace keeps what is equal where it is.
func ExampleSet_Replace() {
	prompts := registry.New(registry.Options[prompt]{
		Name: func(p prompt) string { return p.Name },
	})
	_ = prompts.Add(prompt{"a", "1"}, prompt{"b", "1"}, prompt{"c", "1"})

	change, err := prompts.Replace([]prompt{{"new", "1"}, {"c", "1"}, {"a", "2"}})
	fmt.Printf("%+v %v\n", change, err)
	fmt.Println(prompts.Snapshot().Names())
	// Output:
	// {Added:1 Updated:1 Removed:1} <nil>
	// [a c new]
}

// A scope makes one event of many changes.
func ExampleSet_Defer() {
	prompts := registry.New(registry.Options[prompt]{
		Name: func(p prompt) string { return p.Name },
	})
	defer prompts.OnChange(func(c registry.Change) { fmt.Println("added", c.Added) })()

	end := prompts.Defer()
	defer end()
	for i := range 16 {
		_ = prompts.Add(prompt{Name: fmt.Sprint("prompt", i)})
	}
	fmt.Println("done")
	// Output:
	// done
	// added 16
}

// A page goes on after the last ordinal of the one before, whatever was
// removed or added since.
func ExampleSnapshot_After() {
	prompts := registry.New(registry.Options[prompt]{
		Name: func(p prompt) string { return p.Name },
	})
	_ = prompts.Add(prompt{Name: "a"}, prompt{Name: "b"}, prompt{Name: "c"})
	last := prompts.Snapshot().At(1).Ordinal // the first page ended with b

	prompts.RemoveName("a")
	prompts.RemoveName("b")
	snap := prompts.Snapshot()
	for i := snap.After(last); i < snap.Len(); i++ {
		fmt.Println(snap.At(i).Name)
	}
	// Output:
	// c
}
