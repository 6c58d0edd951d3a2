package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/mcphttp"
)

// keyring is an Authorizer with one value after the other.
type keyring struct {
	mu      sync.Mutex
	values  []string
	refused []string // status, value and challenge of each refusal
	err     error    // of the refusal when there is no other value
}

func (k *keyring) Authorization(context.Context) (string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.values[0] == "none" {
		return "", errors.New("no token can be had")
	}
	return k.values[0], nil
}

func (k *keyring) Refused(_ context.Context, status int, value string, challenges []string) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = append(k.refused, fmt.Sprint(status, " ", value, " ", challenges))
	if len(k.values) == 1 {
		return false, k.err
	}
	k.values = k.values[1:]
	return true, nil
}

func TestAuthorizer(t *testing.T) {
	for _, tt := range []struct {
		name    string
		keys    *keyring
		status  int    // of a refusal
		want    string // in the error; "": none
		seen    string // the values that the server saw
		refused string
	}{
		{"good at once", &keyring{values: []string{"Bearer good"}}, 401, "", "[Bearer good]", "[]"},
		{"the second is", &keyring{values: []string{"", "Bearer good"}}, 401, "", "[Basic eDp5 Bearer good]", "[401  [Bearer scope=\"a\"]]"},
		{"after a lack of scopes", &keyring{values: []string{"Bearer a", "Bearer good"}}, 403, "", "[Bearer a Bearer good]", "[403 Bearer a [Bearer scope=\"a\"]]"},
		{"none is", &keyring{values: []string{"Bearer a"}}, 401, "HTTP status 401", "[Bearer a]", "[401 Bearer a [Bearer scope=\"a\"]]"},
		{"there is an end", &keyring{values: []string{"1", "2", "3", "4", "5", "6"}}, 401, "HTTP status 401", "[1 2 3 4]", "[401 1 [Bearer scope=\"a\"] 401 2 [Bearer scope=\"a\"] 401 3 [Bearer scope=\"a\"]]"},
		{"an error of its own", &keyring{values: []string{"Bearer a"}, err: errors.New("log in first")}, 401, "log in first", "[Bearer a]", "[401 Bearer a [Bearer scope=\"a\"]]"},
		{"nothing is sent without", &keyring{values: []string{"none"}}, 401, "no token can be had", "[]", "[]"},
		{"not about credentials", &keyring{values: []string{"Bearer a", "Bearer good"}}, 404, "HTTP status 404", "[Bearer a]", "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := []string{}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"method":"tools/call"`) {
					t.Errorf("body %q", body)
				}
				value := r.Header.Get("Authorization")
				seen = append(seen, value)
				if value != "Bearer good" {
					w.Header().Set("WWW-Authenticate", `Bearer scope="a"`)
					w.WriteHeader(tt.status)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			}))
			defer s.Close()
			c, err := mcphttp.Dial(t.Context(), strings.Replace(s.URL, "://", "://x:y@", 1), mcphttp.DialOptions{Authorizer: tt.keys})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Call(t.Context(), "tools/call", nil)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if got := fmt.Sprint(seen); got != tt.seen {
				t.Errorf("the server saw %s, want %s", got, tt.seen)
			}
			if got := fmt.Sprint(tt.keys.refused); got != tt.refused {
				t.Errorf("refused %s, want %s", got, tt.refused)
			}
		})
	}
}
