package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/config"
)

// environment makes a Lookup of NAME, value, NAME, value, ...
func environment(pairs ...string) config.Lookup {
	return func(name string) (string, bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// write writes the contents to a.json, b.json, ... in one new directory.
func write(t testing.TB, contents ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, content := range contents {
		path := filepath.Join(dir, string(rune('a'+i))+".json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func load(t testing.TB, env config.Lookup, contents ...string) (*config.Config, []config.Problem) {
	t.Helper()
	cfg, problems, err := config.Load(write(t, contents...), env)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return cfg, problems
}

// one loads a file with a single server and expects no problems.
func one(t testing.TB, env config.Lookup, entry string) config.Server {
	t.Helper()
	cfg, problems := load(t, env, `{"mcpServers": {"s": `+entry+`}}`)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	return cfg.Servers[0]
}

func names(cfg *config.Config) string {
	var names []string
	for _, s := range cfg.Servers {
		names = append(names, s.Name)
	}
	return strings.Join(names, " ")
}

func running(cfg *config.Config) string {
	var names []string
	for _, s := range cfg.Servers {
		if !s.Disabled {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, " ")
}

func TestLoadShapes(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"map", `{"mcpServers": {"z": {"command": "c"}, "a": {"url": "http://h/mcp"}}}`, "z a"},
		{"VS Code", `{"servers": {"z": {"type": "stdio", "command": "c"}, "a": {"type": "http", "url": "http://h/mcp"}}, "inputs": [{"id": "key"}]}`, "z a"},
		{"list", `{"mcpServers": [{"name": "z", "command": "c"}, {"name": "a", "protocol": "auto", "url": "http://h/mcp"}]}`, "z a"},
		{"both keys", `{"servers": {"z": {"command": "c"}}, "mcpServers": {"a": {"command": "c"}}}`, "z a"},
		{"empty map", `{"mcpServers": {}}`, ""},
		{"null map", `{"mcpServers": null}`, ""},
		{"among other keys", `{"theme": "dark", "mcpProxy": {}, "mcpServers": {"z": {"command": "c"}}}`, "z"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, problems := load(t, nil, tt.content)
			if got := names(cfg); got != tt.want || running(cfg) != tt.want {
				t.Errorf("servers %q, running %q, want %q", got, running(cfg), tt.want)
			}
			if len(problems) > 0 {
				t.Errorf("problems: %v", problems)
			}
		})
	}
}

func TestLoadWholeEntry(t *testing.T) {
	cfg, problems := load(t, nil, `{
	"mcpServers": {
		"fs": {
			"type": "stdio", "command": "npx", "args": ["-y", "pkg", 8080, true],
			"env": {"Z": "1", "PORT": 8080, "DEBUG": true, "UNSET": null, "A": ""},
			"inheritEnv": true, "prefix": "", "timeout": "90s", "connectTimeout": 2500, "scope": "client"
		},
		"web": {"url": "https://x/mcp", "headers": {"authorization": "Bearer t", "X-None": null, "X-B": "b"}, "disabled": true}
	}}`)
	if len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	prefix, file := "", cfg.Servers[0].At.File
	want := []config.Server{
		{
			Name: "fs", Transport: config.Stdio, Command: "npx", Args: []string{"-y", "pkg", "8080", "true"},
			Env:        []config.Pair{{"Z", "1"}, {"PORT", "8080"}, {"DEBUG", "true"}, {"A", ""}},
			InheritEnv: true, Prefix: &prefix, Timeout: 90 * time.Second, ConnectTimeout: 2500 * time.Millisecond,
			Scope: config.PerClient, At: config.Position{File: file, Line: 3, Column: 3},
		},
		{
			Name: "web", Transport: config.HTTP, URL: "https://x/mcp",
			Headers:  []config.Pair{{"Authorization", "Bearer t"}, {"X-B", "b"}},
			Disabled: true, Timeout: 5 * time.Minute, ConnectTimeout: time.Minute,
			Scope: config.Shared, At: config.Position{File: file, Line: 8, Column: 3},
		},
	}
	for i, w := range want {
		if got := cfg.Servers[i]; !reflect.DeepEqual(got, w) {
			t.Errorf("server %d differs:\n%s", i, differences(got, w))
		}
	}
}

// differences lists the fields of a Server that differ, since its printed form
// shows few of them.
func differences(got, want config.Server) string {
	var lines []string
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if a, b := g.Field(i).Interface(), w.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			lines = append(lines, g.Type().Field(i).Name)
		}
	}
	return strings.Join(lines, ", ")
}

func TestLoadNoFiles(t *testing.T) {
	cfg, problems, err := config.Load(nil, nil)
	if err != nil || len(problems) > 0 || len(cfg.Servers) > 0 {
		t.Fatalf("got %v, %v, %v", cfg, problems, err)
	}
	if !reflect.DeepEqual(cfg.Roster, config.DefaultSettings()) {
		t.Errorf("settings %+v", cfg.Roster)
	}
}

func TestLoadMissingFile(t *testing.T) {
	paths := append(write(t, `{`), filepath.Join(t.TempDir(), "none.json"))
	cfg, _, err := config.Load(paths, nil)
	var syntax *config.SyntaxError
	if cfg != nil || !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &syntax) {
		t.Errorf("got %v, %v; want no configuration and both errors", cfg, err)
	}
}

