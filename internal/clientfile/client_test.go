package clientfile_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/clientfile"
)

func client(t *testing.T, name string) clientfile.Client {
	t.Helper()
	c, ok := clientfile.Find(name)
	if !ok {
		t.Fatalf("no client %q", name)
	}
	return c
}

func write(t *testing.T, path string, content []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

var (
	command = []byte(`{"command":"/opt/roster","args":["serve","--stdio"]}`)
	other   = []byte(`{"command":"/usr/bin/roster","args":["serve","--stdio"]}`)
)

// Connect and Disconnect give back what was there, to the byte.
func TestConnect(t *testing.T) {
	texts := map[string]string{
		"empty": "", "blank": "\n", "an empty object": "{}", "spacious": "{\n\n  \"mcpServers\": {  }\n}\n",
		"no map": "{\n  \"x\": 1 // one\n}", "minified": `{"mcpServers":{"a":{}},"x":[1]}`,
		"comments": "{\n  // a\n  \"mcpServers\": { // b\n    // c\n  } // d\n} // e", "BOM": "\ufeff{}\r\n",
		"another": "{\n  \"mcpServers\": {\n    \"roster\": { \"url\": \"http://127.0.0.1/mcp\" }, \"x\": {}\n  }\n}",
	}
	for _, c := range clientfile.Clients() {
		texts[c.Name] = string(fixture(t, c))
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			c := client(t, "cursor")
			if known, ok := clientfile.Find(name); ok {
				c = known
			}
			path := write(t, filepath.Join(t.TempDir(), "file"), []byte(text))
			done, err := c.Connect(path, "roster", command)
			if err != nil || !done.Changed || string(read(t, done.Backup)) != text {
				t.Fatalf("%+v, %v", done, err)
			}
			connected := read(t, path)
			if again, err := c.Connect(path, "roster", command); err != nil || again.Changed || !bytes.Equal(read(t, path), connected) {
				t.Fatalf("the second time: %+v, %v", again, err)
			}
			if done, err := c.Connect(path, "roster", other); err != nil || !done.Changed || done.Backup != "" {
				t.Fatalf("another entry: %+v, %v", done, err)
			}
			if done, err = c.Disconnect(path, "roster"); err != nil || !done.Changed {
				t.Fatalf("%+v, %v", done, err)
			}
			if got := string(read(t, path)); got != text {
				t.Errorf("got\n%q\nwant\n%q", got, text)
			}
			if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
			if name == "another" {
				return // there is still one of that name
			}
			if done, err := c.Disconnect(path, "roster"); err != nil || done.Changed {
				t.Errorf("the second time: %+v, %v", done, err)
			}
		})
	}
}

