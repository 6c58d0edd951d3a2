package jsonrpc

import (
	"iter"

	"github.com/go-json-experiment/json/jsontext"
)

// maxMembers is how many top-level members an Object may have: far more than
// any message of the protocol, few enough that an index of them is cheap.
const maxMembers = 1024

// Object is a JSON value as it came, with an index of its top-level members if
// it is an object. The zero Object is an absent value.
type Object struct {
	Raw     jsontext.Value // never written to
	members []Member
}

// Member says where one member of an Object lies in its Raw bytes.
type Member struct {
	Key        int // offset of the name's opening quote
	KeyEnd     int // offset behind its closing quote
	Start, End int // the value
	name       string
}

// ParseObject checks one JSON object and indexes its members. It refuses
// other values, names that stand twice, invalid UTF-8 and trailing bytes.
func ParseObject(v jsontext.Value) (Object, error) {
	s := newScanner(v)
	defer s.release()
	if s.dec.PeekKind() != '{' {
		return Object{}, errNotObject
	}
	obj, err := s.object(true)
	if err != nil {
		return Object{}, err
	}
	if !s.atEnd() {
		return Object{}, errTrailing
	}
	obj.Raw = v[s.start:s.end]
	return obj, nil
}

// IsObject reports whether the value is a JSON object.
func (o Object) IsObject() bool { return len(o.Raw) > 0 && o.Raw[0] == '{' }

// IsZero reports whether there is no value.
func (o Object) IsZero() bool { return len(o.Raw) == 0 }

// Get returns the raw value of a member, nil if there is none. Of members that
// share a name, which only a result can have, it returns the last.
func (o Object) Get(name string) jsontext.Value {
	if i := o.Find(name); i >= 0 {
		return o.Raw[o.members[i].Start:o.members[i].End]
	}
	return nil
}

// Find returns the position of a member, -1 if there is none.
func (o Object) Find(name string) int {
	for i := len(o.members) - 1; i >= 0; i-- {
		if o.is(&o.members[i], name) {
			return i
		}
	}
	return -1
}

func (o Object) is(m *Member, name string) bool {
	if m.name != "" {
		return m.name == name
	}
	return m.KeyEnd-m.Key-2 == len(name) && string(o.Raw[m.Key+1:m.KeyEnd-1]) == name
}

// Is reports whether the i-th member has this name.
func (o Object) Is(i int, name string) bool { return o.is(&o.members[i], name) }

// Len returns the number of members.
func (o Object) Len() int { return len(o.members) }

// Member returns the member at a position.
func (o Object) Member(i int) Member { return o.members[i] }

// All yields the members' names and raw values in the order they stand in.
func (o Object) All() iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		for i := range o.members {
			if !yield(o.name(i), o.Raw[o.members[i].Start:o.members[i].End]) {
				return
			}
		}
	}
}

func (o Object) name(i int) string {
	m := &o.members[i]
	if m.name != "" {
		return m.name
	}
	return string(o.Raw[m.Key+1 : m.KeyEnd-1])
}

// Text returns the decoded value of a member that is a JSON string, and whether
// there is one.
func (o Object) Text(name string) (string, bool) { return Text(o.Get(name)) }

// Text decodes a JSON string; false if v is not one.
func Text(v jsontext.Value) (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	for _, c := range v[1 : len(v)-1] {
		if c == '\\' {
			s, err := jsontext.AppendUnquote(nil, v)
			return string(s), err == nil
		}
	}
	return string(v[1 : len(v)-1]), true
}

// Elements returns the raw elements of a JSON array, as slices of its bytes.
func Elements(array jsontext.Value) ([]jsontext.Value, error) {
	s := newScanner(array)
	defer s.release()
	if s.dec.PeekKind() != '[' {
		return nil, errNotArray
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return nil, err
	}
	var out []jsontext.Value
	for s.dec.PeekKind() != ']' {
		start, end, err := s.value()
		if err != nil {
			return nil, err
		}
		out = append(out, array[start:end:end])
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return nil, err
	}
	if !s.atEnd() {
		return nil, errTrailing
	}
	return out, nil
}
