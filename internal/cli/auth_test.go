package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/cli"
	"github.com/mcp-roster/roster/internal/mcptest"
)

// screen is where a command prints, and tells of each line.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
	// printed gets everything that was printed so far, whenever more is.
	printed func(all string)
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.b.Write(p)
	all := s.b.String()
	s.mu.Unlock()
	if s.printed != nil {
		s.printed(all)
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

var page = regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize\?\S+\n`)

// machine is a configuration with one server that wants a login.
type machine struct {
	t      *testing.T
	issuer *mcptest.Issuer
	server string
	dir    string
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, issuer: mcptest.NewIssuer(t), dir: t.TempDir()}
	m.server = m.issuer.Protect(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
	text := fmt.Sprintf(`{"mcpServers":{"hosted":{"url":%q},"local":{"command":"x"},"keyed":{"url":%[1]q,"bearer":"CANARY"}},
		"roster":{"stateDir":%q,"tokenStore":"file"}}`, m.server, filepath.Join(m.dir, "state"))
	if err := os.WriteFile(filepath.Join(m.dir, "c.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs a command; printed sees what it prints on standard error.
func (m *machine) run(in io.Reader, printed func(string), args ...string) (code int, out, errs string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Minute)
	defer cancel()
	stdout, stderr := &screen{}, &screen{printed: printed}
	code = cli.Run(ctx, cli.Process{
		Args: append(args, "--config", filepath.Join(m.dir, "c.json")), Stdin: in, Stdout: stdout, Stderr: stderr,
		LookupEnv:  func(string) (string, bool) { return "", false },
		Executable: func() (string, error) { return "", errors.New("none") },
	})
	out, errs = stdout.String(), stderr.String()
	for _, secret := range m.issuer.Secrets() {
		if strings.Contains(out+errs, secret) {
			m.t.Errorf("%v prints the secret %q", args, secret)
		}
	}
	return code, out, errs
}

func (m *machine) loggedIn() bool {
	m.t.Helper()
	code, out, errs := m.run(strings.NewReader(""), nil, "auth", "status", "-o", "json")
	var rows []struct {
		Server   string `json:"server"`
		LoggedIn bool   `json:"loggedIn"`
	}
	if err := json.Unmarshal([]byte(out), &rows); code != 0 || err != nil || len(rows) != 1 || rows[0].Server != "hosted" {
		m.t.Fatalf("code %d, %v: %s%s", code, err, out, errs)
	}
	return rows[0].LoggedIn
}

func TestAuth(t *testing.T) {
	m := newMachine(t)
	if m.loggedIn() {
		t.Fatal("logged in before the login")
	}
	var once sync.Once
	code, out, errs := m.run(strings.NewReader(""), func(all string) {
		if at := page.FindString(all); at != "" {
			once.Do(func() {
				resp, err := http.Get(strings.TrimSpace(at))
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
			})
		}
	}, "auth", "login", "hosted", "--no-browser")
	if code != 0 || out != "Logged in to hosted.\n" || !m.loggedIn() {
		t.Fatalf("code %d: %s%s", code, out, errs)
	}
	if code, out, errs = m.run(nil, nil, "auth", "status"); code != 0 || !strings.Contains(out, "yes") || !strings.Contains(out, m.issuer.URL) {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if code, out, errs = m.run(nil, nil, "auth", "logout", "hosted"); code != 0 || m.loggedIn() {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
	if n := m.issuer.Count("/revoke"); n != 1 {
		t.Errorf("%d revocations, want 1", n)
	}
}

// A browser on another machine cannot come back: the address it ends at is pasted.
func TestAuth_Paste(t *testing.T) {
	m := newMachine(t)
	in, typing := io.Pipe()
	defer typing.Close()
	var once sync.Once
	code, out, errs := m.run(in, func(all string) {
		at := page.FindString(all)
		if at == "" || !strings.Contains(all, "paste") {
			return
		}
		once.Do(func() {
			far := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			resp, err := far.Get(strings.TrimSpace(at))
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
			go func() { // ends when the command has read it
				_, _ = fmt.Fprintf(typing, "\nhttp://wrong\n%s\n", resp.Header.Get("Location"))
			}()
		})
	}, "auth", "login", "hosted", "--no-browser")
	if code != 0 || !strings.Contains(errs, "is not the URL") || !m.loggedIn() {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

func TestAuth_Device(t *testing.T) {
	m := newMachine(t)
	code, out, errs := m.run(nil, func(all string) {
		if strings.Contains(all, "ABCD-EFGH") {
			m.issuer.Approve()
		}
	}, "auth", "login", "hosted", "--device")
	if code != 0 || !m.loggedIn() {
		t.Errorf("code %d: %s%s", code, out, errs)
	}
}

func TestAuth_Errors(t *testing.T) {
	m := newMachine(t)
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"auth", "login"}, 2, "the name of the server is missing"},
		{[]string{"auth", "login", "nobody"}, 1, `there is no server "nobody"`},
		{[]string{"auth", "login", "local"}, 1, "takes credentials from its environment"},
		{[]string{"auth", "login", "keyed"}, 1, "has credentials in the configuration"},
		{[]string{"auth", "status", "nobody"}, 1, `there is no server "nobody"`},
	} {
		if code, _, errs := m.run(nil, nil, tt.args...); code != tt.code || !strings.Contains(errs, tt.want) || strings.Contains(errs, "CANARY") {
			t.Errorf("%v: code %d: %s", tt.args, code, errs)
		}
	}
}
