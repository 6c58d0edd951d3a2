package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Client is a program that keeps MCP servers in a file.
type Client struct {
	Name    string // as it is called on a command line: claude-code
	Title   string // as it calls itself: Claude Code
	Format  Format
	Servers string // the key of its map of servers
	// Restart says what makes it read its file again.
	Restart string

	files   func(Home) []string // of the user; the first is where it is made
	project string              // within a project; "" if it has none
	traces  func(Home) []string // directories that are there if the program is; nil: those of files
	entry   func(Target) (any, error)
}

// Home is whose files are meant, and on what system.
type Home struct {
	Dir    string // the home directory
	System string // as runtime.GOOS has it
	// LookupEnv is os.LookupEnv.
	LookupEnv func(name string) (string, bool)
}

// variable returns an environment variable, or what it is by default.
func (h Home) variable(name, otherwise string) string {
	if h.LookupEnv != nil {
		if v, _ := h.LookupEnv(name); v != "" {
			return v
		}
	}
	return otherwise
}

// applications is where programs of a desktop keep their files.
func (h Home) applications() string {
	switch h.System {
	case "darwin":
		return filepath.Join(h.Dir, "Library", "Application Support")
	case "windows":
		return h.variable("APPDATA", filepath.Join(h.Dir, "AppData", "Roaming"))
	}
	return h.variable("XDG_CONFIG_HOME", filepath.Join(h.Dir, ".config"))
}

// Target is how a client is to reach Roster: by a command that it starts, or at a
// URL.
type Target struct {
	Command string
	Args    []string
	URL     string
	Headers map[string]string // with URL
}

// Clients are the programs whose files are known.
func Clients() []Client {
	in := func(parts ...string) func(Home) []string {
		return func(h Home) []string { return []string{filepath.Join(append([]string{h.Dir}, parts...)...)} }
	}
	return []Client{
		{
			Name: "claude-desktop", Title: "Claude Desktop", Format: JSON, Servers: "mcpServers", Restart: "restart it",
			files: func(h Home) []string {
				const file = "claude_desktop_config.json"
				return []string{filepath.Join(h.applications(), "Claude", file), filepath.Join(h.applications(), "claude", file)}
			},
			entry: Target.onlyCommand,
		},
		{
			Name: "claude-code", Title: "Claude Code", Format: JSON, Servers: "mcpServers", Restart: "start a new session",
			files: func(h Home) []string {
				return []string{filepath.Join(h.variable("CLAUDE_CONFIG_DIR", h.Dir), ".claude.json")}
			},
			traces: func(h Home) []string {
				return []string{h.variable("CLAUDE_CONFIG_DIR", filepath.Join(h.Dir, ".claude"))}
			},
			project: ".mcp.json",
			entry:   Target.typed,
		},
		{
			Name: "cursor", Title: "Cursor", Format: JSON, Servers: "mcpServers", Restart: "it notices, or restart it",
			files: in(".cursor", "mcp.json"), project: filepath.Join(".cursor", "mcp.json"),
			entry: func(t Target) (any, error) { return t.untyped("url"), nil },
		},
		{
			Name: "vscode", Title: "VS Code", Format: JSON, Servers: "servers", Restart: "start the server in its list of MCP servers",
			files:   func(h Home) []string { return []string{filepath.Join(h.applications(), "Code", "User", "mcp.json")} },
			project: filepath.Join(".vscode", "mcp.json"),
			entry:   Target.typed,
		},
		{
			Name: "windsurf", Title: "Windsurf", Format: JSON, Servers: "mcpServers", Restart: "refresh its list of MCP servers",
			files: in(".codeium", "windsurf", "mcp_config.json"),
			entry: func(t Target) (any, error) { return t.untyped("serverUrl"), nil },
		},
		{
			Name: "gemini", Title: "Gemini CLI", Format: JSON, Servers: "mcpServers", Restart: "start a new session",
			files: in(".gemini", "settings.json"), project: filepath.Join(".gemini", "settings.json"),
			entry: func(t Target) (any, error) { return t.untyped("httpUrl"), nil },
		},
		{
			Name: "codex", Title: "Codex", Format: TOML, Servers: "mcp_servers", Restart: "start a new session",
			files: func(h Home) []string {
				return []string{filepath.Join(h.variable("CODEX_HOME", filepath.Join(h.Dir, ".codex")), "config.toml")}
			},
			project: filepath.Join(".codex", "config.toml"),
			entry:   Target.codex,
		},
	}
}

// Find returns the client of a name; false if none is known.
func Find(name string) (Client, bool) {
	clients := Clients()
	i := slices.IndexFunc(clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return clients[i], true
}

// File returns the path of the user's file, and whether the program seems to be
// there: its file is, or the directory that it makes for itself.
func (c Client) File(h Home) (path string, found bool) {
	files := c.files(h)
	for _, file := range files {
		if _, err := os.Stat(file); err == nil {
			return file, true
		}
	}
	for _, file := range files {
		if isDir(filepath.Dir(file)) && c.traces == nil {
			return file, true
		}
	}
	if c.traces != nil {
		return files[0], slices.ContainsFunc(c.traces(h), isDir)
	}
	return files[0], false
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// ProjectFile returns the path of the file for those who work in a directory;
// false if the program has no such file.
func (c Client) ProjectFile(dir string) (string, bool) {
	return filepath.Join(dir, c.project), c.project != ""
}

// ProjectOf returns the directory of the project whose file a path is; false if it
// is none.
func (c Client) ProjectOf(path string) (string, bool) {
	dir, ok := strings.CutSuffix(path, string(filepath.Separator)+c.project)
	return dir, ok && c.project != ""
}

// Entry returns the entry by which the program finds Roster, as JSON.
func (c Client) Entry(t Target) ([]byte, error) {
	v, err := c.entry(t)
	if err != nil {
		return nil, fmt.Errorf("%s %w", c.Title, err)
	}
	return marshal(v)
}

// marshal writes a value as people would: & is &.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// commandEntry is an entry with a command.
type commandEntry struct {
	Type    string   `json:"type,omitempty"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// errOnlyCommand ends a sentence about a client.
var errOnlyCommand = errors.New("reads no URLs from its file, only commands: leave --url away")

func (t Target) onlyCommand() (any, error) {
	if t.URL != "" {
		return nil, errOnlyCommand
	}
	return commandEntry{"", t.Command, t.Args}, nil
}

// typed is an entry with a type.
func (t Target) typed() (any, error) {
	if t.URL == "" {
		return commandEntry{"stdio", t.Command, t.Args}, nil
	}
	return struct {
		Type    string            `json:"type"`
		URL     string            `json:"url"`
		Headers map[string]string `json:"headers,omitempty"`
	}{"http", t.URL, t.Headers}, nil
}

// untyped is an entry whose keys say what it is.
func (t Target) untyped(key string) any {
	if t.URL == "" {
		return commandEntry{"", t.Command, t.Args}
	}
	entry := map[string]any{key: t.URL}
	if len(t.Headers) > 0 {
		entry["headers"] = t.Headers
	}
	return entry
}

func (t Target) codex() (any, error) {
	if t.URL == "" {
		return commandEntry{"", t.Command, t.Args}, nil
	}
	entry := map[string]any{"url": t.URL}
	if len(t.Headers) > 0 {
		entry["http_headers"] = t.Headers
	}
	return entry, nil
}
