package state_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcp-roster/roster/internal/state"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(child(dir))
	}
	useMemory()
	goleak.VerifyTestMain(m)
}

// useMemory has temporary directories in memory where the system has such: the
// tests write often, and wait for the disk each time.
func useMemory() {
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); err == nil && info.IsDir() {
		_ = os.Setenv("TMPDIR", memory) // at worst it is slow
	}
}

func open(t testing.TB, dir string, log *slog.Logger) *state.Store {
	t.Helper()
	s, err := state.Open(dir, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStore(t, s) })
	return s
}

func closeStore(t testing.TB, s *state.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func flush(t testing.TB, s *state.Store) {
	t.Helper()
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
}

func logTo(b *bytes.Buffer) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }

// files returns the names of all files below a directory.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// fileOf returns the only file below a directory whose name ends so.
func fileOf(t *testing.T, dir, suffix string) string {
	t.Helper()
	for _, f := range files(t, dir) {
		if strings.HasSuffix(f, suffix) {
			return f
		}
	}
	t.Fatalf("no file ...%s in %q", suffix, files(t, dir))
	return ""
}

var (
	index = state.Index{Epoch: 1<<64 - 1, Ordinals: 1<<63 + 1, Places: []state.Place{{Server: "a", At: 1 << 63}, {Server: "b\x00/../é", At: 1<<64 - 1}}}
	lists = state.Server{
		Name: "b\x00/../é", Key: "key", Prefix: "b__",
		Lists: map[string][]state.Item{
			"tools": {
				{Ordinal: 1<<64 - 1, Name: "b__x", Raw: state.Text("{\"name\":\"x\u2028\u2029<&>\",\"n\":1e400,\"big\":123456789012345678901234567890}")},
				{Ordinal: 3, Raw: state.Text(`{ "name" : "\ud800\u00e9\/" ,` + "\r\n\t" + `"a":-0.0}`)},
			},
			"prompts": {},
		},
		Names: map[string][]state.Name{"tools": {{Own: "z", Exposed: "b__z"}, {Own: "a", Exposed: "b__a"}}},
	}
	peer = state.Peer{Name: "b\x00/../é", Key: "key", Version: "2025-11-25", Info: `{"name":"\u00e9"}`, Capabilities: "{}", Instructions: "use\u2028it"}
)

func saveAll(s *state.Store) {
	s.SaveIndex(index)
	s.SaveServer(lists)
	s.SavePeer(peer)
}

func checkAll(t *testing.T, s *state.Store) {
	t.Helper()
	if diff := cmp.Diff(index, s.Index()); diff != "" {
		t.Errorf("index (-want +got):\n%s", diff)
	}
	if got, ok := s.Server(lists.Name); !ok || !cmp.Equal(got, lists) {
		t.Errorf("server %v (-want +got):\n%s", ok, cmp.Diff(lists, got))
	}
	if got, ok := s.Peer(peer.Name, "key"); !ok || got != peer {
		t.Errorf("peer %v (-want +got):\n%s", ok, cmp.Diff(peer, got))
	}
}

// What is saved comes back, to the byte, in this life and the next.
func TestSaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x", "y")
	s := open(t, dir, nil)
	if _, ok := s.Server("a"); ok || s.Index().Epoch != 0 || s.Dir() != dir || !s.Writable() {
		t.Error("a new directory has something in it, or is not writable")
	}
	saveAll(s)
	flush(t, s)
	checkAll(t, s)
	closeStore(t, s)
	s = open(t, dir, nil)
	checkAll(t, s)
	if _, ok := s.Peer(peer.Name, "another key"); ok {
		t.Error("a server that is reached in another way is taken for this one")
	}
	if _, ok := s.Server("a"); ok {
		t.Error("another server's state is found")
	}
}

// The last of several saves counts, and Close writes it.
func TestCloseWrites(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	for i := range 100 {
		s.SaveIndex(state.Index{Epoch: uint64(i)})
	}
	closeStore(t, s)
	closeStore(t, s) // once more does no harm
	s.SaveIndex(state.Index{Epoch: 1000})
	if err := s.Flush(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Flush after Close: %v", err)
	}
	if got := open(t, dir, nil).Index().Epoch; got != 99 {
		t.Errorf("epoch %d", got)
	}
}

func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes mean nothing here")
	}
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.MkdirAll(dir, 0o755); err != nil { // somebody made it, and too open
		t.Fatal(err)
	}
	s := open(t, dir, nil)
	saveAll(s)
	flush(t, s)
	for _, path := range append(files(t, dir), dir, filepath.Join(dir, "servers")) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		want := fs.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o", path, got)
		}
	}
}

