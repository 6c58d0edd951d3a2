package jsonrpc_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

func TestParseObject(t *testing.T) {
	const text = ` { "a" : 1 , "\u0062" : {"c":[2]} , "" : "x" , "A":null, "long name ü" : "\u00e9" } `
	obj, err := jsonrpc.ParseObject(jsontext.Value(text))
	if err != nil {
		t.Fatal(err)
	}
	if string(obj.Raw) != strings.TrimSpace(text) || !obj.IsObject() || obj.IsZero() || obj.Len() != 5 {
		t.Errorf("got %q with %d members", obj.Raw, obj.Len())
	}
	for name, want := range map[string]string{
		"a": "1", "b": `{"c":[2]}`, "": `"x"`, "A": "null", "long name ü": `"\u00e9"`, "c": "", `\u0062`: "", `"a"`: "", `""`: "",
	} {
		if got := obj.Get(name); string(got) != want || (got == nil) != (want == "") {
			t.Errorf("Get(%q) = %q, want %q", name, got, want)
		}
		if found := obj.Find(name) >= 0; found != (want != "") {
			t.Errorf("Find(%q) = %d", name, obj.Find(name))
		}
	}
	if s, ok := obj.Text("long name ü"); s != "é" || !ok {
		t.Errorf("Text = %q, %v", s, ok)
	}
	for _, name := range []string{"a", "A", "none"} {
		if s, ok := obj.Text(name); ok {
			t.Errorf("Text(%q) = %q", name, s)
		}
	}
	for name := range obj.All() { // can be left
		if name != "a" {
			t.Errorf("began with %q", name)
		}
		break
	}
}

func TestParseObjectErrors(t *testing.T) {
	tests := []struct{ name, data, want string }{
		{"nothing", ``, "not a JSON object"},
		{"array", `[]`, "not a JSON object"},
		{"null", `null`, "not a JSON object"},
		{"more", `{} {}`, "more bytes"},
		{"half", `{"a"`, "colon"},
		{"twice", `{"a":1,"b":2,"a":3}`, `"a" stands twice`},
		{"twice, escaped", `{"a":1,"\u0061":3}`, `"a" stands twice`},
		{"twice, both escaped", `{"\u0061":1,"\u0061":3}`, `"a" stands twice`},
		{"empty name twice", `{"":1,"":3}`, `"" stands twice`},
		{"twice of many", "{" + members(100) + `,"k\u0037":1}`, `"k7" stands twice`},
		{"too deep", `{"a":` + strings.Repeat("[", 512) + strings.Repeat("]", 512) + "}", "512 levels"},
		{"too many", "{" + members(1<<16+1) + "}", "65536 members"},
		{"control character", "{\"a\":\"\x01\"}", "control character"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			obj, err := jsonrpc.ParseObject(jsontext.Value(tt.data))
			if err == nil || !strings.Contains(err.Error(), tt.want) || !obj.IsZero() {
				t.Errorf("got %.50q, %v; want %q", obj.Raw, err, tt.want)
			}
		})
	}
	for _, data := range []string{"{" + members(1<<16) + "}", `{"a":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + "}"} {
		if _, err := jsonrpc.ParseObject(jsontext.Value(data)); err != nil {
			t.Errorf("at the limit: %v", err)
		}
	}
}

func TestZeroObject(t *testing.T) {
	var o jsonrpc.Object
	if !o.IsZero() || o.IsObject() || o.Len() != 0 || o.Get("") != nil || o.Find("a") != -1 {
		t.Errorf("the zero Object is %+v", o)
	}
	for name := range o.All() {
		t.Errorf("it has a member %q", name)
	}
}

// TestValuesDoNotGrowIntoEachOther: who appends to a value gets a copy.
func TestValuesDoNotGrowIntoEachOther(t *testing.T) {
	data := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"b":[2,3]}}`)
	before := bytes.Clone(data)
	m, err := jsonrpc.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	elements, err := jsonrpc.Elements(m.Params.Get("b"))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(elements, m.Params.Raw, m.Params.Get("a"), m.Params.Get("b")) {
		_ = append(v, "xxxxxxxx"...)
	}
	for _, v := range m.Params.All() {
		_ = append(v, "yyyyyyyy"...)
	}
	if !bytes.Equal(data, before) {
		t.Errorf("the message became %s", data)
	}
}

