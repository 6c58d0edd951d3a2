package auth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/state"
)

// The environment of a child process that uses a login again and again.
const (
	childServer = "ROSTER_TEST_SERVER"
	childDir    = "ROSTER_TEST_DIR"
	childRounds = "ROSTER_TEST_ROUNDS"
)

func TestMain(m *testing.M) {
	if os.Getenv(childServer) != "" {
		if err := useLogin(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if file := os.Getenv(childToken); file != "" {
		if err := printToken(file); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	if code == 0 {
		http.DefaultClient.CloseIdleConnections()
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// useLogin makes the token end, and uses it, as often as it is told.
func useLogin() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	at := os.Getenv(childServer)
	vault := state.NewVault(os.Getenv(childDir), state.KeyFile, nil)
	o := auth.NewOAuth(auth.OAuthOptions{Name: "test", Server: at, Vault: vault})
	defer o.Close()
	rounds, err := strconv.Atoi(os.Getenv(childRounds))
	if err != nil {
		return err
	}
	for i := range rounds {
		err := vault.Update(ctx, auth.RecordName("test", at, ""), func(old []byte) ([]byte, error) {
			var r map[string]any
			if err := json.Unmarshal(old, &r); err != nil {
				return nil, err
			}
			r["expiry"] = time.Now().Add(-time.Second)
			return json.Marshal(r)
		})
		if err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
		fresh := auth.NewOAuth(auth.OAuthOptions{Name: "test", Server: at, Vault: vault}) // has not seen the token before it ended
		status, err := try(ctx, fresh, at)
		fresh.Close()
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("round %d: status %d, %w", i, status, err)
		}
		if status, err := try(ctx, o, at); err != nil || status != http.StatusOK {
			return fmt.Errorf("round %d, with the older token: status %d, %w", i, status, err)
		}
	}
	return nil
}

// Two processes on one store replace a token again and again, at an issuer that
// takes each refresh token once: the login is never lost. With ROSTER_STRESS there are
// 1,000 rotations.
func TestTwoProcesses(t *testing.T) {
	rounds := 25
	if os.Getenv("ROSTER_STRESS") != "" {
		rounds = 500
	}
	is := mcptest.NewIssuer(t)
	at := is.Protect(t, ok, nil)
	dir := t.TempDir()
	o := newOAuth(t, is, auth.OAuthOptions{Server: at, Vault: state.NewVault(dir, state.KeyFile, nil)})
	login(testContext(t), t, o)
	var children sync.WaitGroup
	for range 2 {
		children.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), childServer+"="+at, childDir+"="+dir, childRounds+"="+strconv.Itoa(rounds), "GORACE=atexit_sleep_ms=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			} else if strings.TrimSpace(string(out)) != "" {
				t.Errorf("it says %s", out)
			}
		})
	}
	children.Wait()
	n := is.Count("refresh_token")
	if n < rounds {
		t.Errorf("%d rotations, want %d at least", n, rounds)
	}
	t.Logf("%d rotations", n)
	if s, err := o.Status(t.Context()); err != nil || !s.LoggedIn {
		t.Errorf("after all, the status is %+v, %v", s, err)
	}
}
