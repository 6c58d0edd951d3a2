package server

import (
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// lister is a list of any type of thing.
type lister interface {
	fingerprint(v mcp.Version) uint64
	first(v mcp.Version) jsontext.Value
	behind(v mcp.Version, at mcp.Cursor) jsontext.Value
}

// list serves one set of a Memory as a list. What it made of a snapshot it keeps.
type list[T any] struct {
	memory *Memory
	kind   mcp.Kind
	set    *registry.Set[T]
	item   func(T) *item
	made   [2]atomic.Pointer[made[T]] // for stateless versions, and those with sessions
}

// made is what was made of a snapshot.
type made[T any] struct {
	of          *registry.Snapshot[T]
	fingerprint uint64
	page        jsontext.Value // the first
}

func newList[T any](m *Memory, k mcp.Kind, set *registry.Set[T], of func(T) *item) lister {
	return &list[T]{memory: m, kind: k, set: set, item: of}
}

func (l *list[T]) fingerprint(v mcp.Version) uint64 { return l.current(v).fingerprint }

func (l *list[T]) first(v mcp.Version) jsontext.Value { return l.current(v).page }

func (l *list[T]) behind(v mcp.Version, at mcp.Cursor) jsontext.Value {
	return l.encode(v, l.set.Snapshot(), at)
}

// current returns what is made of the set as it is now.
func (l *list[T]) current(v mcp.Version) *made[T] {
	s := l.set.Snapshot()
	slot := &l.made[1]
	if v.Stateless() {
		slot = &l.made[0]
	}
	if m := slot.Load(); m != nil && m.of == s {
		return m
	}
	high := uint64(0)
	if s.Len() > 0 {
		high = s.At(s.Len() - 1).Ordinal
	}
	m := &made[T]{of: s, page: l.encode(v, s, mcp.Cursor{High: high})}
	m.fingerprint = mcp.Fingerprint(func(yield func(jsontext.Value) bool) {
		for _, e := range s.All() {
			if !yield(l.item(e.Value).definition.For(v)) {
				return
			}
		}
	})
	slot.Store(m)
	return m
}

// encode writes the page behind a position.
func (l *list[T]) encode(v mcp.Version, s *registry.Snapshot[T], at mcp.Cursor) jsontext.Value {
	p := mcp.Page{Kind: l.kind, Hints: l.memory.opts.Hints, Server: l.memory.info.Implementation}
	last := at.Ordinal
	for i := s.After(at.Ordinal); i < s.Len(); i++ {
		e := s.At(i)
		if e.Ordinal > at.High {
			break
		}
		if !p.Add(l.item(e.Value).definition.For(v), l.memory.opts.Page) {
			p.Next = mcp.Cursor{Kind: l.kind, High: at.High, Ordinal: last}.Encode()
			break
		}
		last = e.Ordinal
	}
	return p.Append(make([]byte, 0, p.Size()), v)
}