func TestLastOfSameNames(t *testing.T) {
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":2,"\u0061":3}}`))
	if err != nil || string(m.Result.Get("a")) != "3" || m.Result.Find("a") != 2 || !m.Result.Is(0, "a") {
		t.Errorf("got %s, %v", m.Result.Get("a"), err)
	}
}

func TestText(t *testing.T) {
	tests := []struct {
		v, want string
		ok      bool
	}{
		{`"a"`, "a", true},
		{`""`, "", true},
		{`"\"\\\/\b\f\n\r\t\u0041\ud83d\ude00"`, "\"\\/\b\f\n\r\tA😀", true},
		{`1`, "", false},
		{`null`, "", false},
		{`{}`, "", false},
		{``, "", false},
		{`"`, "", false},
	}
	for _, tt := range tests {
		if got, ok := jsonrpc.Text(jsontext.Value(tt.v)); got != tt.want || ok != tt.ok {
			t.Errorf("Text(%s) = %q, %v", tt.v, got, ok)
		}
	}
}

func TestElementsErrors(t *testing.T) {
	for _, data := range []string{``, `{}`, `null`, `[`, `[1`, `[1,`, `[1,]`, `[] []`, "[\"\xff\"]", strings.Repeat("[", 513) + strings.Repeat("]", 513)} {
		if got, err := jsonrpc.Elements(jsontext.Value(data)); err == nil {
			t.Errorf("Elements(%.20s) = %q", data, got)
		}
	}
}

func TestID(t *testing.T) {
	tests := []struct {
		id       jsonrpc.ID
		text     string
		key      string
		integer  int64
		isNumber bool
	}{
		{jsonrpc.IntID(0), `0`, `0`, 0, true},
		{jsonrpc.IntID(-5), `-5`, `-5`, -5, true},
		{jsonrpc.StringID(""), `""`, `""`, 0, false},
		{jsonrpc.StringID("1"), `"1"`, `"1"`, 0, false},
		{jsonrpc.StringID("a\"\n\x00é<"), `"a\"\n\u0000é<"`, "\"a\"\n\x00é<\"", 0, false},
		{jsonrpc.StringID("\xff"), `"` + "\uFFFD" + `"`, `"` + "\uFFFD" + `"`, 0, false},
		{parseID(t, `"\u0061"`), `"\u0061"`, `"a"`, 0, false},
		{parseID(t, `9223372036854775808`), `9223372036854775808`, `9223372036854775808`, 0, false},
	}
	for _, tt := range tests {
		n, ok := tt.id.Int()
		if ok != tt.isNumber || ok && n != tt.integer || tt.id.String() != tt.text || string(tt.id.Raw()) != tt.text || tt.id.Key() != tt.key || tt.id.IsZero() {
			t.Errorf("%s: key %q, integer %d %v", tt.id, tt.id.Key(), n, ok)
		}
	}
	var none jsonrpc.ID
	if _, ok := none.Int(); ok || !none.IsZero() || none.Raw() != nil || none.Key() != "" {
		t.Errorf("the zero ID is %+v", none)
	}
	for _, bad := range []string{``, `null`, `1.0`, `1e2`, `1E2`, `-1.5`, `true`, `{}`, `[]`} {
		if id, err := jsonrpc.ParseID(jsontext.Value(bad)); err == nil || !id.IsZero() {
			t.Errorf("ParseID(%s) = %v", bad, id)
		}
	}
}

func parseID(t *testing.T, v string) jsonrpc.ID {
	t.Helper()
	id, err := jsonrpc.ParseID(jsontext.Value(v))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAppend(t *testing.T) {
	id := jsonrpc.IntID(7)
	tests := []struct {
		name string
		got  []byte
		want string
	}{
		{"request", jsonrpc.AppendRequest([]byte("x"), id, "a/b", jsontext.Value(`{ }`)), `x{"jsonrpc":"2.0","id":7,"method":"a/b","params":{ }}`},
		{"request without params", jsonrpc.AppendRequest(nil, id, "a\"\xffü", nil), `{"jsonrpc":"2.0","id":7,"method":"a\"` + "\uFFFD" + `ü"}`},
		{"notification", jsonrpc.AppendNotification(nil, "n", jsontext.Value(`{}`)), `{"jsonrpc":"2.0","method":"n","params":{}}`},
		{"result", jsonrpc.AppendResult(nil, id, jsontext.Value(`null`)), `{"jsonrpc":"2.0","id":7,"result":null}`},
		{"error", jsonrpc.AppendError(nil, id, jsonrpc.Errorf(-5, "no %q", "x")), `{"jsonrpc":"2.0","id":7,"error":{"code":-5,"message":"no \"x\""}}`},
		{"error with data, without id", jsonrpc.AppendError(nil, jsonrpc.ID{}, &jsonrpc.Error{Code: 1, Data: jsontext.Value(`null`)}), `{"jsonrpc":"2.0","error":{"code":1,"message":"","data":null}}`},
	}
	for _, tt := range tests {
		if string(tt.got) != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, tt.got, tt.want)
		}
	}
}

