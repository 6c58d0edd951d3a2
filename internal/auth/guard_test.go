package auth_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/auth"
)

// C-153: what a server names is dialled only at public addresses, and asked only
// over TLS.
func TestC153_Guard(t *testing.T) {
	g := auth.NewGuard(auth.GuardOptions{})
	t.Cleanup(g.CloseIdle)
	for _, at := range []string{
		"https://127.0.0.1:1/", "http://127.0.0.1:1/", "https://localhost:1/", "http://localhost:1/", "https://[::1]:1/",
		"https://10.1.2.3/", "https://172.16.0.1/", "https://192.168.1.1/", "https://169.254.169.254/latest/meta-data/",
		"https://100.100.100.200/", "https://0.0.0.0/", "https://[::]/", "https://[fe80::1]/", "https://[fd00:ec2::254]/",
		"https://[::ffff:10.0.0.1]/", "https://[64:ff9b::a9fe:a9fe]/", "https://[2002:a9fe:a9fe::]/", "https://224.0.0.1/",
		"https://255.255.255.255/", "https://2130706433/", "https://198.18.0.1/",
	} {
		resp, err := g.Client().Get(at)
		if err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s was asked", at)
			continue
		}
		if _, refused := errors.AsType[*auth.AddressError](err); !refused && !strings.Contains(err.Error(), "no such host") {
			t.Errorf("%s: %v, want an AddressError", at, err)
		}
	}
	for _, at := range []string{
		"http://example.com/", "http://metadata.google.internal/", "file:///etc/passwd", "gopher://127.0.0.1/", "ftp://x.example/",
		"https:///x", "https:x",
	} {
		resp, err := g.Client().Get(at)
		if err == nil {
			_ = resp.Body.Close()
			t.Errorf("%s was asked", at)
			continue
		}
		if !strings.Contains(err.Error(), "https") {
			t.Errorf("%s: %v", at, err)
		}
	}
	if resp, err := g.Client().Get("https://user:secret@x.example/"); err == nil || !strings.Contains(err.Error(), "a user in it") {
		t.Errorf("a URL with a user: %v, %v", resp, err)
	}
}

// C-153: what the operator named may be anywhere, but what it redirects to not.
func TestC153_NamedHosts(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") })
	mux.Handle("/self", http.RedirectHandler("/ok", http.StatusFound))
	mux.Handle("/cloud", http.RedirectHandler("https://169.254.169.254/latest", http.StatusFound))
	mux.Handle("/plain", http.RedirectHandler("http://192.168.0.1/", http.StatusFound))
	mux.Handle("/loop", http.RedirectHandler("/loop", http.StatusFound))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	g := auth.NewGuard(auth.GuardOptions{Named: []string{s.URL + "/mcp"}})
	t.Cleanup(g.CloseIdle)
	for path, want := range map[string]string{
		"/ok": "", "/self": "", "/cloud": "not a public address", "/plain": "is not https", "/loop": "redirects",
	} {
		resp, err := g.Client().Get(s.URL + path)
		if err == nil {
			_ = resp.Body.Close()
		}
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	// What is sent does not go where it is redirected.
	mux.Handle("POST /moved", http.RedirectHandler("/ok", http.StatusTemporaryRedirect))
	resp, err := g.Client().Post(s.URL+"/moved", "text/plain", strings.NewReader("secret"))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTemporaryRedirect {
		t.Errorf("status %d: a POST was redirected", resp.StatusCode)
	}
}
