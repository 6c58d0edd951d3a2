package cli

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestAppendArguments(t *testing.T) {
	const schema = `{
		"type": "object",
		"properties": {
			"text": {"type": "string"}, "n": {"type": "integer"}, "x": {"type": "number"}, "on": {"type": "boolean"},
			"list": {"type": "array"}, "map": {"type": "object"}, "either": {"type": ["integer", "null"]},
			"any": {"anyOf": [{"type": "number"}, {"type": "string"}]}, "level": {"enum": [1, 2, 3]}, "word": {"enum": ["1", "2"]},
			"ref": {"$ref": "#/$defs/count"}, "old": {"$ref": "#/definitions/count"}, "loop": {"$ref": "#/$defs/loop"},
			"free": {}, "true": true
		},
		"$defs": {"count": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}},
		"definitions": {"count": {"type": "integer"}}
	}`
	tests := []struct{ name, key, value, want string }{
		{"a string", "text", "abc", `"abc"`},
		{"a string that looks like a number", "text", "5", `"5"`},
		{"a string in quotes", "text", `"a"`, `"\"a\""`},
		{"an integer", "n", "5", `5`},
		{"a big one keeps its digits", "n", "12345678901234567890123", `12345678901234567890123`},
		{"a number keeps its spelling", "x", "1.50e3", `1.50e3`},
		{"spaces around", "x", " 1 ", `1`},
		{"what is no integer", "n", "five", `"five"`},
		{"another type", "n", "true", `"true"`},
		{"half JSON", "n", "5 6", `"5 6"`},
		{"a boolean", "on", "true", `true`},
		{"a list", "list", `["a", 1]`, `["a", 1]`},
		{"what is no list", "list", `a`, `"a"`},
		{"an object", "map", `{"a": {}}`, `{"a": {}}`},
		{"one of two types", "either", "null", `null`},
		{"the other", "either", "7", `7`},
		{"anyOf", "any", "7", `7`},
		{"anyOf, the string", "any", "seven", `"seven"`},
		{"an enum of numbers", "level", "2", `2`},
		{"an enum of strings", "word", "2", `"2"`},
		{"a reference", "ref", "2", `2`},
		{"a reference of older schemas", "old", "2", `2`},
		{"a reference in a circle", "loop", "2", `"2"`},
		{"no type", "free", "2", `"2"`},
		{"a schema that is true", "true", "2", `"2"`},
		{"an unknown argument", "unknown", "2", `"2"`},
		{"nothing", "n", "", `""`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(appendArguments(nil, []pair{{tt.key, tt.value, false}}, []byte(schema)))
			if want := `{"` + tt.key + `":` + tt.want + `}`; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestParsePairs(t *testing.T) {
	pairs, err := parsePairs([]string{"a=1=2", "b=", "c:=[1]", "d=@@x"})
	want := []pair{{"a", "1=2", false}, {"b", "", false}, {"c", "[1]", true}, {"d", "@x", false}}
	if err != nil || !slices.Equal(pairs, want) {
		t.Errorf("got %v, %v", pairs, err)
	}
	for _, arg := range []string{"a", "=1", "", "a:=", ":=1", "a=@/nowhere/at/all"} {
		if _, err := parsePairs([]string{arg}); err == nil {
			t.Errorf("%q is accepted", arg)
		}
	}
}

// Whatever a server says is its schema, what is sent is a JSON object.
func FuzzAppendArguments(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"integer"}}}`, "a", "1")
	f.Add(`{"properties":{"a":{"type":["array",3]}}}`, "a", "[1")
	f.Add(`{"properties":[]}`, "\x00", "\xff")
	f.Fuzz(func(t *testing.T, schema, key, value string) {
		if got := appendArguments(nil, []pair{{key, value, false}}, []byte(schema)); !json.Valid(got) {
			t.Errorf("not JSON: %q", got)
		}
	})
}
