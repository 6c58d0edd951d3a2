package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	// maxMembers is how many top-level members an Object may have: more
	// than a message of the protocol has, or a tool has parameters, few
	// enough that an index of them is cheap.
	maxMembers = 1 << 16

	// maxMessage is the length of what can be indexed.
	maxMessage = 1<<31 - 1
)

var (
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
	errDepth     = fmt.Errorf("nested more than %d levels deep", MaxDepth)
	errMembers   = fmt.Errorf("more than %d members", maxMembers)
	errLength    = fmt.Errorf("longer than %d bytes", maxMessage)
)

// Object is a JSON value as it came, with an index of its top-level members if
// it is an object. The zero Object is an absent value.
type Object struct {
	Raw     jsontext.Value // never written to
	members []member
	meta    *Object // the member _meta, if it is an object and was indexed with this one
}

// Member says where one member of an Object lies in its Raw bytes.
type Member struct {
	Key        int // offset of the name's opening quote
	KeyEnd     int // offset behind its closing quote
	Start, End int // the value
}

// member is a Member in the index of an Object.
type member struct {
	key, keyEnd, start, end int32
	escaped                 bool // the name has escape sequences
}

// index reads the object that starts at i, itself the depth-th level.
func (s *scanner) index(i, depth int) (Object, int) {
	var few [8]member
	found := few[:0]
	base := i
	i, more := s.open(i, '}')
	for more {
		end, v := s.name(i)
		if v < 0 {
			return Object{}, v
		}
		stop := s.value(v, depth)
		if stop < 0 {
			return Object{}, stop
		}
		if len(found) <= maxMembers { // one more tells that there are too many
			escaped := bytes.IndexByte(s.data[i:end], '\\') >= 0
			found = append(found, member{int32(i - base), int32(end - base), int32(v - base), int32(stop - base), escaped})
		}
		i, more = s.next(stop, '}')
	}
	if i < 0 {
		return Object{}, i
	}
	return Object{Raw: s.data[base:i:i], members: append([]member(nil), found...)}, i
}

// ParseObject checks one JSON object and indexes its members. It refuses
// other values, names that stand twice, invalid UTF-8, nesting beyond MaxDepth,
// and trailing bytes.
func ParseObject(v jsontext.Value) (Object, error) {
	if len(v) > maxMessage {
		return Object{}, errLength
	}
	s := scanner{data: v}
	i := s.space(0)
	if !s.is(i, '{') {
		return Object{}, errNotObject
	}
	obj, end := s.index(i, 1)
	if end >= 0 {
		end = s.end(end)
	}
	switch {
	case end < 0:
		return Object{}, s.err
	case s.deep:
		return Object{}, errDepth
	}
	if err := obj.check(); err != nil {
		return Object{}, err
	}
	return obj, nil
}

// duplicateError is a name that stands twice in one object.
type duplicateError struct{ name string }

func (e *duplicateError) Error() string { return fmt.Sprintf("member %q stands twice", e.name) }

func (o Object) tooMany() bool { return len(o.members) > maxMembers }

// check refuses too many members, and names that stand twice.
func (o Object) check() error {
	switch n := len(o.members); {
	case n > maxMembers:
		return errMembers
	case n > 16:
		seen := make(map[string]struct{}, n)
		for i := range o.members {
			name := o.name(i)
			if _, ok := seen[name]; ok {
				return &duplicateError{name}
			}
			seen[name] = struct{}{}
		}
		return nil
	}
	for i := 1; i < len(o.members); i++ {
		for j := range i {
			if o.same(i, j) {
				return &duplicateError{o.name(i)}
			}
		}
	}
	return nil
}

// same reports whether two members have the same name.
func (o Object) same(i, j int) bool {
	a, b := &o.members[i], &o.members[j]
	if a.escaped || b.escaped {
		return o.name(i) == o.name(j)
	}
	return bytes.Equal(o.Raw[a.key:a.keyEnd], o.Raw[b.key:b.keyEnd])
}

