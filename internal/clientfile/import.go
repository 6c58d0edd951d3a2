package clientfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/mcp-roster/roster/mcp"
)

// Server is a server of a client's file, as an entry that Roster reads.
type Server struct {
	Name  string
	Entry []byte
}

// Import returns the servers in a client's file, in order: to the byte where Roster
// reads what the client does, else said in Roster's words. Of Claude Code those for
// the project in dir alone are among them; "" is no project.
func (c Client) Import(f *File, dir string) ([]Server, error) {
	var servers []Server
	take := func(project string, path ...string) error {
		for _, name := range f.keys(path...) {
			entry, _ := f.At(append(slices.Clone(path), name)...)
			entry, err := c.translate(entry)
			if err == nil && project != "" {
				entry, err = InProject(entry, project)
			}
			if err != nil {
				return fmt.Errorf("server %q: %w", name, err)
			}
			servers = append(servers, Server{name, entry})
		}
		return nil
	}
	if err := take("", f.servers); err != nil {
		return nil, err
	}
	if c.Name == "claude-code" && dir != "" {
		return servers, take(dir, "projects", dir, "mcpServers")
	}
	return servers, nil
}

// Inputs returns the questions that the entries of a file of VS Code refer to, by
// their ids.
func (f *File) Inputs() []Server {
	var inputs []Server
	for _, id := range f.keys("inputs") {
		entry, _ := f.At("inputs", id)
		inputs = append(inputs, Server{id, entry})
	}
	return inputs
}

// translate says an entry in Roster's words.
func (c Client) translate(entry []byte) ([]byte, error) {
	switch c.Name {
	case "gemini":
		return bareVariable.ReplaceAll(entry, []byte("$${$1}")), nil
	case "codex":
		return fromCodex(entry)
	}
	return entry, nil
}

// bareVariable is a variable as only Gemini CLI has it, beside ${NAME}.
var bareVariable = regexp.MustCompile(`\$([A-Za-z_][A-Za-z0-9_]*)`)

// codexEntry is what an entry of Codex has that Roster calls by other names.
type codexEntry struct {
	BearerTokenEnvVar string            `json:"bearer_token_env_var"`
	EnvHTTPHeaders    map[string]string `json:"env_http_headers"`
	EnvVars           []any             `json:"env_vars"`
	StartupTimeout    float64           `json:"startup_timeout_sec"`
	ToolTimeout       float64           `json:"tool_timeout_sec"`
	Headers           map[string]string `json:"http_headers"`
	Env               map[string]string `json:"env"`
}

// fromCodex translates an entry of Codex. It knows no references to variables, so
// that what looks like one is none.
func fromCodex(entry []byte) ([]byte, error) {
	entry = bytes.ReplaceAll(entry, []byte("${"), []byte("$${"))
	var c codexEntry
	var all map[string]json.RawMessage
	if err := json.Unmarshal(entry, &c); err != nil {
		return nil, fmt.Errorf("it is not as Codex writes it: %w", err)
	}
	if err := json.Unmarshal(entry, &all); err != nil {
		return nil, fmt.Errorf("it is not as Codex writes it: %w", err)
	}
	headers := maps.Clone(c.Headers)
	put := func(into *map[string]string, name, value string) {
		if *into == nil {
			*into = make(map[string]string)
		}
		(*into)[name] = value
	}
	if c.BearerTokenEnvVar != "" {
		put(&headers, "Authorization", "Bearer ${"+c.BearerTokenEnvVar+"}")
	}
	for name, variable := range c.EnvHTTPHeaders {
		put(&headers, name, "${"+variable+"}")
	}
	env := maps.Clone(c.Env)
	for _, v := range c.EnvVars {
		if name, ok := v.(string); ok && c.Env[name] == "" {
			put(&env, name, "${"+name+":-}")
		}
	}
	for name, value := range map[string]any{
		"headers": headers, "env": env,
		"connectTimeout": secondsText(c.StartupTimeout), "requestTimeout": secondsText(c.ToolTimeout),
	} {
		if raw, err := marshal(value); err == nil && string(raw) != "null" && string(raw) != `""` {
			all[name] = raw
		}
	}
	for _, name := range [...]string{"bearer_token_env_var", "env_http_headers", "http_headers", "env_vars", "startup_timeout_sec", "tool_timeout_sec"} {
		delete(all, name)
	}
	return inOrder(all), nil
}

func secondsText(n float64) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf("%gs", n)
}

// inOrder writes an object with the keys that matter most in front.
func inOrder(members map[string]json.RawMessage) []byte {
	first := []string{"command", "args", "url"}
	rank := func(name string) int {
		if i := slices.Index(first, name); i >= 0 {
			return i
		}
		return len(first)
	}
	names := slices.SortedFunc(maps.Keys(members), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b))
	})
	var b bytes.Buffer
	for i, name := range names {
		b.WriteString([]string{"{", ","}[min(i, 1)])
		b.Write(append(append(mcp.String(name), ':'), members[name]...))
	}
	if len(names) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes()
}

// InProject makes an entry of a file of a project mean the same in another file:
// references to the project's folder become its path, and a command starts there
// unless the entry says otherwise.
func InProject(entry []byte, dir string) ([]byte, error) {
	quoted := bytes.Trim(mcp.String(dir), `"`)
	entry = bytes.ReplaceAll(entry, []byte("${workspaceFolder}"), quoted)
	t, err := parseJSON(entry)
	if err != nil {
		return nil, err
	}
	_, command := t.value("command")
	for _, name := range [...]string{"cwd", "workingDir", "working_dir", "workdir", "dir"} {
		if _, ok := t.value(name); ok {
			return t.bytes(), nil
		}
	}
	if command {
		err = t.set(mcp.String(dir), "cwd")
	}
	return t.bytes(), err
}
