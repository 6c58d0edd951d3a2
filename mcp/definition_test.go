package mcp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// TestListWithBadTools is C-114: what is wrong with one tool is said, and the
// others are as they came.
func TestListWithBadTools(t *testing.T) {
	items, err := jsonrpc.Elements(fixture(t, "nam_dupes")[0].Result.Get("tools"))
	if err != nil {
		t.Fatal(err)
	}
	want := []struct{ key, err string }{
		{"x", ""},
		{"x", ""},
		{"", "name is empty"},
		{"", "has no name"},
		{"", "name is a number, must be a string"},
		{"ok", "inputSchema is null, must be an object"},
		{"good", ""},
	}
	if len(items) != len(want) {
		t.Fatalf("%d items", len(items))
	}
	for i, item := range items {
		d, err := mcp.ParseDefinition(mcp.Tools, item)
		if d.Key != want[i].key || (err == nil) != (want[i].err == "") || err != nil && err.Error() != want[i].err {
			t.Errorf("%s: key %q, %v", item, d.Key, err)
		}
		if err == nil && (string(d.Object.Raw) != string(item) || d.Kind != mcp.Tools) {
			t.Errorf("%s became %s", item, d.Object.Raw)
		}
	}
}

func TestParseDefinition(t *testing.T) {
	const in = `"inputSchema":{"type":"object"}`
	tests := []struct {
		name string
		kind mcp.Kind
		item string // without braces
		err  string // "": none
	}{
		{"least tool", mcp.Tools, `"name":"x",` + in, ""},
		{"full tool", mcp.Tools, `"name":"x","title":"","description":"","annotations":{"title":"t","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"other":7},"execution":{"taskSupport":"optional"},"icons":[{"src":"s","mimeType":"m","sizes":["any"],"theme":"dark"}],"_meta":{},"outputSchema":{"type":"object"},"extra":null,` + in, ""},
		{"modern schemas", mcp.Tools, `"name":"x","inputSchema":{"type":"object","properties":{"a":true},"oneOf":[]},"outputSchema":{"type":"array"}`, ""},
		{"not an object", mcp.Tools, ``, "has no name"},
		{"no inputSchema", mcp.Tools, `"name":"x"`, "has no inputSchema"},
		{"inputSchema without type", mcp.Tools, `"name":"x","inputSchema":{}`, `inputSchema has no "type": "object"`},
		{"inputSchema of another type", mcp.Tools, `"name":"x","inputSchema":{"type":"string"}`, `inputSchema has no "type": "object"`},
		{"inputSchema of two types", mcp.Tools, `"name":"x","inputSchema":{"type":["object"]}`, `inputSchema has no "type": "object"`},
		{"inputSchema is true", mcp.Tools, `"name":"x","inputSchema":true`, "inputSchema is a boolean, must be an object"},
		{"inputSchema with a name twice", mcp.Tools, `"name":"x","inputSchema":{"type":"object","type":"object"}`, `inputSchema: member "type" stands twice`},
		{"outputSchema is null", mcp.Tools, `"name":"x","outputSchema":null,` + in, "outputSchema is null, must be an object"},
		{"title is a number", mcp.Tools, `"name":"x","title":1,` + in, "title is a number, must be a string"},
		{"description is null", mcp.Tools, `"name":"x","description":null,` + in, "description is null, must be a string"},
		{"annotations is an array", mcp.Tools, `"name":"x","annotations":[],` + in, "annotations is an array, must be an object"},
		{"hint is a string", mcp.Tools, `"name":"x","annotations":{"readOnlyHint":"yes"},` + in, "annotations: readOnlyHint is a string, must be a boolean"},
		{"task support", mcp.Tools, `"name":"x","execution":{"taskSupport":"maybe"},` + in, `execution: taskSupport is "maybe", must be one of`},
		{"icons is an object", mcp.Tools, `"name":"x","icons":{},` + in, "icons is an object, must be an array"},
		{"icon without src", mcp.Tools, `"name":"x","icons":[{"src":"a"},{}],` + in, "icons[1]: has no src"},
		{"icon sizes", mcp.Tools, `"name":"x","icons":[{"src":"a","sizes":[1]}],` + in, "icons[0]: sizes[0] is a number, must be a string"},
		{"_meta is a string", mcp.Tools, `"name":"x","_meta":"",` + in, "_meta is a string, must be an object"},
		{"name twice", mcp.Tools, `"name":"x","name":"y",` + in, `member "name" stands twice`},

		{"least prompt", mcp.Prompts, `"name":"x"`, ""},
		{"prompt arguments", mcp.Prompts, `"name":"x","arguments":[{"name":"a","title":"","description":"","required":true,"x":1},{"name":"b"}]`, ""},
		{"empty prompt name", mcp.Prompts, `"name":""`, "name is empty"},
		{"arguments is an object", mcp.Prompts, `"name":"x","arguments":{}`, "arguments is an object, must be an array"},
		{"argument is a string", mcp.Prompts, `"name":"x","arguments":["a"]`, "arguments[0] is a string, must be an object"},
		{"argument without name", mcp.Prompts, `"name":"x","arguments":[{"name":"a"},{"required":true}]`, "arguments[1]: has no name"},
		{"argument description", mcp.Prompts, `"name":"x","arguments":[{"name":"a","description":null}]`, "arguments[0]: description is null, must be a string"},
		{"argument required", mcp.Prompts, `"name":"x","arguments":[{"name":"a","required":"true"}]`, "arguments[0]: required is a string, must be a boolean"},

		{"least resource", mcp.Resources, `"uri":"file:///a","name":""`, ""},
		{"full resource", mcp.Resources, `"uri":"u","name":"n","size":1.5e3,"mimeType":"m","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"x"}`, ""},
		{"no uri", mcp.Resources, `"name":"n"`, "has no uri"},
		{"no resource name", mcp.Resources, `"uri":"u"`, "has no name"},
		{"empty uri", mcp.Resources, `"uri":"","name":"n"`, "uri is empty"},
		{"size is a string", mcp.Resources, `"uri":"u","name":"n","size":"1"`, "size is a string, must be a number"},
		{"audience", mcp.Resources, `"uri":"u","name":"n","annotations":{"audience":["me"]}`, `annotations: audience[0] is "me", must be one of`},
		{"priority", mcp.Resources, `"uri":"u","name":"n","annotations":{"priority":"1"}`, "annotations: priority is a string, must be a number"},

		{"least template", mcp.Templates, `"uriTemplate":"a/{b}","name":"n"`, ""},
		{"template with uri", mcp.Templates, `"uri":"a","name":"n"`, "has no uriTemplate"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := mcp.ParseDefinition(tt.kind, jsontext.Value("{"+tt.item+"}"))
			if (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
				t.Fatalf("got %v, want %q", err, tt.err)
			}
			if want, _ := d.Object.Text(tt.kind.Key()); err == nil && (d.Key != want || d.Key == "") {
				t.Errorf("the key is %q", d.Key)
			}
		})
	}
	for _, item := range []string{``, `null`, `"x"`, `[]`, `{"name":"x"`} {
		if _, err := mcp.ParseDefinition(mcp.Tools, jsontext.Value(item)); err == nil {
			t.Errorf("%s was accepted", item)
		}
	}
}

