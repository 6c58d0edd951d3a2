//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gateway is a process of ours in the background.
type gateway struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *bufio.Reader
	ended  chan struct{} // closed when it has exited
}

// start runs "roster serve" with a configuration.
func start(t *testing.T, config string, args ...string) *gateway {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return startIn(t, dir, args...)
}

// startIn is start with the configuration and the state in a directory.
func startIn(t *testing.T, dir string, args ...string) *gateway {
	t.Helper()
	file := filepath.Join(dir, "config.json")
	cmd := exec.Command("roster", append([]string{"serve", "--config", file}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ROSTER_STATE_DIR="+dir, "GORACE=atexit_sleep_ms=0")
	g := &gateway{cmd: cmd, ended: make(chan struct{})}
	var err error
	if g.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, stdoutEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, stderrEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = stdoutEnd, stderrEnd
	g.stdout, g.stderr = bufio.NewReader(stdout), bufio.NewReader(stderr)
	deadline := time.Now().Add(30 * time.Second)
	for _, r := range []*os.File{stdout, stderr} {
		if err := r.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdoutEnd.Close()
	stderrEnd.Close()
	go func() { // ends with the process, at the latest in Cleanup
		defer close(g.ended)
		_ = cmd.Wait() // the state has the exit code
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has most likely ended
		<-g.ended
	})
	return g
}

// until reads lines until one contains part, and returns that.
func until(t *testing.T, r *bufio.Reader, part string) string {
	t.Helper()
	for {
		line, err := r.ReadString('\n')
		if strings.Contains(line, part) {
			return line
		}
		if err != nil {
			t.Fatalf("no line with %q: %v", part, err)
		}
	}
}

// exit waits for the end of the process, and returns its code.
func (g *gateway) exit(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-g.ended:
		return g.cmd.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("still running %v after the signal", within)
		return 0
	}
}

func (g *gateway) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := g.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

const demoServer = `{"mcpServers": {"text": {"command": "roster", "args": ["demo-server", "paged"], "inheritEnv": true}}}`

const session = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// C-052: a signal ends the gateway although it is blocked in reading its standard
// input, and its servers end before it does.
func TestSignalEndsIdleStdio(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			g := start(t, demoServer, "--stdio")
			if _, err := io.WriteString(g.stdin, session); err != nil {
				t.Fatal(err)
			}
			until(t, g.stdout, "text__reverse")
			children := childrenOf(t, g.cmd.Process.Pid)
			if len(children) != 1 {
				t.Fatalf("children %v, want one", children)
			}
			g.signal(t, sig)
			if code := g.exit(t, 2*time.Second); code != 0 {
				t.Errorf("exit code %d, want 0", code)
			}
			if err := syscall.Kill(children[0], 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the server is still there: %v", err)
			}
		})
	}
}

// childrenOf returns the processes that a process has started.
func childrenOf(t *testing.T, pid int) []int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(files) == 0 {
		t.Skip("the system does not tell the children of a process")
	}
	var pids []int
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, child)
		}
	}
	return pids
}

// C-052: a second signal does not wait for a server that will not end.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	g := start(t, `{"mcpServers": {"stubborn": {"command": "sh",
		"args": ["-c", "echo $$ > pid; trap '' TERM; exec sleep 30"], "cwd": "."}}}`, "--listen", "127.0.0.1:0")
	until(t, g.stderr, "listening")
	t.Cleanup(func() {
		data, err := os.ReadFile(filepath.Join(g.cmd.Dir, "pid"))
		if err != nil {
			return // it was not started yet
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	})
	waitForFile(t, filepath.Join(g.cmd.Dir, "pid"))
	g.signal(t, syscall.SIGINT)
	until(t, g.stderr, "stopping")
	g.signal(t, syscall.SIGINT)
	if code := g.exit(t, time.Second); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
}

func waitForFile(t *testing.T, name string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	within := time.After(10 * time.Second)
	for {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 {
			return
		}
		select {
		case <-tick.C:
		case <-within:
			t.Fatalf("%s was not written", name)
		}
	}
}

// The end of its input ends a gateway on pipes, with the code 0.
func TestEndOfInputEndsStdio(t *testing.T) {
	t.Parallel()
	g := start(t, demoServer, "--stdio")
	g.stdin.Close()
	if code := g.exit(t, 10*time.Second); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if rest, err := io.ReadAll(g.stdout); err != nil || len(rest) > 0 {
		t.Errorf("standard output has %q, %v; want nothing", rest, err)
	}
}
