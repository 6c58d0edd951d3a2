//go:build unix

package stdio_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/stdio"
)

// runReport runs a command of which the child says how it was started.
func runReport(t *testing.T, c *stdio.Command) report {
	t.Helper()
	p := startChild(t, c)
	defer discard(p)
	frame, err := stdio.NewReader(p.Stdout(), nil).ReadFrame()
	if err != nil {
		t.Fatalf("%v, %s", err, p.Stderr())
	}
	var got report
	if err := json.Unmarshal(frame, &got); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got.Env)
	return got
}

// C-155: no shell reads the command or its arguments.
func TestNoShell(t *testing.T) {
	dir := t.TempDir()
	args := []string{"$(touch PWNED2)", "; touch PWNED3", "*", "", "a b", `"'\`}
	c := testCommand("report", args...)
	c.Dir = dir
	if got := runReport(t, c); !slices.Equal(got.Args, args) {
		t.Errorf("arguments %q, want %q", got.Args, args)
	}
	_, err := (&stdio.Command{Name: "echo; touch PWNED", Args: args, Dir: dir}).Start(t.Context())
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "command not found") {
		t.Errorf("error %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("something was run: %v", entries)
	}
}

// C-055: a child has what programs need and its own variables, and nothing else
// unless it is told to inherit all.
func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		"HOME": "/home/x", "LC_TIME": "C", "XDG_DATA_HOME": "/data", "https_proxy": "http://p",
		"SSL_CERT_FILE": "/ca", "SECRET_TOKEN": "s3cret", "LANG": "() { :; }", "TMPDIR": "/tmp/x",
	} {
		t.Setenv(name, value)
	}
	path := os.Getenv("PATH")
	tests := []struct {
		name    string
		own     []string
		inherit bool
		want    []string
		without []string
	}{
		{
			name: "own and needed",
			own:  []string{"MY_VAR=", "TMPDIR=/own", "TWICE=1", "TWICE=2", "EQUALS=a=b"},
			want: []string{
				"PATH=" + path, "HOME=/home/x", "LC_TIME=C", "XDG_DATA_HOME=/data", "https_proxy=http://p",
				"SSL_CERT_FILE=/ca", "MY_VAR=", "TMPDIR=/own", "TWICE=2", "EQUALS=a=b",
			},
			without: []string{"SECRET_TOKEN=", "LANG=", "TMPDIR=/tmp/x", "TWICE=1"},
		},
		{
			name:    "all",
			own:     []string{"HOME=/elsewhere"},
			inherit: true,
			want:    []string{"PATH=" + path, "HOME=/elsewhere", "SECRET_TOKEN=s3cret", "LANG=() { :; }"},
			without: []string{"HOME=/home/x"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := testCommand("report")
			c.Env = append(c.Env, test.own...)
			c.InheritEnv = test.inherit
			got := runReport(t, c)
			for _, entry := range test.want {
				if !slices.Contains(got.Env, entry) {
					t.Errorf("no %s", entry)
				}
			}
			for _, prefix := range test.without {
				if slices.ContainsFunc(got.Env, func(entry string) bool { return strings.HasPrefix(entry, prefix) }) {
					t.Errorf("there is %s", prefix)
				}
			}
		})
	}
	for _, bad := range []string{"NOVALUE", "=x", "A=b\x00c", ""} {
		c := testCommand("report")
		c.Env = append(c.Env, bad)
		if _, err := c.Start(t.Context()); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// linkChild makes the test binary available under a name.
func linkChild(t *testing.T, path string) {
	t.Helper()
	if err := os.Symlink(os.Args[0], path); err != nil {
		t.Fatal(err)
	}
}

// C-057: the working directory, and commands relative to it.
func TestWorkingDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	linkChild(t, filepath.Join(dir, "server.sh"))
	linkChild(t, filepath.Join(dir, "sub", "server"))
	for _, name := range []string{"./server.sh", "sub/server", filepath.Join(dir, "server.sh")} {
		c := testCommand("report", "data/in.txt")
		c.Name, c.Dir = name, dir
		got := runReport(t, c)
		if got.Dir != dir || !slices.Equal(got.Args, []string{"data/in.txt"}) {
			t.Errorf("%s ran in %s with %q", name, got.Dir, got.Args)
		}
	}
	t.Chdir(dir)
	c := testCommand("report")
	c.Name, c.Dir = "./server", "sub"
	if got := runReport(t, c); got.Dir != filepath.Join(dir, "sub") {
		t.Errorf("a relative directory became %s", got.Dir)
	}

	c.Dir = filepath.Join(dir, "missing")
	if _, err := c.Start(t.Context()); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "working directory") {
		t.Errorf("missing directory: %v", err)
	}
	c.Dir = filepath.Join(dir, "server.sh")
	if _, err := c.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "not a directory") {
		t.Errorf("file as directory: %v", err)
	}
}

// A bare name is looked up in the PATH that the child gets, never in a directory
// that PATH does not name absolutely.
func TestLookup(t *testing.T) {
	dir := t.TempDir()
	bin, other := filepath.Join(dir, "bin"), filepath.Join(dir, "other")
	for _, d := range []string{bin, other} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	linkChild(t, filepath.Join(bin, "tool"))
	if err := os.WriteFile(filepath.Join(other, "tool"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(bin)
	tests := []struct {
		name, command, path string
		err                 error
	}{
		{"found", "tool", bin, nil},
		{"found behind a file that cannot be run", "tool", other + ":/missing:" + bin, nil},
		{"not executable", "tool", other, fs.ErrPermission},
		{"not there", "tool", "/missing", exec.ErrNotFound},
		{"empty PATH", "tool", "", exec.ErrNotFound},
		{"relative entries", "tool", ":.:../bin", exec.ErrNotFound},
		{"directory", bin, bin, fs.ErrPermission},
		{"path that is not there", "./missing", bin, fs.ErrNotExist},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			c := testCommand("report")
			c.Name = test.command
			c.Env = append(c.Env, "PATH="+test.path)
			if test.err == nil {
				runReport(t, c)
				return
			}
			_, err := c.Start(t.Context())
			if !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.command) {
				t.Errorf("error %v, want %v", err, test.err)
			}
		})
	}
	if _, err := (&stdio.Command{}).Start(t.Context()); err == nil {
		t.Error("no command is accepted")
	}
}

// C-058: how a process died, and what it said, is in the error.
func TestExitError(t *testing.T) {
	tests := []struct {
		name, code, says, want string
	}{
		{"reason", "2", "missing API key\n", "exit status 2: missing API key"},
		{"no line end", "1", "oops", "exit status 1: oops"},
		{"silent", "0", "", "exit status 0"},
		{"last lines", "3", "1\n2\n\n3\r\n4\n5\n6\n", "exit status 3: 2 | 3 | 4 | 5 | 6"},
		{"not text", "1", "\x1b[31mred\xff\x01\n", "exit status 1: [31mred?"},
		{"long line", "1", strings.Repeat("x", 10_000), "exit status 1: " + strings.Repeat("x", 300)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := startChild(t, testCommand("exit", test.code, test.says))
			discard(p)
			if p.Err() != nil && !isClosed(p.Done()) {
				t.Error("an error before the end")
			}
			wait(t, p.Done(), "exit")
			var exit *stdio.ExitError
			if !errors.As(p.Err(), &exit) {
				t.Fatalf("error %v", p.Err())
			}
			if !strings.HasSuffix(exit.Error(), "exited: "+test.want) {
				t.Errorf("error %q, want %q", exit, test.want)
			}
			if !bytes.HasSuffix([]byte(test.says), exit.Stderr) || len(exit.Stderr) != min(len(test.says), 64<<10) {
				t.Errorf("standard error %q", exit.Stderr)
			}
		})
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
