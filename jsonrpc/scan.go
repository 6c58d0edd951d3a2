package jsonrpc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deeply arrays and objects of a message may nest.
const MaxDepth = 512

var (
	errNotObject = errors.New("not a JSON object")
	errNotArray  = errors.New("not a JSON array")
	errTrailing  = errors.New("more bytes behind the JSON value")
	errDepth     = fmt.Errorf("nested more than %d levels deep", MaxDepth)
	errMembers   = fmt.Errorf("more than %d members", maxMembers)
)

// duplicateError is a name that stands twice in one object.
type duplicateError struct{ name string }

func (e *duplicateError) Error() string { return fmt.Sprintf("member %q stands twice", e.name) }

// scanner walks one message. Its decoder checks syntax and UTF-8 and leaves
// the question of duplicates to us: we ask it only of the levels that we read.
type scanner struct {
	data       []byte
	buf        bytes.Buffer
	dec        jsontext.Decoder
	start, end int // span of the object read last
}

var scanners = sync.Pool{New: func() any { return new(scanner) }}

func newScanner(data []byte) *scanner {
	s := scanners.Get().(*scanner)
	s.data = data
	s.buf = *bytes.NewBuffer(data)
	s.dec.Reset(&s.buf, jsontext.AllowDuplicateNames(true))
	return s
}

func (s *scanner) release() {
	s.data = nil
	s.buf = bytes.Buffer{}
	s.dec.Reset(&s.buf)
	scanners.Put(s)
}

// value skips one value and returns its span.
func (s *scanner) value() (start, end int, err error) {
	v, err := s.dec.ReadValue()
	if err != nil {
		return 0, 0, err
	}
	end = int(s.dec.InputOffset())
	return end - len(v), end, nil
}

// object indexes the members of the object that comes next. A duplicate name
// is reported after the whole object was read, so that the caller can go on.
func (s *scanner) object(unique bool) (Object, error) {
	if _, err := s.dec.ReadToken(); err != nil {
		return Object{}, err
	}
	base := int(s.dec.InputOffset()) - 1
	obj := Object{members: make([]Member, 0, 8)}
	var semantic error
	for s.dec.PeekKind() != '}' {
		key, keyEnd, err := s.value()
		if err != nil {
			return Object{}, err
		}
		start, end, err := s.value()
		if err != nil {
			return Object{}, err
		}
		if len(obj.members) == maxMembers {
			semantic = errMembers
			continue
		}
		m := Member{Key: key - base, KeyEnd: keyEnd - base, Start: start - base, End: end - base}
		if name := s.data[key+1 : keyEnd-1]; bytes.IndexByte(name, '\\') >= 0 || len(name) == 0 {
			m.name = unescape(s.data[key:keyEnd])
		}
		obj.members = append(obj.members, m)
	}
	if _, err := s.dec.ReadToken(); err != nil {
		return Object{}, err
	}
	s.start, s.end = base, int(s.dec.InputOffset())
	obj.Raw = s.data[s.start:s.end:s.end]
	if semantic == nil && unique {
		semantic = obj.duplicate()
	}
	return obj, semantic
}

// unescape decodes a quoted name. An empty name becomes one that no reader
// asks for, since "" marks a name that stands in the bytes as it is.
func unescape(quoted []byte) string {
	s, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil || len(s) == 0 {
		return string(quoted)
	}
	return string(s)
}

func (o Object) duplicate() error {
	if len(o.members) > 16 {
		seen := make(map[string]struct{}, len(o.members))
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
		name := o.name(i)
		for j := range i {
			if o.is(&o.members[j], name) {
				return &duplicateError{name}
			}
		}
	}
	return nil
}

// atEnd reports whether only white space is left.
func (s *scanner) atEnd() bool {
	_, err := s.dec.ReadToken()
	return errors.Is(err, io.EOF)
}

// checkDepth refuses nesting beyond MaxDepth. Counting brackets is enough for
// almost every message; only one with many of them is walked.
func checkDepth(data []byte) error {
	if bytes.Count(data, []byte{'['})+bytes.Count(data, []byte{'{'}) <= MaxDepth {
		return nil
	}
	depth, inString := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case inString:
			if c == '\\' {
				i++
			} else if c == '"' {
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > MaxDepth {
				return errDepth
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
