package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// capabilities is what clients declare that can be told. server-everything has tools only for peers with such
// capabilities.
var capabilities = json.RawMessage(`{"sampling":{},"elicitation":{"form":{},"url":{}}}`)

// rootCapabilities is that and roots. server-filesystem would serve those and nothing else.
var rootCapabilities = json.RawMessage(`{"sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}`)

// A server is one foreign server and how it is reached.
type server struct {
	name   string
	entry  entry
	modern bool           // speaks 2026-07-28
	roots  bool           // has the client's roots also behind roster
	least  map[string]int // how many of each kind it has at least
	uses   []use
	// features are uses in which the server speaks first. A mute server cannot do that for clients of older versions:
	// it has no session with them. Roster has it speak to those too.
	features []use
	mute     bool
}

// An entry is a server's entry in a client's configuration file.
type entry struct {
	Type    string            `json:"type,omitempty"`
	URL     string            `json:"url,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	Scope   string            `json:"scope,omitempty"`
}

// A use is an op and a piece of text that its result must have.
type use struct {
	op
	want  string
	heard []string // what the client must hear and be asked meanwhile, in order
	since string   // the first protocol version of clients that can
}

// A world is the servers of one test, with a directory for what they keep.
type world struct {
	dir     string
	mark    string // every process that belongs to the test has it in its environment
	servers []server
	declare json.RawMessage // capabilities of clients that ask the servers themselves
}

// markName is the environment variable by which leftover processes are found.
const markName = "ROSTER_INTEROP_RUN"

// emptyWorld is a world without servers. When the test ends nothing of it may be running.
func emptyWorld(t *testing.T) *world {
	t.Helper()
	w := &world{dir: t.TempDir(), declare: capabilities, mark: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())}
	t.Cleanup(func() { w.checkLeftovers(t) })
	return w
}

// newWorld builds or finds all servers and starts those that are reached over HTTP. They are stopped when the
// test ends. Without the npm peers it has the Go servers only.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := emptyWorld(t)
	goserver := buildGoServer(t, w.dir)
	stdio := func(name string, args ...string) entry {
		return entry{Command: goserver, Args: append([]string{"-name", name}, args...), Env: map[string]string{markName: w.mark}}
	}
	web := func(name string, args ...string) entry {
		return entry{Type: "http", URL: w.startGoServer(t, goserver, append([]string{"-name", name}, args...))}
	}
	const legacy = "2025-11-25,2025-06-18,2025-03-26,2024-11-05"

	// Servers of each sort between others, and one whose resources need cursors on both sides of a gateway.
	n := findNPM()
	if n.missing == "" {
		w.add(w.everything(n))
	}
	w.add(goServer("gomany", stdio("gomany", "-resources", "2100", "-page", "500"), true, 2100))
	if n.missing == "" {
		w.add(w.filesystem(t, n))
		w.add(w.everythingHTTP(t, n, entry{Type: "http"}))
	}
	stateless := goServer("gohttp", web("gohttp", "-stateless"), true, 2)
	stateless.mute = true
	// Without a session the SDK does not tell a tool that its client has gone.
	stateless.features = slices.DeleteFunc(stateless.features, func(u use) bool { return strings.HasPrefix(u.Name, "wait") })
	w.add(stateless)
	if n.missing == "" {
		w.add(w.memory(t, n))
	}
	w.add(goServer("goold", stdio("goold", "-versions", legacy), false, 2))
	w.add(goServer("gosession", web("gosession"), false, 2))
	private := stdio("goprivate", "-versions", legacy)
	private.Scope = "client"
	w.add(goServer("goprivate", private, false, 2))
	return w
}

func (w *world) add(s server) { w.servers = append(w.servers, s) }

func goServer(name string, e entry, modern bool, resources int) server {
	roots := modern || e.Scope == "client"
	return server{
		name: name, entry: e, modern: modern, roots: roots, features: goFeatures(name, roots),
		least: map[string]int{"tools": 10, "prompts": 1, "resources": resources, "templates": 1},
		uses: []use{
			{op: op{Method: "tools/call", Name: "add", Arguments: map[string]any{"a": 2, "b": 40}}, want: `"structuredContent":{"sum":42}`},
			{op: op{Method: "tools/call", Name: "route", Arguments: map[string]any{"region": "zürich 7", "text": "hello"}}, want: "zürich 7: hello"},
			{op: op{Method: "tools/call", Name: "who"}, want: `"` + name + `"`},
			{op: op{Method: "prompts/get", Name: "greeting", Arguments: map[string]any{"who": "interop"}}, want: "hello interop"},
			{op: op{Method: "resources/read", Name: name + "://made/to-measure"}, want: "this is " + name + "://made/to-measure"},
			{op: op{Method: "resources/read", Name: name + "://item/00001"}, want: "this is " + name + "://item/00001"},
		},
	}
}

// everythingServer is server-everything, however it is reached. Its resources are the same in both, so through a
// gateway they belong to the first, which is not the one over Streamable HTTP.
func everythingServer(name string, e entry) server {
	return server{
		name: name, entry: e, features: everythingFeatures(e.Type != "http"),
		least: map[string]int{"tools": 12, "prompts": 4, "resources": 7, "templates": 2},
		uses: []use{
			{op: op{Method: "tools/call", Name: "echo", Arguments: map[string]any{"message": "from interop"}}, want: "Echo: from interop"},
			{op: op{Method: "tools/call", Name: "get-structured-content", Arguments: map[string]any{"location": "Chicago"}}, want: `"temperature":`},
			{op: op{Method: "prompts/get", Name: "simple-prompt"}, want: "This is a simple prompt"},
			{op: op{Method: "resources/read", Name: "demo://resource/static/document/startup.md"}, want: "text/markdown"},
		},
	}
}

func (w *world) everything(n npm) server {
	script := n.script("@modelcontextprotocol/server-everything/dist/index.js")
	return everythingServer("everything", w.script(n, script, nil))
}

// everythingHTTP starts server-everything for Streamable HTTP, or for the HTTP with SSE of 2024-11-05.
func (w *world) everythingHTTP(t *testing.T, n npm, e entry) server {
	t.Helper()
	mode, path := "streamableHttp", "/mcp"
	if e.Type == "sse" {
		mode, path = "sse", "/sse"
	}
	ready := regexp.MustCompile(`(?:listening|running) on port (\d+)`)
	var failed error
	for range 5 {
		cmd := exec.Command(n.node, n.script("@modelcontextprotocol/server-everything/dist/index.js"), mode)
		cmd.Env = append(os.Environ(), "PORT="+freePort(t), markName+"="+w.mark)
		p, port, err := startProcess(t.Context(), cmd, "server-everything", ready, time.Minute)
		if err != nil {
			failed = err // perhaps the port was taken in the meantime
			continue
		}
		t.Cleanup(func() { _ = p.stop(2 * time.Second) })
		e.URL = "http://127.0.0.1:" + port + path
		return everythingServer("every"+e.Type, e)
	}
	t.Fatal(failed)
	return server{}
}

func (w *world) filesystem(t *testing.T, n npm) server {
	dir := filepath.Join(w.dir, "files")
	file := filepath.Join(dir, "note.txt")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("a note for interop\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return server{
		name:  "filesystem",
		entry: w.script(n, n.script("@modelcontextprotocol/server-filesystem/dist/index.js"), nil, dir),
		least: map[string]int{"tools": 14},
		uses:  []use{{op: op{Method: "tools/call", Name: "read_text_file", Arguments: map[string]any{"path": file}}, want: "a note for interop"}},
	}
}

func (w *world) memory(t *testing.T, n npm) server {
	file := filepath.Join(w.dir, "memory.jsonl")
	line := `{"type":"entity","name":"Ada","entityType":"person","observations":["wrote the first program"]}`
	if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"MEMORY_FILE_PATH": file}
	return server{
		name:  "memory",
		entry: w.script(n, n.script("@modelcontextprotocol/server-memory/dist/index.js"), env),
		least: map[string]int{"tools": 9, "resources": 1},
		uses: []use{
			{op: op{Method: "tools/call", Name: "read_graph"}, want: "wrote the first program"},
			{op: op{Method: "resources/read", Name: "memory://knowledge-graph"}, want: "Ada"},
		},
	}
}

// script is the entry of an npm server that is started over stdio.
func (w *world) script(n npm, path string, env map[string]string, args ...string) entry {
	all := map[string]string{markName: w.mark}
	for k, v := range env {
		all[k] = v
	}
	return entry{Command: n.node, Args: append([]string{path}, args...), Env: all}
}

func buildGoServer(t *testing.T, dir string) string {
	t.Helper()
	bin := filepath.Join(dir, "goserver")
	ctx, cancel := bounded(t, 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", bin, "./goserver").CombinedOutput(); err != nil {
		t.Fatalf("go build ./goserver: %v\n%s", err, out)
	}
	return bin
}

func (w *world) startGoServer(t *testing.T, bin string, args []string) string {
	t.Helper()
	cmd := exec.Command(bin, append(args, "-listen", "127.0.0.1:0")...)
	cmd.Env = append(os.Environ(), markName+"="+w.mark)
	p, url, err := startProcess(t.Context(), cmd, "goserver", regexp.MustCompile(`url=(\S+)`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.stop(5 * time.Second) })
	return url
}

// direct is the job of asking a server itself.
func (w *world) direct(s server, era string) job {
	j := job{
		URL: s.entry.URL, Command: s.entry.Command, Args: s.entry.Args,
		Era: era, Capabilities: w.declare, TimeoutMs: 30_000,
		// server-everything adds some tools after a client has said that it is ready.
		Want: s.least, PatienceMs: 5_000,
	}
	if s.roots {
		j.Capabilities = rootCapabilities
	}
	if s.entry.Type == "sse" {
		j.Transport = "sse"
	}
	if j.Command != "" {
		j.Env = environment(s.entry.Env)
	}
	return j
}
