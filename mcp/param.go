package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// ParamHeader is a tool's parameter that HTTP clients repeat in a header: one
// annotated with x-mcp-header in the tool's inputSchema (2026-07-28,
// basic/transports/streamable-http, Custom Headers from Tool Parameters).
type ParamHeader struct {
	Name string   // as annotated; the field is HeaderParamPrefix + Name
	Path []string // names of the properties that lead to the value
	Type string   // string, integer or boolean
}

const paramAnnotation = "x-mcp-header"

// ParamHeaders returns the annotated parameters of an inputSchema, in the order
// in which they stand. The error says why an annotation is not valid, which
// makes the tool unusable over HTTP.
func ParamHeaders(inputSchema jsontext.Value) ([]ParamHeader, error) {
	if !bytes.Contains(inputSchema, []byte(paramAnnotation)) && !bytes.Contains(inputSchema, []byte(`\u`)) {
		return nil, nil // most schemas
	}
	var w paramWalk
	if err := w.schema(inputSchema, nil, true); err != nil {
		return nil, err
	}
	return w.found, nil
}

// maxWalk is how many bytes a walk may look at. Each level of nesting is looked at
// anew, which for any schema in use is little.
const maxWalk = 64 << 20

// paramWalk looks for annotations in a schema.
type paramWalk struct {
	found  []ParamHeader
	walked int // bytes
}

