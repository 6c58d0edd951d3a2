package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, checks := range map[string]string{
		"server-ping-2026-11-30T23-49-26-123Z":       `[{"id":"a","name":"A","status":"SUCCESS","details":{}},{"id":"a","name":"A","status":"FAILURE","errorMessage":"m"}]`,
		"server-auth/basic-2026-11-30T23-49-26-124Z": `[]`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "checks.json"), []byte(checks), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r, err := read(dir, "server-")
	if err != nil {
		t.Fatal(err)
	}
	want := []check{{ID: "a", Name: "A", Status: success}, {ID: "a", Name: "A", Status: failure, Message: "m"}}
	if !slices.Equal(r["ping"], want) {
		t.Errorf("ping: %v, want %v", r["ping"], want)
	}
	if _, ok := r["auth/basic"]; !ok || len(r) != 2 {
		t.Errorf("scenarios: %v", r)
	}
}

func TestLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.yaml")
	text := "# c\nserver:\n  - a # why\n  # - b\n  - c/d\n\nnot_scored:\n  - scenario: e\n    leg: client\nclient:\n  - f\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := lists(path)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got["server"], []string{"a", "c/d"}) || !slices.Equal(got["client"], []string{"f"}) || len(got) != 2 {
		t.Errorf("got %v", got)
	}
}

func TestWorse(t *testing.T) {
	ok, bad := check{ID: "a", Name: "A", Status: success}, check{ID: "a", Name: "A", Status: failure, Message: "m"}
	warned := check{ID: "sep-2575-server-sends-tools-list-changed-on-subscription", Name: "T", Status: warning}
	sent := warned
	sent.Status = success
	tests := []struct {
		name            string
		direct, through []check
		want            string // part of the only message; "": there is none
	}{
		{"same", []check{ok, ok}, []check{ok, ok}, ""},
		{"better", []check{bad}, []check{ok}, ""},
		{"a new one fails", []check{ok}, []check{ok, bad}, "FAILURE m"},
		{"both fail", []check{bad}, []check{bad}, ""},
		{"fails", []check{ok}, []check{bad}, "FAILURE m"},
		{"one of two fails", []check{ok, ok}, []check{ok, bad}, "FAILURE m"},
		{"not made", []check{ok, ok}, []check{ok}, "was not made"},
		{"allowed", []check{sent}, []check{warned}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := worse(result{"server-stateless": tt.direct}, result{"server-stateless": tt.through})
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0], tt.want)) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestFailing(t *testing.T) {
	ok, bad := check{ID: "a", Name: "A", Status: success}, check{ID: "a", Name: "A", Status: warning}
	r := result{"good": {ok}, "bad": {bad, ok}, "known": {bad}, "stale": {ok}}
	got := failing(r, []string{"known", "stale", "of another version"})
	if len(got) != 2 || !strings.HasPrefix(got[0], "bad: a") || !strings.HasPrefix(got[1], "stale: passes") {
		t.Errorf("got %q", got)
	}
}

func TestTable(t *testing.T) {
	ok, bad := check{Status: success}, check{Status: failure}
	columns := []column{
		{"x", result{"a": {ok, bad}, "b": {ok, {Status: warning}, {Status: "INFO"}}}},
		{"y", result{"a": {ok}}},
	}
	var out strings.Builder
	if err := table(&out, columns, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(out.String()) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"scenario x y", "a 1/2 1/1", "b * 1/2 (1 warned) -", "required 1/2 1/1", "others * 1/2 (1 warned) -", "all 2/4 (1 warned) 1/1",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
