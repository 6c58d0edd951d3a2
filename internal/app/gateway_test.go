package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/mcp"
)

// patience bounds every wait of these tests for something that must happen.
const patience = 30 * time.Second

// entry is one server in a configuration.
type entry struct {
	name string
	json string
}

// piped is the entry of a server on pipes. more has further members.
func piped(name string, s *mcptest.Socket, more ...string) entry {
	command, env := s.Command()
	raw, _ := json.Marshal(map[string]any{"command": command, "env": env}) // strings only
	return entry{name, extend(string(raw), more)}
}

// remote is the entry of a server over HTTP.
func remote(name, url string, more ...string) entry {
	return entry{name, extend(`{"url":`+string(mcp.String(url))+`}`, more)}
}

func extend(object string, more []string) string {
	for _, m := range more {
		object = strings.TrimSuffix(object, "}") + "," + m + "}"
	}
	return object
}

// gateway is a configuration on disk and the gateway that runs it.
type gateway struct {
	*app.App
	t    testing.TB
	dir  string
	stop context.CancelFunc
	log  *logBuffer

	watch   bool // its configuration
	brief   bool // it ends with a client
	profile bool
}

// newGateway starts a gateway of a new configuration and state. settings has
// members of the "roster" object.
func newGateway(t testing.TB, settings string, servers ...entry) *gateway {
	t.Helper()
	g := stoppedGateway(t)
	g.start(settings, servers...)
	return g
}

// stoppedGateway returns a gateway that was not started yet.
func stoppedGateway(t testing.TB) *gateway {
	g := &gateway{t: t, dir: t.TempDir(), log: &logBuffer{}}
	t.Cleanup(func() {
		g.close()
		if t.Failed() {
			t.Log(g.log.String())
		}
	})
	return g
}

// file is where the configuration is.
func (g *gateway) file() string { return filepath.Join(g.dir, "roster.json") }

// start writes the configuration and starts the gateway, with a port.
func (g *gateway) start(settings string, servers ...entry) {
	g.t.Helper()
	g.write(configuration(settings, servers...))
	g.run()
}

