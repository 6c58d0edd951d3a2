package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcp-roster/roster/mcp"
)

// maxArguments bounds what is read from a file or standard input, in bytes.
const maxArguments = 8 << 20

// pair is one argument of a command line.
type pair struct {
	key, value string
	raw        bool // value is JSON, whatever the schema says
}

// parsePairs reads arguments: key=value, key:=JSON, key=@file and key:=@file. A
// value that begins with @ is written with @@.
func parsePairs(args []string) ([]pair, error) {
	var pairs []pair
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		key, raw := strings.CutSuffix(key, ":")
		if !ok || key == "" {
			return nil, usagef("arguments are written key=value, not %q", arg)
		}
		if slices.ContainsFunc(pairs, func(p pair) bool { return p.key == key }) {
			return nil, usagef("the argument %q is given twice", key)
		}
		if path, isFile := strings.CutPrefix(value, "@"); isFile && !strings.HasPrefix(path, "@") {
			content, err := readText(path)
			if err != nil {
				return nil, fmt.Errorf("argument %s: %w", key, err)
			}
			value = content
		} else if isFile {
			value = path
		}
		if raw && !json.Valid([]byte(value)) {
			return nil, usagef("the argument %q must be JSON, as it is written with :=", key)
		}
		pairs = append(pairs, pair{key, value, raw})
	}
	return pairs, nil
}

// readText reads a file of text.
func readText(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxArguments+1))
	switch {
	case err != nil:
		return "", err
	case len(text) > maxArguments:
		return "", fmt.Errorf("%s is larger than %d MiB", path, maxArguments>>20)
	case !utf8.Valid(text):
		return "", fmt.Errorf("%s is not text in UTF-8", path)
	}
	return string(text), nil
}

// appendArguments appends an object of the pairs: a value as the JSON it is
// written as where it is said to be JSON or the schema takes such a value, else as
// a string. Without a schema all are strings.
func appendArguments(dst []byte, pairs []pair, schema []byte) []byte {
	root := readSchema(schema)
	dst = append(dst, '{')
	for i, p := range pairs {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(dst, mcp.String(p.key)...), ':')
		if raw := []byte(strings.TrimSpace(p.value)); p.raw || root.takes(p.key, raw) {
			dst = append(dst, raw...)
		} else {
			dst = append(dst, mcp.String(p.value)...)
		}
	}
	return append(dst, '}')
}

// schema is what of a JSON schema says which types a value may have.
type schema struct {
	Type       json.RawMessage            `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	AllOf      []json.RawMessage          `json:"allOf"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	Ref        string                     `json:"$ref"`
	Defs       map[string]json.RawMessage `json:"$defs"`
	Old        map[string]json.RawMessage `json:"definitions"`
}

func readSchema(raw []byte) *schema {
	s := new(schema)
	if json.Unmarshal(raw, s) != nil {
		return new(schema)
	}
	return s
}

// takes reports whether raw is JSON of a type, other than string, that a property
// may have.
func (s *schema) takes(property string, raw []byte) bool {
	return json.Valid(raw) && raw[0] != '"' && s.typesOf(property)[jsonType(raw)]
}

// typesOf returns the types that a property may have; none if the schema does not
// say.
func (s *schema) typesOf(property string) map[string]bool {
	types := make(map[string]bool)
	s.types(s.Properties[property], types, 0)
	return types
}

// types collects the types that a schema within s allows.
func (s *schema) types(raw []byte, into map[string]bool, depth int) {
	const deepest = 8 // references may go in circles
	if raw == nil || depth > deepest {
		return
	}
	sub := readSchema(raw)
	var name string
	var names []string
	if json.Unmarshal(sub.Type, &name) == nil {
		names = []string{name}
	} else {
		_ = json.Unmarshal(sub.Type, &names) // neither: it says nothing
	}
	for _, n := range names {
		if n == "integer" {
			n = "number"
		}
		into[n] = true
	}
	if len(names) == 0 {
		for _, v := range append(sub.Enum, sub.Const) {
			into[jsonType(v)] = true
		}
	}
	for _, part := range slices.Concat(sub.AnyOf, sub.OneOf, sub.AllOf) {
		s.types(part, into, depth+1)
	}
	if name, ok := strings.CutPrefix(sub.Ref, "#/$defs/"); ok {
		s.types(s.Defs[name], into, depth+1)
	}
	if name, ok := strings.CutPrefix(sub.Ref, "#/definitions/"); ok {
		s.types(s.Old[name], into, depth+1)
	}
}

// jsonType returns the type of a JSON value as schemas name it; "" of none.
func jsonType(raw []byte) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}
