package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testManual() manual {
	p := &program{Process: Process{
		Stdin: strings.NewReader(""), Stdout: new(bytes.Buffer), Stderr: new(bytes.Buffer),
		LookupEnv: func(string) (string, bool) { return "", false },
	}}
	p.out = &sink{w: p.Stdout}
	return p.manual()
}

// docs/commands is what the commands say of themselves.
func TestDocsAreFresh(t *testing.T) {
	dir := filepath.Join("..", "..", "docs", "commands")
	pages := testManual().markdown()
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), want) {
			t.Errorf("docs/commands/%s is not what the commands say: run 'make docs' (%v)", name, err)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := pages[e.Name()]; !ok {
			t.Errorf("docs/commands/%s is of no command: run 'make docs'", e.Name())
		}
	}
}

// Each command says what it does, how, and with an example, and its pages for man
// have all of it.
func TestCommandsAreDescribed(t *testing.T) {
	m := testManual()
	man := m.man()
	for _, cmd := range m.commands {
		if strings.Contains(cmd.CommandPath(), "completion") {
			continue // cobra's
		}
		path := cmd.CommandPath()
		if cmd.Short == "" || cmd.Runnable() && !cmd.HasSubCommands() && (cmd.Long == "" || cmd.Example == "" || !strings.Contains(cmd.Long, exitCodes)) {
			t.Errorf("%s has no description, no example or no exit codes", path)
		}
		page := string(man[pageName(cmd)+".1"])
		for _, part := range []string{".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", ".SH OPTIONS"} {
			if !strings.Contains(page, part+"\n") {
				t.Errorf("the page of %s lacks %s", path, part)
			}
		}
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && len(line) > 3 && line[1] >= 'a' && line[1] <= 'z' && line != ".nf\n" && line != ".fi\n" {
				t.Errorf("the page of %s has a line that man takes for a request: %s", path, line)
			}
		}
	}
}