// write writes the configuration.
func (g *gateway) write(text string) {
	g.t.Helper()
	if err := os.WriteFile(g.file(), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// configuration returns the content of a file.
func configuration(settings string, servers ...entry) string {
	var members []string
	for _, s := range servers {
		members = append(members, string(mcp.String(s.name))+":"+s.json)
	}
	if settings != "" {
		settings = "," + settings
	}
	return `{"mcpServers":{` + strings.Join(members, ",") + `},"roster":{"stateDir":"state"` + settings + `}}`
}

// run starts the gateway of the configuration as it is.
func (g *gateway) run() {
	g.t.Helper()
	file := g.file()
	cfg, problems, err := config.Load([]string{file}, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	a, err := app.Start(ctx, app.Options{
		Config: cfg, Problems: problems, Files: []string{file}, Version: "test",
		Load:  func() (*config.Config, []config.Problem, error) { return config.Load([]string{file}, nil) },
		Watch: g.watch, Brief: g.brief, Profile: g.profile, Quiet: 30 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		cancel()
		g.t.Fatal(err)
	}
	g.App, g.stop = a, cancel
	if err := a.Listen(ctx, "127.0.0.1:0"); err != nil {
		g.t.Fatal(err)
	}
}

func (g *gateway) close() {
	if g.App == nil {
		return
	}
	if err := g.Close(); err != nil {
		g.t.Errorf("close: %v", err)
	}
	g.stop()
	g.App = nil
}

// restart closes the gateway and starts it again.
func (g *gateway) restart() {
	g.t.Helper()
	g.close()
	g.run()
}

// http returns a client of the gateway over HTTP.
func (g *gateway) http(v mcp.Version) *mcptest.Caller {
	g.t.Helper()
	return mcptest.CallHTTP(g.t, g.URL(), v)
}

// pipes returns a client of the gateway over pipes; with the newest versions one that
// another process would be asked to serve.
func (g *gateway) pipes(v mcp.Version) *mcptest.Caller {
	g.t.Helper()
	if v == mcp.Latest || v == mcp.LatestSession {
		return g.bridged(v)
	}
	return mcptest.CallPipes(g.t, v, func(ctx context.Context, in io.Reader, out io.Writer) error {
		return g.ServeStdio(ctx, in, out)
	})
}

// ready waits until all servers are connected and listed.
func (g *gateway) ready() {
	g.t.Helper()
	g.until("all servers are ready", func(st admin.Status) bool {
		for _, s := range st.Servers {
			if s.State != upstream.Ready {
				return false
			}
		}
		return true
	})
}

// until waits for a status.
func (g *gateway) until(what string, is func(admin.Status) bool) {
	g.t.Helper()
	eventually(g.t, what, func() bool { return is(g.Status()) })
}

// server returns the status of one server.
func (g *gateway) server(name string) admin.Server {
	g.t.Helper()
	for _, s := range g.Status().Servers {
		if s.Name == name {
			return s
		}
	}
	g.t.Fatalf("no server %q in the status", name)
	return admin.Server{}
}

// eventually waits for something that nothing signals.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	within(t, patience, what, is)
}

// within waits for something that nothing signals, as long as it may take.
func within(t testing.TB, most time.Duration, what string, is func() bool) {
	t.Helper()
	late := time.After(most)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited %v in vain until %s", most, what)
		}
	}
}

// bounded returns a context for one wait of a test.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// list returns a whole list, which must be there.
func list(t testing.TB, c *mcptest.Caller, k mcp.Kind) []string {
	t.Helper()
	items, err := c.List(bounded(t), k)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// walk returns the pages of a whole list as one text.
func walk(t testing.TB, c *mcptest.Caller, k mcp.Kind, between func()) string {
	t.Helper()
	pages, err := c.Walk(bounded(t), k, between)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, p := range pages {
		out.WriteString(p.Result + "\n")
	}
	return out.String()
}

// result makes a request that must succeed.
func result(t testing.TB, c *mcptest.Caller, method, params string) string {
	t.Helper()
	a, err := c.Call(bounded(t), method, params)
	if err != nil {
		t.Fatal(err)
	}
	if a.Error != "" {
		t.Fatalf("%s %s: %s", method, params, a.Error)
	}
	return a.Result
}

// callTool calls a tool without arguments; the request must succeed.
func callTool(t testing.TB, c *mcptest.Caller, name string) string {
	t.Helper()
	return result(t, c, mcp.MethodToolsCall, `{"name":`+string(mcp.String(name))+`,"arguments":{}}`)
}

// tool returns a definition of a tool.
func tool(name string) string {
	return `{"name":"` + name + `","inputSchema":{"type":"object"}}`
}

// tools returns n definitions of tools.
func tools(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = tool(fmt.Sprintf(format, i))
	}
	return out
}

// exposed returns definitions under the names that the gateway gives them.
func exposed(server string, definitions []string) []string {
	out := make([]string, len(definitions))
	for i, d := range definitions {
		out[i] = strings.Replace(d, `"name":"`, `"name":"`+server+`__`, 1)
	}
	return out
}

// same fails the test if two lists differ.
func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%s: %d items, want %d: %s is missing", what, len(got), len(want), want[i])
		case i >= len(want):
			t.Fatalf("%s: %d items, want %d: %s is too much", what, len(got), len(want), got[i])
		case got[i] != want[i]:
			t.Fatalf("%s: item %d is\n%s\nwant\n%s", what, i, got[i], want[i])
		}
	}
}

// mostLog is how many bytes of a log are kept.
const mostLog = 8 << 20

// logBuffer keeps the end of a log for tests that fail.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buf.Len() > mostLog {
		l.buf.Next(mostLog / 2)
	}
	return l.buf.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}
