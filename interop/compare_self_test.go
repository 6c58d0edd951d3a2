package interop

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheckUnion(t *testing.T) {
	lists := [][]string{{"a1", "a2", "s"}, {"s", "b1"}, {}, {"c1", "c2"}}
	for _, tt := range []struct{ name, got, want string }{
		{"first owner", "a1 a2 s b1 c1 c2", ""},
		{"second owner", "a1 a2 s b1 c1 c2", ""},
		{"twice", "a1 a2 s s b1 c1 c2", "twice"},
		{"stranger", "a1 a2 s b1 x c1 c2", "no server"},
		{"servers swapped", "a1 a2 s c1 c2 b1", "out of order"},
		{"items swapped", "a2 a1 s b1 c1 c2", "out of order"},
		{"blocks mixed", "a1 b1 a2 s c1 c2", "out of order"},
		{"one missing", "a1 a2 s b1 c1", `"c2" is missing, and 1 items`},
		{"nothing", "", "and 6 items"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := checkUnion(strings.Fields(tt.got), lists)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSameItem(t *testing.T) {
	const want = `{"name":"echo","inputSchema":{"type":"object","maximum":12345678901234567890},"x":1}`
	for _, tt := range []struct{ name, got, want string }{
		{"other name", `{"x":1,"inputSchema":{"maximum":12345678901234567890,"type":"object"},"name":"s__echo"}`, ""},
		{"member lost", `{"name":"s__echo","inputSchema":{"type":"object","maximum":12345678901234567890}}`, "x: got none, want 1"},
		{"member added", `{"name":"s__echo","inputSchema":{"type":"object","maximum":12345678901234567890},"x":1,"y":2}`, "y: got 2, want none"},
		{"number rounded", `{"name":"s__echo","inputSchema":{"type":"object","maximum":12345678901234567000},"x":1}`, "inputSchema: got"},
		{"no object", `[]`, "not a JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := sameItem(json.RawMessage(tt.got), json.RawMessage(want), "name")
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestSameResult(t *testing.T) {
	const want = `{"content":[{"type":"text","text":"hi"}]}`
	for _, tt := range []struct {
		name, got string
		ok        bool
	}{
		{"other era", `{"content":[{"type":"text","text":"hi"}],"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x"}}}`, true},
		{"other text", `{"content":[{"type":"text","text":"ho"}]}`, false},
		{"other meta", `{"content":[{"type":"text","text":"hi"}],"_meta":{"a":1}}`, false},
		{"error", `{"content":[{"type":"text","text":"hi"}],"isError":true}`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := sameResult(json.RawMessage(tt.got), json.RawMessage(want)); (err == nil) != tt.ok {
				t.Errorf("got %v, want ok %v", err, tt.ok)
			}
		})
	}
}
