package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Names of the targets.
const (
	rosterName = "roster"
	relayName  = "relay"
	listName   = "list"
)

// The catalog behind the gateway.
const (
	catalogServers = 35
	catalogTools   = 12 // of each server
)

// A target is a running process that is measured.
type target struct {
	name       string
	host, path string // of its endpoint
	tool       string // the name by which it knows the echo tool
	sessions   bool   // it wants the handshake of the session era

	cmd    *exec.Cmd
	stdin  io.Closer // what it lives by, if it is one of ours
	stderr *tail
}

func (t *target) cpuTime() time.Duration { return processCPU(t.cmd.Process.Pid) }

func (t *target) rss() int64 { return processRSS(t.cmd.Process.Pid) }

// startTarget starts one of the targets and waits until it listens. Files that
// it needs go to dir; binary is the gateway's, and flags are its own beside those
// that it always gets.
func startTarget(ctx context.Context, name, dir, binary string, flags ...string) (*target, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find own program: %w", err)
	}
	t := &target{name: name, tool: echoTool}
	switch name {
	case rosterName:
		config := filepath.Join(dir, "roster.json")
		if err := writeConfig(config, self); err != nil {
			return nil, err
		}
		t.sessions = true
		t.tool = serverName(0) + "__" + echoTool
		t.cmd = exec.CommandContext(ctx, binary, "serve", "--config", config, "--listen", "127.0.0.1:0")
		t.cmd.Args = append(t.cmd.Args, flags...)
		t.cmd.Env = append(os.Environ(), "ROSTER_STATE_DIR="+filepath.Join(dir, "state"))
	case relayName, listName:
		t.cmd = exec.CommandContext(ctx, self, name)
	default:
		return nil, fmt.Errorf("no target %q", name)
	}
	if err := t.start(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return t, nil
}

// start runs the command until it says where it listens.
func (t *target) start(ctx context.Context) error {
	t.cmd.Cancel = func() error {
		if err := t.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			return t.cmd.Process.Kill() // Windows has no SIGTERM
		}
		return nil
	}
	t.cmd.WaitDelay = 10 * time.Second
	var err error
	if t.stdin, err = t.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := t.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := t.cmd.Start(); err != nil {
		return err
	}
	t.stderr = newTail()
	go t.stderr.follow(out) // ends with the process
	select {
	case at := <-t.stderr.listening:
		u, err := url.Parse(at)
		if err != nil {
			return errors.Join(fmt.Errorf("read address: %w", err), t.stop())
		}
		t.host, t.path = u.Host, u.Path
		return nil
	case <-t.stderr.ended:
		return errors.Join(fmt.Errorf("it ended: %s", t.stderr), t.stop())
	case <-time.After(30 * time.Second):
		return errors.Join(fmt.Errorf("it does not listen after 30 s: %s", t.stderr), t.stop())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), t.stop())
	}
}

// stop ends the process: with SIGTERM, or by the end of its input if it is one
// of ours, and after 10 s by force.
func (t *target) stop() error {
	if t.name == rosterName {
		_ = t.cmd.Cancel() // it may have ended by itself
	}
	_ = t.stdin.Close() // likewise
	kill := time.AfterFunc(10*time.Second, func() { _ = t.cmd.Process.Kill() })
	defer kill.Stop()
	select {
	case <-t.stderr.ended:
	case <-time.After(15 * time.Second):
		return fmt.Errorf("stop %s: something still holds its standard error", t.name)
	}
	_ = t.cmd.Wait() // how it ended says nothing about what was measured
	return nil
}

// waitForList returns when the target lists all the tools of the catalog.
func (t *target) waitForList(ctx context.Context, e era) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		c, err := dial(ctx, t, e, 0, callLimit)
		if err == nil {
			err = c.prepare(scenario{kind: kindList}, "", catalogServers*catalogTools, 0)
			c.close()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the tools of %s: %w: %s", t.name, err, t.stderr)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// writeConfig writes the gateway's configuration: echo servers, run by the
// program self.
func writeConfig(path, self string) error {
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	servers := map[string]server{}
	for i := range catalogServers {
		servers[serverName(i)] = server{self, []string{"echo"}}
	}
	b, err := json.MarshalIndent(map[string]any{"mcpServers": servers}, "", "\t")
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// buildRoster builds the gateway from its source and returns the binary.
func buildRoster(ctx context.Context, source, dir string) (string, error) {
	binary := filepath.Join(dir, "roster.exe")                                                              // every system runs it by this name
	cmd := exec.CommandContext(ctx, "go", "build", "-pgo=cmd/roster/hot.pgo", "-o", binary, "./cmd/roster") // as it is delivered
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build roster: %w\n%s", err, out)
	}
	return binary, nil
}

// A tail reads what a process writes to standard error: where it listens, and
// its last lines, for when something goes wrong.
type tail struct {
	listening chan string   // gets the URL once
	ended     chan struct{} // closed at the end of the output

	mu    sync.Mutex // guards lines
	lines []string
}

func newTail() *tail {
	return &tail{listening: make(chan string, 1), ended: make(chan struct{})}
}

// follow reads from until it ends.
func (t *tail) follow(from io.Reader) {
	defer close(t.ended)
	in := bufio.NewReader(from)
	for {
		line, err := in.ReadString('\n')
		if at := listeningURL(line); at != "" {
			select {
			case t.listening <- at:
			default:
			}
		}
		if line != "" {
			t.mu.Lock()
			t.lines = append(t.lines[max(0, len(t.lines)-19):], line)
			t.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// listeningURL returns the address in a log line that says that a server is
// listening, or "".
func listeningURL(line string) string {
	_, at, ok := strings.Cut(line, "url=")
	if !ok || !strings.Contains(line, "listening") {
		return ""
	}
	return strings.Trim(strings.Fields(at + " ")[0], `"`)
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "")
}
