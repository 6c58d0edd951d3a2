package auth_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/internal/auth"
)

// childToken names, to a child process that prints a token, the file that has what
// it is to print. It adds a line to the file each time.
const childToken = "ROSTER_TEST_TOKEN"

func printToken(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text, runs, _ := strings.Cut(string(data), "\n")
	if err := os.WriteFile(file, []byte(text+"\n"+runs+"x"), 0o600); err != nil {
		return err
	}
	if text == "fail" {
		fmt.Println("CANARY-printed")
		fmt.Fprintln(os.Stderr, "CANARY-said")
		os.Exit(3)
	}
	_, err = fmt.Println(text)
	return err
}

// source is a file whose first line a command prints; runs says how often it did.
type source struct {
	t    *testing.T
	file string
}

func (s source) set(text string) {
	s.t.Helper()
	if err := os.WriteFile(s.file, []byte(text+"\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s source) runs() int {
	data, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	_, runs, _ := strings.Cut(string(data), "\n")
	return len(runs)
}

func (s source) command() *auth.Bearer {
	return auth.NewBearer(auth.Command([]string{os.Args[0]}, append(os.Environ(), childToken+"="+s.file, "GORACE=atexit_sleep_ms=0")))
}

func TestCommandBearer(t *testing.T) {
	ctx := testContext(t)
	s := source{t, filepath.Join(t.TempDir(), "token")}
	s.set("one")
	b := s.command()
	var asking sync.WaitGroup
	for range 10 {
		asking.Go(func() {
			if got, err := b.Authorization(ctx); got != "Bearer one" || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	asking.Wait()
	if n := s.runs(); n != 1 {
		t.Errorf("the command ran %d times, want 1", n)
	}
	if again, err := b.Refused(ctx, http.StatusUnauthorized, "Bearer one", nil); again || err != nil {
		t.Errorf("%v, %v: the token is the same", again, err)
	}
	s.set(`{"access_token":"two","expires_in":3600}`)
	for range 5 {
		asking.Go(func() {
			if again, err := b.Refused(ctx, http.StatusUnauthorized, "Bearer one", nil); !again || err != nil {
				t.Errorf("%v, %v: there is another token", again, err)
			}
		})
	}
	asking.Wait()
	if n := s.runs(); n != 1 {
		t.Errorf("the command ran %d times, want 1", n)
	}
	if again, err := b.Refused(ctx, http.StatusForbidden, "Bearer two", nil); again || err != nil || s.runs() != 1 {
		t.Errorf("%v, %v: 403 is not about the token", again, err)
	}

	// One that ends is got again without a refusal.
	s.set(`{"token":"three","expires_in":1}`)
	if again, err := b.Refused(ctx, http.StatusUnauthorized, "Bearer two", nil); !again || err != nil {
		t.Errorf("%v, %v", again, err)
	}
	s.set("four")
	if got, err := b.Authorization(ctx); got != "Bearer four" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for text, want := range map[string]string{
		"fail": "exit status 3", "": "is empty", "CANARY two words": "a character that none has", `{"access_token":"CANARY`: "cannot be read", "{}": "is empty",
	} {
		s.set(text)
		_, err := s.command().Authorization(ctx)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFileBearer(t *testing.T) {
	ctx := testContext(t)
	file := filepath.Join(t.TempDir(), "token")
	b := auth.NewBearer(auth.File(file))
	if _, err := b.Authorization(ctx); err == nil {
		t.Error("no error without a file")
	}
	for i, text := range []string{"one\n", " two "} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			if again, err := b.Refused(ctx, http.StatusUnauthorized, "Bearer one", nil); !again || err != nil {
				t.Errorf("%v, %v", again, err)
			}
		}
		if got, err := b.Authorization(ctx); got != "Bearer "+strings.TrimSpace(text) || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}