// TestFor: what an older version does not allow is put in another way, or left
// out; everything else stays.
func TestFor(t *testing.T) {
	const head = `{ "name":"x", "n":1.0,`
	tests := []struct{ name, from, want string }{ // want "": as it came
		{"plain", `"inputSchema":{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`, ""},
		{"outputSchema of an object", `"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{}}}`, ""},
		{"outputSchema of an array", `"inputSchema":{"type":"object"}, "outputSchema":{"type":"array"}, "z":2`, `"inputSchema":{"type":"object"}, "z":2`},
		{"outputSchema without type", `"outputSchema":{"oneOf":[]},"inputSchema":{"type":"object"}`, `"inputSchema":{"type":"object"}`},
		{"boolean properties", `"inputSchema":{"properties":{ "a" : true, "b":{}, "c":false },"type":"object"}`, `"inputSchema":{"properties":{ "a" : {}, "b":{}, "c":{"not":{}} },"type":"object"}`},
		{"boolean properties of output", `"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":true}}`, `"inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"a":{}}}`},
		{"property that is no schema", `"inputSchema":{"type":"object","properties":{"a":null}}`, `"inputSchema":{"type":"object","properties":{"a":{}}}`},
		{"properties that are none", `"inputSchema":{"type":"object","properties":[]}`, `"inputSchema":{"type":"object"}`},
		{"required is a boolean", `"inputSchema":{"type":"object","required":true}`, `"inputSchema":{"type":"object"}`},
		{"required has numbers", `"inputSchema":{"required":[1],"type":"object"}`, `"inputSchema":{"type":"object"}`},
		{"$schema is null", `"inputSchema":{"$schema":null,"type":"object"}`, `"inputSchema":{"type":"object"}`},
		{"free keywords", `"inputSchema":{"type":"object","allOf":true,"$defs":{"a":true}}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			raw := head + tt.from + " }"
			d, err := mcp.ParseDefinition(mcp.Tools, jsontext.Value(raw))
			if err != nil {
				t.Fatal(err)
			}
			want := raw
			if tt.want != "" {
				want = head + tt.want + " }"
			}
			for _, v := range mcp.Versions() {
				got := string(d.For(v))
				if v.Stateless() && got != raw || !v.Stateless() && got != want {
					t.Errorf("for %s: %s", v, got)
				}
			}
			if again, err := mcp.ParseDefinition(mcp.Tools, d.For(mcp.LatestSession)); err != nil || string(again.For(mcp.LatestSession)) != want {
				t.Errorf("read again: %v", err)
			}
			other := d.Renamed(`s__"x`)
			rename := func(s string) string { return strings.Replace(s, `"name":"x"`, `"name":"s__\"x"`, 1) }
			if other.Key != `s__"x` || string(other.For(mcp.Latest)) != rename(raw) || string(other.For(mcp.LatestSession)) != rename(want) {
				t.Errorf("renamed: key %q, %s", other.Key, other.For(mcp.LatestSession))
			}
			if d.Key != "x" || string(d.For(mcp.Latest)) != raw {
				t.Errorf("the renamed one became %s", d.For(mcp.Latest))
			}
		})
	}
}

