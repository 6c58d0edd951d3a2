package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/config"
)

func TestLogin(t *testing.T) {
	dir := t.TempDir()
	env := func(name string) (string, bool) { return "TOKEN-of-env", name == "TOKEN" }
	for _, tt := range []struct {
		entry  string
		bearer *config.Bearer
		oauth  *config.OAuth
		want   string // in the problem; "": none
	}{
		{`"bearer":"${TOKEN}"`, &config.Bearer{Token: "TOKEN-of-env"}, nil, ""},
		{`"bearer":{"env":"TOKEN"}`, &config.Bearer{Token: "TOKEN-of-env"}, nil, ""},
		{`"bearer":{"env":"NONE"}`, nil, nil, "environment variable NONE is not set"},
		{`"bearer":{"file":"a"}`, &config.Bearer{File: filepath.Join(dir, "a")}, nil, ""},
		{`"bearer":{"keyring":"a"}`, &config.Bearer{Keyring: "a"}, nil, ""},
		{`"bearer":{"command":["gh","auth","token"]}`, &config.Bearer{Command: []string{"gh", "auth", "token"}}, nil, ""},
		{`"bearer":{"command":"gh auth token"}`, nil, nil, "expected an array"},
		{`"bearer":{}`, nil, nil, "needs one of"},
		{`"bearer":{"file":"a","keyring":"b"}`, nil, nil, "needs one of"},
		{`"bearer":""`, nil, nil, "the token is empty"},
		{`"bearer":"x","headers":{"authorization":"Bearer y"}`, nil, nil, "can only have one"},
		{`"bearer":"x","oauth":true`, nil, nil, "can only have one"},
		{`"oauth":true`, nil, &config.OAuth{}, ""},
		{`"oauth":false`, nil, &config.OAuth{Off: true}, ""},
		{`"oauth":{"clientId":"c","callbackPort":8080}`, nil, &config.OAuth{ClientID: "c", Redirect: "http://localhost:8080/callback"}, ""},
		{`"oauth":{"clientId":"c","clientSecret":"${TOKEN}","scope":"a b","issuer":"https://a.example","redirectUri":"http://127.0.0.1:1/x"}`, nil, &config.OAuth{
			ClientID: "c", ClientSecret: "TOKEN-of-env", Scopes: []string{"a", "b"}, Issuer: "https://a.example", Redirect: "http://127.0.0.1:1/x",
		}, ""},
		{`"oauth":{"grant":"client_credentials","clientId":"c","privateKey":"k","scopes":["a"]}`, nil, &config.OAuth{
			ClientID: "c", PrivateKey: "k", Scopes: []string{"a"}, ClientCredentials: true,
		}, ""},
		{`"oauth":{"grant":"client_credentials","clientId":"c"}`, nil, nil, "client_credentials needs"},
		{`"oauth":{"assertion":{"file":"a"},"clientId":"c"}`, nil, &config.OAuth{
			ClientID: "c", ClientCredentials: true, Assertion: &config.Bearer{File: filepath.Join(dir, "a")},
		}, ""},
		{`"oauth":{"grant":"jwt-bearer"}`, nil, nil, `jwt-bearer needs an "assertion"`},
		{`"oauth":{"grant":"password"}`, nil, nil, "is not a grant"},
		{`"oauth":{"clientSecret":"hush-hush"}`, nil, nil, `"clientId" is missing`},
		{`"oauth":{"redirectUri":"https://a.example/"}`, nil, nil, "http on loopback"},
		{`"oauth":{"issuer":"auth"}`, nil, nil, "expected the issuer"},
		{`"oauth":{"clientMetadataUrl":"http://a.example/x"}`, nil, nil, "expected an https URL"},
		{`"auth":{"type":"bearer","token":"${TOKEN}"}`, &config.Bearer{Token: "TOKEN-of-env"}, nil, ""},
		{`"auth":{"type":"oauth","client_id":"c","client_secret":"hush-hush","scopes":["a"]}`, nil, &config.OAuth{ClientID: "c", ClientSecret: "hush-hush", Scopes: []string{"a"}}, ""},
		{`"auth":{"type":"none"}`, nil, &config.OAuth{Off: true}, ""},
		{`"auth":{"type":"magic"}`, nil, nil, "must be bearer, header or oauth"},
	} {
		t.Run(tt.entry, func(t *testing.T) {
			file := filepath.Join(dir, "c.json")
			if err := os.WriteFile(file, []byte(`{"mcpServers":{"s":{"url":"https://s.example/mcp",`+tt.entry+`}}}`), 0o600); err != nil {
				t.Fatal(err)
			}
			c, problems, err := config.Load([]string{file}, env)
			if err != nil {
				t.Fatal(err)
			}
			s := c.Servers[0]
			told := fmt.Sprint(problems, s) + fmt.Sprintf("%#v %+v", s, s)
			if tt.want != "" {
				if s.Problem == nil || !strings.Contains(s.Problem.Message, tt.want) {
					t.Errorf("problem %v, want %q", s.Problem, tt.want)
				}
			} else if len(problems) > 0 || !reflect.DeepEqual(s.Bearer, tt.bearer) || !reflect.DeepEqual(s.OAuth, tt.oauth) {
				t.Errorf("problems %v, and another bearer or oauth than expected", problems)
			}
			for _, secret := range []string{"TOKEN-of-env", "hush-hush"} {
				if strings.Contains(told, secret) {
					t.Errorf("the secret is in %s", told)
				}
				if hidden := s.Secrets().Hide(secret); tt.want == "" && strings.Contains(tt.entry, "${TOKEN}") && secret == "TOKEN-of-env" && hidden == secret {
					t.Errorf("%q is not hidden", secret)
				}
			}
		})
	}
	t.Run("forwarded", func(t *testing.T) {
		file := filepath.Join(dir, "f.json")
		if err := os.WriteFile(file, []byte(`{"mcpServers":{"s":{"url":"https://s.example/mcp","headers":{"X-Set":"v"},
			"forwardHeaders":["x-tenant","X-Tenant","x-set","Connection","Host","authorization","Mcp-Session-Id","proxy-x","cookie","x-api-key"]}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c, problems, err := config.Load([]string{file}, env)
		if err != nil || len(problems) != 8 || c.Servers[0].Disabled || fmt.Sprint(c.Servers[0].ForwardHeaders) != "[X-Tenant]" {
			t.Errorf("%v, %v, %v", c.Servers[0].ForwardHeaders, problems, err)
		}
	})
	t.Run("a header", func(t *testing.T) {
		file := filepath.Join(dir, "h.json")
		if err := os.WriteFile(file, []byte(`{"mcpServers":{"s":{"url":"https://s.example/mcp","auth":{"type":"header","header":"X-Api-Key","value":"${TOKEN}"}}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		c, problems, err := config.Load([]string{file}, env)
		if err != nil || len(problems) > 0 || len(c.Servers[0].Headers) != 1 || c.Servers[0].Headers[0] != (config.Pair{Name: "X-Api-Key", Value: "TOKEN-of-env"}) {
			t.Errorf("%v, %v, %v", c.Servers, problems, err)
		}
	})
}
