package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/config"
)

// TestRoundTrip writes what was loaded as JSON, compact and indented, and
// expects to load the same.
func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.json")
	for seed := range uint64(100) {
		cfg := randomConfig(rand.New(rand.NewPCG(seed, 1)))
		compact := encode(cfg)
		var indented bytes.Buffer
		if err := json.Indent(&indented, compact, "", "\t"); err != nil {
			t.Fatal(err)
		}
		for _, content := range [][]byte{compact, indented.Bytes()} {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			got, problems, err := config.Load([]string{path}, nil)
			if err != nil || len(problems) > 0 {
				t.Fatalf("seed %d: %v, %v\n%s", seed, err, problems, content)
			}
			for i := range got.Servers {
				got.Servers[i].At = config.Position{}
			}
			if !reflect.DeepEqual(got, cfg) {
				t.Fatalf("seed %d: loaded differently:\n%s", seed, content)
			}
		}
	}
}

func randomConfig(r *rand.Rand) *config.Config {
	text := func() string {
		alphabet := []rune("ab $\\\"{}/'é\u2028😀<&:,")
		s := make([]rune, r.IntN(12))
		for i := range s {
			s[i] = alphabet[r.IntN(len(alphabet))]
		}
		return string(s)
	}
	pairs := func(name string) (pairs []config.Pair) {
		for i := range r.IntN(4) {
			pairs = append(pairs, config.Pair{Name: fmt.Sprintf("%s%d", name, 9-i), Value: text()})
		}
		return pairs
	}
	cfg := &config.Config{Roster: config.DefaultSettings()}
	cfg.Roster.PageItems = 1 + r.IntN(1000)
	for i := range 1 + r.IntN(5) {
		s := config.Server{
			Name: fmt.Sprintf("%d%s", 9-i, text()), Scope: config.Shared, Disabled: r.IntN(2) == 0,
			Timeout: cfg.Roster.RequestTimeout, ConnectTimeout: cfg.Roster.ConnectTimeout,
		}
		if r.IntN(2) == 0 {
			prefix := text()
			s.Prefix = &prefix
		}
		if r.IntN(2) == 0 {
			s.Transport, s.Command, s.Env = config.Stdio, "c"+text(), pairs("V")
			for range r.IntN(3) {
				s.Args = append(s.Args, text())
			}
		} else {
			s.Transport, s.URL, s.Headers = config.HTTP, "http://h/mcp", pairs("X-")
		}
		cfg.Servers = append(cfg.Servers, s)
	}
	return cfg
}

// escape makes the value of an expanded field literal.
func escape(s string) string { return strings.ReplaceAll(s, "${", "$${") }

// encode writes a configuration as a file has it, in the order that it has.
func encode(cfg *config.Config) []byte {
	object := func(members ...any) json.RawMessage {
		var b bytes.Buffer
		b.WriteByte('{')
		for i := 0; i < len(members); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			key, _ := json.Marshal(members[i])
			value, _ := json.Marshal(members[i+1])
			b.Write(key)
			b.WriteByte(':')
			b.Write(value)
		}
		b.WriteByte('}')
		return b.Bytes()
	}
	pairs := func(pairs []config.Pair) json.RawMessage {
		var members []any
		for _, p := range pairs {
			members = append(members, p.Name, escape(p.Value))
		}
		return object(members...)
	}
	var servers []any
	for _, s := range cfg.Servers {
		var args []string
		for _, arg := range s.Args {
			args = append(args, escape(arg))
		}
		members := []any{
			"type", s.Transport, "args", args, "disabled", s.Disabled, "prefix", s.Prefix,
			"env", pairs(s.Env), "headers", pairs(s.Headers), "timeout", s.Timeout.String(), "scope", s.Scope,
		}
		if s.Command != "" {
			members = append(members, "command", escape(s.Command))
		} else {
			members = append(members, "url", s.URL)
		}
		servers = append(servers, s.Name, object(members...))
	}
	return object("mcpServers", object(servers...), "roster", object("pageItems", cfg.Roster.PageItems))
}

func FuzzLoad(f *testing.F) {
	fixtures, err := filepath.Glob("testdata/*.json")
	if err != nil || len(fixtures) == 0 {
		f.Fatal("no fixtures", err)
	}
	for _, path := range fixtures {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	f.Add([]byte("{\"servers\":[{\"name\":\"a\",\"command\":\"${A:-b}$${\",\"env\":[\"K=V\"],\"timeout\":1,\r\n\"url\":\"http://u:p@h/sse\"}],\"roster\":{\"pageBytes\":\"1MiB\"}} // x"))
	f.Add([]byte("{\"mcpServers\": {\"a\": {\"env\": {\"\u2028\": 1e999}, \"a\": 1, \"a\": 2}}, /* é */ \"mcpServers\": null}"))
	path := filepath.Join(f.TempDir(), "c.json")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		within := func(line, column int) {
			lines := strings.Split(strings.TrimPrefix(string(content), "\ufeff"), "\n")
			if line < 1 || line > len(lines) {
				t.Fatalf("line %d of %d", line, len(lines))
			}
			if column < 1 || column > len([]rune(lines[line-1]))+1 {
				t.Fatalf("column %d in line %d, which has %d characters", column, line, len([]rune(lines[line-1])))
			}
		}
		cfg, problems, err := config.Load([]string{path}, environment("A", "1"))
		var syntax *config.SyntaxError
		if errors.As(err, &syntax) {
			within(syntax.Line, syntax.Column)
		}
		if (cfg == nil) != (err != nil) {
			t.Fatalf("configuration %v with error %v", cfg, err)
		}
		for _, p := range problems {
			within(p.Line, p.Column)
		}
		if cfg == nil {
			return
		}
		for _, s := range cfg.Servers {
			within(s.At.Line, s.At.Column)
			if !s.Disabled && (s.Name == "" || (s.Command == "") == (s.URL == "") || s.Transport == "" || s.Problem != nil) {
				t.Fatalf("%v must not run", s)
			}
			if len(s.Key()) != 32 {
				t.Fatalf("key %q", s.Key())
			}
		}
	})
}
