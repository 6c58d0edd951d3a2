package jsonrpc_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// span is one member of an object, or with an empty name one element of an
// array, as the reference finds it.
type span struct {
	name  string
	key   int
	value jsontext.Value
	start int
}

// reference reads JSON text with jsontext's decoder, which the scanner of this
// package must agree with.
type reference struct {
	kind  jsontext.Kind
	raw   jsontext.Value // without the white space around it
	parts []span         // of an object or array
	deep  bool           // nested beyond MaxDepth
}

var errTrailing = errors.New("more than one value")

func readReference(data []byte) (reference, error) {
	var ref reference
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true))
	raw, err := dec.ReadValue()
	if err != nil {
		return ref, err
	}
	ref.kind, ref.raw = raw.Kind(), raw.Clone()
	if _, err := dec.ReadToken(); err != io.EOF {
		return ref, errors.Join(err, errTrailing)
	}
	ref.deep = depth(ref.raw) > jsonrpc.MaxDepth
	if ref.kind == '{' || ref.kind == '[' {
		ref.parts = readParts(ref.raw)
	}
	return ref, nil
}

func readParts(raw jsontext.Value) []span {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	opening, _ := dec.ReadToken() // was read before
	object := opening.Kind() == '{'
	var parts []span
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' {
		var p span
		if object {
			name, _ := dec.ReadValue()
			p.key = int(dec.InputOffset()) - len(name)
			text, _ := jsontext.AppendUnquote(nil, name)
			p.name = string(text)
		}
		v, err := dec.ReadValue()
		if err != nil {
			panic(err)
		}
		p.value = v.Clone()
		p.start = int(dec.InputOffset()) - len(v)
		parts = append(parts, p)
	}
	return parts
}

func depth(raw jsontext.Value) int {
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	most := 0
	for {
		if _, err := dec.ReadToken(); err != nil {
			return most
		}
		most = max(most, dec.StackDepth())
	}
}

func (r reference) duplicates() bool {
	seen := map[string]bool{}
	for _, p := range r.parts {
		if seen[p.name] {
			return true
		}
		seen[p.name] = true
	}
	return false
}

func (r reference) get(name string) jsontext.Value {
	for _, p := range slices.Backward(r.parts) {
		if p.name == name {
			return p.value
		}
	}
	return nil
}

// tooDeepForReference reports whether the decoder gives up where nothing is
// wrong: it counts 10,000 levels.
func tooDeepForReference(data []byte) bool {
	return bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) >= 10_000
}

// agree fails the test if the package reads data in another way than the
// reference.
func agree(t *testing.T, data []byte) {
	t.Helper()
	if tooDeepForReference(data) {
		return
	}
	ref, refErr := readReference(data)
	m, err := jsonrpc.Parse(data)
	var e *jsonrpc.Error
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("Parse(%q): error %v is not an *Error", data, err)
	}
	if ref.deep {
		if err == nil {
			t.Fatalf("Parse(%q): too deep, but accepted", data)
		}
		return
	}
	if gotJSON := err == nil || e.Code != jsonrpc.CodeParse; gotJSON != (refErr == nil) {
		t.Fatalf("Parse(%q): %v; jsontext: %v", data, err, refErr)
	}
	agreeObject(t, data, ref, refErr)
	agreeElements(t, data, ref, refErr)
	if err == nil {
		agreeMessage(t, data, m, ref)
	}
}

func agreeObject(t *testing.T, data []byte, ref reference, refErr error) {
	t.Helper()
	obj, err := jsonrpc.ParseObject(data)
	if want := refErr == nil && ref.kind == '{' && !ref.duplicates(); want != (err == nil) {
		t.Fatalf("ParseObject(%q): %v; jsontext: %v", data, err, refErr)
	}
	if err == nil {
		sameParts(t, obj, ref)
	}
}

func agreeElements(t *testing.T, data []byte, ref reference, refErr error) {
	t.Helper()
	got, err := jsonrpc.Elements(data)
	if want := refErr == nil && ref.kind == '['; want != (err == nil) {
		t.Fatalf("Elements(%q): %v; jsontext: %v", data, err, refErr)
	}
	if err != nil {
		return
	}
	if !slices.EqualFunc(got, ref.parts, func(v jsontext.Value, p span) bool { return bytes.Equal(v, p.value) }) {
		t.Fatalf("Elements(%q): %q; jsontext: %v", data, got, ref.parts)
	}
}