// schema looks at one schema. reachable: only "properties" lead here.
func (w *paramWalk) schema(raw jsontext.Value, path []string, reachable bool) error {
	if w.walked += len(raw); w.walked > maxWalk {
		return errors.New("is too large and too deeply nested to look for " + paramAnnotation)
	}
	switch raw.Kind() {
	case '[':
		items, err := jsonrpc.Elements(raw)
		if err != nil {
			return err
		}
		for _, item := range items {
			if err := w.schema(item, path, false); err != nil {
				return err
			}
		}
		return nil
	case '{':
	default:
		return nil
	}
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return err
	}
	for name, v := range obj.All() {
		switch name {
		case paramAnnotation:
			err = w.annotation(obj, v, path, reachable)
		case "properties":
			err = w.properties(v, path, reachable)
		case "default", "const", "enum", "examples": // data, not schemas
		case "$defs", "definitions", "patternProperties", "dependentSchemas":
			err = w.properties(v, path, false)
		default:
			err = w.schema(v, path, false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// properties looks at the schemas of an object that has one per name.
func (w *paramWalk) properties(raw jsontext.Value, path []string, reachable bool) error {
	if raw.Kind() != '{' {
		return nil
	}
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return err
	}
	for name, v := range obj.All() {
		if err := w.schema(v, append(path[:len(path):len(path)], name), reachable); err != nil {
			return err
		}
	}
	return nil
}

func (w *paramWalk) annotation(schema jsonrpc.Object, v jsontext.Value, path []string, reachable bool) error {
	name, ok := jsonrpc.Text(v)
	if !ok || !isToken(name) {
		return fmt.Errorf("%s %s is not a header name", paramAnnotation, v)
	}
	if !reachable || len(path) == 0 {
		return fmt.Errorf("%s %q stands where no chain of properties leads", paramAnnotation, name)
	}
	t, _ := schema.Text("type")
	if t != "string" && t != "integer" && t != "boolean" {
		return fmt.Errorf("%s %q is on a parameter of type %s: only string, integer and boolean can be headers",
			paramAnnotation, name, schema.Get("type"))
	}
	for _, p := range w.found {
		if strings.EqualFold(p.Name, name) {
			return fmt.Errorf("%s %q stands twice", paramAnnotation, name)
		}
	}
	w.found = append(w.found, ParamHeader{Name: name, Path: path, Type: t})
	return nil
}

// isToken reports whether s is a field name by RFC 9110, section 5.1.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// value returns the parameter's value in a call's arguments, nil if it is absent
// or null. The error is about arguments that two readers could read differently.
func (p ParamHeader) value(arguments jsontext.Value) (jsontext.Value, error) {
	v := arguments
	for _, name := range p.Path {
		if v.Kind() != '{' {
			return nil, nil
		}
		obj, err := jsonrpc.ParseObject(v)
		if err != nil {
			return nil, fmt.Errorf("repeats an argument that cannot be read: %w", err)
		}
		v = obj.Get(name)
	}
	if v.Kind() == 'n' {
		return nil, nil
	}
	return v, nil
}

// maxSafe is the greatest integer that every peer can hold exactly.
const maxSafe = 1<<53 - 1

var errParamType = errors.New("is of another type than its schema says")

// text returns a value as the header has it before it is encoded.
func (p ParamHeader) text(v jsontext.Value) (string, error) {
	switch {
	case p.Type == "string" && v.Kind() == '"':
		s, _ := jsonrpc.Text(v)
		return s, nil
	case p.Type == "boolean" && (v.Kind() == 't' || v.Kind() == 'f'):
		return string(v), nil
	case p.Type == "integer" && v.Kind() == '0':
		n, err := integer(string(v))
		if err != nil {
			return "", err
		}
		return strconv.FormatInt(n, 10), nil
	}
	return "", errParamType
}

// integer reads a whole number however JSON spells it (42, 42.0, 4.2e1).
func integer(s string) (int64, error) {
	v := jsontext.Value(s)
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case v.Kind() != '0' || !v.IsValid() || strings.ContainsAny(s, " \t\r\n"):
		return 0, errors.New("is not an integer")
	case err != nil || f > maxSafe || f < -maxSafe:
		return 0, errors.New("is an integer beyond 2^53-1")
	case f != math.Trunc(f):
		return 0, errors.New("is not an integer")
	}
	return int64(f), nil
}

// SetParamHeaders puts the annotated arguments of a call into header, encoded.
// Values that are absent, null or not of their type are left out.
func SetParamHeaders(header map[string]string, params []ParamHeader, arguments jsontext.Value) {
	for _, p := range params {
		v, err := p.value(arguments)
		if v == nil || err != nil {
			continue
		}
		if text, err := p.text(v); err == nil {
			header[HeaderParamPrefix+p.Name] = EncodeHeader(text)
		}
	}
}

// CheckParamHeaders compares a call's headers, under their canonical names,
// with the arguments that they repeat. The error has code -32020 and names the
// header.
func CheckParamHeaders(params []ParamHeader, header map[string][]string, arguments jsontext.Value) error {
	for _, p := range params {
		if err := p.check(header, arguments); err != nil {
			return jsonrpc.Errorf(CodeHeaderMismatch, "header %s%s: %v", HeaderParamPrefix, p.Name, err)
		}
	}
	return nil
}

func (p ParamHeader) check(header map[string][]string, arguments jsontext.Value) error {
	fields := header[canonical(HeaderParamPrefix+p.Name)]
	v, err := p.value(arguments)
	switch {
	case err != nil:
		return err
	case v == nil && len(fields) == 0:
		return nil
	case v == nil:
		return errors.New("is there, but the argument that it repeats is not")
	case len(fields) == 0:
		return errors.New("is missing, though the argument that it repeats is there")
	case len(fields) > 1:
		return errors.New("is there more than once")
	}
	got, err := DecodeHeader(fields[0])
	if err != nil {
		return err
	}
	want, err := p.text(v)
	if err != nil {
		return err
	}
	if p.Type == "integer" {
		n, err := integer(got)
		if err != nil {
			return err
		}
		got = strconv.FormatInt(n, 10)
	}
	if got != want {
		return errors.New("differs from the argument that it repeats")
	}
	return nil
}

// canonical spells a field name as net/http does: each part between hyphens
// with a capital first letter.
func canonical(name string) string {
	b := []byte(name)
	upper := true
	for i, c := range b {
		switch {
		case upper && c >= 'a' && c <= 'z':
			b[i] = c - 'a' + 'A'
		case !upper && c >= 'A' && c <= 'Z':
			b[i] = c - 'A' + 'a'
		}
		upper = c == '-'
	}
	return string(b)
}
