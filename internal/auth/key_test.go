package auth_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/auth"
)

func TestRequire(t *testing.T) {
	a, b := auth.NewKey(), auth.NewKey()
	if a == b || len(a) < len("roster_")+26 {
		t.Fatalf("keys %q and %q", a, b)
	}
	keys := auth.Keys{{Name: "ann", Hash: auth.HashKey(a)}, {Name: "ben", Hash: auth.HashKey(b)}}
	for _, tt := range []struct {
		name      string
		keys      auth.Keys
		header    []string
		want      string // the principal; "": 401
		challenge string
	}{
		{"the first", keys, []string{"Bearer " + a}, "ann", ""},
		{"the last", keys, []string{"bearer  " + b + " "}, "ben", ""},
		{"none", keys, nil, "", `Bearer realm="roster"`},
		{"empty", keys, []string{"Bearer "}, "", `Bearer realm="roster"`},
		{"another", keys, []string{"Bearer x"}, "", `Bearer realm="roster", error="invalid_token"`},
		{"the hash", keys, []string{"Bearer " + auth.HashKey(a).String()}, "", `Bearer realm="roster", error="invalid_token"`},
		{"another scheme", keys, []string{"Basic " + a}, "", `Bearer realm="roster"`},
		{"two", keys, []string{"Bearer " + a, "Bearer " + b}, "", `Bearer realm="roster"`},
		{"there are no keys", auth.Keys{}, []string{"Bearer " + a}, "", `Bearer realm="roster", error="invalid_token"`},
		{"a key without a hash is not the empty key", auth.Keys{{Name: "x"}}, []string{"Bearer "}, "", `Bearer realm="roster"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			called := false
			h := tt.keys.Require(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				called = true
				if got := auth.Principal(r); got != tt.want {
					t.Errorf("principal %q", got)
				}
			}))
			r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
			r.Header["Authorization"] = tt.header
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			resp := w.Result()
			if called != (tt.want != "") || (resp.StatusCode == http.StatusUnauthorized) == called {
				t.Errorf("called %v, status %d", called, resp.StatusCode)
			}
			if got := resp.Header.Get("Www-Authenticate"); got != tt.challenge {
				t.Errorf("challenge %q", got)
			}
			body, _ := io.ReadAll(resp.Body)
			if !called && (!strings.Contains(string(body), `"error"`) || strings.Contains(string(body), a)) {
				t.Errorf("body %s", body)
			}
		})
	}
}
