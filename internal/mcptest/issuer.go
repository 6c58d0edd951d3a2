package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Issuer is an authorization server on loopback that does as it is told, faults
// included. It rotates refresh tokens, and revokes a whole login when an old one
// comes back. Who comes to its authorization endpoint has agreed. Fields that are
// functions may be set until the first request; its methods may be called from
// any goroutine.
type Issuer struct {
	URL string
	// Life is how long access tokens are good for. 0: an hour.
	Life time.Duration
	// Metadata changes the metadata; nil values are left out.
	Metadata func(m map[string]any)
	// Answer changes the parameters with which the browser is sent back.
	Answer func(v url.Values)
	// Registered changes the answer to a registration.
	Registered func(m map[string]any)
	// Token, if it returns true, has answered a token request in place of the
	// server.
	Token func(w http.ResponseWriter, form url.Values) bool

	server *httptest.Server

	mu       sync.Mutex // guards the fields below
	requests []string   // paths, and grants behind the token endpoint's
	forms    []url.Values
	codes    map[string]url.Values // authorization requests by code
	devices  map[string]bool       // device codes, true once they were entered
	refresh  map[string]*family    // refresh tokens that are or were good
	access   map[string]*family
	clients  map[string]string // secrets by client
}

// family is what came of one login.
type family struct {
	resource string
	scope    string
	current  string // the refresh token that is good
	revoked  bool
	expires  map[string]time.Time // of access tokens
}

// NewIssuer starts an authorization server that ends with the test.
func NewIssuer(tb testing.TB) *Issuer {
	is := &Issuer{
		codes: make(map[string]url.Values), devices: make(map[string]bool),
		refresh: make(map[string]*family), access: make(map[string]*family), clients: make(map[string]string),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", is.metadata)
	mux.HandleFunc("POST /register", is.register)
	mux.HandleFunc("GET /authorize", is.authorize)
	mux.HandleFunc("POST /device", is.device)
	mux.HandleFunc("POST /token", is.token)
	mux.HandleFunc("POST /revoke", is.revoke)
	is.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		is.note(r.URL.Path, nil)
		mux.ServeHTTP(w, r)
	}))
	is.URL = is.server.URL
	tb.Cleanup(is.server.Close)
	return is
}

func (is *Issuer) note(what string, form url.Values) {
	is.mu.Lock()
	defer is.mu.Unlock()
	is.requests = append(is.requests, what)
	if form != nil {
		is.forms = append(is.forms, form)
	}
}

// Count returns how many requests there were of a path, as "/register", or of a
// grant, as "refresh_token".
func (is *Issuer) Count(what string) int {
	is.mu.Lock()
	defer is.mu.Unlock()
	n := 0
	for _, r := range is.requests {
		if r == what {
			n++
		}
	}
	return n
}

// Forms returns the parameters of the requests for authorization and tokens so
// far, in order.
func (is *Issuer) Forms() []url.Values {
	is.mu.Lock()
	defer is.mu.Unlock()
	return slices.Clone(is.forms)
}

// Expire ends all access tokens, Revoke refresh tokens too.
func (is *Issuer) Expire() { is.spoil(false) }

// Revoke ends all that was issued.
func (is *Issuer) Revoke() { is.spoil(true) }

func (is *Issuer) spoil(all bool) {
	is.mu.Lock()
	defer is.mu.Unlock()
	for _, f := range is.access {
		clear(f.expires)
		f.revoked = f.revoked || all
	}
}

// Approve enters all device codes.
func (is *Issuer) Approve() {
	is.mu.Lock()
	defer is.mu.Unlock()
	for code := range is.devices {
		is.devices[code] = true
	}
}