// agreeMessage checks a message that Parse accepted member by member, and that
// it comes back from what the Append functions make of it.
func agreeMessage(t *testing.T, data []byte, m jsonrpc.Message, ref reference) {
	t.Helper()
	if got, want := m.ID.Raw(), ref.get("id"); !bytes.Equal(got, want) && want.Kind() != 'n' {
		t.Fatalf("%q: id %s, want %s", data, got, want)
	}
	if want, _ := jsonrpc.Text(ref.get("method")); m.Method != want {
		t.Fatalf("%q: method %q, want %q", data, m.Method, want)
	}
	for name, obj := range map[string]jsonrpc.Object{"params": m.Params, "result": m.Result} {
		want := ref.get(name)
		if name == "params" && want.Kind() == 'n' {
			want = nil
		}
		if !bytes.Equal(obj.Raw, want) {
			t.Fatalf("%q: %s is %s, want %s", data, name, obj.Raw, want)
		}
		if want.Kind() == '{' {
			inner, err := readReference(want)
			if err != nil {
				t.Fatal(err)
			}
			sameParts(t, obj, inner)
		}
	}
	again, err := jsonrpc.Parse(write(m))
	if err != nil {
		t.Fatalf("%q: written as %q, which is refused: %v", data, write(m), err)
	}
	if again.ID != m.ID || again.Method != m.Method || !bytes.Equal(again.Params.Raw, m.Params.Raw) || !bytes.Equal(again.Result.Raw, m.Result.Raw) {
		t.Fatalf("%q: came back as %q", data, write(again))
	}
	if m.Error != nil && (again.Error.Code != m.Error.Code || again.Error.Message != m.Error.Message || !bytes.Equal(again.Error.Data, m.Error.Data)) {
		t.Fatalf("%q: the error came back as %v", data, again.Error)
	}
}

func write(m jsonrpc.Message) []byte {
	switch {
	case m.Method != "":
		return jsonrpc.AppendRequest(nil, m.ID, m.Method, m.Params.Raw)
	case m.Error != nil:
		return jsonrpc.AppendError(nil, m.ID, m.Error)
	default:
		return jsonrpc.AppendResult(nil, m.ID, m.Result.Raw)
	}
}

func sameParts(t *testing.T, obj jsonrpc.Object, ref reference) {
	t.Helper()
	if obj.Len() != len(ref.parts) || !bytes.Equal(obj.Raw, ref.raw) {
		t.Fatalf("%q has %d members, want %d of %q", obj.Raw, obj.Len(), len(ref.parts), ref.raw)
	}
	i := 0
	for name, v := range obj.All() {
		m, p := obj.Member(i), ref.parts[i]
		if name != p.name || m.Key != p.key || m.Start != p.start || !bytes.Equal(v, p.value) ||
			m.End != p.start+len(p.value) || !obj.Is(i, p.name) {
			t.Fatalf("%q: member %d is %q %+v %q, want %+v", obj.Raw, i, name, m, v, p)
		}
		if !bytes.Equal(obj.Get(name), ref.get(name)) {
			t.Fatalf("%q: Get(%q) = %q, want %q", obj.Raw, name, obj.Get(name), ref.get(name))
		}
		i++
	}
}

