package app_test

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/mcp"
)

// store keeps tests from the keyring of who runs them.
const store = `"tokenStore":"file"`

// protect has a site ask for tokens of an issuer.
func protect(site *mcptest.Site, is *mcptest.Issuer) {
	origin := strings.TrimSuffix(site.URL, "/mcp")
	site.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/meta" {
			_, _ = fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q]}`, site.URL, is.URL)
			return true
		}
		if _, good := is.Check(r.Header.Get("Authorization"), site.URL); good {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/meta"`, origin))
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
}

// visit opens a URL as a browser does whose user agrees to all.
func visit(t testing.TB, at string) string {
	t.Helper()
	resp, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the login ended with %s, %v: %s", resp.Status, err, page)
	}
	return string(page)
}

var loginURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize\?[^" ,\\]+`)

// A server that wants a login is shown as that, calls to it say where to log in,
// other servers go on, and the login takes effect at once. Its token is replaced by
// one call of many, and no secret is anywhere (C-142).
func TestLogin(t *testing.T) {
	is := mcptest.NewIssuer(t)
	site := answering(tool("t")).OnHTTP(t)
	protect(site, is)
	g := newGateway(t, store, remote("hosted", site.URL), remote("other", answering(tool("t")).OnHTTP(t).URL))
	g.until("the server needs a login", func(admin.Status) bool { return g.server("hosted").State == upstream.NeedsLogin })
	c := g.http(mcp.V20250618)
	var shown strings.Builder
	call := func(name, want string) string {
		t.Helper()
		got := ""
		// The status says that a server is ready before its tools are listed, and a new
		// login may have it start anew.
		g.until("a call of "+name+" says "+want, func(admin.Status) bool {
			a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`","arguments":{}}`)
			if err != nil {
				t.Fatal(err)
			}
			got = a.Result + a.Error
			return strings.Contains(got, want)
		})
		shown.WriteString(got)
		return got
	}
	call("other__t", "done")
	if got := get(t, g, "/status", http.StatusOK); !strings.Contains(got, "roster auth login hosted") {
		t.Errorf("the status does not say what to do: %s", got)
	}
	call("hosted__t", "not logged in: hosted")

	logIn(t, g, "hosted") // in another process, as far as the gateway can see
	g.until("the server is ready", func(admin.Status) bool { return g.server("hosted").State == upstream.Ready })
	call("hosted__t", "done")

	is.Revoke()
	g.until("the call fails", func(admin.Status) bool {
		return strings.Contains(call("hosted__t", ""), "needs a login")
	})
	call("other__t", "done")
	text := call("hosted__t", "or open http")
	visit(t, strings.ReplaceAll(loginURL.FindString(text), `\u0026`, "&"))
	g.until("the server is ready again", func(admin.Status) bool { return g.server("hosted").State == upstream.Ready })
	call("hosted__t", "done")

	var calls sync.WaitGroup
	before := is.Count("refresh_token")
	is.Expire()
	for range 20 {
		calls.Go(func() {
			ctx, c := bounded(t), g.http(mcp.Latest)
			for { // the login just now may have the server start anew
				a, err := c.Call(ctx, mcp.MethodToolsCall, `{"name":"hosted__t","arguments":{}}`)
				if away := strings.Contains(a.Result, "is starting") || strings.Contains(a.Result, "a moment ago"); err == nil && away {
					continue
				}
				if err != nil || !strings.Contains(a.Result, "done") {
					t.Errorf("%+v, %v", a, err)
				}
				return
			}
		})
	}
	calls.Wait()
	if n := is.Count("refresh_token") - before; n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	shown.WriteString(get(t, g, "/status", http.StatusOK))
	g.close()
	shown.WriteString(g.log.String())
	shown.WriteString(files(t, g.dir+"/state"))
	for _, secret := range is.Secrets() {
		if strings.Contains(shown.String(), secret) {
			t.Errorf("the secret %q is in an answer, the log, the status or a file", secret)
		}
	}
}

