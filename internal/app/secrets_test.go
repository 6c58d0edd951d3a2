package app_test

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// loud is the entry of a server that prints all it was given.
func loud(name string, env ...string) entry {
	variables := `"` + loudVariable + `":"1","GORACE":"atexit_sleep_ms=0"`
	for _, e := range env {
		variables += "," + e
	}
	return entry{name, `{"command":` + string(mcp.String(os.Args[0])) + `,"args":["-e","K=S3CR3T-3"],"timeout":"300ms","env":{` + variables + `}}`}
}

// TestSecrets_Nowhere has servers that repeat the secrets they were given, on
// standard error, in the bodies of HTTP errors and in refusals of the handshake:
// none is in a log at debug level, the status, a route, a tool's error or the
// state, through start, calls, failures, timeouts and restarts (C-158).
func TestSecrets_Nowhere(t *testing.T) {
	site := answering(tool("t")).OnHTTP(t)
	address := strings.Replace(site.URL, "http://", "http://user:S3CR3T-5@", 1) + "?key=S3CR3T-4"
	rpc := answering(tool("t")).OnHTTP(t)
	g := newGateway(t, "", loud("loud", `"TOKEN":"S3CR3T-1"`),
		remote("h", address, `"headers":{"Authorization":"Bearer S3CR3T-2"}`),
		remote("basic", address),
		remote("rpc", rpc.URL, `"headers":{"X-Key":"S3CR3T-2"}`))
	g.ready()
	var shown strings.Builder
	tell := func() {
		for path, status := range map[string]int{"/status": 200, "/livez": 200, "/readyz": 200, "/healthz": 200} {
			shown.WriteString(get(t, g, path, status))
		}
	}
	call := func(name, want string) {
		t.Helper()
		for _, c := range []*mcptest.Caller{g.http(mcp.Latest), g.pipes(mcp.V20250618)} {
			a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`","arguments":{}}`)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Result + a.Error; !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %q", name, got, want)
			}
			shown.WriteString(a.Result + a.Error)
		}
	}
	echo := func(w http.ResponseWriter, r *http.Request) bool {
		user, password, _ := r.BasicAuth()
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusInternalServerError)
		if r.URL.Query().Has("key") && user != "" { // one over the end of what an error quotes
			_, _ = fmt.Fprint(w, strings.Repeat("x", 74))
		}
		_, _ = fmt.Fprintf(w, "%s:%s, key S3CR3T-4, %s, %s", password, user, r.Header.Get("Authorization"), r.URL)
		return true
	}
	refuse := func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"bad key %s"}}`, r.Header.Get("X-Key"))
		return true
	}
	call("loud__t", "done")
	call("h__t", "done")
	call("loud__hang", "did not answer")
	tell()

	site.Hook(echo)
	call("h__t", `server \"h\"`) // its status, or that it is down for that
	call("basic__t", `server \"basic\"`)
	callDying(t, g, &shown)
	tell()
	g.until("the loud server is back", func(admin.Status) bool { return g.server("loud").State == upstream.Ready })

	rpc.Hook(refuse)
	g.restart()
	g.until("the others are down", func(admin.Status) bool {
		return g.server("h").State == upstream.Down && g.server("basic").State == upstream.Down && g.server("rpc").State == upstream.Down
	})
	call("h__t", "is down")
	call("basic__t", "is down")
	call("rpc__t", `server \"rpc\" is down`)
	shown.WriteString(get(t, g, "/status", http.StatusOK))
	if s := g.server("rpc"); !strings.Contains(s.Error, "bad key [hidden]") {
		t.Errorf("the error of rpc is %q", s.Error)
	}
	g.close()

	shown.WriteString(g.log.String())
	if !strings.Contains(shown.String(), "I was given") || !strings.Contains(shown.String(), "exit status 3") {
		t.Error("the log does not have what the loud server said, so it proves nothing")
	}
	shown.WriteString(files(t, g.dir+"/state"))
	basic := "dXNlcjpTM0NSM1QtN" // how user:S3CR3T-5 begins in an Authorization header
	for _, found := range regexp.MustCompile(`.{0,200}(S3CR3T|S3CR3|`+basic+`).{0,40}`).FindAllString(shown.String(), 5) {
		t.Errorf("a secret in: %s", found)
	}
}

// callDying calls the tool whose server dies, once.
func callDying(t *testing.T, g *gateway, shown *strings.Builder) {
	t.Helper()
	a, err := g.http(mcp.Latest).Call(bounded(t), mcp.MethodToolsCall, `{"name":"loud__die","arguments":{}}`)
	if err != nil || !strings.Contains(a.Result, "exit status 3") || !strings.Contains(a.Result, "x[hidd") {
		t.Errorf("die: %+v, %v", a, err)
	}
	shown.WriteString(a.Result + a.Error)
}

