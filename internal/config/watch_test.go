package config_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/config"
)

// TestWatch_Content changes files in many ways: their watcher tells when the
// content is another, and not when it is the same again.
func TestWatch_Content(t *testing.T) {
	for name, poll := range map[string]time.Duration{"as the system tells": time.Hour, "by looking": 10 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			one, two := filepath.Join(dir, "one.json"), filepath.Join(dir, "two.json")
			put := func(file, text string) { // whole, so that nothing between is seen
				t.Helper()
				next := filepath.Join(dir, "next")
				place(t, next, text)
				if err := os.Rename(next, file); err != nil {
					t.Fatal(err)
				}
			}
			put(one, "1")
			w := config.Watch([]string{one, two}, config.WatchOptions{Quiet: 20 * time.Millisecond, Poll: poll})
			t.Cleanup(w.Close)
			told := func(what string) {
				t.Helper()
				select {
				case <-w.Changed():
				case <-time.After(30 * time.Second):
					t.Fatalf("not told of %s", what)
				}
			}
			told("what there is")
			put(one, "2")
			told("a change")
			put(two, "2")
			told("a file that comes")
			if err := os.Remove(two); err != nil {
				t.Fatal(err)
			}
			told("a file that goes")
			put(one, "2")
			if err := os.Chtimes(one, time.Time{}, time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-w.Changed():
				t.Error("told of the same content")
			case <-time.After(100 * time.Millisecond):
			}
			place(t, one, "3")
			told("a file that is written in place")
		})
	}
}

// place writes a file in place.
func place(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