// logIn logs in to a server of the gateway's configuration, beside the gateway.
func logIn(t testing.TB, g *gateway, name string) {
	t.Helper()
	c, _, err := config.Load([]string{g.file()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := app.OpenLogin(c, []string{g.file()}, name, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	l, err := o.Begin(bounded(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	visit(t, l.URL)
	if err := l.Wait(bounded(t)); err != nil {
		t.Fatal(err)
	}
}

// A client whose user can be sent to a URL is asked to send them to the login, in
// the way of its version, and the call is made when that is done.
func TestLogin_Elicitation(t *testing.T) {
	is := mcptest.NewIssuer(t)
	site := answering(tool("t")).OnHTTP(t)
	protect(site, is)
	g := newGateway(t, store, remote("hosted", site.URL))
	logIn(t, g, "hosted")
	g.until("the server is ready", func(admin.Status) bool { return g.server("hosted").State == upstream.Ready })
	is.Revoke()
	const params = `{"name":"hosted__t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"url":{}}}}`
	post := func(params string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(bounded(t), http.MethodPost, g.URL(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			mcp.HeaderVersion: "2026-07-28", mcp.HeaderMethod: "tools/call", mcp.HeaderName: "hosted__t",
		} {
			req.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	asked := ""
	g.until("the call asks for a visit", func(admin.Status) bool {
		asked = post(params + "}")
		return strings.Contains(asked, "input_required")
	})
	at := strings.ReplaceAll(loginURL.FindString(asked), `\u0026`, "&")
	state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(asked)
	if at == "" || state == nil || !strings.Contains(asked, `"mode":"url"`) {
		t.Fatalf("not asked to visit a URL: %s", asked)
	}
	answered := make(chan string)
	go func() { // ends with the test's context
		answered <- post(params + `,"inputResponses":{"visit1":{"action":"accept"}},"requestState":"` + state[1] + `"}`)
	}()
	visit(t, at)
	if got := <-answered; !strings.Contains(got, "done") && !strings.Contains(got, "is starting") && !strings.Contains(got, "a moment ago") {
		t.Errorf("after the login: %s", got)
	}
	g.until("the tool is called", func(admin.Status) bool { return strings.Contains(post(params+"}"), "done") })
}

// Two entries of one server with a credential each: when one is refused, the
// other does not notice (C-145).
func TestC145_OneCredentialRefused(t *testing.T) {
	site := answering(tool("t")).OnHTTP(t)
	var mu sync.Mutex
	good := map[string]bool{"Bearer CANARY-1": true, "Bearer CANARY-2": true}
	sessions := map[string]string{} // credential by session
	site.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		credential := r.Header.Get("Authorization")
		if session := r.Header.Get(mcp.HeaderSession); session != "" {
			if was, known := sessions[session]; known && was != credential {
				t.Errorf("a session of %s is used with %s", was, credential)
			}
			sessions[session] = credential
		}
		if good[credential] {
			return false
		}
		w.Header().Set("WWW-Authenticate", "Bearer error=\"invalid_token\"")
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	g := newGateway(t, store, remote("one", site.URL, `"bearer":"CANARY-1"`), remote("two", site.URL, `"bearer":"CANARY-2"`))
	g.ready()
	mu.Lock()
	delete(good, "Bearer CANARY-1")
	mu.Unlock()
	c := g.http(mcp.Latest)
	var shown strings.Builder
	for range 3 {
		for name, want := range map[string]string{"one__t": "401", "two__t": "done"} {
			a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`","arguments":{}}`)
			if err != nil || !strings.Contains(a.Result, want) {
				t.Errorf("%s: %+v, %v", name, a, err)
			}
			shown.WriteString(a.Result)
		}
	}
	if st := g.server("two"); st.State != upstream.Ready || st.Restarts != 0 {
		t.Errorf("the other server is %s after %d restarts", st.State, st.Restarts)
	}
	shown.WriteString(get(t, g, "/status", http.StatusOK))
	g.close()
	if strings.Contains(shown.String()+g.log.String()+files(t, g.dir+"/state"), "CANARY") {
		t.Error("a token is in an answer, the log, the status or a file")
	}
}

// A request without a key, or with a wrong one, is told how to authenticate, on each
// route that has data, and nothing else: with keys there is no authorization server
// to point at, and none is made up (C-136).
func TestC136_KeysChallenge(t *testing.T) {
	key := auth.NewKey()
	g := newGateway(t, store+`,"keys":[{"name":"ann","sha256":"`+auth.HashKey(key).String()+`"}]`)
	base := strings.TrimSuffix(g.URL(), "/mcp")
	ask := func(method, path, authorization string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(bounded(t), method, base+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(body)
	}
	for _, path := range []string{"/mcp", "/sse", "/messages", "/status", "/items", "/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server"} {
		for authorization, want := range map[string]string{
			"": `Bearer realm="roster"`, "Bearer CANARY-" + key: `Bearer realm="roster", error="invalid_token"`, "Basic CANARY": `Bearer realm="roster"`,
		} {
			resp, body := ask(http.MethodPost, path, authorization)
			if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != http.StatusUnauthorized || got != want {
				t.Errorf("%s with %q: status %d, challenge %q, want %q", path, authorization, resp.StatusCode, got, want)
			}
			if strings.Contains(body, "CANARY") || strings.Contains(body, key) || !strings.Contains(body, "a key") && !strings.Contains(body, "this key") {
				t.Errorf("%s: body %s", path, body)
			}
		}
	}
	if resp, _ := ask(http.MethodGet, "/.well-known/oauth-protected-resource", "Bearer "+key); resp.StatusCode != http.StatusNotFound {
		t.Errorf("metadata with a key: status %d, want 404", resp.StatusCode)
	}
	g.close()
	if strings.Contains(g.log.String(), "CANARY") || strings.Contains(g.log.String(), key) {
		t.Error("a key is in the log")
	}
}

// A gateway that others use, too, sends nobody to a login: whoever is at a client
// there need not be who runs the gateway.
func TestLogin_SharedGateway(t *testing.T) {
	is := mcptest.NewIssuer(t)
	site := answering(tool("t")).OnHTTP(t)
	protect(site, is)
	key := auth.NewKey()
	g := stoppedGateway(t)
	g.start(store, remote("hosted", site.URL))
	logIn(t, g, "hosted")
	g.until("the server is ready", func(admin.Status) bool { return g.server("hosted").State == upstream.Ready })
	g.close()
	is.Revoke()
	g.start(store+`,"keys":[{"name":"ann","sha256":"`+auth.HashKey(key).String()+`"}]`, remote("hosted", site.URL))
	g.until("the server needs a login", func(admin.Status) bool { return g.server("hosted").State == upstream.NeedsLogin })
	a, err := g.pipes(mcp.Latest).Call(bounded(t), mcp.MethodToolsCall, `{"name":"hosted__t","arguments":{}}`)
	if err != nil || !strings.Contains(a.Result, "roster auth login hosted") || strings.Contains(a.Result, "http") {
		t.Errorf("%+v, %v", a, err)
	}
}

// A call that needs more than the login has says so; the others go on, and so does
// this one after another login.
func TestLogin_StepUp(t *testing.T) {
	is := mcptest.NewIssuer(t)
	site := answering(tool("read"), tool("write")).OnHTTP(t)
	var granted sync.Map
	origin := strings.TrimSuffix(site.URL, "/mcp")
	site.Hook(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/meta" {
			_, _ = fmt.Fprintf(w, `{"resource":%q,"authorization_servers":[%q],"scopes_supported":["read"]}`, site.URL, is.URL)
			return true
		}
		scope, good := is.Check(r.Header.Get("Authorization"), site.URL)
		granted.Store(scope, true)
		if !good {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/meta"`, origin))
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		if !strings.Contains(string(body), `"name":"write"`) || strings.Contains(scope, "write") {
			return false
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="write", resource_metadata="%s/meta"`, origin))
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	g := newGateway(t, store, remote("hosted", site.URL))
	logIn(t, g, "hosted")
	g.until("the server is ready", func(admin.Status) bool { return g.server("hosted").State == upstream.Ready })
	c := g.http(mcp.Latest)
	call := func(name, want string) {
		t.Helper()
		g.until("a call of "+name+" says "+want, func(admin.Status) bool {
			a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"hosted__`+name+`","arguments":{}}`)
			if err != nil {
				t.Fatal(err)
			}
			return strings.Contains(a.Result, want)
		})
	}
	call("read", "done")
	call("write", "more permissions (write)")
	call("read", "done")
	g.until("the server is ready", func(admin.Status) bool { return g.server("hosted").State == upstream.Ready })
	logIn(t, g, "hosted")
	g.until("the new login is used", func(admin.Status) bool {
		_, used := granted.Load("read offline_access write")
		return used && g.server("hosted").State == upstream.Ready
	})
	call("write", "done")
	call("read", "done")
}
