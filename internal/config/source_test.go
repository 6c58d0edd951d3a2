package config_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/config"
)

func TestComments(t *testing.T) { // C-168
	cfg, problems, err := config.Load([]string{"testdata/cfg_jsonc.json"}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if names(cfg) != "a" {
		t.Fatalf("servers %q", names(cfg))
	}
	if got := strings.Join(cfg.Servers[0].Args, "|"); got != "/* not a comment */|http://x/y // z" {
		t.Errorf("args %q", got)
	}
	if at := cfg.Servers[0].At; at.Line != 5 || at.Column != 5 {
		t.Errorf("the server is at %v", at)
	}
}

func TestCommentAtTheEnd(t *testing.T) {
	cfg, _ := load(t, nil, `{"mcpServers": {"a": {"command": "c"}}} // the end`)
	if names(cfg) != "a" {
		t.Errorf("servers %q", names(cfg))
	}
}

func TestByteOrderMark(t *testing.T) { // C-169
	cfg, problems, err := config.Load([]string{"testdata/cfg_bom.json"}, nil)
	if err != nil || len(problems) > 0 || names(cfg) != "a" {
		t.Fatal(err, problems)
	}
	if at := cfg.Servers[0].At; at.Line != 2 || at.Column != 19 {
		t.Errorf("the server is at %v", at)
	}
}

func TestSyntaxErrors(t *testing.T) {
	utf16 := func(s string) string {
		var b strings.Builder
		b.WriteString("\xff\xfe")
		for _, c := range s {
			b.WriteByte(byte(c))
			b.WriteByte(0)
		}
		return b.String()
	}
	tests := []struct {
		name, content string
		line, column  int
		want          string
	}{
		{"C-169 empty", "", 1, 1, "the file is empty"},
		{"C-169 white space", " \r\n\t ", 1, 1, "the file is empty"},
		{"C-169 only a byte order mark", "\ufeff", 1, 1, "the file is empty"},
		{"C-169 UTF-16", utf16(`{"mcpServers": {}}`), 1, 1, "UTF-16, expected UTF-8"},
		{"C-169 UTF-16 without mark", utf16(`{}`)[2:], 1, 1, "UTF-16, expected UTF-8"},
		{"C-169 UTF-16 big-endian", "\xfe\xff\x00{\x00}", 1, 1, "UTF-16, expected UTF-8"},
		{"UTF-32", "\xff\xfe\x00\x00{\x00\x00\x00", 1, 1, "UTF-32, expected UTF-8"},
		{"Latin-1", "{\n\"a\": \"\xe9\"}", 2, 7, "expected UTF-8"},
		{"only a comment", "// nothing", 1, 11, "expected a value"},
		{"array", "[]", 1, 1, "expected a JSON object, found an array"},
		{"string", ` "x"`, 1, 2, "expected a JSON object, found a string"},
		{"truncated", "{\n  \"mcpServers\": {", 2, 18, "found the end of the file"},
		{"truncated after name", `{"a"`, 1, 5, `expected ":" after a key, found the end of the file`},
		{"truncated after value", `{"a": 1`, 1, 8, `expected "," or "}" after a value, found the end of the file`},
		{"truncated array", `{"a": [1`, 1, 9, `expected "," or "]" after a value, found the end of the file`},
		{"truncated string", `{"a": "b`, 1, 7, `expected a double quote that ends this string`},
		{"truncated escape", `{"a": "b\`, 1, 7, `expected a double quote that ends this string`},
		{"missing quote", "{\"a\": \"b,\n\"c\": \"d\"}", 1, 10, `before the line ends`},
		{"missing last quote", "{\"a\": \"b\n}", 1, 9, `before the line ends`},
		{"missing comma", "{\r\n  \"é\": 1\r\n  \"b\": 2\r\n}", 3, 3, `expected "," or "}" after a value, found '"'`},
		{"missing comma in array", `{"é": ["b" "c"]}`, 1, 12, `expected "," or "]" after a value, found '"'`},
		{"missing colon", `{"a" 1}`, 1, 6, `expected ":" after a key, found '1'`},
		{"missing value", `{"a": }`, 1, 7, `expected a value`},
		{"two commas", `{"a": 1,, "b": 2}`, 1, 9, `expected a value`},
		{"key is a number", `{1: 2}`, 1, 2, `expected a key in double quotes, found '1'`},
		{"key without quotes", `{a: 2}`, 1, 2, `expected a value: a string in double quotes`},
		{"single quotes", `{"a": 'b'}`, 1, 7, `found '\''`},
		{"bad literal", `{"a": True}`, 1, 7, `found 'T'`},
		{"line break in string", "{\"a\": \"b\n\"}", 1, 9, `before the line ends`},
		{"control character in string", "{\"a\": \"b\x01\"}", 1, 9, `found the control character '\x01'`},
		{"bad escape", `{"p": "C:\Users"}`, 1, 10, `a backslash is \\`},
		{"bad unicode escape", `{"p": "\u12g4"}`, 1, 8, `four hexadecimal digits`},
		{"comment without end", "{} /* x", 1, 4, `"*/" that ends the comment`},
		{"far in a long line", `{"é": "` + strings.Repeat("é", 10_000) + `" x`, 1, 10_010, "found 'x'"},
		{"stray slash", `{"a": 1} / 2`, 1, 10, "expected the end of the file, found '/'"},
		{"two values", "{}\n{}", 2, 1, `expected the end of the file, found '{'`},
		{"line separator in comment", "{ // \u2028\n}", 1, 6, `line separator`},
		{"server map is a string", "{\n\"mcpServers\": \"x\"}", 2, 15, "mcpServers: expected an object or an array of servers, found a string"},
		{"nested too deep", `{"a": ` + strings.Repeat("[", 1<<20), 1, 518, "nested more than 512 deep"},
		{"comments do not hide depth", `{"a": /* " */ ` + strings.Repeat("[", 1000) + `// "`, 1, 526, "nested more than 512 deep"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, problems, err := config.Load(write(t, tt.content), nil)
			var syntax *config.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("got %v, %v, %v; want a syntax error", cfg, problems, err)
			}
			if cfg != nil {
				t.Error("a configuration came with the error")
			}
			if syntax.Line != tt.line || syntax.Column != tt.column || !strings.Contains(syntax.Message, tt.want) {
				t.Errorf("got  %d:%d %s\nwant %d:%d %s", syntax.Line, syntax.Column, syntax.Message, tt.line, tt.column, tt.want)
			}
			if !strings.HasSuffix(syntax.File, "a.json") {
				t.Errorf("file %q", syntax.File)
			}
		})
	}
}

func TestSyntaxErrorsHideSecrets(t *testing.T) { // C-158
	for _, content := range []string{
		`{"mcpServers": {"a": {"command": "c", "env": {"T": S3CR3T-1}}}}`,
		`{"mcpServers": {"a": {"command": "c", "env": {"T": "S3CR3T\-1"}}}}`,
		"{\"mcpServers\": {\"a\": {\"command\": \"c\", \"env\": {\"T\": \"S3CR3T\n-1\"}}}}",
		`{"mcpServers": {"a": {"command": "c", "env": {"T": "S3CR3T`,
	} {
		if _, _, err := config.Load(write(t, content), nil); err == nil || strings.Contains(err.Error(), "S3CR") {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestFileTooLarge(t *testing.T) {
	_, _, err := config.Load(write(t, "{}"+strings.Repeat(" ", 8<<20)), nil)
	if err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("got %v", err)
	}
}
