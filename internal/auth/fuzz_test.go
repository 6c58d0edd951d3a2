package auth_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/mcp-roster/roster/internal/auth"
)

// Whatever a server says in its challenge, a refusal for a lack of scopes is at most a
// login that is needed.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		"", "Bearer", `Bearer error="insufficient_scope", scope="a b"`, `Basic realm="x", Bearer error="insufficient_scope",scope=a`,
		`Bearer error="insufficient_scope", scope="a\"b", resource_metadata="https://x.example/"`, `Bearer scope="`, `,,=,"`, `bearer error=insufficient_scope scope=`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		o := auth.NewOAuth(auth.OAuthOptions{Name: "test", Server: "https://s.example/mcp", Vault: new(auth.Memory)})
		defer o.Close()
		again, err := o.Refused(t.Context(), http.StatusForbidden, "Bearer x", []string{field})
		if _, login := errors.AsType[*auth.LoginError](err); again || err != nil && !login {
			t.Errorf("%v, %v", again, err)
		}
	})
}