func TestMerge(t *testing.T) {
	cfg, problems := load(t, nil,
		`{"mcpServers": {"a": {"command": "1", "args": ["x"]}, "b": {"command": "1"}}, "roster": {"pageItems": 7, "nameLength": 40}}`,
		`{"mcpServers": {"c": {"command": "2"}, "a": {"url": "http://h/mcp"}}, "roster": {"pageItems": 8}}`)
	if got := names(cfg); got != "a b c" {
		t.Errorf("order %q, want that of first appearance", got)
	}
	if a := cfg.Servers[0]; a.Command != "" || len(a.Args) > 0 || a.URL != "http://h/mcp" {
		t.Errorf("a is not replaced as a whole: %v", a)
	}
	if cfg.Roster.PageItems != 8 || cfg.Roster.NameLength != 40 {
		t.Errorf("settings %+v", cfg.Roster)
	}
	if len(problems) != 1 || problems[0].Severity != config.SeverityWarning ||
		!strings.Contains(problems[0].Message, "a.json:1:17") || !strings.Contains(problems[0].Message, "b.json:1:40") {
		t.Errorf("C-176: want one warning that names both places, got %v", problems)
	}
}

func TestMergeDropsProblemsOfTheReplaced(t *testing.T) {
	cfg, problems := load(t, nil,
		`{"mcpServers": {"a": {"command": "${UNSET}", "nonsense": 1}}}`,
		`{"mcpServers": {"a": {"command": "c"}}}`)
	if running(cfg) != "a" || len(problems) != 1 {
		t.Errorf("running %q, problems %v", running(cfg), problems)
	}
}

func TestDuplicates(t *testing.T) { // C-176
	t.Run("fixture", func(t *testing.T) {
		cfg, problems, err := config.Load([]string{"testdata/cfg_dup_names.json"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := running(cfg); got != "github GitHub" {
			t.Errorf("running %q", got)
		}
		if got := cfg.Servers[0].Command; got != "second" {
			t.Errorf("github runs %q, want the later entry", got)
		}
		wantProblems(t, problems, "case from \"github\"", "stands twice")
		for _, place := range []string{"cfg_dup_names.json:1:16", "cfg_dup_names.json:1:73"} {
			if !strings.Contains(problems[1].Message, place) {
				t.Errorf("%q does not name %s", problems[1].Message, place)
			}
		}
	})
	t.Run("lines", func(t *testing.T) {
		_, problems := load(t, nil, "{\"mcpServers\": {\n\"a\": {\"command\": \"1\"},\n\n\"a\": {\"command\": \"2\"}}}")
		wantProblems(t, problems, "a.json:2:1 and ")
		if p := problems[0]; p.Line != 4 || p.Server != "a" || !strings.Contains(p.Message, "a.json:4:1;") {
			t.Errorf("got %v", p)
		}
	})
	t.Run("list", func(t *testing.T) {
		cfg, problems := load(t, nil, `{"mcpServers": [{"name": "a", "command": "1"}, {"name": "a", "command": "2"}]}`)
		wantProblems(t, problems, "stands twice")
		if len(cfg.Servers) != 1 || cfg.Servers[0].Command != "2" {
			t.Errorf("got %v", cfg.Servers)
		}
	})
	t.Run("keys", func(t *testing.T) {
		cfg, problems := load(t, nil, `{"mcpServers": {"x": {"command": "x"}}, "mcpServers": {"a": {"command": "1", "command": "2", "env": {"K": "1", "K": "2"}}}}`)
		wantProblems(t, problems, "mcpServers: this key stands twice", "command: this key stands twice", "env.K: this key stands twice")
		if names(cfg) != "a" || cfg.Servers[0].Command != "2" || cfg.Servers[0].Env[0].Value != "2" || len(cfg.Servers[0].Env) != 1 {
			t.Errorf("got %v", cfg.Servers)
		}
	})
}

// wantProblems checks that there are as many problems as fragments, and that
// each holds its fragment.
func wantProblems(t *testing.T, problems []config.Problem, fragments ...string) {
	t.Helper()
	if len(problems) != len(fragments) {
		t.Fatalf("got %d problems, want %d: %v", len(problems), len(fragments), problems)
	}
	for i, fragment := range fragments {
		if got := problems[i].String(); !strings.Contains(got, fragment) {
			t.Errorf("problem %d is %q, want %q in it", i, got, fragment)
		}
	}
}

func TestTopLevelWarnings(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"nothing", `{}`, `no servers here: expected a key "mcpServers"`},
		{"misspelled", `{"mcpservers": {}}`, `found "mcpservers"`},
		{"snake", `{"mcp_servers": {}}`, `found "mcp_servers"`},
		{"defaults of 1MCP", `{"mcpServers": {}, "serverDefaults": {}}`, `serverDefaults: this key of another program`},
		{"list without name", `{"mcpServers": [{"command": "c"}]}`, `mcpServers[0]: a server in a list needs a "name"`},
		{"list of strings", `{"mcpServers": ["c"]}`, `mcpServers[0]: expected an object, found a string`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, problems := load(t, nil, tt.content)
			wantProblems(t, problems, tt.want)
		})
	}
}

func TestDisabledWithProblems(t *testing.T) {
	cfg, problems := load(t, nil, `{"mcpServers": {"a": {"command": "${UNSET}", "disabled": true, "comand": 1}}}`)
	wantProblems(t, problems, "unknown key")
	if s := cfg.Servers[0]; !s.Disabled || s.Problem != nil {
		t.Errorf("got disabled %t, problem %v", s.Disabled, s.Problem)
	}
}