func TestAppendString(t *testing.T) {
	for _, s := range []string{"", "a", `"`, `\`, "\n", "\x00", "\x1f", "\x7f", "é", "<&>\u2028", "\xff", "a\xc3", "😀", strings.Repeat("a", 100) + "\t"} {
		got := jsonrpc.AppendString([]byte("x"), s)
		want, err := jsontext.AppendQuote([]byte("x"), strings.ToValidUTF8(s, "\uFFFD"))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: got %s, want %s, %v", s, got, want, err)
		}
	}
}

func TestErrorsFromPeers(t *testing.T) {
	tests := []struct {
		name, error   string
		code          int
		message, data string
		fromPeer      bool
	}{
		{"plain", `{"code":4242,"message":"a\u0062"}`, 4242, "ab", "", true},
		{"data", `{"code":1,"message":"","data":{"n":1.0}}`, 1, "", `{"n":1.0}`, true},
		{"whole fraction", `{"code":-32602.0,"message":"m"}`, -32602, "m", "", true},
		{"exponent", `{"code":1e3,"message":"m"}`, 1000, "m", "", true},
		{"string", `"no"`, jsonrpc.CodeInternal, "the peer answered with an error that is not an object", `"no"`, false},
		{"null", `null`, jsonrpc.CodeInternal, "the peer answered with an error that is not an object", `null`, false},
		{"no code", `{"message":"m"}`, jsonrpc.CodeInternal, "the peer answered with an error without an integer code and a message", `{"message":"m"}`, false},
		{"code is a string", `{"code":"1","message":"m"}`, jsonrpc.CodeInternal, "the peer answered with an error without an integer code and a message", `{"code":"1","message":"m"}`, false},
		{"fraction", `{"code":1.5,"message":"m"}`, jsonrpc.CodeInternal, "the peer answered with an error without an integer code and a message", `{"code":1.5,"message":"m"}`, false},
		{"huge", `{"code":1e300,"message":"m"}`, jsonrpc.CodeInternal, "the peer answered with an error without an integer code and a message", `{"code":1e300,"message":"m"}`, false},
		{"no message", `{"code":1}`, jsonrpc.CodeInternal, "the peer answered with an error without an integer code and a message", `{"code":1}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"error":` + tt.error + `}`))
			if err != nil {
				t.Fatal(err)
			}
			e := m.Error
			if e.Code != tt.code || e.Message != tt.message || string(e.Data) != tt.data || e.FromPeer() != tt.fromPeer {
				t.Errorf("got %+v", e)
			}
			if tt.fromPeer && !bytes.Contains(jsonrpc.AppendError(nil, m.ID, e), []byte(tt.error)) {
				t.Errorf("written as %s", jsonrpc.AppendError(nil, m.ID, e))
			}
			other := e.Recode(-1)
			if other.Code != -1 || other.Message != e.Message || other.FromPeer() || bytes.Contains(jsonrpc.AppendError(nil, m.ID, other), []byte("4242")) {
				t.Errorf("recoded as %s", jsonrpc.AppendError(nil, m.ID, other))
			}
		})
	}
}

func TestAsError(t *testing.T) {
	e := jsonrpc.Errorf(5, "x %d", 1)
	if got := jsonrpc.AsError(fmt.Errorf("a: %w", e)); got != e {
		t.Errorf("got %v", got)
	}
	if got := jsonrpc.AsError(fmt.Errorf("disk full")); got.Code != jsonrpc.CodeInternal || got.Message != "disk full" {
		t.Errorf("got %+v", got)
	}
	if e.Error() != "x 1 (5)" {
		t.Errorf("reads %q", e.Error())
	}
}

func TestSession(t *testing.T) {
	s := jsonrpc.NewSession("id", nil)
	if s.Value() != nil || s.ID != "id" {
		t.Errorf("a new session is %+v", s)
	}
	s.SetValue(7)
	if s.Value() != 7 {
		t.Errorf("the value is %v", s.Value())
	}
	s.Close()
	s.Close()
	<-s.Done()
}