// jsonTexts are JSON texts and things that almost are.
var jsonTexts = []string{
	``, ` `, `{`, `}`, `[`, `]`, `"`, `{}`, `[]`, ` { } `, "\t[\r\n]\n", `null`, `true`, `false`, `nul`, `nulll`, `True`, `tru e`,
	`0`, `-0`, `-`, `01`, `1.`, `.5`, `1.5`, `1e`, `1e+`, `1e5`, `1E-5`, `-1.0e+10`, `+1`, `0x1`, `1 2`, `1e5.5`, `00`, `-01`, `0e0`, `0.0.0`,
	`""`, `"a"`, `"a`, `"\"`, `"\\"`, `"\x"`, `"\u"`, `"\u12"`, `"\u12g4"`, `"\uABCD"`, `"\uabcd"`, `"\u0000"`,
	`"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\ud83d\ud83d"`, `"\ud83dx"`, `"\ud83d\n"`, `"\ud83d\u0041"`, `"\ud83d\u00"`, `"\ud83d\`, `"\ud83d\u`, `"\uD83D\uDE0`,
	"\"\x00\"", "\"\x1f\"", "\"\x7f\"", "\"\n\"", "\"\t\"", "\"é\"", "\"你好\"", "\"😀\"", "\"\xff\"", "\"\xc3\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
	"\"\xe4\xbd\"", "\"\xf0\x9f\x98\"", "\"1234567\xc3\"", "\"12345678\xc3\xa9\"", "\"\u2028\"", "\ufeff{}", "{}\x00", "{}\v", "\u00a0{}",
	`[1,2,3]`, `[1,]`, `[,1]`, `[1 2]`, `[1,,2]`, `[[[]]]`, `[[]`, `[}`, `[{"a":[{}]}]`, `[ 1 , "x" , null ]`,
	`{"a":1}`, `{"a":1,}`, `{,"a":1}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{1:1}`, `{"a":1 "b":2}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"":1}`, `{"":1,"":2}`, `{ "a" : 1 , "b" : { "c" : [ ] } }`,
	`{"a":1}}`, `{"a":1]`, `{"\ud800":1}`, "{\"\xff\":1}", `{"a":{"b":1,"b":2}}`, `{"a":1}{"b":2}`, `{"a":1},`, `{"\u0000":1,"\n":2}`,
	`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1,"b":[1,2,{"c":"d\"e"}]}}`,
	`{"jsonrpc":"2.0","id":"a\u0062","method":"m\u0061","params":{"\u0061":1}}`,
	`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, `{"jsonrpc":"2.0","id":1,"result":[1]}`, `{"jsonrpc":"2.0","id":1,"result":null}`,
	`{"jsonrpc":"2.0","id":1,"error":{"code":1.0,"message":"m","data":null}}`, `{"jsonrpc":"2.0","id":1,"error":"no"}`, `{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`,
	`{"\u006asonrpc":"2.0","\u0069d":7,"metho\u0064":"m","param\u0073":{}}`, `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`,
	strings.Repeat(`[`, 511) + strings.Repeat(`]`, 511), strings.Repeat(`[`, 512) + strings.Repeat(`]`, 512), strings.Repeat(`[`, 513) + strings.Repeat(`]`, 513),
	strings.Repeat(`{"a":`, 512) + `1` + strings.Repeat(`}`, 512), strings.Repeat(`{"a":`, 513) + `1` + strings.Repeat(`}`, 513),
}

// TestAgreesWithJSONText runs the reference over every text, over every
// beginning of it, and over it with each byte changed.
func TestAgreesWithJSONText(t *testing.T) {
	for _, text := range jsonTexts {
		data := []byte(text)
		agree(t, data)
		if len(data) > 200 {
			continue
		}
		for i := range data {
			agree(t, data[:i])
			for _, c := range []byte("\"\\{}[]:, \x00\x80\xffu0e.-n") {
				changed := bytes.Clone(data)
				changed[i] = c
				agree(t, changed)
			}
		}
	}
}

// TestStringsOfAllLengths puts each kind of byte at each place of a word.
func TestStringsOfAllLengths(t *testing.T) {
	for _, odd := range []string{"", `\"`, `\\`, `\u00e9`, `\ud83d\ude00`, `\ud83d`, "é", "你", "😀", "\xff", "\x1f", "\x80", `"`, `\`, "\x7f", " ", "!", "#", "[", "]"} {
		for before := range 20 {
			for after := range 18 {
				agree(t, []byte(`"`+strings.Repeat("x", before)+odd+strings.Repeat("y", after)+`"`))
				agree(t, []byte(`{"`+strings.Repeat("é", before)+odd+strings.Repeat("~", after)+`":"z"}`))
			}
		}
	}
}

// FuzzParse compares Parse, ParseObject and Elements with the reference.
func FuzzParse(f *testing.F) {
	for _, text := range jsonTexts {
		f.Add([]byte(text))
	}
	for _, line := range fixtureLines(f, "*") {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, data) })
}

// fixtureLines returns the lines of the fixtures that a pattern names.
func fixtureLines(tb testing.TB, pattern string) []string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern+".jsonl"))
	if err != nil || len(files) == 0 {
		tb.Fatalf("no fixture %s: %v", pattern, err)
	}
	var lines []string
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")...)
	}
	return lines
}