// What a client has written meanwhile stays.
func TestDisconnectLater(t *testing.T) {
	tests := []struct{ name, before, meanwhile, want string }{
		{
			"another key", "{\n  \"numStartups\": 1\n}\n", "{\n  \"numStartups\": 2,\n  \"mcpServers\": {\n    \"roster\": {}\n  }\n}\n",
			"{\n  \"numStartups\": 2\n}\n",
		},
		{
			"another server", "{\n  \"mcpServers\": {}\n}\n", "{\n  \"mcpServers\": {\n    \"roster\": {},\n    \"b\": {}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}\n",
		},
		{
			"one of ours before", `{"mcpServers": {"roster": {"url": "u"}}}`, `{"x": 1, "mcpServers": {"roster": {}}}`,
			`{"x": 1, "mcpServers": {"roster": { "url": "u" }}}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := client(t, "cursor")
			path := write(t, filepath.Join(t.TempDir(), "mcp.json"), []byte(tt.before))
			if _, err := c.Connect(path, "roster", command); err != nil {
				t.Fatal(err)
			}
			write(t, path, []byte(tt.meanwhile))
			done, err := c.Disconnect(path, "roster")
			if err != nil || string(read(t, done.Backup)) != tt.before {
				t.Fatalf("%+v, %v", done, err)
			}
			if got := string(read(t, path)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A file that Connect made is gone after Disconnect, whatever copy an earlier time left.
func TestConnectMakesFile(t *testing.T) {
	c := client(t, "cursor")
	path := filepath.Join(t.TempDir(), "deep", "mcp.json")
	write(t, path+".before-roster", []byte(`{"old": true}`))
	if done, err := c.Connect(path, "roster", command); err != nil || done.Backup != "" {
		t.Fatalf("%+v, %v", done, err)
	}
	if _, err := c.Disconnect(path, "roster"); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestReplaceKeepsModeAndLink(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes and links are those of Unix")
	}
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "dotfiles", "mcp.json"), []byte("{}"))
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "mcp.json")
	if err := os.Symlink(filepath.Join("dotfiles", "mcp.json"), link); err != nil {
		t.Fatal(err)
	}
	if err := clientfile.Replace(link, []byte("{}"), []byte("{ }")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o640 || string(read(t, file)) != "{ }" {
		t.Errorf("the file is %v with %q, %v", info.Mode(), read(t, file), err)
	}
	if err := clientfile.Replace(link, []byte("{}"), []byte("{  }")); err == nil || string(read(t, file)) != "{ }" {
		t.Errorf("a file that has changed was replaced: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(file)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// Each client's file is where the client looks, on each system.
func TestFiles(t *testing.T) {
	tests := []struct{ client, system, want string }{
		{"claude-desktop", "darwin", "Library/Application Support/Claude/claude_desktop_config.json"},
		{"claude-desktop", "windows", "AppData/Roaming/Claude/claude_desktop_config.json"},
		{"claude-desktop", "linux", ".config/Claude/claude_desktop_config.json"},
		{"claude-code", "linux", ".claude.json"},
		{"cursor", "darwin", ".cursor/mcp.json"},
		{"vscode", "darwin", "Library/Application Support/Code/User/mcp.json"},
		{"vscode", "windows", "AppData/Roaming/Code/User/mcp.json"},
		{"vscode", "linux", ".config/Code/User/mcp.json"},
		{"windsurf", "linux", ".codeium/windsurf/mcp_config.json"},
		{"gemini", "linux", ".gemini/settings.json"},
		{"codex", "linux", ".codex/config.toml"},
	}
	for _, tt := range tests {
		dir := t.TempDir()
		home := clientfile.Home{Dir: dir, System: tt.system}
		c := client(t, tt.client)
		path, found := c.File(home)
		if want := filepath.Join(dir, filepath.FromSlash(tt.want)); path != want || found {
			t.Errorf("%s on %s: %s, %v; want %s", tt.client, tt.system, path, found, want)
		}
		write(t, path, nil)
		if again, found := c.File(home); again != path || !found {
			t.Errorf("%s on %s: %s, %v", tt.client, tt.system, again, found)
		}
	}
}

func TestFilesOfVariables(t *testing.T) {
	home := clientfile.Home{Dir: "/home/ada", System: "linux", LookupEnv: func(name string) (string, bool) {
		v, ok := map[string]string{"CLAUDE_CONFIG_DIR": "/claude", "CODEX_HOME": "/codex", "XDG_CONFIG_HOME": "/xdg"}[name]
		return v, ok
	}}
	for name, want := range map[string]string{
		"claude-code": "/claude/.claude.json", "codex": "/codex/config.toml", "vscode": "/xdg/Code/User/mcp.json",
	} {
		if path, _ := client(t, name).File(home); path != filepath.FromSlash(want) {
			t.Errorf("%s: %s", name, path)
		}
	}
}

// What a client calls otherwise than Roster is translated, the rest is taken as it is.
func TestImport(t *testing.T) {
	tests := []struct {
		client, dir string
		want        []string // name and what the entry has
	}{
		{"claude-desktop", "", []string{"filesystem", `"/Users/ada/Desktop"`, "memory", `"MEMORY_FILE_PATH"`}},
		{"claude-code", "/home/ada/shop", []string{"sentry", "https://mcp.sentry.dev/mcp", "github", "${GITHUB_TOKEN:-none}", "shop-db", `"cwd": "/home/ada/shop"`}},
		{"claude-code", "", []string{"sentry", "", "github", ""}},
		{"vscode", "", []string{"perplexity", "${input:perplexity-key}", "docs", "{ // for work"}},
		{"gemini", "", []string{"search", `"Bearer ${SEARCH_TOKEN}"`, "build", `"${BUILD_KEY}"`}},
		{"codex", "", []string{
			"context7", `{"command":"npx","args":["-y","@upstash/context7-mcp"],"connectTimeout":"20s","env":{"LOG":"verbose $${LITERAL}"}}`,
			"figma-remote", `{"url":"https://mcp.figma.com/mcp","enabled":true,"enabled_tools":["open"],` +
				`"headers":{"Authorization":"Bearer ${FIGMA_OAUTH_TOKEN}","X-Figma-Region":"us-east-1"},"requestTimeout":"90s"}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.client+tt.dir, func(t *testing.T) {
			c := client(t, tt.client)
			f, err := clientfile.Parse(c.Format, c.Servers, fixture(t, c))
			if err != nil {
				t.Fatal(err)
			}
			servers, err := c.Import(f, tt.dir)
			if err != nil || len(servers) != len(tt.want)/2 {
				t.Fatalf("%d servers, %v", len(servers), err)
			}
			for i, s := range servers {
				if s.Name != tt.want[2*i] || !strings.Contains(string(s.Entry), tt.want[2*i+1]) {
					t.Errorf("server %q is %s", s.Name, s.Entry)
				}
			}
		})
	}
	c := client(t, "vscode")
	f, err := clientfile.Parse(c.Format, c.Servers, fixture(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if inputs := f.Inputs(); len(inputs) != 1 || inputs[0].Name != "perplexity-key" {
		t.Errorf("inputs %v", inputs)
	}
}

// An entry of a project means the same elsewhere.
func TestInProject(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"command": "x"}`, `{"command": "x", "cwd": "/p q"}`},
		{`{"command": "x", "cwd": "${workspaceFolder}/a"}`, `{"command": "x", "cwd": "/p q/a"}`},
		{`{"url": "u"}`, `{"url": "u"}`},
	}
	for _, tt := range tests {
		got, err := clientfile.InProject([]byte(tt.in), "/p q")
		if err != nil || string(got) != tt.want {
			t.Errorf("%s became %s, %v", tt.in, got, err)
		}
	}
}

func TestProjectFile(t *testing.T) {
	var names []string
	for _, c := range clientfile.Clients() {
		if path, ok := c.ProjectFile("p"); ok {
			names = append(names, filepath.ToSlash(path))
		}
	}
	want := []string{"p/.mcp.json", "p/.cursor/mcp.json", "p/.vscode/mcp.json", "p/.gemini/settings.json", "p/.codex/config.toml"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
}
