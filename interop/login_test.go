package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

// The authorization server's user, and the client that it knows.
const (
	userName = "test-user2"
	password = "verysecure"
	clientID = "roster-interop"
)

// TestLogin logs in to a server of the Go SDK, which takes tokens of an OpenID
// provider, with an HTTP client in place of the browser.
func TestLogin(t *testing.T) {
	testLogin(t, func(t *testing.T, page string) {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		browser := http.Client{Jar: jar}
		form, at := fetch(t, &browser, func() (*http.Response, error) { return browser.Get(page) })
		id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(form)
		if id == nil {
			t.Fatalf("no login page: %s", form)
		}
		end, _ := fetch(t, &browser, func() (*http.Response, error) {
			return browser.PostForm(at.Scheme+"://"+at.Host+"/login/username", url.Values{"id": {id[1]}, "username": {userName}, "password": {password}})
		})
		if !strings.Contains(end, "You are logged in") {
			t.Errorf("the login ends at %s", end)
		}
	})
}

// TestBrowser does the same with a real browser.
func TestBrowser(t *testing.T) {
	program := findBrowser()
	if program == "" {
		const why = "THE BROWSER DID NOT RUN: there is no Chromium here (BROWSER_PROGRAM names one)"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	testLogin(t, func(t *testing.T, page string) {
		ctx, cancel := bounded(t, 2*time.Minute)
		defer cancel()
		ctx, cancel = chromedp.NewExecAllocator(ctx, append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.Flag("no-proxy-server", true), chromedp.WSURLReadTimeout(time.Minute))...)
		defer cancel()
		ctx, cancel = chromedp.NewContext(ctx)
		defer cancel()
		if err := chromedp.Do(ctx,
			chromedp.Navigate(page),
			chromedp.WaitVisible("#username"),
			chromedp.SendKeys("#username", userName),
			chromedp.SendKeys("#password", password),
			chromedp.Click("button[type=submit]"),
			chromedp.WaitVisible("h1"),
		); err != nil {
			t.Fatal(err)
		}
		end, err := chromedp.Run(ctx, chromedp.Text("body"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(end, "You are logged in") {
			t.Errorf("the login ends at %s", end)
		}
	})
}

func findBrowser() string {
	for _, name := range []string{os.Getenv("BROWSER_PROGRAM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

func fetch(t *testing.T, _ *http.Client, ask func() (*http.Response, error)) (body string, at *url.URL) {
	t.Helper()
	resp, err := ask()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data), resp.Request.URL
}

// testLogin runs a gateway in front of a server that wants a login: that is shown,
// the login makes the server's tool usable at once, and after the logout it is not.
func testLogin(t *testing.T, browse func(t *testing.T, page string)) {
	binary := rosterBinary(t)
	issuer := newIssuer(t)
	server := newProtected(t, issuer)
	dir := t.TempDir()
	config := filepath.Join(dir, "roster.json")
	text := fmt.Sprintf(`{"mcpServers":{"hosted":{"url":%q,"oauth":{"clientId":%q,"scopes":["openid","offline_access"],
		"redirectUri":"http://127.0.0.1:0/callback"}}},"roster":{"stateDir":%q,"tokenStore":"file"}}`, server, clientID, filepath.Join(dir, "state"))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "serve", "--config", config, "--listen", "127.0.0.1:0")
	gateway, at, err := startProcess(t.Context(), cmd, "roster", regexp.MustCompile(`listening.*url="?(http://[^\s"]+)`), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gateway.stop(20 * time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of roster ends:\n%s", indent(gateway.stderr.String()))
		}
	})
	awaitState(t, at, "needs login")
	runLogin(t, binary, config, browse)
	awaitState(t, at, "ready")
	if got := callWhoami(t, at); !strings.Contains(got, "id2") {
		t.Errorf("the tool says %s", got)
	}
	if out, err := exec.Command(binary, "auth", "logout", "hosted", "--config", config).CombinedOutput(); err != nil {
		t.Errorf("logout: %v: %s", err, out)
	}
	awaitState(t, at, "needs login")
}

// newIssuer starts an OpenID provider with a login page, and returns its URL.
func newIssuer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer := "http://" + listener.Addr().String()
	storage.RegisterClients(storage.NativeClient(clientID, "http://127.0.0.1/callback"))
	logger := slog.New(slog.DiscardHandler)
	s := &httptest.Server{Listener: listener, Config: &http.Server{
		Handler: exampleop.SetupServer(issuer, storage.NewStorage(storage.NewUserStore(issuer)), logger, false),
	}}
	s.Start()
	t.Cleanup(s.Close)
	return issuer
}

// newProtected starts an MCP server whose one tool says who called it. It takes tokens
// of the issuer.
func newProtected(t *testing.T, issuer string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "hosted", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: req.Extra.TokenInfo.UserID}}}, nil, nil
	})
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	mux.Handle(metadata, auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource: s.URL + "/mcp", AuthorizationServers: []string{issuer},
	}))
	verify := func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return userOf(ctx, issuer, token)
	}
	mux.Handle("/mcp", auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: s.URL + metadata})(
		mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)))
	return s.URL + "/mcp"
}

// userOf asks the issuer whose token it is.
func userOf(ctx context.Context, issuer, token string) (*auth.TokenInfo, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, issuer+"/userinfo", nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var user struct {
		Subject string `json:"sub"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&user); err != nil || resp.StatusCode != http.StatusOK || user.Subject == "" {
		return nil, auth.ErrInvalidToken
	}
	return &auth.TokenInfo{UserID: user.Subject, Expiration: time.Now().Add(time.Minute)}, nil
}

var loginPage = regexp.MustCompile(`(?m)^ +(http://\S+)$`)

// runLogin runs the command that logs in, and opens the page that it prints.
func runLogin(t *testing.T, binary, config string, browse func(t *testing.T, page string)) {
	t.Helper()
	ctx, cancel := bounded(t, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "auth", "login", "hosted", "--no-browser", "--config", config)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(out, &said))
	for lines.Scan() {
		if m := loginPage.FindStringSubmatch(lines.Text()); m != nil {
			browse(t, m[1])
		}
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		t.Fatalf("auth login: %v: %s", err, said.String())
	}
}

// awaitState waits until the gateway says that its server is in a state.
func awaitState(t *testing.T, at, want string) {
	t.Helper()
	ctx, cancel := bounded(t, time.Minute)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(at, "/mcp")+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("waiting for the state %q: %v", want, err)
		}
		var st struct {
			Servers []struct{ State, Error string } `json:"servers"`
		}
		err = json.NewDecoder(resp.Body).Decode(&st)
		_ = resp.Body.Close()
		if err != nil || len(st.Servers) != 1 {
			t.Fatalf("the status has %d servers, %v", len(st.Servers), err)
		}
		if st.Servers[0].State == want {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the server is %+v, want %q", st.Servers[0], want)
		}
	}
}

func callWhoami(t *testing.T, at string) string {
	t.Helper()
	ctx, cancel := bounded(t, time.Minute)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: at}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "hosted__whoami", Arguments: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
