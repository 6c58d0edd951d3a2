package config_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/config"
)

func TestTransport(t *testing.T) {
	tests := []struct {
		entry string
		want  config.Transport
	}{
		{`{"command": "c"}`, config.Stdio},
		{`{"type": "stdio", "command": "c"}`, config.Stdio},
		{`{"type": "STDIO", "command": "c", "url": ""}`, config.Stdio},
		{`{"url": "http://h/mcp"}`, config.HTTP},
		{`{"url": "http://h/mcp", "command": ""}`, config.HTTP},
		{`{"url": "http://h/sse"}`, config.SSE},
		{`{"url": "http://h/sse/"}`, config.SSE},
		{`{"url": "http://h/x/sse/y?z=1"}`, config.SSE},
		{`{"url": "http://h/sse?key=1"}`, config.SSE},
		{`{"url": "http://h/assess"}`, config.HTTP},
		{`{"url": "http://h/mcp?x=/sse"}`, config.HTTP},
		{`{"type": "http", "url": "http://h/sse"}`, config.HTTP},
		{`{"type": "sse", "url": "http://h/mcp"}`, config.SSE},
		{`{"type": "streamable-http", "url": "http://h/"}`, config.HTTP},
		{`{"type": "streamableHttp", "url": "http://h/"}`, config.HTTP},
		{`{"type": "streamable_http", "url": "http://h/"}`, config.HTTP},
		{`{"transportType": "streamable-http", "url": "http://h/sse"}`, config.HTTP},
		{`{"transport": "streaming", "url": "http://h/"}`, config.HTTP},
		{`{"protocol": "auto", "url": "http://h/sse"}`, config.SSE},
		{`{"protocol": "auto", "command": "c"}`, config.Stdio},
		{`{"serverUrl": "http://h/mcp"}`, config.HTTP},
		{`{"httpUrl": "http://h/sse"}`, config.HTTP},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			if got := one(t, nil, tt.entry).Transport; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOffSwitches(t *testing.T) {
	tests := []struct {
		keys string
		want bool
	}{
		{`"disabled": true`, true},
		{`"disabled": false`, false},
		{`"disabled": null`, false},
		{`"enabled": false`, true},
		{`"enabled": true`, false},
		{`"options": {"disabled": true}`, true},
		{`"options": {"disabled": false, "panicIfInvalid": true}`, false},
		{`"enabled": true, "disabled": true`, true},
		{`"disabled": true, "enabled": true`, true},
		{`"enabled": false, "disabled": false`, true},
	}
	for _, tt := range tests {
		t.Run(tt.keys, func(t *testing.T) {
			if got := one(t, nil, `{"command": "c", `+tt.keys+`}`).Disabled; got != tt.want {
				t.Errorf("disabled %t, want %t", got, tt.want)
			}
		})
	}
}

func TestTimeouts(t *testing.T) {
	const request, connect = 5 * time.Minute, time.Minute
	tests := []struct {
		keys             string
		request, connect time.Duration
	}{
		{``, request, connect},
		{`, "timeout": 60000`, time.Minute, connect},
		{`, "timeout": 1500.5`, 1500500 * time.Microsecond, connect},
		{`, "timeout": "1m30s"`, 90 * time.Second, connect},
		{`, "timeout": 0`, request, connect},
		{`, "timeout": "24h"`, 24 * time.Hour, connect},
		{`, "requestTimeout": 2000`, 2 * time.Second, connect},
		{`, "requestTimeout": 2000, "timeout": 3000`, 2 * time.Second, connect},
		{`, "timeout": 3000, "requestTimeout": 2000`, 2 * time.Second, connect},
		{`, "call_tool_timeout": "2m"`, 2 * time.Minute, connect},
		{`, "connectTimeout": "5s"`, request, 5 * time.Second},
		{`, "connectionTimeout": 5000`, request, 5 * time.Second},
		{`, "init_timeout": "5s"`, request, 5 * time.Second},
		{`, "ready_timeout": "5s"`, request, 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.keys, func(t *testing.T) {
			s := one(t, nil, `{"command": "c"`+tt.keys+`}`)
			if s.Timeout != tt.request || s.ConnectTimeout != tt.connect {
				t.Errorf("got %v, %v; want %v, %v", s.Timeout, s.ConnectTimeout, tt.request, tt.connect)
			}
		})
	}
}

func TestTimeoutsFromSettings(t *testing.T) {
	cfg, _ := load(t, nil, `{"mcpServers": {"a": {"command": "c"}, "b": {"command": "c", "timeout": "3s"}},
		"roster": {"requestTimeout": "7s", "connectTimeout": "8s"}}`)
	a, b := cfg.Servers[0], cfg.Servers[1]
	if a.Timeout != 7*time.Second || a.ConnectTimeout != 8*time.Second || b.Timeout != 3*time.Second {
		t.Errorf("got %v, %v, %v", a.Timeout, a.ConnectTimeout, b.Timeout)
	}
}

func TestEnvironment(t *testing.T) {
	env := environment("HERE", "there", "EMPTY", "")
	tests := []struct {
		name, env string
		want      []config.Pair
	}{
		{"object in order", `{"B": "2", "A": "1"}`, []config.Pair{{"B", "2"}, {"A", "1"}}},
		{"list", `["B=2", "A=x=y", "C="]`, []config.Pair{{"B", "2"}, {"A", "x=y"}, {"C", ""}}},
		{"list, passed through", `["HERE", "EMPTY"]`, []config.Pair{{"HERE", "there"}, {"EMPTY", ""}}},
		{"list, expanded", `["A=${HERE}"]`, []config.Pair{{"A", "there"}}},
		{"keys stay", `{"${HERE}": "${HERE}"}`, []config.Pair{{"${HERE}", "there"}}},
		{"null", `null`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := one(t, env, `{"command": "c", "env": `+tt.env+`}`).Env; !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestEmptyVariable(t *testing.T) { // C-055
	cfg, problems, err := config.Load([]string{"testdata/env_override.json"}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	s := cfg.Servers[0]
	if !slices.Equal(s.Env, []config.Pair{{"MY_VAR", ""}}) || s.InheritEnv || s.Command != "sh" {
		t.Errorf("got %v, env %v, inherit %t", s, s.Env, s.InheritEnv)
	}
	for _, key := range []string{"inheritEnv", "inheritParentEnv"} {
		if s := one(t, nil, `{"command": "c", "`+key+`": true}`); !s.InheritEnv {
			t.Errorf("%s has no effect", key)
		}
	}
}

func TestWorkingDirectory(t *testing.T) { // C-057
	cfg, problems, err := config.Load([]string{"testdata/cwd_relative.json"}, nil)
	if err != nil || len(problems) > 0 || running(cfg) != "r bad" {
		t.Fatal(err, problems)
	}
	if s := cfg.Servers[0]; s.Command != "./server.sh" || s.Args[0] != "data/in.txt" || s.Dir != abs(t, "/srv/x") {
		t.Errorf("got command %q in %q", s.Command, s.Dir)
	}

	dir := t.TempDir()
	for _, key := range []string{"cwd", "workingDir", "working_dir", "workdir", "dir"} {
		for value, want := range map[string]string{"sub/..": dir, "sub": filepath.Join(dir, "sub"), "": "", "${workspaceFolder}/x": filepath.Join(dir, "x")} {
			cfg := loadAt(t, filepath.Join(dir, "c.json"), `{"mcpServers": {"s": {"command": "c", "`+key+`": "`+value+`"}}}`)
			if got := cfg.Servers[0].Dir; got != want {
				t.Errorf("%s %q is %q, want %q", key, value, got, want)
			}
		}
	}
}

func TestNoShell(t *testing.T) { // C-155
	cfg, problems, err := config.Load([]string{"testdata/sec_shell.json"}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	if got := cfg.Servers[0]; got.Command != "echo; touch PWNED" || len(got.Args) != 0 {
		t.Errorf("command %q %q", got.Command, got.Args)
	}
	want := []string{"$(touch PWNED2)", "; touch PWNED3", "*", "`touch PWNED4`"}
	if got := cfg.Servers[1].Args; !slices.Equal(got, want) {
		t.Errorf("args %q", got)
	}
}

func TestEntryErrors(t *testing.T) {
	tests := []struct{ name, entry, field, want string }{
		{"not an object", `"npx"`, "", "expected an object, found a string"},
		{"null", `null`, "", "expected an object, found null"},
		{"empty", `{}`, "", `needs "command"`},
		{"wrong case", `{"Command": "c"}`, "", `needs "command"`},
		{"both", `{"command": "c", "url": "http://h"}`, "", `both "command" and "url"`},
		{"stdio with url", `{"type": "stdio", "url": "http://h"}`, "", `of type stdio`},
		{"http with command", `{"type": "http", "command": "c"}`, "", `of type http`},
		{"unknown type", `{"type": "websocket", "url": "http://h"}`, "type", `"websocket" is not a transport`},
		{"type is a number", `{"type": 1, "url": "http://h"}`, "type", "expected a string, found a number"},
		{"command is a list", `{"command": ["npx", "-y"]}`, "command", `its arguments go into "args"`},
		{"command is true", `{"command": true}`, "command", "expected a string, found true"},
		{"command is blank", `{"command": " "}`, "command", "the command is empty"},
		{"command becomes empty", `{"command": "${EMPTY}"}`, "command", "the command is empty"},
		{"args is a string", `{"command": "c", "args": "-y"}`, "args", "expected an array, found a string"},
		{"args has an object", `{"command": "c", "args": ["a", {}]}`, "args[1]", "expected a string, found an object"},
		{"args has null", `{"command": "c", "args": [null]}`, "args[0]", "expected a string, found null"},
		{"NUL in args", `{"command": "c", "args": ["a\u0000"]}`, "args[0]", "NUL"},
		{"env is a string", `{"command": "c", "env": "A=1"}`, "env", "expected an object, found a string"},
		{"env has a list", `{"command": "c", "env": {"A": []}}`, "env.A", "expected a string, found an array"},
		{"env name", `{"command": "c", "env": {"A=B": "1"}}`, "env.A=B", "not the name"},
		{"env name empty", `{"command": "c", "env": {"": "1"}}`, "env.", "not the name"},
		{"env list", `{"command": "c", "env": ["=S3CR3T"]}`, "env[0]", "expected \"NAME=value\""},
		{"env list of numbers", `{"command": "c", "env": [1]}`, "env[0]", "expected a string"},
		{"env list, not set", `{"command": "c", "env": ["UNSET"]}`, "env[0]", "UNSET is not set"},
		{"unset variable", `{"command": "c", "env": {"A": "${UNSET}"}}`, "env.A", "environment variable UNSET is not set"},
		{"cwd is a number", `{"command": "c", "cwd": 1}`, "cwd", "expected a string"},
		{"no scheme", `{"url": "h/mcp?k=S3CR3T"}`, "url", "must start with http:// or https://"},
		{"wrong scheme", `{"url": "file:///S3CR3T"}`, "url", "must start with http:// or https://"},
		{"no host", `{"url": "http:///mcp"}`, "url", "no host"},
		{"only a port", `{"url": "http://:80/mcp"}`, "url", "no host"},
		{"bad URL", `{"url": "http://u:S3CR3T@h:port/"}`, "url", "not a valid URL"},
		{"bad escape in URL", `{"url": "http://h/%zz"}`, "url", "not a valid URL"},
		{"URL becomes empty", `{"url": "${EMPTY}"}`, "url", "the URL is empty"},
		{"headers is a list", `{"url": "http://h", "headers": ["A: S3CR3T"]}`, "headers", "expected an object, found an array"},
		{"header name", `{"url": "http://h", "headers": {"A B": "S3CR3T"}}`, `headers."A B"`, "not the name of an HTTP header"},
		{"header value", `{"url": "http://h", "headers": {"A": "S3CR3T\r\nX: y"}}`, "headers.A", "line breaks"},
		{"disabled is a string", `{"command": "c", "disabled": "true"}`, "disabled", "expected true or false, found a string"},
		{"enabled is a number", `{"command": "c", "enabled": 0}`, "enabled", "expected true or false, found a number"},
		{"inheritEnv is a list", `{"command": "c", "inheritEnv": ["A"]}`, "inheritEnv", "expected true or false, found an array"},
		{"options", `{"command": "c", "options": {"disabled": "no"}}`, "options.disabled", "expected true or false"},
		{"prefix", `{"command": "c", "prefix": false}`, "prefix", "expected a string, found false"},
		{"scope is a number", `{"command": "c", "scope": 1}`, "scope", "expected a string"},
		{"duration", `{"command": "c", "timeout": "soon"}`, "timeout", `"soon" is not a duration`},
		{"duration without unit", `{"command": "c", "timeout": "30"}`, "timeout", "the unit is missing"},
		{"negative", `{"command": "c", "timeout": -1}`, "timeout", "between 0 and 24 hours"},
		{"negative string", `{"command": "c", "timeout": "-1s"}`, "timeout", "between 0 and 24 hours"},
		{"too long", `{"command": "c", "timeout": 86400001}`, "timeout", "between 0 and 24 hours"},
		{"far out of range", `{"command": "c", "timeout": -1e999}`, "timeout", "between 0 and 24 hours"},
		{"out of range", `{"command": "c", "timeout": 1e999}`, "timeout", "between 0 and 24 hours"},
		{"duration is true", `{"command": "c", "connectTimeout": true}`, "connectTimeout", "expected a duration"},
		{"scope", `{"command": "c", "scope": "session"}`, "scope", `it is "shared" or "client"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, problems := load(t, environment("EMPTY", ""), "{\"mcpServers\": {\n\"good\": {\"command\": \"c\"},\n\"bad\": "+tt.entry+",\n\"last\": {\"command\": \"c\"}}}")
			if running(cfg) != "good last" || names(cfg) != "good bad last" {
				t.Errorf("running %q of %q", running(cfg), names(cfg))
			}
			problems = slices.DeleteFunc(problems, func(p config.Problem) bool { return p.Severity == config.SeverityWarning })
			if len(problems) != 1 {
				t.Fatalf("want one problem, got %v", problems)
			}
			p := problems[0]
			if p.Server != "bad" || p.Field != tt.field || p.Line != 3 || !strings.Contains(p.Message, tt.want) {
				t.Errorf("got %v", p)
			}
			if bad := cfg.Servers[1]; bad.Problem == nil || *bad.Problem != p {
				t.Errorf("the server's problem is %v", bad.Problem)
			}
			if strings.Contains(p.String(), "S3CR3T") {
				t.Errorf("C-158: a secret in %v", p)
			}
		})
	}
}

func TestServerWithoutName(t *testing.T) {
	cfg, problems := load(t, nil, `{"mcpServers": {"": {"command": "c"}}}`)
	wantProblems(t, problems, "a server needs a name")
	if running(cfg) != "" {
		t.Error("it runs")
	}
}

func TestWarnings(t *testing.T) {
	tests := []struct{ name, keys, field, want string }{
		{"unknown", `"wonderful": 1`, "wonderful", "unknown key"},
		{"typing mistake", `"disabeld": true`, "disabeld", `did you mean "disabled"?`},
		{"swapped letters", `"cdw": "/"`, "cdw", `did you mean "cwd"?`},
		{"case", `"Args": []`, "Args", `did you mean "args"?`},
		{"missing letter", `"heades": {}`, "heades", `did you mean "headers"?`},
		{"long name", `"` + strings.Repeat("x", 100) + `": 1`, `"` + strings.Repeat("x", 64) + `..."`, "unknown key"},
		{"odd name", `"a b\nc": 1`, `"a b\nc"`, "unknown key"},
		{"tool filter", `"disabledTools": ["x"]`, "disabledTools", "no effect here"},
		{"envFile", `"envFile": ".env"`, "envFile", "no effect here"},
		{"seconds as milliseconds", `"timeout": 30`, "timeout", `this is 30ms; for seconds write "30s"`},
		{"said twice", `"cwd": "/a", "workdir": "/b"`, "workdir", "what cwd says at "},
		{"tilde", `"cwd": "~/x"`, "cwd", "${userHome}"},
		{"environment twice", `"env": ["A=1", "A=2"]`, "env[1]", "A stands twice"},
		{"header twice", `"headers": {"a": "1", "A": "2"}`, "headers.A", "stands twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, problems := load(t, nil, "{\"mcpServers\": {\"s\":\n{\"command\": \"c\",\n"+tt.keys+"}}}")
			wantProblems(t, problems, tt.want)
			if p := problems[0]; p.Severity != config.SeverityWarning || p.Server != "s" || p.Field != tt.field || p.Line != 3 {
				t.Errorf("got %v", p)
			}
			if running(cfg) != "s" {
				t.Error("the server does not run")
			}
		})
	}
}

func TestManyProblems(t *testing.T) {
	var keys strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, `"x%d": 1, `, i)
	}
	start := time.Now()
	cfg, problems := load(t, nil, `{"mcpServers": {"s": {`+keys.String()+`"command": 1}, "t": {"command": "c"}}}`)
	if len(problems) != 102 || problems[100].Message != "there are more problems than these" {
		t.Errorf("got %d problems", len(problems))
	}
	if running(cfg) != "t" || cfg.Servers[0].Problem == nil || *cfg.Servers[0].Problem != problems[101] {
		t.Errorf("the error is lost among the warnings")
	}
	if p := problems[101]; p.Line != 1 || p.Column != 22+keys.Len()+len(`"command": `)+1 {
		t.Errorf("got column %d", p.Column)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %v", took)
	}
}

func TestOtherProgramsKeys(t *testing.T) {
	one(t, nil, `{"command": "c", "autoApprove": ["x"], "alwaysAllow": [], "gallery": true, "description": "d", "trust": true,
		"tags": ["a"], "restartOnExit": true, "maxRestarts": 5, "restartDelay": 1000, "stderr": "inherit", "version": "1", "dev": {}}`)
}
