package config_test

import (
	"bytes"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/config"
)

func TestSettings(t *testing.T) {
	cfg, problems := load(t, environment("PORT", "80", "HOST", "app.example.com"), `{"roster": {
		"listen": "0.0.0.0:${PORT}", "startupWait": "3s", "requestTimeout": 4000, "connectTimeout": "5s",
		"pageItems": 10, "pageBytes": "64KiB", "nameLength": 64, "stateDir": "${workspaceFolder}/s",
		"sse": false, "allowedHosts": ["gw.example.com"], "allowedOrigins": ["https://${HOST}"], "tlsCert": "/c.pem", "tlsKey": "/k.pem", "caFile": "/ca.pem",
		"roots": ["/srv/a b", "file:///x", "/srv/a b/"],
		"keys": [{"name": "ann", "sha256": "`+strings.Repeat("0a", 32)+`"}]}}`)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	got := cfg.Roster
	if filepath.Base(got.StateDir) != "s" || !filepath.IsAbs(got.StateDir) {
		t.Errorf("state directory %q", got.StateDir)
	}
	got.StateDir = ""
	want := config.Settings{
		Listen: "0.0.0.0:80", StartupWait: 3 * time.Second, RequestTimeout: 4 * time.Second, ConnectTimeout: 5 * time.Second,
		PageItems: 10, PageBytes: 64 << 10, NameLength: 64,
		AllowedHosts: []string{"gw.example.com"}, AllowedOrigins: []string{"https://app.example.com"},
		TLSCert: "/c.pem", TLSKey: "/k.pem", CAFile: "/ca.pem",
		Roots: []string{"file:///srv/a%20b", "file:///x"},
		Keys:  []config.APIKey{{Name: "ann", SHA256: [32]byte(bytes.Repeat([]byte{10}, 32))}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestSettingsProblems(t *testing.T) {
	tests := []struct {
		name, roster, field, want string
		severity                  config.Severity
	}{
		{"unknown", `{"listne": ":80"}`, "roster.listne", `did you mean "listen"?`, config.SeverityWarning},
		{"milliseconds", `{"startupWait": 10}`, "roster.startupWait", `"10s"`, config.SeverityWarning},
		{"not an object", `5`, "roster", "expected an object, found a number", config.SeverityError},
		{"listen without port", `{"listen": "localhost"}`, "roster.listen", "expected an address with a port", config.SeverityError},
		{"listen with a name for port", `{"listen": ":http"}`, "roster.listen", "expected an address with a port", config.SeverityError},
		{"listen, unset variable", `{"listen": "${UNSET}"}`, "roster.listen", "UNSET is not set", config.SeverityError},
		{"duration", `{"requestTimeout": "x"}`, "roster.requestTimeout", "not a duration", config.SeverityError},
		{"no items", `{"pageItems": 0}`, "roster.pageItems", "between 1 and 1000000", config.SeverityError},
		{"half an item", `{"pageItems": 1.5}`, "roster.pageItems", "whole number", config.SeverityError},
		{"items in words", `{"pageItems": "ten"}`, "roster.pageItems", "whole number", config.SeverityError},
		{"too few bytes", `{"pageBytes": 10}`, "roster.pageBytes", "between", config.SeverityError},
		{"too many bytes", `{"pageBytes": "9999999999GiB"}`, "roster.pageBytes", "8MiB", config.SeverityError},
		{"unit of bytes", `{"pageBytes": "8MB"}`, "roster.pageBytes", "8MiB", config.SeverityError},
		{"roots", `{"roots": "/x"}`, "roster.roots", "expected an array", config.SeverityError},
		{"an empty root", `{"roots": [""]}`, "roster.roots[0]", "expected a folder", config.SeverityError},
		{"a root elsewhere", `{"roots": ["https://x/y"]}`, "roster.roots[0]", "file: URI", config.SeverityError},
		{"a root without a path", `{"roots": ["/a", "file:x"]}`, "roster.roots[1]", "absolute path", config.SeverityError},
		{"short names", `{"nameLength": 4}`, "roster.nameLength", "between 16 and 128", config.SeverityError},
		{"state directory", `{"stateDir": []}`, "roster.stateDir", "expected a string", config.SeverityError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, problems := load(t, nil, "{\"mcpServers\": {\"s\": {\"command\": \"c\"}},\n\"roster\": "+tt.roster+"}")
			wantProblems(t, problems, tt.want)
			if p := problems[0]; p.Field != tt.field || p.Server != "" || p.Line != 2 || p.Severity != tt.severity {
				t.Errorf("got %+v", p)
			}
			if running(cfg) != "s" {
				t.Error("the server does not run")
			}
			if tt.severity == config.SeverityError && !reflect.DeepEqual(cfg.Roster, config.DefaultSettings()) {
				t.Errorf("settings changed: %+v", cfg.Roster)
			}
		})
	}
}

func TestStateDir(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix")
	}
	tests := []struct {
		name, configured, want string
		env                    []string
	}{
		{"nothing", "", "", nil},
		{"home", "", "/h/.local/state/roster", []string{"HOME", "/h"}},
		{"XDG", "", "/x/roster", []string{"HOME", "/h", "XDG_STATE_HOME", "/x"}},
		{"relative XDG is ignored", "", "/h/.local/state/roster", []string{"HOME", "/h", "XDG_STATE_HOME", "x"}},
		{"configured", "/c", "/c", []string{"HOME", "/h", "XDG_STATE_HOME", "/x"}},
		{"environment", "", "/e", []string{"HOME", "/h", "ROSTER_STATE_DIR", "/e"}},
		{"environment over configured", "/c", "/e", []string{"HOME", "/h", "ROSTER_STATE_DIR", "/e"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := environment(tt.env...)
			cfg, _ := load(t, env, `{"roster": {"stateDir": "`+tt.configured+`"}}`)
			if cfg.Roster.StateDir != tt.want {
				t.Errorf("got %q, want %q", cfg.Roster.StateDir, tt.want)
			}
			if tt.configured != "" {
				return
			}
			if dir, err := config.StateDir(env); dir != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("StateDir: %q, %v", dir, err)
			}
		})
	}
}

