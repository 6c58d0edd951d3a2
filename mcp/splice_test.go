package mcp_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// object reads an object that is part of a test.
func object(tb testing.TB, text string) jsonrpc.Object {
	tb.Helper()
	obj, err := jsonrpc.ParseObject(jsontext.Value(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return obj
}

// fixture returns the messages of a fixture.
func fixture(tb testing.TB, name string) []jsonrpc.Message {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	var out []jsonrpc.Message
	for line := range bytes.Lines(b) {
		m, err := jsonrpc.Parse(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			tb.Fatalf("%s: %s: %v", name, line, err)
		}
		out = append(out, m)
	}
	return out
}

func set(name, value string) mcp.Edit { return mcp.Edit{Name: name, Value: jsontext.Value(value)} }

func remove(name string) mcp.Edit { return mcp.Edit{Name: name} }

func TestSplice(t *testing.T) {
	tests := []struct {
		name, from string
		edits      []mcp.Edit
		want       string
	}{
		{"replace", `{ "a" : 1 , "b":2 }`, []mcp.Edit{set("a", `"x"`)}, `{ "a" : "x" , "b":2 }`},
		{"replace the last", `{ "a" : 1 , "b":2 }`, []mcp.Edit{set("b", `{}`)}, `{ "a" : 1 , "b":{} }`},
		{"replace both", `{ "a" : 1 , "b":2 }`, []mcp.Edit{set("b", `3`), set("a", `4`)}, `{ "a" : 4 , "b":3 }`},
		{"replace an escaped name", `{"\u0061":1}`, []mcp.Edit{set("a", `2`)}, `{"\u0061":2}`},
		{"other letters stay", `{"a":1,"A":2}`, []mcp.Edit{set("A", `3`)}, `{"a":1,"A":3}`},
		{"add", `{ "a":1 }`, []mcp.Edit{set("b", `2`)}, `{ "a":1,"b":2 }`},
		{"add two", `{"a":1}`, []mcp.Edit{set("c", `2`), set("b", `3`)}, `{"a":1,"c":2,"b":3}`},
		{"add to nothing", `{}`, []mcp.Edit{set("a\"", `1`)}, `{"a\"":1}`},
		{"add to space", `{ }`, []mcp.Edit{set("a", `1`)}, `{"a":1 }`},
		{"remove the only", `{ "a":1 }`, []mcp.Edit{remove("a")}, `{  }`},
		{"remove the first", `{ "a":1 , "b":2 }`, []mcp.Edit{remove("a")}, `{ "b":2 }`},
		{"remove the last", `{ "a":1 , "b":2 }`, []mcp.Edit{remove("b")}, `{ "a":1 }`},
		{"remove in the middle", `{"a":1, "b":2, "c":3}`, []mcp.Edit{remove("b")}, `{"a":1, "c":3}`},
		{"remove the first two", `{"a":1, "b":2, "c":3}`, []mcp.Edit{remove("a"), remove("b")}, `{"c":3}`},
		{"remove the last two", `{"a":1, "b":2, "c":3}`, []mcp.Edit{remove("c"), remove("b")}, `{"a":1}`},
		{"remove all", `{"a":1, "b":2}`, []mcp.Edit{remove("a"), remove("b")}, `{}`},
		{"remove all and add", `{"a":1, "b":2}`, []mcp.Edit{remove("a"), remove("b"), set("c", `3`)}, `{"c":3}`},
		{"remove, replace, add", `{"a":1,"b":2,"c":3}`, []mcp.Edit{set("d", `4`), remove("a"), set("c", `5`)}, `{"b":2,"c":5,"d":4}`},
		{"remove what is not there", `{ "a":1 }`, []mcp.Edit{remove("b")}, `{ "a":1 }`},
		{"nothing to do", `{ "a":1 }`, nil, `{ "a":1 }`},
		{"big numbers stay", `{"n":9007199254740993,"x":[1.0,1e5,-0],"s":"\u003c\/"}`, []mcp.Edit{set("y", `null`)}, `{"n":9007199254740993,"x":[1.0,1e5,-0],"s":"\u003c\/","y":null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from := object(t, tt.from)
			if got := mcp.Splice(from, tt.edits...); string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if string(from.Raw) != tt.from {
				t.Errorf("the original became %s", from.Raw)
			}
		})
	}
}

func TestSpliceOfOtherThings(t *testing.T) {
	if got := mcp.Splice(jsonrpc.Object{}, set("a", "1")); string(got) != `{"a":1}` {
		t.Errorf("a zero Object became %s", got)
	}
	if got := mcp.Splice(jsonrpc.Object{}, remove("a")); string(got) != `{}` {
		t.Errorf("a zero Object became %s", got)
	}
	for _, result := range []string{`[1]`, `null`, `"x"`, `7`} {
		m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := mcp.Splice(m.Result, set("a", "1")); string(got) != result {
			t.Errorf("%s became %s", result, got)
		}
	}
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":1,"b":2,"a":3}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := mcp.Splice(m.Result, set("a", "4")); string(got) != `{"a":1,"b":2,"a":4}` {
		t.Errorf("replacing a name that stands twice: %s", got)
	}
	if got := mcp.Splice(m.Result, remove("a")); string(got) != `{"b":2}` {
		t.Errorf("removing a name that stands twice: %s", got)
	}
}

// part is one member as the reference sees it.
type part struct{ name, value string }

// parts reads an object with jsontext.
func parts(tb testing.TB, raw jsontext.Value) []part {
	tb.Helper()
	dec := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowDuplicateNames(true))
	if _, err := dec.ReadToken(); err != nil {
		tb.Fatalf("%s: %v", raw, err)
	}
	var out []part
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			tb.Fatalf("%s: %v", raw, err)
		}
		p := part{name: name.String()}
		v, err := dec.ReadValue()
		if err != nil {
			tb.Fatalf("%s: %v", raw, err)
		}
		p.value = string(v)
		out = append(out, p)
	}
	if _, err := dec.ReadToken(); err != nil || int(dec.InputOffset()) != len(raw) {
		tb.Fatalf("%s: %v", raw, err)
	}
	return out
}

// edit is the reference: it edits the decoded object.
func edit(in []part, edits []mcp.Edit) []part {
	out := slices.Clone(in)
	for _, e := range edits {
		is := func(p part) bool { return p.name == e.Name }
		switch {
		case e.Value == nil:
			out = slices.DeleteFunc(out, is)
		case slices.ContainsFunc(out, is):
			for i := range slices.Backward(out) {
				if is(out[i]) {
					out[i].value = string(e.Value)
					break
				}
			}
		default:
			out = append(out, part{e.Name, string(e.Value)})
		}
	}
	return out
}

// spliceAgrees compares Splice with the reference, and checks that the bytes
// around the edits are those of the original.
func spliceAgrees(t *testing.T, from jsonrpc.Object, edits []mcp.Edit) {
	t.Helper()
	before := bytes.Clone(from.Raw)
	got := mcp.Splice(from, edits...)
	if !bytes.Equal(from.Raw, before) {
		t.Fatalf("the original %s became %s", before, from.Raw)
	}
	if want := edit(parts(t, from.Raw), edits); !slices.Equal(parts(t, got), want) {
		t.Fatalf("%s with %v became %s, want %v", from.Raw, edits, got, want)
	}
	scratch := []byte("what was there before")
	for range 2 { // the second time in memory that has grown
		if again := mcp.SpliceInto(&scratch, from, edits...); !bytes.Equal(again, got) {
			t.Fatalf("%s with %v became %s, in other memory %s", from.Raw, edits, got, again)
		}
	}
	rest := string(got)
	for i := range from.Len() {
		m := from.Member(i)
		kept := string(from.Raw[m.Key:m.End])
		if slices.ContainsFunc(edits, func(e mcp.Edit) bool { return from.Is(i, e.Name) && e.Value == nil }) {
			continue
		}
		if slices.ContainsFunc(edits, func(e mcp.Edit) bool { return from.Is(i, e.Name) && from.Find(e.Name) == i }) {
			kept = string(from.Raw[m.Key:m.Start]) // and another value
		}
		_, after, ok := strings.Cut(rest, kept)
		if !ok {
			t.Fatalf("%s with %v became %s: %s is gone", from.Raw, edits, got, kept)
		}
		rest = after
	}
	if len(edits) == 1 && from.Len() > 0 {
		last := from.Member(from.Len() - 1).End
		if i := from.Find(edits[0].Name); i >= 0 && edits[0].Value != nil {
			m := from.Member(i)
			want := string(from.Raw[:m.Start]) + string(edits[0].Value) + string(from.Raw[m.End:])
			if string(got) != want {
				t.Fatalf("%s became %s, want %s", from.Raw, got, want)
			}
		} else if i < 0 && (!bytes.HasPrefix(got, from.Raw[:last]) || !bytes.HasSuffix(got, from.Raw[last:])) {
			t.Fatalf("%s became %s", from.Raw, got)
		}
	}
}

// TestSpliceAgrees tries every combination of edits on objects of many shapes.
func TestSpliceAgrees(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	values := []jsontext.Value{nil, jsontext.Value(`1`), jsontext.Value(`{"x":[ ]}`)}
	for n := range 4 {
		for _, space := range []string{"", " ", "\n\t"} {
			var text strings.Builder
			text.WriteString("{" + space)
			for i := range n {
				if i > 0 {
					text.WriteString(space + "," + space)
				}
				fmt.Fprintf(&text, `"%s"%s:%s[%d]`, names[i], space, space, i)
			}
			text.WriteString(space + "}")
			from := object(t, text.String())
			for choice := range 4 * 4 * 4 * 4 {
				var edits []mcp.Edit
				for i, rest := 0, choice; i < 4; i, rest = i+1, rest/4 {
					if rest%4 < 3 {
						edits = append(edits, mcp.Edit{Name: names[i], Value: values[rest%4]})
					}
				}
				spliceAgrees(t, from, edits)
				slices.Reverse(edits)
				spliceAgrees(t, from, edits)
			}
		}
	}
}

func FuzzSplice(f *testing.F) {
	f.Add([]byte(`{"name":"x","arguments":{"a":[1]},"_meta":{}}`), "name", "y", uint8(1), "_meta", "", uint8(2))
	f.Add([]byte(` { "\u0061" : 1.0 , "b" : null } `), "a", "", uint8(2), "c", "z", uint8(1))
	f.Add([]byte(`{}`), "", "", uint8(1), "a", "", uint8(1))
	f.Fuzz(func(t *testing.T, data []byte, name1, value1 string, op1 uint8, name2, value2 string, op2 uint8) {
		from, err := jsonrpc.ParseObject(data)
		if err != nil {
			return
		}
		var edits []mcp.Edit
		for _, e := range []struct {
			name, value string
			op          uint8
		}{{name1, value1, op1}, {name2, value2, op2}} {
			name := strings.ToValidUTF8(e.name, "?")
			if len(edits) == 1 && edits[0].Name == name {
				continue
			}
			switch e.op % 3 {
			case 1:
				edits = append(edits, mcp.Edit{Name: name, Value: mcp.String(e.value)})
			case 2:
				edits = append(edits, mcp.Edit{Name: name})
			}
		}
		spliceAgrees(t, from, edits)
	})
}

// TestSpliceCost: a change is one allocation beside the list of edits, none is
// none.
func TestSpliceCost(t *testing.T) {
	from := object(t, `{"name":"x","arguments":{"a":[1]},"_meta":{}}`)
	name := set("name", `"server__x"`)
	if got := testing.AllocsPerRun(100, func() { mcp.Splice(from, name) }); got > 2 {
		t.Errorf("%v allocations", got)
	}
	if got := testing.AllocsPerRun(100, func() { mcp.Splice(from) }); got > 0 {
		t.Errorf("%v allocations for nothing", got)
	}
}

func BenchmarkSplice(b *testing.B) {
	from := object(b, `{"name":"x","arguments":{"a":"`+strings.Repeat("x", 1000)+`"},"_meta":{"progressToken":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		mcp.Splice(from, mcp.Edit{Name: "name", Value: jsontext.Value(`"y"`)})
	}
}