// IsObject reports whether the value is a JSON object.
func (o Object) IsObject() bool { return len(o.Raw) > 0 && o.Raw[0] == '{' }

// IsZero reports whether there is no value.
func (o Object) IsZero() bool { return len(o.Raw) == 0 }

// Get returns the raw value of a member, nil if there is none. Of members that
// share a name, which only a result can have, it returns the last.
func (o Object) Get(name string) jsontext.Value {
	if i := o.Find(name); i >= 0 {
		return o.value(i)
	}
	return nil
}

// value returns the i-th value. What is appended to it does not end in Raw.
func (o Object) value(i int) jsontext.Value {
	m := &o.members[i]
	return o.Raw[m.start:m.end:m.end]
}

// metaMember is the member of params and results that has what is said about
// them: MCP's own fields, and those of whoever passes a message on.
const metaMember = "_meta"

// Meta returns the member _meta, indexed. Parse has done that already for params;
// elsewhere it costs a reading of that member. The zero Object means that there is
// none, or null. The error is about one that is no object, or that has a name twice.
func (o Object) Meta() (Object, error) {
	if o.meta != nil {
		return *o.meta, nil
	}
	raw := o.Get(metaMember)
	if raw == nil || raw.Kind() == 'n' {
		return Object{}, nil
	}
	return ParseObject(raw)
}

// Find returns the position of a member, -1 if there is none; of members that
// share a name, the last.
func (o Object) Find(name string) int {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.Is(i, name) {
			return i
		}
	}
	return -1
}

// Is reports whether the i-th member has this name.
func (o Object) Is(i int, name string) bool {
	m := &o.members[i]
	if m.escaped {
		return o.name(i) == name
	}
	return string(o.Raw[m.key+1:m.keyEnd-1]) == name
}

// Len returns the number of members.
func (o Object) Len() int { return len(o.members) }

// Member returns the member at a position.
func (o Object) Member(i int) Member {
	m := &o.members[i]
	return Member{int(m.key), int(m.keyEnd), int(m.start), int(m.end)}
}

// All yields the members' names and raw values in the order they stand in.
func (o Object) All() iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		for i := range o.members {
			if !yield(o.name(i), o.value(i)) {
				return
			}
		}
	}
}

func (o Object) name(i int) string {
	m := &o.members[i]
	if m.escaped {
		return unescape(o.Raw[m.key:m.keyEnd])
	}
	return string(o.Raw[m.key+1 : m.keyEnd-1])
}

// Text returns the decoded value of a member that is a JSON string, and whether
// there is one.
func (o Object) Text(name string) (string, bool) { return Text(o.Get(name)) }

// Text decodes a JSON string; false if v is not one.
func Text(v jsontext.Value) (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err == nil
}

// TextIs reports whether v is a JSON string that decodes to s.
func TextIs(v jsontext.Value, s string) bool {
	if len(v) == len(s)+2 && v[0] == '"' && string(v[1:len(v)-1]) == s && strings.IndexByte(s, '\\') < 0 {
		return true
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return false
	}
	text, ok := Text(v)
	return ok && text == s
}

// Elements returns the raw elements of a JSON array, as slices of its bytes.
func Elements(array jsontext.Value) ([]jsontext.Value, error) {
	s := scanner{data: array}
	i := s.space(0)
	if !s.is(i, '[') {
		return nil, errNotArray
	}
	var out []jsontext.Value
	i, more := s.open(i, ']')
	for more {
		end := s.value(i, 1)
		if end < 0 {
			return nil, s.err
		}
		out = append(out, array[i:end:end])
		i, more = s.next(end, ']')
	}
	if i < 0 || s.end(i) < 0 {
		return nil, s.err
	}
	if s.deep {
		return nil, errDepth
	}
	return out, nil
}
