package config_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/config"
)

func abs(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func loadAt(t testing.TB, path, content string) *config.Config {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, problems, err := config.Load([]string{path}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	return cfg
}

func TestExpandFixture(t *testing.T) { // C-170
	env := environment("HOME", "/home/u", "NESTED", "${HOME} ${OTHER}")
	cfg, problems, err := config.Load([]string{"testdata/cfg_expand.json"}, env)
	if err != nil {
		t.Fatal(err)
	}
	want := []config.Pair{
		{"H", "/home/u"}, {"D", "def"}, {"L", "$$HOME"}, {"P", `pa$$w\rd a$b`}, {"N", "${HOME} ${OTHER}"},
	}
	for i, w := range want {
		if got := cfg.Servers[0].Env[i]; got != w {
			t.Errorf("%s is %q, want %q", w.Name, got.Value, w.Value)
		}
	}
	if running(cfg) != "a" {
		t.Errorf("running %q, want a only", running(cfg))
	}
	wantProblems(t, problems, `server "b": env.M: environment variable MISSING is not set`)
}

func TestExpand(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("${VAR} line\nlast\r\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := environment("VAR", "value", "EMPTY", "", "HOME", "/home/u", "USERPROFILE", "/home/u",
		"DOLLAR", "$${VAR}", "ProgramFiles(x86)", "pf")
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ in, want string }{
		{"", ""},
		{"plain", "plain"},
		{"${VAR}", "value"},
		{"a${VAR}b${VAR}c", "avaluebvaluec"},
		{"${EMPTY}", ""},
		{"${VAR:-d}", "value"},
		{"${EMPTY:-d}", "d"},
		{"${UNSET:-d}", "d"},
		{"${UNSET:-}", ""},
		{"${UNSET:-a:-b $x {}", "a:-b $x {"},
		{"${env:VAR}", "value"},
		{"${env:UNSET:-d}", "d"},
		{"${env:ProgramFiles(x86)}", "pf"},
		{"${DOLLAR}", "$${VAR}"},
		{"${file:" + secret + "}", "${VAR} line\nlast"},
		{"${file:secret}", "${VAR} line\nlast"},
		{"${file:empty}", ""},
		{"${userHome}/x", "/home/u/x"},
		{"${workspaceFolder}", dir},
		{"${workspaceFolderBasename}", filepath.Base(dir)},
		{"${cwd}", cwd},
		{"a${pathSeparator}b${/}c", "a" + string(filepath.Separator) + "b" + string(filepath.Separator) + "c"},
		{"$${VAR}", "${VAR}"},
		{"$${", "${"},
		{"$$${VAR}", "$${VAR}"},
		{"$${VAR} ${VAR}", "${VAR} value"},
		{"$VAR $$VAR $$ $ a$b $(x) {VAR} $", "$VAR $$VAR $$ $ a$b $(x) {VAR} $"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			path := filepath.Join(dir, "c.json")
			content := `{"mcpServers": {"s": {"command": "c", "args": [` + strconv.Quote(tt.in) + `]}}}`
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			cfg, problems, err := config.Load([]string{path}, env)
			if err != nil || len(problems) > 0 {
				t.Fatal(err, problems)
			}
			if got := cfg.Servers[0].Args[0]; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestExpandErrors(t *testing.T) {
	tests := []struct{ in, want string }{
		{"${UNSET}", "environment variable UNSET is not set"},
		{"${env:UNSET}", "environment variable UNSET is not set"},
		{"${env:}", "without the name"},
		{"${env:A=B}", "without the name"},
		{"${", `without "}"`},
		{"a ${VAR", `without "}"`},
		{"${}", "not a reference"},
		{"${ VAR }", "not a reference"},
		{"${VAR-d}", "not a reference"},
		{"${1}", "not a reference"},
		{"${UNSET:-${VAR}}", "do not nest"},
		{"${cmd: ls}", "${cmd:...} is not a reference"},
		{"${var:KEY}", "${var:...} is not a reference"},
		{"${keyring:name}", "not available yet; use ${file:path}"},
		{"${input:key}", "not available yet"},
		{"${file:}", "without a path"},
		{"${file:no-such}", "no-such"},
		{"${file:.}", "not a regular file"},
		{"${userHome}", "no home directory"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			cfg, problems := load(t, environment("VAR", "S3CR3T"), `{"mcpServers": {"s": {"url": "http://h", "headers": {"A": "`+tt.in+`"}}}}`)
			wantProblems(t, problems, tt.want)
			if p := problems[0]; p.Field != "headers.A" || p.Server != "s" {
				t.Errorf("got %v", p)
			}
			if running(cfg) != "" {
				t.Error("the server runs")
			}
		})
	}
}

func TestExpandWhere(t *testing.T) {
	env := environment("V", "http://v")
	s := one(t, env, `{"command": "${V}", "args": ["${V}"], "env": {"K": "${V}"}, "cwd": "/${V}"}`)
	if s.Command != "http://v" || s.Args[0] != "http://v" || s.Env[0].Value != "http://v" || s.Dir != abs(t, "/http:/v") {
		t.Errorf("got %q %q %q %q", s.Command, s.Args, s.Env[0].Value, s.Dir)
	}
	s = one(t, env, `{"url": "${V}/mcp", "headers": {"K": "${V}"}, "prefix": "${V}"}`)
	if s.URL != "http://v/mcp" || s.Headers[0].Value != "http://v" || *s.Prefix != "${V}" {
		t.Errorf("got %q %q %q", s.URL, s.Headers[0].Value, *s.Prefix)
	}
	cfg, _ := load(t, env, `{"mcpServers": {"${V}": {"command": "c"}}}`)
	if names(cfg) != "${V}" {
		t.Errorf("name %q", names(cfg))
	}
}

func TestWorkspaceFolder(t *testing.T) {
	dir := t.TempDir()
	for path, want := range map[string]string{
		"mcp.json":         dir,
		".vscode/mcp.json": dir,
		".cursor/mcp.json": dir,
		"sub/mcp.json":     filepath.Join(dir, "sub"),
	} {
		cfg := loadAt(t, filepath.Join(dir, path), `{"servers": {"s": {"command": "c", "args": ["${workspaceFolder}"], "cwd": "."}}}`)
		if s := cfg.Servers[0]; s.Args[0] != want || s.Dir != want {
			t.Errorf("%s: folder %q, cwd %q, want %q", path, s.Args[0], s.Dir, want)
		}
	}
}

func TestSecrets(t *testing.T) { // C-158: problems with expanded values do not show them
	env := environment("TOKEN", "S3CR3T\n")
	_, problems := load(t, env, `{"mcpServers": {
		"a": {"url": "ftp://${TOKEN}"},
		"b": {"url": "http://h", "headers": {"A": "${TOKEN}"}},
		"c": {"command": "c", "env": ["A=${TOKEN}", "A=${TOKEN}", "B=${NONE}"]},
		"d": {"command": "${TOKEN}", "url": "http://u:S3CR3T@h/?k=S3CR3T"},
		"e": {"url": "http://u:S3CR3T@h/?k=S3CR3T ${NONE}"}}}`)
	if len(problems) != 6 {
		t.Errorf("got %v", problems)
	}
	if i := slices.IndexFunc(problems, func(p config.Problem) bool { return strings.Contains(p.String(), "S3CR3T") }); i >= 0 {
		t.Errorf("a secret in %v", problems[i])
	}
}