func TestRenamed(t *testing.T) {
	for kind, item := range map[mcp.Kind]string{
		mcp.Prompts:   `{"name" : "x","arguments":[{"name":"x"}]}`,
		mcp.Resources: `{"name":"x","uri":"x"}`,
		mcp.Templates: `{"name":"x","uriTemplate":"x"}`,
	} {
		d, err := mcp.ParseDefinition(kind, jsontext.Value(item))
		if err != nil {
			t.Fatal(err)
		}
		got := d.Renamed("y")
		if key, _ := got.Object.Text(kind.Key()); got.Key != "y" || key != "y" || got.Kind != kind || strings.Count(string(got.Object.Raw), `"x"`) != 1 {
			t.Errorf("%s became %s", item, got.Object.Raw)
		}
	}
}

// TestDefinitionFields is C-098: nothing of a definition is lost.
func TestDefinitionFields(t *testing.T) {
	items, err := jsonrpc.Elements(fixture(t, "fid_structured")[0].Result.Get("tools"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := mcp.ParseDefinition(mcp.Tools, items[0])
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range mcp.Versions() {
		if string(d.For(v)) != string(items[0]) {
			t.Errorf("for %s: %s", v, d.For(v))
		}
	}
}

// TestHostileDefinitions: many members are dealt with in bounded time.
func TestHostileDefinitions(t *testing.T) {
	var properties strings.Builder
	for i := range 60_000 {
		properties.WriteString(`,"` + strings.Repeat("p", i%7) + string(jsontext.Value(mcp.String(time.Duration(i).String()))[1:]) + `:true`)
	}
	begin := time.Now()
	item := `{"name":"x","inputSchema":{"type":"object","properties":{` + properties.String()[1:] + `}}}`
	if _, err := mcp.ParseDefinition(mcp.Tools, jsontext.Value(item)); err != nil {
		t.Errorf("%v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}
