package mcp

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// shape is what the protocol's schema says of a value.
type shape struct {
	kind    jsontext.Kind // '{', '[', '"', '0', 't' for either boolean
	members memberShapes  // of an object; others are free
	items   *shape        // of an array; nil: free
	values  []string      // that a string may have; nil: any
}

type memberShapes []memberShape

// memberShape is a member of an object.
type memberShape struct {
	name     string
	required bool
	shape
}

var (
	aString  = shape{kind: '"'}
	aNumber  = shape{kind: '0'}
	aBoolean = shape{kind: 't'}
	anObject = shape{kind: '{'}

	icons = shape{kind: '[', items: &shape{kind: '{', members: memberShapes{
		{"src", true, aString},
		{"mimeType", false, aString},
		{"sizes", false, shape{kind: '[', items: &aString}},
		{"theme", false, shape{kind: '"', values: []string{"light", "dark"}}},
	}}}

	annotations = shape{kind: '{', members: memberShapes{
		{"audience", false, shape{kind: '[', items: &shape{kind: '"', values: []string{"user", "assistant"}}}},
		{"priority", false, aNumber},
		{"lastModified", false, aString},
	}}
)

// definitionShapes has, by kind, what makes strict clients refuse a whole list if
// it is not so in one item (schema 2026-07-28 and 2025-11-25). The schemas of
// tools are checked apart.
var definitionShapes = [...]memberShapes{
	Tools: {
		{"name", true, aString},
		{"inputSchema", true, anObject},
		{"outputSchema", false, anObject},
		{"title", false, aString},
		{"description", false, aString},
		{"annotations", false, shape{kind: '{', members: memberShapes{
			{"title", false, aString},
			{"readOnlyHint", false, aBoolean},
			{"destructiveHint", false, aBoolean},
			{"idempotentHint", false, aBoolean},
			{"openWorldHint", false, aBoolean},
		}}},
		{"execution", false, shape{kind: '{', members: memberShapes{
			{"taskSupport", false, shape{kind: '"', values: []string{"forbidden", "optional", "required"}}},
		}}},
		{"icons", false, icons},
		{"_meta", false, anObject},
	},
	Prompts: {
		{"name", true, aString},
		{"title", false, aString},
		{"description", false, aString},
		{"arguments", false, shape{kind: '[', items: &shape{kind: '{', members: memberShapes{
			{"name", true, aString},
			{"title", false, aString},
			{"description", false, aString},
			{"required", false, aBoolean},
		}}}},
		{"icons", false, icons},
		{"_meta", false, anObject},
	},
	Resources: {
		{"uri", true, aString},
		{"name", true, aString},
		{"title", false, aString},
		{"description", false, aString},
		{"mimeType", false, aString},
		{"annotations", false, annotations},
		{"size", false, aNumber},
		{"icons", false, icons},
		{"_meta", false, anObject},
	},
	Templates: {
		{"uriTemplate", true, aString},
		{"name", true, aString},
		{"title", false, aString},
		{"description", false, aString},
		{"mimeType", false, aString},
		{"annotations", false, annotations},
		{"icons", false, icons},
		{"_meta", false, anObject},
	},
}

// check says in which way v is not of the shape; where is what v is called.
func (s *shape) check(v jsontext.Value, where string) error {
	kind := v.Kind()
	if kind == 'f' {
		kind = 't'
	}
	if kind != s.kind {
		return fmt.Errorf("%s is %s, must be %s", where, kindName(kind), kindName(s.kind))
	}
	switch {
	case s.values != nil:
		if text, _ := jsonrpc.Text(v); !slices.Contains(s.values, text) {
			return fmt.Errorf("%s is %s, must be one of %q", where, v, s.values)
		}
	case s.members != nil:
		obj, err := jsonrpc.ParseObject(v)
		if err == nil {
			err = s.members.check(obj)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	case s.items != nil:
		return s.items.checkAll(v, where)
	}
	return nil
}

// checkAll checks the elements of an array.
func (s *shape) checkAll(array jsontext.Value, where string) error {
	elements, err := jsonrpc.Elements(array)
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	for i, v := range elements {
		if err := s.check(v, fmt.Sprintf("%s[%d]", where, i)); err != nil {
			return err
		}
	}
	return nil
}

// check says which member of an object is missing or not of its shape.
func (ms memberShapes) check(obj jsonrpc.Object) error {
	for i := range ms {
		m := &ms[i]
		v := obj.Get(m.name)
		if v == nil {
			if m.required {
				return fmt.Errorf("has no %s", m.name)
			}
			continue
		}
		if err := m.shape.check(v, m.name); err != nil {
			return err
		}
	}
	return nil
}

// TypeName says what type of JSON value v is, with its article, as messages want
// it: "an object"; "absent" for no value.
func TypeName(v jsontext.Value) string {
	if len(v) == 0 {
		return "absent"
	}
	return kindName(v.Kind())
}

func kindName(k jsontext.Kind) string {
	switch k {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return "a boolean"
	}
}

// sessionSchema returns a tool's schema as versions before 2026-07-28 allow it
// and strict clients of them check: properties are objects, and required has
// strings. What can be said in another way is; the rest is left out. Most
// schemas come back as they are.
func sessionSchema(schema jsonrpc.Object) jsontext.Value {
	var edits []Edit
	if v := schema.Get("$schema"); v != nil && v.Kind() != '"' {
		edits = append(edits, Edit{Name: "$schema"})
	}
	if v := schema.Get("required"); v != nil {
		if list := (shape{kind: '[', items: &aString}); list.check(v, "required") != nil {
			edits = append(edits, Edit{Name: "required"})
		}
	}
	if v := schema.Get("properties"); v != nil {
		if out := sessionProperties(v); !bytes.Equal(out, v) {
			edits = append(edits, Edit{"properties", out})
		}
	}
	return Splice(schema, edits...)
}

// sessionProperties spells boolean schemas as objects. It returns nil if v is not
// an object with one schema per name.
func sessionProperties(v jsontext.Value) jsontext.Value {
	obj, err := jsonrpc.ParseObject(v)
	if err != nil {
		return nil
	}
	var out jsontext.Value
	at := 0
	for i := range obj.Len() {
		m := obj.Member(i)
		schema := "{}" // true, or not a schema at all
		switch obj.Raw[m.Start] {
		case '{':
			continue
		case 'f':
			schema = `{"not":{}}`
		}
		out = append(append(out, obj.Raw[at:m.Start]...), schema...)
		at = m.End
	}
	if at == 0 {
		return obj.Raw
	}
	return append(out, obj.Raw[at:]...)
}
