package mcp

import (
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// Definition is one item of a list as its server wrote it.
type Definition struct {
	Kind   Kind
	Key    string // its name, uri or uriTemplate
	Object jsonrpc.Object
	// sessions is the form for versions without free-form outputSchema; nil:
	// the same.
	sessions jsontext.Value
}

// memberType is what the schema says of one member of a definition.
type memberType struct {
	name     string
	kind     jsontext.Kind // '{', '[', '"', '0', 't' for either boolean
	required bool
}

// definitionTypes has, by kind, the members whose wrong type makes strict
// clients refuse the whole list (schema 2026-07-28 and 2025-11-25).
var definitionTypes = [...][]memberType{
	Tools: {
		{"name", '"', true},
		{"inputSchema", '{', true},
		{"title", '"', false},
		{"description", '"', false},
		{"annotations", '{', false},
		{"icons", '[', false},
		{"_meta", '{', false},
	},
	Prompts: {
		{"name", '"', true},
		{"title", '"', false},
		{"description", '"', false},
		{"arguments", '[', false},
		{"icons", '[', false},
		{"_meta", '{', false},
	},
	Resources: {
		{"uri", '"', true},
		{"name", '"', true},
		{"title", '"', false},
		{"description", '"', false},
		{"mimeType", '"', false},
		{"annotations", '{', false},
		{"size", '0', false},
		{"icons", '[', false},
		{"_meta", '{', false},
	},
	Templates: {
		{"uriTemplate", '"', true},
		{"name", '"', true},
		{"title", '"', false},
		{"description", '"', false},
		{"mimeType", '"', false},
		{"annotations", '{', false},
		{"icons", '[', false},
		{"_meta", '{', false},
	},
}

// ParseDefinition reads one item of a list. The error says why the protocol's
// schema refuses the item; Key is set with it if the item has one.
func ParseDefinition(kind Kind, raw jsontext.Value) (Definition, error) {
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return Definition{Kind: kind}, err
	}
	d := Definition{Kind: kind, Object: obj}
	d.Key, _ = obj.Text(kind.Key())
	for _, m := range definitionTypes[kind] {
		if err := m.check(obj); err != nil {
			return d, err
		}
	}
	if d.Key == "" {
		return d, fmt.Errorf("%s is empty", kind.Key())
	}
	switch kind {
	case Tools:
		return d, d.checkTool()
	case Prompts:
		return d, d.checkArguments()
	}
	return d, nil
}

func (m memberType) check(obj jsonrpc.Object) error {
	v := obj.Get(m.name)
	if v == nil {
		if m.required {
			return fmt.Errorf("has no %s", m.name)
		}
		return nil
	}
	if v.Kind() != m.kind {
		return fmt.Errorf("%s is %s, must be %s", m.name, kindName(v.Kind()), kindName(m.kind))
	}
	return nil
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

func (d *Definition) checkTool() error {
	input, err := jsonrpc.ParseObject(d.Object.Get("inputSchema"))
	if err != nil {
		return fmt.Errorf("inputSchema: %w", err)
	}
	if t, _ := input.Text("type"); t != "object" {
		return errors.New(`inputSchema has no "type": "object"`)
	}
	out := d.Object.Get("outputSchema")
	if out == nil {
		return nil
	}
	if out.Kind() != '{' {
		return fmt.Errorf("outputSchema is %s, must be an object", kindName(out.Kind()))
	}
	schema, err := jsonrpc.ParseObject(out)
	if err != nil {
		return fmt.Errorf("outputSchema: %w", err)
	}
	if t, _ := schema.Text("type"); t != "object" {
		d.sessions = Splice(d.Object, Edit{Name: "outputSchema"})
	}
	return nil
}

func (d *Definition) checkArguments() error {
	args := d.Object.Get("arguments")
	if args == nil {
		return nil
	}
	items, err := jsonrpc.Elements(args)
	if err != nil {
		return fmt.Errorf("arguments: %w", err)
	}
	for i, item := range items {
		obj, err := jsonrpc.ParseObject(item)
		if err == nil {
			err = memberType{"name", '"', true}.check(obj)
		}
		if err == nil {
			err = memberType{"description", '"', false}.check(obj)
		}
		if err != nil {
			return fmt.Errorf("arguments[%d]: %w", i, err)
		}
	}
	return nil
}

// For returns the definition as a client of a version may see it: as it came,
// but that an outputSchema which is not one of an object is left out for
// versions that allow no other.
func (d *Definition) For(v Version) jsontext.Value {
	if d.sessions != nil && !v.HasAnyOutput() {
		return d.sessions
	}
	return d.Object.Raw
}

// Renamed returns the definition under another key, with nothing else changed.
func (d Definition) Renamed(key string) Definition {
	edit := Edit{Name: d.Kind.Key(), Value: String(key)}
	raw := Splice(d.Object, edit)
	obj, _ := jsonrpc.ParseObject(raw) // the splice of a valid object
	out := Definition{Kind: d.Kind, Key: key, Object: obj}
	if d.sessions != nil {
		out.sessions = Splice(obj, Edit{Name: "outputSchema"})
	}
	return out
}