// A file that cannot be understood is moved aside with a warning, and the others
// stay good.
func TestDamagedFiles(t *testing.T) {
	for name, content := range map[string]string{
		"empty":           "",
		"cut":             `{"format":1,"value":{"epoch":5,"ordi`,
		"not JSON":        "\x00\x00\x00",
		"newer format":    `{"format":2,"value":{"epoch":5}}`,
		"no format":       `{"value":{"epoch":5}}`,
		"no value":        `{"format":1}`,
		"another type":    `{"format":1,"value":[]}`,
		"wrong member":    `{"format":1,"value":{"epoch":-1,"name":7}}`,
		"something after": `{"format":1,"value":{}} {}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, nil)
			saveAll(s)
			closeStore(t, s)
			damaged := []string{fileOf(t, dir, "index.json"), fileOf(t, dir, ".peer.json")}
			for _, f := range damaged {
				if err := os.WriteFile(f, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var log bytes.Buffer
			s = open(t, dir, logTo(&log))
			if got := s.Index(); got.Epoch != 0 || got.Places != nil {
				t.Errorf("index %+v", got)
			}
			if _, ok := s.Peer(peer.Name, peer.Key); ok {
				t.Error("there is a peer")
			}
			if got, ok := s.Server(lists.Name); !ok || !cmp.Equal(got, lists) {
				t.Error("a file that is good was not read")
			}
			if n := strings.Count(log.String(), "level=WARN"); n != 2 {
				t.Errorf("%d warnings: %s", n, log.String())
			}
			for _, f := range damaged {
				if old, err := os.ReadFile(f + ".damaged"); err != nil || string(old) != content {
					t.Errorf("moved aside: %q, %v", old, err)
				}
			}
			saveAll(s)
			flush(t, s)
			checkAll(t, s)
		})
	}
}

// A process that was killed while it wrote leaves the old content and a
// temporary file, which the next one removes.
func TestKilledWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	saveAll(s)
	closeStore(t, s)
	for _, f := range []string{".new-123", "servers/.new-456"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte(`{"format":1,"va`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, nil)
	checkAll(t, s)
	for _, f := range files(t, dir) {
		if strings.Contains(f, ".new-") {
			t.Errorf("%s is still there", f)
		}
	}
}

// What is the same is not written again.
func TestSameContentIsNotWritten(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	saveAll(s)
	flush(t, s)
	before := make(map[string]os.FileInfo)
	for _, f := range files(t, dir) {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		before[f] = info
	}
	saveAll(s)
	closeStore(t, s)
	s = open(t, dir, nil)
	saveAll(s)
	flush(t, s)
	for f, was := range before {
		now, err := os.Stat(f)
		if err != nil || !os.SameFile(was, now) {
			t.Errorf("%s was written again (%v)", f, err)
		}
	}
}

// What cannot be written is said to be so, waits, and is written when it can be.
func TestDiskRefuses(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	s := open(t, dir, logTo(&log))
	servers := filepath.Join(dir, "servers")
	if err := os.Remove(servers); err != nil {
		t.Fatal(err)
	}
	saveAll(s)
	if err := s.Flush(); err == nil || !strings.Contains(log.String(), "state not saved") {
		t.Errorf("Flush: %v\n%s", err, log.String())
	}
	if err := os.Mkdir(servers, 0o700); err != nil {
		t.Fatal(err)
	}
	flush(t, s)
	checkAll(t, s)
}

// Text that a file would not give back is refused, not changed.
func TestTextThatIsNotUTF8(t *testing.T) {
	s, err := state.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.SaveServer(state.Server{Name: "a", Lists: map[string][]state.Item{"tools": {{Ordinal: 1, Raw: state.Text("\xff")}}}})
	if err := s.Close(); err == nil {
		t.Error("saved")
	}
	if _, ok := s.Server("a"); ok {
		t.Error("there is something")
	}
}

// A directory that nobody may write is read, and the program runs.
func TestDirectoryIsNotWritable(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		t.Skip("nothing is refused here")
	}
	for name, prepare := range map[string]func(dir string) string{
		"not to be made": func(dir string) string { return filepath.Join(dir, "state") },
		"nothing in it":  func(dir string) string { return dir },
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := prepare(parent)
			if err := os.Chmod(parent, 0o500); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.Chmod(parent, 0o700); err != nil { //nolint:gosec // a directory
					t.Error(err)
				}
			})
			var log bytes.Buffer
			s := open(t, dir, logTo(&log))
			saveAll(s)
			if s.Writable() || !strings.Contains(log.String(), "cannot be written") {
				t.Errorf("writable %v, log %s", s.Writable(), log.String())
			}
			if err := s.Flush(); !errors.Is(err, state.ErrReadOnly) {
				t.Errorf("Flush: %v", err)
			}
		})
	}
}

// Without a lock nothing is written, whatever the reason.
func TestNoLock(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := open(t, dir, logTo(&log))
	saveAll(s)
	if s.Writable() || !strings.Contains(log.String(), "cannot be written") {
		t.Errorf("writable %v, log %s", s.Writable(), log.String())
	}
	if err := s.Flush(); !errors.Is(err, state.ErrReadOnly) {
		t.Errorf("Flush: %v", err)
	}
}

// A directory that cannot be is a mistake that somebody must hear of.
func TestDirectoryIsAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if s, err := state.Open(file, nil); err == nil {
		t.Error(s.Close(), "opened a file as a directory")
	}
}

func TestConcurrentUse(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	var users sync.WaitGroup
	for u := range 4 {
		users.Go(func() { // ends after its rounds
			name := fmt.Sprint("server", u)
			for i := range 20 {
				s.SaveServer(state.Server{Name: name, Key: fmt.Sprint(i)})
				s.SaveIndex(state.Index{Epoch: uint64(i)})
				s.SavePeer(state.Peer{Name: name, Key: fmt.Sprint(i)})
				s.Index()
				s.Server(name)
				s.Peer(name, "19")
				if i%5 == 0 {
					if err := s.Flush(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	users.Wait()
	flush(t, s)
	for u := range 4 {
		if v, ok := s.Server(fmt.Sprint("server", u)); !ok || v.Key != "19" {
			t.Errorf("server %d: %+v", u, v)
		}
	}
}

func TestDirFor(t *testing.T) {
	seen := make(map[string]bool)
	for _, files := range [][]string{nil, {"/a"}, {"/b"}, {"/a", "/b"}, {"/b", "/a"}, {"/a/b"}} {
		dir := state.DirFor(files)
		if seen[dir] || len(dir) != 20 || dir != state.DirFor(files) {
			t.Errorf("%q has %q", files, dir)
		}
		seen[dir] = true
	}
}
