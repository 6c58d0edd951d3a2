//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// say writes lines to the standard input of a process.
func (g *gateway) say(t *testing.T, lines string) {
	t.Helper()
	if _, err := io.WriteString(g.stdin, lines); err != nil {
		t.Fatal(err)
	}
}

// call calls a tool, and waits for the answer.
func (g *gateway) call(t *testing.T, id int) {
	t.Helper()
	g.say(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"text__reverse","arguments":{"text":"abc"}}}`+"\n", id))
	if line := until(t, g.stdout, fmt.Sprintf(`"id":%d,`, id)); !strings.Contains(line, "cba") {
		t.Errorf("the call was answered %s", line)
	}
}

// shared returns a directory with a configuration of one server.
func shared(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(demoServer), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBridge_OneGateway has clients on pipes beside a gateway that runs: its servers
// are not started again, unless somebody wants that; and what ends a client ends its
// process alone.
func TestBridge_OneGateway(t *testing.T) {
	t.Parallel()
	dir := shared(t)
	daemon := startIn(t, dir, "--listen", "127.0.0.1:0")
	until(t, daemon.stderr, "server is ready")
	one, two, alone := startIn(t, dir, "--stdio"), startIn(t, dir, "--stdio"), startIn(t, dir, "--stdio", "--no-bridge")
	for _, g := range []*gateway{one, two, alone} {
		g.say(t, session)
		until(t, g.stdout, "text__reverse")
		g.call(t, 3)
		want := 0
		if g == alone {
			want = 1
		}
		if children := childrenOf(t, g.cmd.Process.Pid); len(children) != want {
			t.Errorf("a client's process has %d children, want %d", len(children), want)
		}
	}
	one.signal(t, syscall.SIGTERM)
	began := time.Now()
	if code := one.exit(t, 30*time.Second); code != 0 {
		t.Errorf("SIGTERM ends it with exit code %d", code)
	}
	if err := two.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if code := two.exit(t, 30*time.Second); code != 0 {
		t.Errorf("the end of its input ends it with exit code %d", code)
	}
	t.Logf("both ended within %v", time.Since(began))
	if children := childrenOf(t, daemon.cmd.Process.Pid); len(children) != 1 {
		t.Errorf("the gateway has %d children", len(children))
	}
}

// TestBridge_AtOnce starts clients on pipes at once without a gateway: one of them
// becomes it for all; and when it is killed, another one does.
func TestBridge_AtOnce(t *testing.T) {
	t.Parallel()
	dir := shared(t)
	var all []*gateway
	for range 3 {
		all = append(all, startIn(t, dir, "--stdio"))
	}
	parents := func() (with []*gateway) {
		for _, g := range all {
			if len(childrenOf(t, g.cmd.Process.Pid)) > 0 {
				with = append(with, g)
			}
		}
		return with
	}
	for _, g := range all {
		g.say(t, session)
		until(t, g.stdout, "text__reverse")
		g.call(t, 3)
	}
	first := parents()
	if len(first) != 1 {
		t.Fatalf("%d of 3 processes have started the server", len(first))
	}
	first[0].signal(t, syscall.SIGKILL)
	first[0].exit(t, 30*time.Second)
	var left []*gateway
	for _, g := range all {
		if g != first[0] {
			left = append(left, g)
		}
	}
	all = left
	for _, g := range all {
		g.call(t, 4)
	}
	if now := parents(); len(now) != 1 {
		t.Errorf("%d of 2 processes have started the server", len(now))
	}
}

// TestBridge_Probe starts a second process while the first one ends, as some clients
// do: its first message is not that of a session.
func TestBridge_Probe(t *testing.T) {
	t.Parallel()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	dir := shared(t)
	for range 3 {
		probe := startIn(t, dir, "--stdio")
		probe.say(t, `{"jsonrpc":"2.0","id":"probe","method":"server/discover","params":{`+meta+`}}`+"\n")
		until(t, probe.stdout, `"supportedVersions"`)
		probe.stdin.Close()
		probe.signal(t, syscall.SIGTERM)
		real := startIn(t, dir, "--stdio")
		real.say(t, `{"jsonrpc":"2.0","id":"listen:0","method":"subscriptions/listen","params":{`+meta+`,"notifications":{"toolsListChanged":true}}}`+"\n"+
			`{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{`+meta+`}}`+"\n")
		if line := until(t, real.stdout, `"id":0,`); !strings.Contains(line, "text__reverse") {
			t.Errorf("the list is %s", line)
		}
		probe.exit(t, 30*time.Second)
		real.signal(t, syscall.SIGTERM)
		real.exit(t, 30*time.Second)
	}
}
