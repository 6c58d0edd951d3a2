package interop

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// A process is a server that runs until the test ends.
type process struct {
	name   string
	cmd    *exec.Cmd
	stderr tail
	done   chan struct{} // closed after err is set
	err    error
}

// startProcess starts a command in a process group of its own and waits at most limit until a line of
// its standard output or error matches ready, whose first group it returns. On failure nothing is left
// running.
func startProcess(ctx context.Context, cmd *exec.Cmd, name string, ready *regexp.Regexp, limit time.Duration) (*process, string, error) {
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	ownGroup(cmd)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	cmd.Stdout, cmd.Stderr = in, in
	err = cmd.Start()
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return nil, "", err
	}
	found := make(chan string, 1)
	go p.read(out, ready, found) // ends when the last holder of the pipe's other end is gone
	go func() {                  // ends with the process, which stop kills
		p.err = cmd.Wait()
		close(p.done)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case match := <-found:
		return p, match, nil
	case <-p.done:
		err = fmt.Errorf("%s ended: %w", name, orElse(p.err, errors.New("exit status 0")))
	case <-timer.C:
		err = fmt.Errorf("%s was not ready after %v", name, limit)
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = p.stop(0)
	return nil, "", fmt.Errorf("%w; its output ends:\n%s", err, p.stderr.String())
}

func orElse(err, otherwise error) error {
	if err == nil {
		return otherwise
	}
	return err
}

func (p *process) read(out io.ReadCloser, ready *regexp.Regexp, found chan<- string) {
	defer out.Close()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		_, _ = p.stderr.Write(append(lines.Bytes(), '\n'))
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			select {
			case found <- m[1]:
			default:
			}
		}
	}
}

// stop asks the process to end, waits as long as grace, and then kills its group.
// It returns an error if it had to.
func (p *process) stop(grace time.Duration) error {
	timer := time.NewTimer(grace)
	defer timer.Stop()
	if grace > 0 {
		_ = terminate(p.cmd)
	}
	select {
	case <-p.done:
		_ = killGroup(p.cmd)
		return nil
	case <-timer.C:
	}
	_ = killGroup(p.cmd)
	<-p.done
	return fmt.Errorf("%s did not end within %v and was killed", p.name, grace)
}

// A tail keeps the last 16 KiB written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 16 << 10

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// runCommand runs a command in a process group of its own and returns its standard output. When ctx
// ends the whole group is killed. The error has the end of standard error.
func runCommand(ctx context.Context, stdin []byte, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = 2 * time.Second
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, bytes.NewReader(stdin)
	var stdout bytes.Buffer
	var stderr tail
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return stdout.Bytes(), fmt.Errorf("%w; standard error ends:\n%s", err, indent(stderr.String()))
	}
	return stdout.Bytes(), nil
}

func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ")
}

// freePort returns a port that was free a moment ago, for servers that cannot be given port 0 and
// asked for the real one. Callers try again when somebody else was faster.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
}
