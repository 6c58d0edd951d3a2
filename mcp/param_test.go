package mcp_test

import (
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// param is a schema with one property of a type and an annotation.
func param(typ, annotation string) string {
	return `{"type":"object","properties":{"p":{"type":` + typ + `,"x-mcp-header":` + annotation + `}}}`
}

// TestParamHeaders has the constraints on x-mcp-header (2026-07-28,
// basic/transports/streamable-http, Schema Extension).
func TestParamHeaders(t *testing.T) {
	tests := []struct {
		name, schema string
		want         string // Name:path:type of each, or
		err          string // part of the error
	}{
		{"none", `{"type":"object","properties":{"a":{"type":"string"}}}`, "", ""},
		{"string", param(`"string"`, `"Region"`), "Region:p:string", ""},
		{"integer", param(`"integer"`, `"N"`), "N:p:integer", ""},
		{"boolean", param(`"boolean"`, `"B"`), "B:p:boolean", ""},
		{"every kind of character", param(`"string"`, `"aZ09!#$%&'*+-.^_|~`+"`"+`"`), "aZ09!#$%&'*+-.^_|~`:p:string", ""},
		{"nested", `{"properties":{"a":{"type":"object","properties":{"b":{"properties":{"c":{"type":"string","x-mcp-header":"C"}}}}}}}`, "C:a.b.c:string", ""},
		{"order", `{"properties":{"z":{"type":"string","x-mcp-header":"Z"},"a":{"type":"string","x-mcp-header":"A"}}}`, "Z:z:string A:a:string", ""},
		{"escaped", `{"properties":{"\u0070":{"type":"strin\u0067","x-mcp-\u0068eader":"\u0050"}}}`, "P:p:string", ""},
		{"a property of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, "", ""},
		{"a property named properties", `{"properties":{"properties":{"type":"string","x-mcp-header":"P"}}}`, "P:properties:string", ""},
		{"a property named items", `{"properties":{"items":{"type":"string","x-mcp-header":"I"}}}`, "I:items:string", ""},
		{"in data", `{"properties":{"a":{"default":{"x-mcp-header":1},"enum":[{"x-mcp-header":1}],"const":{"x-mcp-header":1},"examples":[{"x-mcp-header":1}]}}}`, "", ""},
		{"in a description", `{"description":"x-mcp-header"}`, "", ""},
		{"boolean schemas", `{"properties":{"a":true,"b":{"type":"string","x-mcp-header":"B"}},"additionalProperties":false}`, "B:b:string", ""},

		{"empty", param(`"string"`, `""`), "", "not a header name"},
		{"not a string", param(`"string"`, `7`), "", "not a header name"},
		{"null", param(`"string"`, `null`), "", "not a header name"},
		{"space", param(`"string"`, `"a b"`), "", "not a header name"},
		{"colon", param(`"string"`, `"a:b"`), "", "not a header name"},
		{"newline", param(`"string"`, `"a\r\nb"`), "", "not a header name"},
		{"control character", param(`"string"`, `"a\u0000"`), "", "not a header name"},
		{"non-ASCII", param(`"string"`, `"é"`), "", "not a header name"},
		{"parenthesis", param(`"string"`, `"a(b"`), "", "not a header name"},
		{"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"rEGION"}}}`, "", "twice"},
		{"twice, nested", `{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`, "", "twice"},
		{"number", param(`"number"`, `"N"`), "", "number"},
		{"object", param(`"object"`, `"N"`), "", "object"},
		{"array", param(`"array"`, `"N"`), "", "array"},
		{"null type", param(`"null"`, `"N"`), "", "null"},
		{"two types", param(`["string","null"]`, `"N"`), "", "type"},
		{"no type", `{"properties":{"a":{"x-mcp-header":"A"}}}`, "", "type"},
		{"at the root", `{"type":"string","x-mcp-header":"A"}`, "", "no chain of properties"},
		{"in items", `{"properties":{"a":{"items":{"type":"string","x-mcp-header":"A"}}}}`, "", "no chain of properties"},
		{"below items", `{"properties":{"a":{"items":{"properties":{"b":{"type":"string","x-mcp-header":"A"}}}}}}`, "", "no chain of properties"},
		{"in a list of items", `{"properties":{"a":{"items":[{"type":"string","x-mcp-header":"A"}]}}}`, "", "no chain of properties"},
		{"in prefixItems", `{"properties":{"a":{"prefixItems":[{"type":"string","x-mcp-header":"A"}]}}}`, "", "no chain of properties"},
		{"in contains", `{"properties":{"a":{"contains":{"type":"string","x-mcp-header":"A"}}}}`, "", "no chain of properties"},
		{"in oneOf", `{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "", "no chain of properties"},
		{"in anyOf", `{"properties":{"a":{"anyOf":[{"type":"string","x-mcp-header":"A"}]}}}`, "", "no chain of properties"},
		{"in allOf", `{"allOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, "", "no chain of properties"},
		{"in not", `{"not":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "", "no chain of properties"},
		{"in if", `{"if":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "", "no chain of properties"},
		{"in then", `{"then":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "", "no chain of properties"},
		{"in else", `{"else":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`, "", "no chain of properties"},
		{"in $defs", `{"$defs":{"a":{"type":"string","x-mcp-header":"A"}},"properties":{"a":{"$ref":"#/$defs/a"}}}`, "", "no chain of properties"},
		{"in definitions", `{"definitions":{"a":{"type":"string","x-mcp-header":"A"}}}`, "", "no chain of properties"},
		{"in patternProperties", `{"patternProperties":{"a":{"type":"string","x-mcp-header":"A"}}}`, "", "no chain of properties"},
		{"in additionalProperties", `{"additionalProperties":{"type":"string","x-mcp-header":"A"}}`, "", "no chain of properties"},
		{"in an unknown keyword", `{"x-other":{"type":"string","x-mcp-header":"A"}}`, "", "no chain of properties"},
		{"a name twice", `{"properties":{"a":{"type":"string","type":"integer","x-mcp-header":"A"}}}`, "", "twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			params, err := mcp.ParamHeaders(jsontext.Value(tt.schema))
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("got %v, want %q", err, tt.err)
			}
			var got []string
			for _, p := range params {
				got = append(got, p.Name+":"+strings.Join(p.Path, ".")+":"+p.Type)
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

// TestHugeSchema: a schema that is as deep as it is large is not looked at for
// ever.
func TestHugeSchema(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 500) + `{"x-mcp-header":"` + strings.Repeat("x", 1<<20) + `"}` + strings.Repeat("}", 500)
	begin := time.Now()
	if _, err := mcp.ParamHeaders(jsontext.Value(deep)); err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("got %.200v", err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
}

// fixtureParams returns the annotated parameters of the fixture's tool.
func fixtureParams(t *testing.T) []mcp.ParamHeader {
	t.Helper()
	tools, err := jsonrpc.Elements(fixture(t, "mod_xmcpheader")[0].Result.Get("tools"))
	if err != nil {
		t.Fatal(err)
	}
	params, err := mcp.ParamHeaders(object(t, string(tools[0])).Get("inputSchema"))
	if err != nil {
		t.Fatal(err)
	}
	return params
}

// TestSetParamHeaders is the client's half of C-210.
func TestSetParamHeaders(t *testing.T) {
	params := fixtureParams(t)
	calls := fixture(t, "mod_xmcpheader")[1:]
	tests := []struct {
		name, arguments string
		want            map[string]string
	}{
		{"fixture", string(calls[0].Params.Get("arguments")), map[string]string{
			"Mcp-Param-Region": "=?base64?YQpiIOS4lg==?=", "Mcp-Param-Count": "42", "Mcp-Param-Flag": "true",
		}},
		{"fixture with null and absent", string(calls[1].Params.Get("arguments")), map[string]string{}},
		{"no arguments", ``, map[string]string{}},
		{"null arguments", `null`, map[string]string{}},
		{"integers and false", `{"region":"","opt":{"n":-7.0,"f":false}}`, map[string]string{"Mcp-Param-Region": "", "Mcp-Param-Count": "-7", "Mcp-Param-Flag": "false"}},
		{"greatest", `{"opt":{"n":9007199254740991}}`, map[string]string{"Mcp-Param-Count": "9007199254740991"}},
		{"beyond", `{"opt":{"n":9007199254740992}}`, map[string]string{}},
		{"wrong types", `{"region":1,"opt":{"n":"42","f":"true"}}`, map[string]string{}},
		{"fraction", `{"opt":{"n":1.5}}`, map[string]string{}},
		{"opt is no object", `{"opt":[1]}`, map[string]string{}},
		{"opt has a name twice", `{"opt":{"n":1,"n":2}}`, map[string]string{}},
		{"escapes", `{"regi\u006fn":"\u0061\u00e9"}`, map[string]string{"Mcp-Param-Region": "=?base64?YcOp?="}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := map[string]string{}
			mcp.SetParamHeaders(got, params, jsontext.Value(tt.arguments))
			if !maps.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

// TestCheckParamHeaders is the server's half.
func TestCheckParamHeaders(t *testing.T) {
	params := fixtureParams(t)
	type fields = map[string][]string
	tests := []struct {
		name, arguments string
		header          fields
		err             string // part of it
	}{
		{"all", `{"region":"us","opt":{"n":42,"f":true}}`, fields{"Mcp-Param-Region": {"us"}, "Mcp-Param-Count": {"42"}, "Mcp-Param-Flag": {"true"}}, ""},
		{"none", `{}`, nil, ""},
		{"no arguments", ``, nil, ""},
		{"null", `{"region":null}`, nil, ""},
		{"other headers", `{}`, fields{"Mcp-Param-Other": {"x"}}, ""},
		{"base64 of plain text", `{"region":"us"}`, fields{"Mcp-Param-Region": {"=?base64?dXM=?="}}, ""},
		{"42.0 in the header", `{"opt":{"n":42}}`, fields{"Mcp-Param-Count": {"42.0"}}, ""},
		{"42.0 in the body", `{"opt":{"n":42.0}}`, fields{"Mcp-Param-Count": {"42"}}, ""},
		{"4.2e1", `{"opt":{"n":4.2e1}}`, fields{"Mcp-Param-Count": {"42"}}, ""},
		{"minus zero", `{"opt":{"n":-0}}`, fields{"Mcp-Param-Count": {"0"}}, ""},

		{"missing", `{"region":"us"}`, nil, "Region: is missing"},
		{"missing, empty value", `{"region":""}`, nil, "Region: is missing"},
		{"missing, false", `{"opt":{"f":false}}`, nil, "Flag: is missing"},
		{"different", `{"region":"us"}`, fields{"Mcp-Param-Region": {"eu"}}, "Region: differs"},
		{"other letters", `{"region":"us"}`, fields{"Mcp-Param-Region": {"US"}}, "Region: differs"},
		{"different number", `{"opt":{"n":42}}`, fields{"Mcp-Param-Count": {"43"}}, "Count: differs"},
		{"different boolean", `{"opt":{"f":true}}`, fields{"Mcp-Param-Flag": {"false"}}, "Flag: differs"},
		{"boolean in capitals", `{"opt":{"f":true}}`, fields{"Mcp-Param-Flag": {"True"}}, "Flag: differs"},
		{"header without argument", `{}`, fields{"Mcp-Param-Region": {"us"}}, "Region: is there"},
		{"header for null", `{"region":null}`, fields{"Mcp-Param-Region": {"null"}}, "Region: is there"},
		{"twice", `{"region":"us"}`, fields{"Mcp-Param-Region": {"us", "us"}}, "Region: is there more than once"},
		{"bad base64", `{"region":"us"}`, fields{"Mcp-Param-Region": {"=?base64?dXM?="}}, "Region: has broken base64"},
		{"bad characters", `{"region":"é"}`, fields{"Mcp-Param-Region": {"é"}}, "Region: has characters"},
		{"argument of another type", `{"region":7}`, fields{"Mcp-Param-Region": {"7"}}, "Region: is of another type"},
		{"integer beyond, body", `{"opt":{"n":9007199254740993}}`, fields{"Mcp-Param-Count": {"9007199254740993"}}, "Count: is an integer beyond"},
		{"integer beyond, header", `{"opt":{"n":1}}`, fields{"Mcp-Param-Count": {"-9007199254740992"}}, "Count: is an integer beyond"},
		{"integer far beyond", `{"opt":{"n":1e400}}`, fields{"Mcp-Param-Count": {"1"}}, "Count: is an integer beyond"},
		{"hexadecimal", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"0x10"}}, "Count: is not an integer"},
		{"hexadecimal float", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"0x1p4"}}, "Count: is not an integer"},
		{"underscore", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"1_6"}}, "Count: is not an integer"},
		{"plus", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"+16"}}, "Count: is not an integer"},
		{"leading zero", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"016"}}, "Count: is not an integer"},
		{"spaces", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"=?base64?IDE2?="}}, "Count: is not an integer"},
		{"infinity", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"Inf"}}, "Count: is not an integer"},
		{"fraction", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {"16.5"}}, "Count: is not an integer"},
		{"empty", `{"opt":{"n":16}}`, fields{"Mcp-Param-Count": {""}}, "Count: is not an integer"},
		{"a name twice above the argument", `{"opt":{"n":1,"n":2}}`, nil, "Count: repeats an argument that cannot be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := mcp.CheckParamHeaders(params, tt.header, jsontext.Value(tt.arguments))
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || jsonrpc.AsError(err).Code != mcp.CodeHeaderMismatch) {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
}

// TestHeaderNamesAreCanonical: the check finds a field as net/http spells it.
func TestHeaderNamesAreCanonical(t *testing.T) {
	for _, name := range []string{"region", "REGION", "a-b-C", "x_y", "1a", "a--b", "-", "a.b!c", "ab-", "`a"} {
		params, err := mcp.ParamHeaders(jsontext.Value(param(`"string"`, `"`+name+`"`)))
		if err != nil {
			t.Fatal(err)
		}
		header := map[string][]string{textproto.CanonicalMIMEHeaderKey(mcp.HeaderParamPrefix + name): {"v"}}
		if err := mcp.CheckParamHeaders(params, header, jsontext.Value(`{"p":"v"}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParamHeaders: what the client sets, the server accepts, but for values that
// no header can carry.
func FuzzParamHeaders(f *testing.F) {
	for _, p := range []string{`{"p":"x"}`, `{"p":7}`, `{"p":true}`, `{"p":null}`, `{"p":"世\n"}`, `{"p":1e2}`, `{}`} {
		for _, typ := range []string{`"string"`, `"integer"`, `"boolean"`} {
			f.Add([]byte(param(typ, `"N"`)), []byte(p))
		}
	}
	f.Add([]byte(`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"B"}}},"c":{"items":{}}}}`), []byte(`{"a":{"b":-0.0}}`))
	f.Fuzz(func(t *testing.T, schema, arguments []byte) {
		params, err := mcp.ParamHeaders(schema)
		if err != nil {
			return
		}
		set := map[string]string{}
		mcp.SetParamHeaders(set, params, arguments)
		header := map[string][]string{}
		for name, v := range set {
			header[textproto.CanonicalMIMEHeaderKey(name)] = []string{v}
		}
		err = mcp.CheckParamHeaders(params, header, arguments)
		if err != nil && !strings.Contains(err.Error(), "is missing") && !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("%s with %s gives %v, which is refused: %v", schema, arguments, set, err)
		}
		if names := slices.Collect(maps.Keys(set)); len(names) > len(params) {
			t.Errorf("%d headers for %d parameters", len(names), len(params))
		}
	})
}
