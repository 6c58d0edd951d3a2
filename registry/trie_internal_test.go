package registry

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// checkTrie compares a trie with a map, and its shape with what is promised:
// no empty nodes, and no node below the root for a single item.
func checkTrie(root *node[int], want map[string]*item[int]) error {
	for k, it := range want {
		if got := root.get(k, it.hash); got != it {
			return fmt.Errorf("get(%s) = %v, want %v", k, got, it)
		}
	}
	count := 0
	var walk func(n *node[int], depth int) error
	walk = func(n *node[int], depth int) error {
		if len(n.refs) == 0 || depth > 0 && len(n.refs) == 1 && n.refs[0].item != nil {
			return fmt.Errorf("a node with %d items at depth %d", len(n.refs), depth)
		}
		for _, r := range n.refs {
			if r.item != nil {
				count++
			} else if err := walk(r.sub, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	if root != nil {
		if err := walk(root, 0); err != nil {
			return err
		}
	}
	if count != len(want) {
		return fmt.Errorf("%d items, want %d", count, len(want))
	}
	return nil
}

// TestTrie puts and removes at random, with hashes from good to all equal,
// and looks at old roots again in the end.
func TestTrie(t *testing.T) {
	for name, hashOf := range map[string]func(i int) uint64{
		"spread":           func(i int) uint64 { return uint64(i) * 0x9E3779B97F4A7C15 },
		"few low bits":     func(i int) uint64 { return uint64(i % 8) },
		"high bits only":   func(i int) uint64 { return uint64(i) << 58 },
		"all equal":        func(int) uint64 { return 0xDEADBEEF },
		"equal but for 60": func(i int) uint64 { return uint64(i%2) << 60 },
	} {
		t.Run(name, func(t *testing.T) {
			type kept struct {
				root *node[int]
				want map[string]*item[int]
			}
			var old []kept
			var root *node[int]
			want := make(map[string]*item[int])
			rnd := rand.New(rand.NewPCG(1, 2))
			for step := range 2000 {
				i := rnd.IntN(60)
				k := fmt.Sprint("key", i)
				// Growing and shrinking by turns.
				if it := want[k]; it != nil && rnd.IntN(400) < step%400 {
					root = root.remove(it, 0)
					delete(want, k)
				} else {
					it := &item[int]{key: k, hash: hashOf(i), Entry: Entry[int]{Value: step}}
					before := root
					root = root.put(it, 0)
					want[k] = it
					// Another future of the same root, which is given up.
					before.put(&item[int]{key: "decoy", hash: it.hash}, 0)
				}
				if got := root.get("nobody", hashOf(i)); got != nil {
					t.Fatalf("step %d: get(nobody) = %v", step, got)
				}
				if got := root.get("decoy", hashOf(i)); got != nil {
					t.Fatalf("step %d: get(decoy) = %v", step, got)
				}
				if step%50 == 0 {
					old = append(old, kept{root, maps.Clone(want)})
				}
			}
			for _, it := range maps.Clone(want) {
				if err := checkTrie(root, want); err != nil {
					t.Fatal(err)
				}
				root = root.remove(it, 0)
				delete(want, it.key)
			}
			if root != nil {
				t.Errorf("the empty trie is %v", root)
			}
			for i, o := range old {
				if err := checkTrie(o.root, o.want); err != nil {
					t.Errorf("root %d: %v", i, err)
				}
			}
		})
	}
}
