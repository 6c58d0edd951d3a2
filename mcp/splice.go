package mcp

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// Edit is a change to one top-level member of an object: a new value, or with a
// nil Value its removal.
type Edit struct {
	Name  string
	Value jsontext.Value
}

// Splice returns the object's bytes with the edits made and every other byte as
// it was. A member that is not there is added behind the last one. Without a
// change to make it returns the very bytes of o. A zero o counts as {}; a value
// that is no object cannot be edited and is returned as it is. No two edits may
// have the same name.
func Splice(o jsonrpc.Object, edits ...Edit) jsontext.Value {
	out, _ := spliceTo(nil, o, edits)
	return out
}

// SpliceInto is Splice into the memory of buf, if that is not nil: what is
// returned may lie there, and buf is as long as that needed.
func SpliceInto(buf *[]byte, o jsonrpc.Object, edits ...Edit) jsontext.Value {
	if buf == nil {
		return Splice(o, edits...)
	}
	out, spliced := spliceTo((*buf)[:0], o, edits)
	if spliced {
		*buf = out
	}
	return out
}

// spliceTo appends the edited object to dst, which is empty; false if there was
// nothing to edit and it returns the very bytes of o.
func spliceTo(dst []byte, o jsonrpc.Object, edits []Edit) (jsontext.Value, bool) {
	if o.IsZero() {
		o = jsonrpc.Object{Raw: jsontext.Value("{}")}
	}
	if o.Len() == 0 && !isEmpty(o.Raw) {
		return o.Raw, false
	}
	size, changes := len(o.Raw), false
	for _, e := range edits {
		size += len(e.Name) + len(e.Value) + 4
		changes = changes || e.Value != nil || o.Find(e.Name) >= 0
	}
	if !changes {
		return o.Raw, false
	}
	if cap(dst) < size {
		dst = make([]byte, 0, size)
	}
	s := splice{src: o, dst: dst, edits: edits}
	return s.run(), true
}

// isEmpty reports whether a value is an object without members.
func isEmpty(v jsontext.Value) bool {
	return len(v) >= 2 && v[0] == '{' && len(bytes.TrimLeft(v[1:], " \t\r\n")) == 1
}

// splice is the writing of one spliced object.
type splice struct {
	src   jsonrpc.Object
	dst   []byte
	at    int // src.Raw[:at] is done with
	kept  int // members written so far
	edits []Edit
}

func (s *splice) run() jsontext.Value {
	n := s.src.Len()
	for i := range n {
		m := s.src.Member(i)
		e := s.edit(i)
		switch {
		case e == nil:
			s.kept++
		case e.Value != nil:
			s.copyTo(m.Start)
			s.dst = append(s.dst, e.Value...)
			s.at = m.End
			s.kept++
		case s.kept > 0: // with the comma before it
			s.copyTo(s.src.Member(i - 1).End)
			s.at = m.End
		case i+1 < n: // with the comma behind it
			s.copyTo(m.Key)
			s.at = s.src.Member(i + 1).Key
		default:
			s.copyTo(m.Key)
			s.at = m.End
		}
	}
	if n > 0 {
		s.copyTo(s.src.Member(n - 1).End)
	} else {
		s.copyTo(1)
	}
	for _, e := range s.edits {
		if e.Value != nil && s.src.Find(e.Name) < 0 {
			s.add(e)
		}
	}
	return append(s.dst, s.src.Raw[s.at:]...)
}

// copyTo copies what lies between the last change and an offset, which may lie
// before it if the bytes there were cut.
func (s *splice) copyTo(offset int) {
	if offset > s.at {
		s.dst = append(s.dst, s.src.Raw[s.at:offset]...)
		s.at = offset
	}
}

func (s *splice) add(e Edit) {
	if s.kept > 0 {
		s.dst = append(s.dst, ',')
	}
	s.kept++
	s.dst = jsonrpc.AppendString(s.dst, e.Name)
	s.dst = append(s.dst, ':')
	s.dst = append(s.dst, e.Value...)
}

// edit returns the edit for the i-th member. Of members that share a name the
// last is replaced and all are removed.
func (s *splice) edit(i int) *Edit {
	for j := range s.edits {
		e := &s.edits[j]
		if s.src.Is(i, e.Name) && (e.Value == nil || s.src.Find(e.Name) == i) {
			return e
		}
	}
	return nil
}

// String returns s as a JSON string.
func String(s string) jsontext.Value { return jsonrpc.AppendString(nil, s) }
