package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/mcptest"
)

// patience is far more than anything here takes.
const patience = time.Minute

// ok answers everything.
var ok = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })

// browser opens a URL and follows it to its end, as a user who agrees to all.
func browser(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// try makes a request as mcphttp does: with what Authorization says, and again if
// Refused says so.
func try(ctx context.Context, o *auth.OAuth, url string) (status int, err error) {
	for n := 0; ; n++ {
		value, err := o.Authorization(ctx)
		if err != nil {
			return 0, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
		if err != nil {
			return 0, err
		}
		if value != "" {
			req.Header.Set("Authorization", value)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK || n == 3 {
			return resp.StatusCode, nil
		}
		again, err := o.Refused(ctx, resp.StatusCode, value, resp.Header.Values("WWW-Authenticate"))
		if err != nil || !again {
			return resp.StatusCode, err
		}
	}
}

// newOAuth returns a login that ends with the test. Its log must stay free of all
// that the issuer gave out.
func newOAuth(t *testing.T, is *mcptest.Issuer, opts auth.OAuthOptions) *auth.OAuth {
	t.Helper()
	if opts.Vault == nil {
		opts.Vault = new(auth.Memory)
	}
	if opts.Name == "" {
		opts.Name = "test"
	}
	var log lockedBuffer
	opts.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o := auth.NewOAuth(opts)
	t.Cleanup(func() {
		o.Close()
		clean(t, is, "log", log.String())
	})
	return o
}

// clean fails if text has a secret of the issuer's in it.
func clean(t *testing.T, is *mcptest.Issuer, what, text string) {
	t.Helper()
	for _, secret := range is.Secrets() {
		if strings.Contains(text, secret) {
			t.Errorf("the %s has the secret %q:\n%s", what, secret, text)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func readAll(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

// change edits what a vault keeps of the login of "test" to a server.
func change(t *testing.T, v auth.Vault, at string, edit func(r map[string]any)) {
	t.Helper()
	err := v.Update(t.Context(), auth.RecordName("test", at, ""), func(old []byte) ([]byte, error) {
		var r map[string]any
		if err := json.Unmarshal(old, &r); err != nil {
			return nil, err
		}
		edit(r)
		return json.Marshal(r)
	})
	if err != nil {
		t.Fatal(err)
	}
}
