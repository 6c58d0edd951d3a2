package registry

import (
	"math/bits"
	"slices"
)

const (
	hashBits  = 64
	slotBits  = 4 // of the hash, used up by each level
	slotCount = 1 << slotBits
)

// node is a persistent hash trie from keys to items: a change copies the
// nodes on its path, four for 100,000 items, and shares the others, so old
// roots stay what they were. A nil node is an empty trie.
//
// Below the last bit of the hash a node is a bucket: a plain list of items
// whose hashes are equal.
type node[T any] struct {
	used uint16   // slots that have a ref, a bit each; 0 in a bucket
	refs []ref[T] // in order of slots
}

// ref is what a slot holds: an item, or the node below.
type ref[T any] struct {
	item *item[T]
	sub  *node[T]
}

// slot returns the bit for hash at the level that begins at shift, and the
// place in n.refs where its ref is or would be.
func (n *node[T]) slot(hash uint64, shift uint) (bit uint16, place int) {
	bit = 1 << (hash >> shift % slotCount)
	return bit, bits.OnesCount16(n.used & (bit - 1))
}

// inBucket returns the place of key in a bucket, or -1.
func (n *node[T]) inBucket(key string) int {
	return slices.IndexFunc(n.refs, func(r ref[T]) bool { return r.item.key == key })
}

// get returns the item under key, or nil.
func (n *node[T]) get(key string, hash uint64) *item[T] {
	for shift := uint(0); n != nil && shift < hashBits; shift += slotBits {
		bit, place := n.slot(hash, shift)
		if n.used&bit == 0 {
			return nil
		}
		r := n.refs[place]
		if r.item != nil {
			if r.item.key != key {
				return nil
			}
			return r.item
		}
		n = r.sub
	}
	if n == nil {
		return nil
	}
	if i := n.inBucket(key); i >= 0 {
		return n.refs[i].item
	}
	return nil
}

// put returns a trie that has it in place of whatever was under its key.
// The root is at shift 0.
func (n *node[T]) put(it *item[T], shift uint) *node[T] {
	if n == nil {
		n = new(node[T])
	}
	if shift >= hashBits {
		if i := n.inBucket(it.key); i >= 0 {
			return n.with(i, ref[T]{item: it})
		}
		return &node[T]{refs: append(slices.Clip(n.refs), ref[T]{item: it})}
	}
	bit, place := n.slot(it.hash, shift)
	if n.used&bit == 0 {
		refs := make([]ref[T], len(n.refs)+1)
		copy(refs, n.refs[:place])
		refs[place] = ref[T]{item: it}
		copy(refs[place+1:], n.refs[place:])
		return &node[T]{used: n.used | bit, refs: refs}
	}
	switch r := n.refs[place]; {
	case r.sub != nil:
		return n.with(place, ref[T]{sub: r.sub.put(it, shift+slotBits)})
	case r.item.key == it.key:
		return n.with(place, ref[T]{item: it})
	default:
		var sub *node[T]
		sub = sub.put(r.item, shift+slotBits)
		return n.with(place, ref[T]{sub: sub.put(it, shift+slotBits)})
	}
}

// remove returns a trie without it, which must be in n.
func (n *node[T]) remove(it *item[T], shift uint) *node[T] {
	if shift >= hashBits {
		return n.without(n.inBucket(it.key), 0)
	}
	bit, place := n.slot(it.hash, shift)
	r := n.refs[place]
	if r.item != nil {
		return n.without(place, bit)
	}
	// Below the root a node has at least two items under it, so one is left.
	sub := r.sub.remove(it, shift+slotBits)
	if len(sub.refs) == 1 && sub.refs[0].item != nil {
		return n.with(place, sub.refs[0])
	}
	return n.with(place, ref[T]{sub: sub})
}

// with returns a copy of n that has r at place.
func (n *node[T]) with(place int, r ref[T]) *node[T] {
	refs := slices.Clone(n.refs)
	refs[place] = r
	return &node[T]{used: n.used, refs: refs}
}

// without returns a copy of n that lacks the ref at place, whose bit is given
// (0 in a bucket); nil if it was the only one, which only a root can have.
func (n *node[T]) without(place int, bit uint16) *node[T] {
	if len(n.refs) == 1 {
		return nil
	}
	refs := make([]ref[T], len(n.refs)-1)
	copy(refs, n.refs[:place])
	copy(refs[place:], n.refs[place+1:])
	return &node[T]{used: n.used &^ bit, refs: refs}
}