func TestDefaultPath(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Setenv("XDG_CONFIG_HOME", "/x")
	}
	path, err := config.DefaultPath()
	if err != nil || !strings.HasSuffix(filepath.ToSlash(path), "/roster/config.json") {
		t.Fatal(path, err)
	}
	if runtime.GOOS == "linux" && path != "/x/roster/config.json" {
		t.Errorf("got %q", path)
	}
}

func TestSettingsWrongKeysAreAskedForAllTheSame(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for name, keys := range map[string]string{
		"not a list": `"secret"`, "not an object": `["secret"]`, "no hash": `[{"name": "ann"}]`, "no name": `[{"sha256": "` + hash + `"}]`,
		"the key itself": `[{"name": "ann", "sha256": "roster_secret"}]`, "none": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			cfg, problems := load(t, nil, `{"mcpServers": {}, "roster": {"keys": `+keys+`}}`)
			if cfg.Roster.Keys == nil || len(cfg.Roster.Keys) > 0 {
				t.Errorf("keys %v", cfg.Roster.Keys)
			}
			if (len(problems) == 0) != (name == "none") {
				t.Errorf("problems %v", problems)
			}
			for _, p := range problems {
				if strings.Contains(p.String(), "secret") {
					t.Errorf("a secret is told: %v", p)
				}
			}
		})
	}
	cfg, problems := load(t, nil, `{"mcpServers": {}, "roster": {"keys": [{"name": "ann", "sha256": "`+hash+`"}, {"name": "ann", "sha256": "`+hash+`"}]}}`)
	if len(cfg.Roster.Keys) != 1 || len(problems) != 1 {
		t.Errorf("two keys of one name: %v, %v", cfg.Roster.Keys, problems)
	}
}
