package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	const broken = "package p\n\nimport \"testing\"\n\n"
	tests := []struct {
		name  string
		test  string // the test file of the package that is run
		code  int
		shown string
		hid   string
		last  string
	}{
		{
			"all pass",
			broken + `func TestA(t *testing.T) { t.Log("noise"); t.Run("sub", func(*testing.T) {}) }`,
			0, "ok  \texample.com/p", "noise", "2 passed, 0 failed",
		},
		{
			"one fails",
			broken + `func TestA(t *testing.T) {}
func TestB(t *testing.T) { t.Error("because") }`,
			1, "because", "", "1 passed, 1 failed",
		},
		{
			"one is skipped",
			broken + `func TestA(t *testing.T) { t.Skip("noise") }`,
			0, "1 skipped", "noise", "0 passed, 0 failed",
		},
		{
			"panic",
			broken + `func TestA(t *testing.T) {}
func TestB(t *testing.T) { panic("because") }`,
			1, "because", "", "1 passed, 1 failed",
		},
		{
			"exit",
			"package p\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(*testing.M) { os.Exit(3) }",
			1, "FAIL\texample.com/p", "", "0 passed, 1 failed",
		},
		{
			"does not build",
			broken + `func TestA(t *testing.T) { undefined() }`,
			1, "undefined: undefined", "", "0 passed, 1 failed",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/p\n\ngo 1.26\n")
			write(t, filepath.Join(dir, "p_test.go"), tt.test)
			counts := filepath.Join(dir, "counts")
			var shown strings.Builder
			code, err := run(counts, []string{"go", "test", "-C", dir, "-json", "./..."}, &shown, t.Output())
			if err != nil || code != tt.code {
				t.Errorf("run = %d, %v; want %d", code, err, tt.code)
			}
			if !strings.HasSuffix(shown.String(), "\n"+tt.last+"\n") {
				t.Errorf("the last line is not %q:\n%s", tt.last, &shown)
			}
			if !strings.Contains(shown.String(), tt.shown) || tt.hid != "" && strings.Contains(shown.String(), tt.hid) {
				t.Errorf("want to see %q and not %q:\n%s", tt.shown, tt.hid, &shown)
			}
			got, err := os.ReadFile(counts)
			want := strings.NewReplacer(" passed,", "", " failed", "").Replace(tt.last) + "\n"
			if err != nil || string(got) != want {
				t.Errorf("counts = %q, %v; want %q", got, err, want)
			}
		})
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
