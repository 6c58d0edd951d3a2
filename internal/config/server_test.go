package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/config"
)

func TestServerHidesSecrets(t *testing.T) { // C-158
	cfg, problems, err := config.Load([]string{"testdata/sec_secrets.json"}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(handler)
		for _, s := range cfg.Servers {
			log.Info("server", "server", s, "pointer", &s, "env", s.Env, "headers", s.Headers)
			if len(s.Env) > 0 {
				log.Info("pair", "pair", s.Env[0])
			}
		}
		log.Info("all", "servers", cfg.Servers, "config", cfg)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&out, verb+"\n", cfg.Servers)
		fmt.Fprintf(&out, verb+"\n", *cfg)
		fmt.Fprintf(&out, verb+"\n", cfg.Servers[0].Env)
	}
	if err := json.NewEncoder(&out).Encode(cfg); err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`.*S3CR3T.*`).FindString(out.String()); found != "" {
		t.Errorf("a secret in: %s", found)
	}
	for _, want := range []string{"s stdio fake", "h http http://127.0.0.1:9/mcp", "TOKEN=[hidden]", `"url":"http://127.0.0.1:9/mcp"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in what is printed", want)
		}
	}
}

func TestServerString(t *testing.T) {
	tests := []struct {
		server config.Server
		want   string
	}{
		{config.Server{Name: "a", Transport: config.Stdio, Command: "/usr/bin/npx"}, "a stdio npx"},
		{config.Server{Name: "a", Transport: config.Stdio, Command: `C:\bin\npx.cmd`}, "a stdio npx.cmd"},
		{config.Server{Name: "a", Transport: config.SSE, URL: "https://u:p@h:1/x/y?q=1#f"}, "a sse https://h:1/x/y"},
		{config.Server{Name: "a", URL: "http://u:p@h:x/"}, "a"},
		{config.Server{Name: "a"}, "a"},
	}
	for _, tt := range tests {
		if got := tt.server.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestKey(t *testing.T) {
	base := `{"command": "c", "args": ["a", "b"], "env": {"K": "1", "L": "2"}, "cwd": "/d"}`
	web := `{"url": "http://h/mcp", "headers": {"K": "1", "L": "2"}}`
	tests := []struct {
		name, a, b string
		same       bool
	}{
		{"itself", base, base, true},
		{"order of variables", base, `{"env": {"L": "2", "K": "1"}, "cwd": "/d/", "args": ["a", "b"], "command": "c"}`, true},
		{"list of variables", base, `{"command": "c", "args": ["a", "b"], "env": ["K=1", "L=2"], "cwd": "/d"}`, true},
		{"other fields", base, `{"command": "c", "args": ["a", "b"], "env": {"K": "1", "L": "2"}, "cwd": "/d", "timeout": "9s", "prefix": "p", "disabled": true, "scope": "client"}`, true},
		{"order of headers", web, `{"url": "http://h/mcp", "headers": {"l": "2", "K": "1"}}`, true},
		{"expanded", base, `{"command": "${C}", "args": ["a", "b"], "env": {"K": "1", "L": "2"}, "cwd": "/d"}`, true},
		{"command", base, `{"command": "d", "args": ["a", "b"], "env": {"K": "1", "L": "2"}, "cwd": "/d"}`, false},
		{"order of arguments", base, `{"command": "c", "args": ["b", "a"], "env": {"K": "1", "L": "2"}, "cwd": "/d"}`, false},
		{"joined arguments", base, `{"command": "c", "args": ["ab"], "env": {"K": "1", "L": "2"}, "cwd": "/d"}`, false},
		{"argument for variable", `{"command": "c", "args": ["K", "1"]}`, `{"command": "c", "env": {"K": "1"}}`, false},
		{"value of a variable", base, `{"command": "c", "args": ["a", "b"], "env": {"K": "1", "L": "3"}, "cwd": "/d"}`, false},
		{"cwd", base, `{"command": "c", "args": ["a", "b"], "env": {"K": "1", "L": "2"}, "cwd": "/e"}`, false},
		{"url", web, `{"url": "http://h/mcp2", "headers": {"K": "1", "L": "2"}}`, false},
		{"header", web, `{"url": "http://h/mcp", "headers": {"K": "1", "L": "3"}}`, false},
		{"transport", web, `{"type": "sse", "url": "http://h/mcp", "headers": {"K": "1", "L": "2"}}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := environment("C", "c")
			a, b := one(t, env, tt.a).Key(), one(t, env, tt.b).Key()
			if (a == b) != tt.same {
				t.Errorf("keys %s and %s", a, b)
			}
		})
	}
	// What is stored under a key must be found by later versions.
	if got := (config.Server{Transport: config.Stdio, Command: "c", Args: []string{"a"}}).Key(); got != "334a0427fb1a83b5ccfd4c146197c325" {
		t.Errorf("the key has changed: %s", got)
	}
}