// Secrets returns all tokens, codes and secrets that were given out, and the
// verifiers that came back for them.
func (is *Issuer) Secrets() []string {
	is.mu.Lock()
	defer is.mu.Unlock()
	out := slices.Concat(slices.Collect(maps.Keys(is.access)), slices.Collect(maps.Keys(is.refresh)),
		slices.Collect(maps.Keys(is.codes)), slices.Collect(maps.Values(is.clients)))
	for _, form := range is.forms {
		out = append(out, form.Get("code_verifier"), form.Get("device_code"))
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// Check reports whether an Authorization field has a token that is good for a
// resource, and the scopes of the token.
func (is *Issuer) Check(authorization, resource string) (scope string, ok bool) {
	token, found := strings.CutPrefix(authorization, "Bearer ")
	is.mu.Lock()
	defer is.mu.Unlock()
	f := is.access[token]
	if !found || f == nil || f.revoked || f.resource != resource || !time.Now().Before(f.expires[token]) {
		return "", false
	}
	return f.scope, true
}

// Protect lets requests with a good token through to next, at the path /mcp of a
// server that it starts, which also has protected resource metadata. It returns the
// URL of /mcp. change, if it is not nil, changes the metadata.
func (is *Issuer) Protect(tb testing.TB, next http.Handler, change func(m map[string]any)) string {
	var resource string
	mux := http.NewServeMux()
	const metadata = "/.well-known/oauth-protected-resource/mcp"
	mux.HandleFunc("GET "+metadata, func(w http.ResponseWriter, _ *http.Request) {
		m := map[string]any{"resource": resource, "authorization_servers": []string{is.URL}, "scopes_supported": []string{"basic"}}
		if change != nil {
			change(m)
		}
		answerJSON(w, http.StatusOK, m)
	})
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if _, ok := is.Check(r.Header.Get("Authorization"), resource); !ok {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata=%q`, strings.TrimSuffix(resource, "/mcp")+metadata))
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
	s := httptest.NewServer(mux)
	tb.Cleanup(s.Close)
	resource = s.URL + "/mcp"
	return resource
}

func answerJSON(w http.ResponseWriter, status int, m map[string]any) {
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil })
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(m) // the client may be gone
}

func refuse(w http.ResponseWriter, code, text string) {
	answerJSON(w, http.StatusBadRequest, map[string]any{"error": code, "error_description": text})
}

func (is *Issuer) metadata(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"issuer": is.URL, "authorization_endpoint": is.URL + "/authorize", "token_endpoint": is.URL + "/token",
		"registration_endpoint": is.URL + "/register", "revocation_endpoint": is.URL + "/revoke",
		"device_authorization_endpoint":    is.URL + "/device",
		"code_challenge_methods_supported": []string{"S256"}, "scopes_supported": []string{"basic", "offline_access"},
		"authorization_response_iss_parameter_supported": true,
	}
	if is.Metadata != nil {
		is.Metadata(m)
	}
	answerJSON(w, http.StatusOK, m)
}

func (is *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var m map[string]any
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m["application_type"] != "native" {
		refuse(w, "invalid_client_metadata", "expected a native client")
		return
	}
	id, secret := "client-"+rand.Text(), "secret-"+rand.Text()
	is.mu.Lock()
	is.clients[id] = secret
	is.mu.Unlock()
	m["client_id"], m["client_secret"], m["client_secret_expires_at"] = id, secret, 0
	if is.Registered != nil {
		is.Registered(m)
	}
	answerJSON(w, http.StatusCreated, m)
}

func (is *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	is.note("authorize", q)
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("resource") == "" {
		http.Error(w, "this is no request for a code with PKCE, state and resource", http.StatusBadRequest)
		return
	}
	code := "code-" + rand.Text()
	is.mu.Lock()
	is.codes[code] = q
	is.mu.Unlock()
	v := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {is.URL}}
	if is.Answer != nil {
		is.Answer(v)
	}
	back.RawQuery = v.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (is *Issuer) device(w http.ResponseWriter, r *http.Request) {
	code := "device-" + rand.Text()
	is.mu.Lock()
	is.devices[code] = false
	is.mu.Unlock()
	_ = r.ParseForm() // what is missing is missed below
	is.note("device", r.PostForm)
	answerJSON(w, http.StatusOK, map[string]any{
		"device_code": code, "user_code": "ABCD-EFGH", "verification_uri": is.URL + "/enter", "expires_in": 600, "interval": 1,
	})
}

func (is *Issuer) token(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		refuse(w, "invalid_request", err.Error())
		return
	}
	form := r.PostForm
	is.note(form.Get("grant_type"), form)
	if is.Token != nil && is.Token(w, form) {
		return
	}
	is.mu.Lock()
	answer, code, why := is.grant(form)
	is.mu.Unlock()
	if code != "" {
		refuse(w, code, why)
		return
	}
	answerJSON(w, http.StatusOK, answer)
}

// grant runs with mu held.
func (is *Issuer) grant(form url.Values) (answer map[string]any, code, why string) {
	resource := form.Get("resource")
	switch form.Get("grant_type") {
	case "authorization_code":
		asked := is.codes[form.Get("code")]
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		switch {
		case asked == nil || asked.Get("redirect_uri") != form.Get("redirect_uri") || asked.Get("resource") != resource:
			return nil, "invalid_grant", "the code is not for this"
		case asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]):
			return nil, "invalid_grant", "the verifier is wrong"
		}
		is.codes[form.Get("code")] = nil // used
		return is.issue(&family{resource: resource, scope: asked.Get("scope"), expires: make(map[string]time.Time)}), "", ""
	case "refresh_token":
		f := is.refresh[form.Get("refresh_token")]
		switch {
		case f == nil || f.revoked || f.resource != resource:
			return nil, "invalid_grant", "the refresh token is not good"
		case f.current != form.Get("refresh_token"):
			f.revoked = true
			return nil, "invalid_grant", "the refresh token was used before"
		}
		return is.issue(f), "", ""
	case "urn:ietf:params:oauth:grant-type:device_code":
		if entered, known := is.devices[form.Get("device_code")]; !known || !entered {
			return nil, "authorization_pending", ""
		}
		return is.issue(&family{resource: resource, expires: make(map[string]time.Time)}), "", ""
	case "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer":
		answer := is.issue(&family{resource: resource, scope: form.Get("scope"), expires: make(map[string]time.Time)})
		delete(answer, "refresh_token")
		return answer, "", ""
	}
	return nil, "unsupported_grant_type", ""
}

// issue runs with mu held.
func (is *Issuer) issue(f *family) map[string]any {
	life := is.Life
	if life == 0 {
		life = time.Hour
	}
	access := "access-" + rand.Text()
	f.current = "refresh-" + rand.Text()
	f.expires[access] = time.Now().Add(life)
	is.access[access], is.refresh[f.current] = f, f
	return map[string]any{
		"access_token": access, "refresh_token": f.current, "token_type": "bearer", "expires_in": int(life.Seconds()),
	}
}

func (is *Issuer) revoke(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what is missing is not revoked
	is.mu.Lock()
	if f := is.refresh[r.PostForm.Get("token")]; f != nil {
		f.revoked = true
	}
	if f := is.access[r.PostForm.Get("token")]; f != nil {
		f.revoked = true
	}
	is.mu.Unlock()
	w.WriteHeader(http.StatusOK)
}
