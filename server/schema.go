package server

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const (
	// maxSchema is how many bytes a schema may have.
	maxSchema = 1 << 20
	// maxSteps is how many schemas may apply to one value, each counted as often
	// as it is reached.
	maxSteps = 10_000
)

// schema is a JSON schema as it is listed, and ready to check values.
type schema struct {
	raw   jsontext.Value
	check *jsonschema.Resolved
}

// schemaOf returns the schema that raw is, or with a nil raw that of a type.
func schemaOf[T any](raw jsontext.Value) (*schema, error) {
	if raw == nil {
		inferred, err := jsonschema.For[T](nil)
		if err != nil {
			return nil, err
		}
		if raw, err = inferred.MarshalJSON(); err != nil {
			return nil, err
		}
	}
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("longer than %d bytes", maxSchema)
	}
	if _, err := jsonrpc.ParseObject(raw); err != nil {
		return nil, err
	}
	parsed := new(jsonschema.Schema)
	if err := parsed.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	check, err := parsed.Resolve(nil) // without a loader nothing is fetched
	if err != nil {
		return nil, err
	}
	if err := checkSteps(parsed); err != nil {
		return nil, err
	}
	return &schema{raw: raw, check: check}, nil
}

// checkSteps refuses a schema whose parts refer to each other so that checking a
// small value would take long, or for ever.
func checkSteps(root *jsonschema.Schema) error {
	s := steps{root: root, of: make(map[*jsonschema.Schema]int)}
	var all func(*jsonschema.Schema) error
	all = func(sub *jsonschema.Schema) error {
		if sub == nil {
			return nil
		}
		if n, err := s.count(sub); err != nil || n > maxSteps {
			return cmp.Or(err, fmt.Errorf("takes more than %d steps to check one value", maxSteps))
		}
		for _, child := range children(sub) {
			if err := all(child); err != nil {
				return err
			}
		}
		return nil
	}
	return all(root)
}

// steps counts the schemas that apply to the same value as a schema does.
type steps struct {
	root *jsonschema.Schema
	of   map[*jsonschema.Schema]int // -1: being counted
}

func (s *steps) count(sub *jsonschema.Schema) (int, error) {
	if n, ok := s.of[sub]; ok {
		if n < 0 {
			return 0, errors.New("a $ref leads back to where it stands")
		}
		return n, nil
	}
	s.of[sub] = -1
	n := 1
	next := inPlace(sub)
	if sub.Ref != "" {
		target, err := s.target(sub.Ref)
		if err != nil {
			return 0, err
		}
		next = append(next, target)
	}
	if sub.DynamicRef != "" {
		return 0, fmt.Errorf("$dynamicRef %q is not followed", sub.DynamicRef)
	}
	for _, other := range next {
		m, err := s.count(other)
		if err != nil {
			return 0, err
		}
		n = min(n+m, math.MaxInt32)
	}
	s.of[sub] = n
	return n, nil
}

// target returns what a $ref refers to.
func (s *steps) target(ref string) (*jsonschema.Schema, error) {
	if ref == "#" {
		return s.root, nil
	}
	for prefix, defs := range map[string]map[string]*jsonschema.Schema{"#/$defs/": s.root.Defs, "#/definitions/": s.root.Definitions} {
		if name, ok := strings.CutPrefix(ref, prefix); ok && defs[name] != nil {
			return defs[name], nil
		}
	}
	return nil, fmt.Errorf("$ref %q is not followed: only those to # and to a name in $defs are", ref)
}

// inPlace returns the schemas in a schema that apply to the same value.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	out := append(append(append([]*jsonschema.Schema(nil), s.AllOf...), s.AnyOf...), s.OneOf...)
	for _, sub := range []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else} {
		if sub != nil {
			out = append(out, sub)
		}
	}
	for _, sub := range s.DependentSchemas {
		out = append(out, sub)
	}
	return out
}

// children returns all schemas that stand in a schema.
func children(s *jsonschema.Schema) []*jsonschema.Schema {
	out := append(append(inPlace(s), s.PrefixItems...), s.ItemsArray...)
	out = append(out, s.Items, s.AdditionalItems, s.Contains, s.UnevaluatedItems,
		s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties)
	for _, named := range []map[string]*jsonschema.Schema{s.Properties, s.PatternProperties, s.Defs, s.Definitions} {
		for _, sub := range named {
			out = append(out, sub)
		}
	}
	return out
}

// decode checks arguments and decodes them; nil ones count as {}. The error is for
// the model.
func decode[In any](s *schema, arguments jsontext.Value) (In, error) {
	var in In
	if arguments == nil {
		arguments = jsontext.Value("{}")
	}
	if err := s.validate(arguments); err != nil {
		return in, fmt.Errorf("the arguments do not match the tool's input schema: %w", err)
	}
	if err := json.Unmarshal(arguments, &in); err != nil {
		return in, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	return in, nil
}

// validate checks a value. Integers are compared exactly.
func (s *schema) validate(v jsontext.Value) error {
	var value any
	if err := json.Unmarshal(v, &value, json.WithUnmarshalers(json.UnmarshalFromFunc(decodeNumber))); err != nil {
		return err
	}
	return s.check.Validate(value)
}

// decodeNumber decodes an integer into an any as one.
func decodeNumber(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return errors.ErrUnsupported
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		*v = n
		return nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		*v = n
		return nil
	}
	f, err := strconv.ParseFloat(text, 64)
	*v = f
	return err
}

// result returns a function's value as a CallToolResult. A nil schema is that of
// values without structure.
func (s *schema) result(out any) (jsontext.Value, error) {
	switch out := out.(type) {
	case jsontext.Value:
		return out, nil
	case string:
		return TextResult(out), nil
	}
	value, err := json.Marshal(out, json.Deterministic(true))
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the tool's result cannot be written: %v", err)
	}
	if err := s.validate(value); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "the tool's result does not match its output schema: %v", err)
	}
	result := append([]byte(`{"content":[{"type":"text","text":`), mcp.String(string(value))...)
	result = append(append(result, `}],"structuredContent":`...), value...)
	return append(result, '}'), nil
}
