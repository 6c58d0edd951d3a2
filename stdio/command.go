package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Defaults of a [Command].
const (
	DefaultExitWait = 2 * time.Second // from the end of its input to the signal to terminate
	DefaultTermWait = 3 * time.Second // from the signal to terminate to the one to kill
)

const (
	// drainWait is how long the output of a process that has exited is waited for
	// when something else still holds the pipe open.
	drainWait = 500 * time.Millisecond

	// killWait is how long a killed process may take to vanish.
	killWait = 2 * time.Second
)

// Command says how to start a server as a child process. No shell is involved: Name
// and Args are the argument vector.
//
// The child leads a process group of its own, so that what it starts ends with it.
// It gets PATH, HOME, USER, SHELL, LANG, TERM, TMPDIR, the LC_, XDG_, proxy and
// certificate authority variables (on Windows also those that describe the system
// and the user's directories), plus Env. On Linux the system sends it SIGTERM should
// this process die without stopping it.
//
// A Command is not changed by its methods and may be started any number of times.
type Command struct {
	// Name is the program. A bare name is looked up in the PATH that the child gets;
	// one with a separator is a path, relative to Dir.
	Name string
	Args []string // without the program's name

	// Dir is the working directory; empty means that of this process.
	Dir string

	// Env has the child's own variables as "NAME=value". They win over inherited
	// ones; an empty value is a value.
	Env []string

	// InheritEnv passes the whole environment of this process on.
	InheritEnv bool

	// Stderr, if not nil, is called for each line that the child writes to its
	// standard error: blank ones not, long ones cut at 4 KiB, at most 100 per second;
	// dropped says how many were left out since the last call (the last call may be
	// for those alone, with a nil line). The hook runs on the goroutine that empties
	// the pipe: while it does not return, the child may block. The slice is valid
	// during the call only.
	Stderr func(line []byte, dropped int)

	// Hide, if not nil, returns what may be shown of text that the child wrote to its
	// standard error. Whatever tells of that has been through it: the Stderr hook,
	// Process.Stderr and ExitError. It may be called from several goroutines.
	Hide func(text string) string

	// MaxFrame and Noise are the ReaderOptions for a connection over the pipes.
	MaxFrame int
	Noise    func(line []byte)

	// ExitWait and TermWait are how long a stopped process may take: between the end
	// of its input and SIGTERM to its group, and between that and SIGKILL. Zero means
	// DefaultExitWait and DefaultTermWait. On Windows, which has no SIGTERM, only
	// ExitWait counts.
	ExitWait time.Duration
	TermWait time.Duration
}

func (c *Command) exitWait() time.Duration {
	if c.ExitWait > 0 {
		return c.ExitWait
	}
	return DefaultExitWait
}

func (c *Command) termWait() time.Duration {
	if c.TermWait > 0 {
		return c.TermWait
	}
	return DefaultTermWait
}

// Start starts the process. ctx is for the start alone: the process lives until it
// exits or is closed. A program that is not found gives an error that wraps
// exec.ErrNotFound.
func (c *Command) Start(ctx context.Context) (*Process, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Name, err)
	}
	env, err := environment(os.Environ(), c.Env, c.InheritEnv)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Name, err)
	}
	if err := checkDir(c.Dir); err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Name, err)
	}
	path, err := c.lookPath(env)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Name, err)
	}
	p, err := start(c, path, env)
	if err != nil {
		return nil, fmt.Errorf("start %q: %w", c.Name, err)
	}
	return p, nil
}

func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("working directory: %s is not a directory", dir)
	}
	return nil
}

// lookPath returns the absolute path of the program. Entries of PATH that are not
// absolute are passed over.
func (c *Command) lookPath(env []string) (string, error) {
	if c.Name == "" {
		return "", errors.New("no command given")
	}
	if hasSeparator(c.Name) {
		path := c.Name
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.Dir, path)
		}
		path, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		return findExecutable(path, env)
	}
	var unusable error
	for _, dir := range filepath.SplitList(lookupVariable(env, "PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		path, err := findExecutable(filepath.Join(dir, c.Name), env)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, os.ErrPermission) && unusable == nil {
			unusable = err
		}
	}
	if unusable != nil {
		return "", unusable
	}
	return "", fmt.Errorf("command not found: %w", exec.ErrNotFound)
}

func hasSeparator(name string) bool {
	return strings.ContainsRune(name, '/') || runtime.GOOS == "windows" && strings.ContainsAny(name, `\:`)
}
