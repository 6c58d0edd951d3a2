package auth_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/mcptest"
)

func TestLogin(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	vault := new(auth.Memory)
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser, Vault: vault})
	ctx := testContext(t)
	for range 2 {
		if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
			t.Fatalf("status %d, %v", status, err)
		}
	}
	forms := is.Forms()
	if len(forms) != 2 {
		t.Fatalf("%d requests for code and token, want 2", len(forms))
	}
	for _, form := range forms {
		if form.Get("resource") != at {
			t.Errorf("resource %q, want %q", form.Get("resource"), at)
		}
	}
	if got := forms[0].Get("scope"); got != "basic offline_access" {
		t.Errorf("scope %q", got)
	}

	// Another process has the same login, and a new one uses the same client.
	again := newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser, Vault: vault})
	if status, err := try(ctx, again, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	is.Revoke()
	if status, err := try(ctx, again, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	if n := is.Count("/register"); n != 1 {
		t.Errorf("%d registrations, want 1", n)
	}
}

// Each fault is refused before a code or a token is sent.
func TestLoginRefused(t *testing.T) {
	type fault struct {
		issuer   func(is *mcptest.Issuer)
		resource func(m map[string]any)
		opts     auth.OAuthOptions
		want     string
		sent     int // codes that may be sent
	}
	set := func(name string, value any) func(*mcptest.Issuer) {
		return func(is *mcptest.Issuer) { is.Metadata = func(m map[string]any) { m[name] = value } }
	}
	answer := func(name, value string) func(*mcptest.Issuer) {
		return func(is *mcptest.Issuer) {
			is.Answer = func(v url.Values) {
				if value == "" {
					v.Del(name)
				} else {
					v.Set(name, value)
				}
			}
		}
	}
	for name, f := range map[string]fault{
		"C-138 metadata of another issuer":     {issuer: set("issuer", "https://b.example"), want: `the issuer is "https://b.example", but the metadata of "http://127.0.0.1`},
		"C-138 an issuer that ends in a slash": {issuer: func(is *mcptest.Issuer) { is.Metadata = func(m map[string]any) { m["issuer"] = is.URL + "/" } }, want: "the issuer is"},
		"C-138 iss of another":                 {issuer: answer("iss", "https://evil.example"), want: `the answer is from the issuer "https://evil.example", the request went to "http://127.0.0.1`},
		"C-138 iss is missing":                 {issuer: answer("iss", ""), want: "does not say its issuer"},
		"an error by another issuer is not believed": {issuer: func(is *mcptest.Issuer) {
			is.Answer = func(v url.Values) { v.Set("iss", "https://evil.example"); v.Set("error", "access_denied") }
		}, want: "is from the issuer"},
		"the user refuses": {issuer: func(is *mcptest.Issuer) {
			is.Answer = func(v url.Values) { v.Del("code"); v.Set("error", "access_denied"); v.Set("error_description", "no") }
		}, want: "access_denied (no)"},
		"a token of another type": {issuer: func(is *mcptest.Issuer) {
			is.Token = func(w http.ResponseWriter, _ url.Values) bool {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, `{"access_token":"x","token_type":"DPoP"}`)
				return true
			}
		}, want: "only Bearer is known", sent: 1},
		"a token that cannot be read": {issuer: func(is *mcptest.Issuer) {
			is.Token = func(w http.ResponseWriter, form url.Values) bool {
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprintf(w, `{"access_token":%q`, form.Get("code"))
				return true
			}
		}, want: "cannot be read", sent: 1},
		"no code":                                      {issuer: answer("code", ""), want: "has no code"},
		"no PKCE":                                      {issuer: set("code_challenge_methods_supported", nil), want: "PKCE"},
		"only plain PKCE":                              {issuer: set("code_challenge_methods_supported", []string{"plain"}), want: "PKCE"},
		"a login page without TLS":                     {issuer: set("authorization_endpoint", "http://login.example/"), want: "authorization_endpoint: http://login.example is not https"},
		"a login page that is a script":                {issuer: set("authorization_endpoint", "javascript:alert(1)"), want: "authorization_endpoint"},
		"C-153 a token endpoint that is a file":        {issuer: set("token_endpoint", "file:///etc/passwd"), want: "token_endpoint"},
		"C-153 a registration at the cloud's metadata": {issuer: set("registration_endpoint", "https://169.254.169.254/register"), want: "not a public address"},
		"C-153 a token endpoint in the LAN":            {issuer: set("token_endpoint", "https://192.168.0.1/token"), want: "not a public address"},
		"no registration":                              {issuer: set("registration_endpoint", nil), want: "set oauth.clientId"},
		"a client that signs": {issuer: func(is *mcptest.Issuer) {
			is.Registered = func(m map[string]any) { m["token_endpoint_auth_method"] = "tls_client_auth" }
		}, want: "tls_client_auth"},
		"another resource":           {resource: func(m map[string]any) { m["resource"] = "https://evil.example/mcp" }, want: `it is of the resource "https://evil.example/mcp"`},
		"a resource beside it":       {resource: func(m map[string]any) { m["resource"] = strings.TrimSuffix(m["resource"].(string), "p") }, want: "it is of the resource"},
		"no authorization server":    {resource: func(m map[string]any) { m["authorization_servers"] = nil }, want: "names no authorization server"},
		"C-153 an issuer in the LAN": {resource: func(m map[string]any) { m["authorization_servers"] = []string{"https://10.0.0.1"} }, want: "not a public address"},
		"C-153 an issuer on the cloud's metadata address, wrapped": {resource: func(m map[string]any) {
			m["authorization_servers"] = []string{"https://[::ffff:169.254.169.254]"}
		}, want: "not a public address"},
		"C-153 gopher":                           {resource: func(m map[string]any) { m["authorization_servers"] = []string{"gopher://x.example"} }, want: "not https"},
		"not the issuer that the operator chose": {opts: auth.OAuthOptions{ClientID: "us", ClientSecret: "hush-hush", Issuer: "https://a.example"}, want: "expects https://a.example"},
	} {
		t.Run(name, func(t *testing.T) {
			is := mcptest.NewIssuer(t)
			at := is.Protect(t, ok, f.resource)
			if f.issuer != nil {
				f.issuer(is)
			}
			f.opts.Server, f.opts.Open = at, browser
			o := newOAuth(t, is, f.opts)
			_, err := try(testContext(t), o, at)
			if err == nil || !strings.Contains(err.Error(), f.want) {
				t.Fatalf("error %v, want %q", err, f.want)
			}
			clean(t, is, "error", err.Error())
			if n := is.Count("authorization_code"); n != f.sent {
				t.Errorf("a code was sent to a token endpoint %d times", n)
			}
		})
	}
}