// TestSecrets_OfClients has clients send credentials: no server sees them, on
// HTTP or in its environment (C-140), whatever is on the list of the header fields
// that are passed on (C-141).
func TestSecrets_OfClients(t *testing.T) {
	t.Setenv("CLIENT_TOKEN_OF_THE_GATEWAY", "S3CR3T-7") // not one that a child gets
	var mu sync.Mutex
	var seen []http.Header
	site := answering(tool("t")).OnHTTP(t)
	site.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Clone())
		return false
	})
	g := newGateway(t, "", loud("loud"), remote("h", site.URL,
		`"forwardHeaders":["x-color","Connection","Host","Authorization","Mcp-Session-Id","X-Secret","Cookie","X-Api-Key"]`))
	g.ready()
	for _, tool := range []string{"h__t", "loud__env"} {
		frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":{},"_meta":{%q:%q,%q:{"name":"c","version":"1"},%q:{}}}}`,
			tool, mcp.MetaVersion, mcp.Latest, mcp.MetaClientInfo, mcp.MetaCapabilities)
		req, err := http.NewRequestWithContext(bounded(t), http.MethodPost, g.URL(), strings.NewReader(frame))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			mcp.HeaderVersion: string(mcp.Latest), mcp.HeaderMethod: "tools/call", mcp.HeaderName: tool,
			"Authorization": "Bearer S3CR3T-8", "Cookie": "session=S3CR3T-8", "X-Api-Key": "S3CR3T-8", "Proxy-Authorization": "Basic S3CR3T-8",
			"X-Tenant": "S3CR3T-8", "X-Color": "blue", "Connection": "x-secret", "X-Secret": "S3CR3T-8",
		} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body := readAll(t, resp)
		m, err := jsonrpc.Parse([]byte(body))
		if err != nil || m.Error != nil || m.Result.IsZero() {
			t.Fatalf("%s: %s, %v", tool, body, err)
		}
		if strings.Contains(body, "S3CR3T") {
			t.Errorf("the server on pipes was given a secret: %s", body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) < 2 {
		t.Errorf("the server got %d requests", len(seen))
	}
	passed := 0
	for _, header := range seen {
		if text := fmt.Sprint(header); strings.Contains(text, "S3CR3T") || header.Get("Connection") != "" {
			t.Errorf("the server got %s", text)
		}
		if header.Get("X-Color") == "blue" {
			passed++
		}
	}
	if passed != 1 {
		t.Errorf("the header that is on the list came %d times, want once", passed)
	}
}

func readAll(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// files returns all there is in a directory, which must be something.
func files(t testing.TB, dir string) string {
	t.Helper()
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out.Write(data)
		return err
	})
	if err != nil || out.Len() == 0 {
		t.Fatalf("%d bytes in %s: %v", out.Len(), dir, err)
	}
	return out.String()
}

// TestHostile_Definitions has a server whose tools refer to schemas elsewhere and
// have odd names: they are listed as they are, and nothing is fetched (C-163).
func TestHostile_Definitions(t *testing.T) {
	var fetched atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { fetched.Add(1) }))
	defer elsewhere.Close()
	schema := `{"type":"object","$schema":"` + elsewhere.URL + `/s","properties":{"a":{"$ref":"` + elsewhere.URL + `/x"},"b":{"$ref":"file:///etc/passwd"}}}`
	b := answering(`{"name":"far","inputSchema":` + schema + `}`)
	for _, name := range []string{"../../etc", "a\u0000b", "<script>", "a\nInjected: 1", "x__y", strings.Repeat("n", 5000), "\u202eevil"} {
		b.Add(mcp.Tools, `{"name":`+string(mcp.String(name))+`,"inputSchema":{"type":"object"}}`)
	}
	g := newGateway(t, "", remote("s", b.OnHTTP(t).URL))
	g.ready()
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,50}$`)
	for _, c := range []*mcptest.Caller{g.http(mcp.Latest), g.pipes(mcp.V20250618)} {
		items := list(t, c, mcp.Tools)
		if len(items) != 8 || !strings.Contains(items[0], schema) {
			t.Errorf("%d tools, the first is %s", len(items), items[0])
		}
		for _, item := range items {
			tool, err := jsonrpc.ParseObject([]byte(item))
			name, _ := tool.Text("name")
			if err != nil || !valid.MatchString(name) {
				t.Fatalf("%q is listed: %v", name, err)
			}
			if got := callTool(t, c, name); !strings.Contains(got, "done") {
				t.Errorf("%s: %s", name, got)
			}
		}
	}
	if n := fetched.Load(); n != 0 {
		t.Errorf("%d requests were made for schemas", n)
	}
}

// TestHostile_Command has commands that a shell would run: none is (C-155).
func TestHostile_Command(t *testing.T) {
	dir := t.TempDir()
	g := newGateway(t, "",
		entry{"shell", `{"command":"echo; touch PWNED","args":["$(touch PWNED2)","; touch PWNED3","*"],"cwd":` + string(mcp.String(dir)) + `}`},
		entry{"args", `{"command":` + string(mcp.String(os.Args[0])) + `,"args":["$(touch PWNED2)","; touch PWNED3","*"],"env":{"` + loudVariable + `":"1"},"cwd":` + string(mcp.String(dir)) + `}`})
	g.until("the server is tried", func(admin.Status) bool {
		return g.server("shell").State == upstream.Down && g.server("args").State == upstream.Ready
	})
	if s := g.server("shell"); !strings.Contains(s.Error, "not found") {
		t.Errorf("the error is %q", s.Error)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) > 0 {
		t.Errorf("%v in the working directory, %v", found, err)
	}
}
