package mcp

import (
	"bytes"
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
	// sessions is the form for versions without free-form schemas; nil: the
	// same.
	sessions jsontext.Value
}

// ParseDefinition reads one item of a list. The error says why the protocol's
// schema refuses the item, which makes strict clients refuse the whole list
// that it is in; Key is set with it if the item has one.
func ParseDefinition(kind Kind, raw jsontext.Value) (Definition, error) {
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return Definition{Kind: kind}, err
	}
	d := Definition{Kind: kind, Object: obj}
	d.Key, _ = obj.Text(kind.Key())
	if err := definitionShapes[kind].check(obj); err != nil {
		return d, err
	}
	if d.Key == "" {
		return d, fmt.Errorf("%s is empty", kind.Key())
	}
	if kind == Tools {
		return d, d.readSchemas()
	}
	return d, nil
}

// readSchemas checks the schemas of a tool and makes its form for sessions.
func (d *Definition) readSchemas() error {
	input, err := jsonrpc.ParseObject(d.Object.Get("inputSchema"))
	if err != nil {
		return fmt.Errorf("inputSchema: %w", err)
	}
	if t, _ := input.Text("type"); t != "object" {
		return errors.New(`inputSchema has no "type": "object"`)
	}
	var edits []Edit
	if out := sessionSchema(input); !bytes.Equal(out, input.Raw) {
		edits = append(edits, Edit{"inputSchema", out})
	}
	if raw := d.Object.Get("outputSchema"); raw != nil {
		output, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return fmt.Errorf("outputSchema: %w", err)
		}
		edit := Edit{Name: "outputSchema"}
		if t, _ := output.Text("type"); t == "object" {
			edit.Value = sessionSchema(output)
		}
		if !bytes.Equal(edit.Value, output.Raw) {
			edits = append(edits, edit)
		}
	}
	if edits != nil {
		d.sessions = Splice(d.Object, edits...)
	}
	return nil
}

// For returns the definition as a client of a version may see it: as it came,
// but for a tool whose schemas are not what versions before 2026-07-28 allow.
// There an outputSchema that is not one of an object is left out, and boolean
// schemas of properties are spelled as objects.
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
		sessions, _ := jsonrpc.ParseObject(d.sessions)
		out.sessions = Splice(sessions, edit)
	}
	return out
}