// C-139: metadata that is not there, or no metadata, is never made up.
func TestC139_MetadataIsNotInvented(t *testing.T) {
	for name, broken := range map[string]http.HandlerFunc{
		"not found": http.NotFound,
		"a page":    func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") },
		"broken": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = fmt.Fprintf(w, `{"resource":"http://%s/mcp","authorization_servers":["http://%s"]}`, r.Host, r.Host)
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/latest", http.StatusFound)
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, "{")
		},
	} {
		t.Run(name, func(t *testing.T) {
			is := mcptest.NewIssuer(t)
			var at string
			mux := http.NewServeMux()
			mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+strings.TrimSuffix(at, "mcp")+`meta"`)
				w.WriteHeader(http.StatusUnauthorized)
			})
			mux.HandleFunc("/meta", broken)
			asked := false
			mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { asked = true; http.NotFound(w, r) })
			s := httptest.NewServer(mux)
			t.Cleanup(s.Close)
			at = s.URL + "/mcp"
			o := newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser})
			if _, err := try(testContext(t), o, at); err == nil || !strings.Contains(err.Error(), "protected resource metadata") {
				t.Errorf("error %v", err)
			}
			if asked {
				t.Error("it was looked for elsewhere")
			}
		})
	}
}

// A server of 2025-03-26 is its own authorization server, at fixed places.
func TestLoginWithoutMetadata(t *testing.T) {
	is := mcptest.NewIssuer(t)
	is.Answer = func(v url.Values) { v.Del("iss") }
	var at string
	to, _ := url.Parse(is.URL)
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if _, good := is.Check(r.Header.Get("Authorization"), at); !good {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	for _, path := range []string{"/authorize", "/token", "/register"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			r.URL.Scheme, r.URL.Host, r.RequestURI, r.Host = to.Scheme, to.Host, "", to.Host
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			for k, v := range resp.Header {
				w.Header()[k] = v
			}
			w.WriteHeader(resp.StatusCode)
			_, _ = fmt.Fprint(w, readAll(t, resp))
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	at = s.URL + "/mcp"
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser})
	if status, err := try(testContext(t), o, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
}

// C-142: twenty calls on an expired token are one refresh and twenty answers, also
// when they come from two processes.
func TestC142_ParallelRefresh(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	vault := new(auth.Memory)
	var logins [2]*auth.OAuth
	for i := range logins {
		logins[i] = newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser, Vault: vault})
	}
	ctx := testContext(t)
	for _, o := range logins {
		if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
			t.Fatalf("status %d, %v", status, err)
		}
	}
	is.Expire()
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			if status, err := try(ctx, logins[i%2], at); status != http.StatusOK || err != nil {
				t.Errorf("status %d, %v", status, err)
			}
		})
	}
	calls.Wait()
	if n := is.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
	if n := is.Count("authorization_code"); n != 1 {
		t.Errorf("%d logins, want 1", n)
	}
}

