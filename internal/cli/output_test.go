package cli

import (
	"bytes"
	"testing"

	"github.com/mcp-roster/roster/internal/admin"
)

// What servers write cannot move the cursor or break a line.
func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain", "plain"},
		{" around ", "around"},
		{"two\nlines\tand a tab", "two lines and a tab"},
		{"\x1b[31mred\x1b[0m\a", "[31mred [0m"},
		{"c1 \u009b31m", "c1  31m"},
		{"bad \xff", "bad \uFFFD"},
	}
	for _, tt := range tests {
		if got := clean(tt.in); got != tt.want {
			t.Errorf("clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestShorten(t *testing.T) {
	tests := []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abcd", 3, "ab…"},
		{"äöüß", 3, "äö…"},
		{"abc", 1, ""},
		{"abc", -1, ""},
	}
	for _, tt := range tests {
		if got := shorten(tt.in, tt.n); got != tt.want {
			t.Errorf("shorten(%q, %d) = %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
}

// Off a terminal a table is lines of fields, and no field has a tab or a line break.
func TestPrintPlain(t *testing.T) {
	var out bytes.Buffer
	p := &program{out: &sink{w: &out}}
	p.printTable(p.out, table{header: []string{"A", "B"}, rows: [][]string{{"a", "b\tb\nb"}, {"c", ""}}})
	if got, want := out.String(), "a\tb b b\nc\t\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A list in JSON has one definition on each line, as it came.
func TestPrintArray(t *testing.T) {
	var out bytes.Buffer
	p := &program{out: &sink{w: &out}}
	items := []item{{raw: []byte(`{"b":1.0, "a":"\u00e4"}`)}, {raw: []byte("{\n\"c\": 2\n}")}}
	if err := p.printArray(items); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "[\n"+`{"b":1.0, "a":"\u00e4"}`+",\n"+`{"c":2}`+"\n]\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatusNotes(t *testing.T) {
	notes := statusNotes(admin.Status{
		Problems: []string{"a.json:1:1: warning: x"},
		Servers: []admin.Server{{
			Name:     "s",
			Renamed:  []admin.Rename{{Kind: "tools", Name: "a b", Exposed: "s__a_b_1"}},
			LeftOut:  []admin.LeftOut{{Kind: "prompts", Name: "p", Reason: "no name"}},
			Warnings: []string{"a cursor came twice"},
		}},
	})
	want := []string{
		"a.json:1:1: warning: x",
		`s: tool "a b" is listed as "s__a_b_1"`,
		`s: prompt "p" is left out: no name`,
		"s: a cursor came twice",
	}
	if len(notes) != len(want) {
		t.Fatalf("got %q", notes)
	}
	for i := range want {
		if notes[i] != want[i] {
			t.Errorf("got %q, want %q", notes[i], want[i])
		}
	}
}
