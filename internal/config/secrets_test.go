package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/config"
)

// TestSecretsHide is C-158: what of an entry is looked for in foreign text.
func TestSecretsHide(t *testing.T) {
	server := config.Server{
		Name: "github",
		URL:  "https://user:p%40ssword@host/mcp?key=a%2Fb-secret&lonelykey",
		Env: []config.Pair{
			{Name: "TOKEN", Value: "tok-123"},
			{Name: "TOKEN_2", Value: "tok-123-longer"},
			{Name: "NAME", Value: "github"},
			{Name: "ON", Value: "true"},
			{Name: "DSN", Value: "postgres://db:dbsecret@h/x"},
			{Name: "PEM", Value: "-----BEGIN-----\nMIIfirst\nMIIsecond\n"},
			{Name: "ODD", Value: `qu"ote\d`},
		},
		Headers: []config.Pair{{Name: "Authorization", Value: "Bearer bear-123"}},
		Args: []string{
			"-y", "@scope/package-name", "-e", "K=envsecret", "--api-key", "flagsecret", "--token=equalsecret",
			"--header", "X-Key: headersecret", "-H", "X-Two:colonsecret", "ghp_0123456789abcdefghij", "./a-long-path-to-a-thing-1",
		},
	}
	tests := []struct{ text, want string }{
		{"is tok-123 wrong", "is [hidden] wrong"},
		{"tok-123-longer", "[hidden]"},
		{"github is true", "github is true"},
		{"password dbsecret", "password [hidden]"},
		{"MIIfirst|MIIsecond", "[hidden]|[hidden]"},
		{fmt.Sprintf("%q", `a qu"ote\d`), `"a [hidden]"`},
		{"bear-123 and Bearer bear-123", "[hidden] and [hidden]"},
		{"p@ssword p%40ssword", "[hidden] [hidden]"},
		{"dXNlcjpwQHNzd29yZA==", "[hidden]"},
		{"a/b-secret a%2Fb-secret lonelykey", "[hidden] [hidden] [hidden]"},
		{"envsecret flagsecret equalsecret headersecret colonsecret", "[hidden] [hidden] [hidden] [hidden] [hidden]"},
		{"ghp_0123456789abcdefghij", "[hidden]"},
		{"not found: @scope/package-name ./a-long-path-to-a-thing-1", "not found: @scope/package-name ./a-long-path-to-a-thing-1"},
	}
	secrets := server.Secrets()
	for _, tt := range tests {
		if got := secrets.Hide(tt.text); got != tt.want {
			t.Errorf("Hide(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if got := (config.Server{}).Secrets().Hide("x"); got != "x" {
		t.Errorf("without secrets: %q", got)
	}
	if got := (*config.Secrets)(nil).Hide("x"); got != "x" {
		t.Errorf("nil: %q", got)
	}
}

// TestSecretsLog is C-158: no attribute of a log has a secret, however it came in.
func TestSecretsLog(t *testing.T) {
	secrets := config.Server{Env: []config.Pair{{Name: "TOKEN", Value: "S3CR3T-1"}}}.Secrets()
	var out bytes.Buffer
	log := slog.New(secrets.Handler(slog.NewTextHandler(&out, nil)))
	err := fmt.Errorf("it said: %w", errors.New("S3CR3T-1"))
	log.With("with", "S3CR3T-1").WithGroup("g").Info("m", "text", "a S3CR3T-1", "err", err, "n", 7,
		slog.Group("in", "err", err, "list", []string{"S3CR3T-1"}), "bytes", []string{"kept"})
	if strings.Contains(out.String(), "S3CR3T") {
		t.Errorf("a secret in %s", out.String())
	}
	for _, want := range []string{"with=[hidden]", `g.text="a [hidden]"`, `g.err="it said: [hidden]"`, "g.n=7", "g.in.list=[[hidden]]", "g.bytes=[kept]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %s in %s", want, out.String())
		}
	}
}