// A server that refuses every token does not make us refresh again and again.
func TestRefusedForever(t *testing.T) {
	is := mcptest.NewIssuer(t)
	refusing := false
	at := is.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refusing {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}), nil)
	o := newOAuth(t, is, auth.OAuthOptions{Server: at})
	ctx := testContext(t)
	login(ctx, t, o)
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	refusing = true
	for range 5 {
		if _, err := try(ctx, o, at); !strings.Contains(fmt.Sprint(err), "needs a login") {
			t.Fatalf("error %v", err)
		}
	}
	if n := is.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}

// A login that was revoked is not asked for again and again.
func TestRevoked(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	vault := new(auth.Memory)
	ctx := testContext(t)
	first := newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser, Vault: vault})
	if status, err := try(ctx, first, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	is.Revoke()
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault})
	for range 5 {
		_, err := try(ctx, o, at)
		if e, missing := errors.AsType[*auth.LoginError](err); !missing || e.Server != "test" {
			t.Fatalf("error %v, want a LoginError", err)
		}
		clean(t, is, "error", err.Error())
	}
	if n := is.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}

	// A login elsewhere is good at once.
	if status, err := try(ctx, first, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

// A server that is down for a moment does not cost the login.
func TestRefreshFails(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	vault := new(auth.Memory)
	down := true
	is.Token = func(w http.ResponseWriter, form url.Values) bool {
		if !down || form.Get("grant_type") != "refresh_token" {
			return false
		}
		http.Error(w, "refresh_token="+form.Get("refresh_token"), http.StatusServiceUnavailable)
		return true
	}
	ctx := testContext(t)
	first := newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser, Vault: vault})
	if status, err := try(ctx, first, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	is.Expire()
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault})
	_, err := try(ctx, o, at)
	if err == nil || !strings.Contains(err.Error(), "cannot be refreshed now") {
		t.Fatalf("error %v", err)
	}
	clean(t, is, "error", err.Error())
	down = false
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestStepUp(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scope, _ := is.Check(r.Header.Get("Authorization"), "http://"+r.Host+"/mcp")
		if !strings.Contains(scope, "write") {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
			w.WriteHeader(http.StatusForbidden)
		}
	}), nil)
	vault := new(auth.Memory)
	ctx := testContext(t)
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Open: browser, Vault: vault})
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	forms := is.Forms()
	if got := forms[2].Get("scope"); got != "basic offline_access write" {
		t.Errorf("the second login asked for %q", got)
	}

	// Without somebody at hand, the error says what is missing, and the next login asks for it.
	other := is.Protect(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`)
		w.WriteHeader(http.StatusForbidden)
	}), nil)
	alone := newOAuth(t, is, auth.OAuthOptions{Server: other, Vault: vault})
	login(ctx, t, alone)
	_, err := try(ctx, alone, other)
	if e, missing := errors.AsType[*auth.LoginError](err); !missing || fmt.Sprint(e.Scopes) != "[admin]" {
		t.Fatalf("error %v", err)
	}
	login(ctx, t, alone)
	if status, err := try(ctx, alone, other); status != http.StatusForbidden || err != nil {
		t.Errorf("status %d, %v: what was asked for already is not asked for again", status, err)
	}
}

func login(ctx context.Context, t *testing.T, o *auth.OAuth) {
	t.Helper()
	l, err := o.Begin(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := browser(ctx, l.URL); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

// An answer with another state changes nothing: anybody can send one.
func TestPaste(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	o := newOAuth(t, is, auth.OAuthOptions{Server: at})
	ctx := testContext(t)
	l, err := o.Begin(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(l.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	end, _ := url.Parse(resp.Header.Get("Location"))
	for _, forged := range []string{"", "no URL", "http://127.0.0.1/callback?code=x&iss=" + url.QueryEscape(is.URL), strings.Replace(end.String(), "state=", "state=x", 1)} {
		if err := l.Paste(ctx, forged); err == nil {
			t.Fatalf("%q was taken", forged)
		}
	}
	if n := is.Count("authorization_code"); n > 0 {
		t.Fatalf("a code was sent %d times", n)
	}
	if err := l.Paste(ctx, " "+end.String()+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Paste(ctx, end.String()); err == nil {
		t.Error("an answer was taken twice")
	}
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestDevice(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	o := newOAuth(t, is, auth.OAuthOptions{Server: at})
	ctx := testContext(t)
	if err := o.Device(ctx, func(c auth.Code) {
		if c.Code != "ABCD-EFGH" || c.URL != is.URL+"/enter" {
			t.Errorf("code %+v", c)
		}
		is.Approve()
	}); err != nil {
		t.Fatal(err)
	}
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}

// A client ID belongs to the issuer that it was used with.
func TestClientIDStaysWithItsIssuer(t *testing.T) {
	a, b := mcptest.NewIssuer(t), mcptest.NewIssuer(t)
	now := a
	at := a.Protect(t, ok, func(m map[string]any) { m["authorization_servers"] = []string{now.URL} })
	o := newOAuth(t, a, auth.OAuthOptions{Server: at, Open: browser, ClientID: "us", ClientSecret: "hush-hush"})
	ctx := testContext(t)
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	now = b
	a.Revoke()
	if _, err := try(ctx, o, at); err == nil || !strings.Contains(err.Error(), "goes to no other") {
		t.Errorf("error %v", err)
	}
	if b.Count("/token")+b.Count("/authorize") > 0 {
		t.Error("the other issuer got something")
	}
}

func TestClientCredentials(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	o := newOAuth(t, is, auth.OAuthOptions{
		Server: at, ClientID: "us", ClientCredentials: true, Scopes: []string{"x"},
		PrivateKey: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	ctx := testContext(t)
	if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	form := is.Forms()[0]
	if form.Get("grant_type") != "client_credentials" || form.Get("resource") != at || form.Get("scope") != "x" ||
		strings.Count(form.Get("client_assertion"), ".") != 2 || form.Has("client_secret") {
		t.Errorf("form %v", form)
	}
	if _, err := o.Begin(ctx, nil); err == nil {
		t.Error("a login was begun")
	}
}

// A workload shows what its platform says of it, anew for each token.
func TestAssertion(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	n := 0
	o := newOAuth(t, is, auth.OAuthOptions{
		Server: at, ClientCredentials: true,
		Assertion: func(context.Context) (string, time.Time, error) {
			n++
			return fmt.Sprint("jwt-", n), time.Time{}, nil
		},
	})
	ctx := testContext(t)
	for range 2 {
		if status, err := try(ctx, o, at); status != http.StatusOK || err != nil {
			t.Fatalf("status %d, %v", status, err)
		}
		is.Expire()
	}
	forms := is.Forms()
	if len(forms) != 2 || forms[1].Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || forms[1].Get("assertion") != "jwt-2" || forms[1].Get("resource") != at {
		t.Errorf("forms %v", forms)
	}
	if n := is.Count("/register"); n > 0 {
		t.Errorf("%d registrations", n)
	}
}

// Tokens are refreshed before they end, behind the request that finds it out.
func TestRefreshAhead(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	vault := new(auth.Memory)
	ctx := testContext(t)
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault})
	login(ctx, t, o)
	change(t, vault, at, func(r map[string]any) {
		r["issued"], r["expiry"] = time.Now().Add(-time.Hour), time.Now().Add(time.Minute)
	})
	late := newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault})
	if status, err := try(ctx, late, at); status != http.StatusOK || err != nil {
		t.Fatalf("status %d, %v", status, err)
	}
	late.Close() // waits for it
	if n := is.Count("refresh_token"); n != 1 {
		t.Errorf("%d refreshes, want 1", n)
	}
}

// What is kept of another server is not shown to this one, and a client is used with
// the redirect alone that it was registered with.
func TestRecordsStayApart(t *testing.T) {
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	vault := new(auth.Memory)
	ctx := testContext(t)
	login(ctx, t, newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault}))
	login(ctx, t, newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault}))
	if n := is.Count("/register"); n != 1 {
		t.Errorf("%d registrations, want 1", n)
	}
	login(ctx, t, newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault, Redirect: "http://localhost:0/other"}))
	if n := is.Count("/register"); n != 2 {
		t.Errorf("%d registrations, want 2: another redirect was used with the same client", n)
	}
	change(t, vault, at, func(r map[string]any) { r["server"] = "https://other.example/mcp" })
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: vault})
	if value, err := o.Authorization(ctx); value != "" || err != nil {
		t.Errorf("a token of another server is shown: %v", err)
	}
}
