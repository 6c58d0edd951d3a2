package mcp_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/mcp"
)

var cursors = []mcp.Cursor{
	{},
	{Epoch: 1, Kind: mcp.Templates, View: "default", High: 420, Place: 3, Ordinal: 17},
	{Epoch: math.MaxUint64, Kind: mcp.Prompts, View: "ünïcode/\x00\xff", High: math.MaxUint64, Place: math.MaxUint64, Ordinal: math.MaxUint64},
	{View: strings.Repeat("v", 700), High: 1},
}

func TestCursor(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range cursors {
		s := c.Encode()
		got, err := mcp.DecodeCursor(s)
		if err != nil || got != c {
			t.Errorf("%+v came back as %+v, %v", c, got, err)
		}
		if len(s) > mcp.MaxCursor || seen[s] || strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" {
			t.Errorf("%+v is written as %q", c, s)
		}
		seen[s] = true
	}
}

// TestForeignCursors is C-010.
func TestForeignCursors(t *testing.T) {
	good := cursors[1].Encode()
	tests := []struct{ name, cursor string }{
		{"empty", ""},
		{"short", "AAAA"},
		{"zeros", strings.Repeat("A", 40)},
		{"offset of another server", "NTA="},
		{"JSON", `{"offset":50}`},
		{"not base64", good + "!"},
		{"padded", good + "="},
		{"with a line break", good[:5] + "\n" + good[5:]},
		{"cut", good[:len(good)-1]},
		{"cut by a byte", good[:len(good)-4]},
		{"longer", good + "AAAA"},
		{"twice", good + good},
		{"too long", strings.Repeat("A", mcp.MaxCursor+1)},
		{"not ASCII", good + "é"},
	}
	for _, tt := range tests {
		if got, err := mcp.DecodeCursor(tt.cursor); err == nil || got != (mcp.Cursor{}) {
			t.Errorf("%s: got %+v, %v", tt.name, got, err)
		}
	}
}

// TestTamperedCursors changes each character of a cursor to each other one.
func TestTamperedCursors(t *testing.T) {
	good := cursors[1].Encode()
	for i := range good {
		for _, c := range []byte("ABCZaz09-_+/=") {
			if good[i] == c {
				continue
			}
			bad := []byte(good)
			bad[i] = c
			if got, err := mcp.DecodeCursor(string(bad)); err == nil {
				t.Errorf("%s was read as %+v", bad, got)
			}
		}
	}
}

// TestKindOfCursor: the reader can tell a cursor of another list.
func TestKindOfCursor(t *testing.T) {
	for _, kind := range mcp.Kinds {
		got, err := mcp.DecodeCursor(mcp.Cursor{Kind: kind, View: "v"}.Encode())
		if err != nil || got.Kind != kind || got.View != "v" {
			t.Errorf("%v: got %+v, %v", kind, got, err)
		}
	}
	if _, err := mcp.DecodeCursor(mcp.Cursor{Kind: mcp.Kind(len(mcp.Kinds))}.Encode()); err == nil {
		t.Error("a kind that does not exist was read")
	}
}

func FuzzCursor(f *testing.F) {
	for _, c := range cursors {
		f.Add(c.Encode(), c.Epoch, uint8(c.Kind), c.View, c.High, c.Place, c.Ordinal)
	}
	f.Add("AAAA", uint64(0), uint8(0), "", uint64(0), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, s string, epoch uint64, kind uint8, view string, high, place, ordinal uint64) {
		if c, err := mcp.DecodeCursor(s); err == nil && c.Encode() != s {
			t.Errorf("%q was read as %+v, which is %q", s, c, c.Encode())
		}
		c := mcp.Cursor{Epoch: epoch, Kind: mcp.Kind(kind % 4), View: view, High: high, Place: place, Ordinal: ordinal}
		if len(view) > 700 {
			return
		}
		if got, err := mcp.DecodeCursor(c.Encode()); err != nil || got != c {
			t.Errorf("%+v came back as %+v, %v", c, got, err)
		}
	})
}
