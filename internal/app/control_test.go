package app_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/config"
)

// operate asks for a route of the operator.
func operate(t testing.TB, transport http.RoundTripper, method, route string, v any) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(bounded(t), method, "http://localhost/"+route, nil)
	if err != nil {
		t.Fatal(err)
	}
	asker := http.Client{Transport: transport}
	resp, err := asker.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode
}

// find returns what reaches the gateway that commands find.
func (g *gateway) find() (*http.Transport, bool) {
	g.t.Helper()
	cfg, _, err := config.Load([]string{g.file()}, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	transport, ok := app.Find(bounded(g.t), cfg, []string{g.file()})
	g.t.Cleanup(transport.CloseIdleConnections)
	return transport, ok
}

// found returns the URL of the gateway that commands find; "" if there is none.
func (g *gateway) found() string {
	g.t.Helper()
	transport, ok := g.find()
	if !ok {
		return ""
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(bounded(g.t), http.MethodGet, "http://localhost/status", nil)
	if err != nil {
		g.t.Fatal(err)
	}
	asker := http.Client{Transport: transport}
	resp, err := asker.Do(req)
	if err != nil {
		return "" // it has just gone
	}
	defer resp.Body.Close()
	var st admin.Status
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		return ""
	}
	return st.URL
}

// TestControl_LongPath has a state directory whose path is longer than that of a
// socket may be.
func TestControl_LongPath(t *testing.T) {
	g := stoppedGateway(t)
	g.dir = filepath.Join(g.dir, strings.Repeat("long", 30), strings.Repeat("path", 30))
	must(t, os.MkdirAll(g.dir, 0o700))
	g.start("")
	if got := g.found(); got != g.URL() {
		t.Errorf("found %q, want %q", got, g.URL())
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "roster-*", "d"))
	for _, link := range left { // others of the machine may be on their way
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, g.dir) {
			t.Errorf("a link was left: %s, %v", link, err)
		}
	}
	if err != nil {
		t.Error(err)
	}
	g.close()
	if g.found() != "" {
		t.Error("found behind its end")
	}
}

// TestControl_Socket looks at the socket: who may use it, that one which was left
// over is in nobody's way, and that it goes with its gateway.
func TestControl_Socket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no socket on Windows")
	}
	g := newGateway(t, "")
	socket := filepath.Join(g.Status().State, "control.sock")
	check := func() {
		t.Helper()
		info, err := os.Stat(socket)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != os.ModeSocket|0o600 {
			t.Errorf("the socket has mode %v", info.Mode())
		}
		if dir, err := os.Stat(filepath.Dir(socket)); err != nil || dir.Mode().Perm() != 0o700 {
			t.Errorf("its directory has mode %v, %v", dir.Mode(), err)
		}
		if got := g.found(); got != g.URL() {
			t.Errorf("found %q, want %q", got, g.URL())
		}
	}
	check()
	g.close()
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Skip("the path is too long for this test: ", err)
	}
	l.SetUnlinkOnClose(false)
	must(t, l.Close())
	if g.found() != "" {
		t.Error("a socket that was left over counts as a gateway")
	}
	g.run()
	check()
}

// TestControl_Routes has what changes something be there for the operator alone.
func TestControl_Routes(t *testing.T) {
	one := piped("one", answering(tool("t")).OnPipes(t))
	g := newGateway(t, "", one)
	g.ready()
	transport := g.Transport()
	t.Cleanup(transport.CloseIdleConnections)
	for _, route := range []string{"POST reload", "GET plan", "POST servers/one/restart", "GET logs", "GET debug/pprof/"} {
		method, path, _ := strings.Cut(route, " ")
		resp, _ := ask(t, method, strings.TrimSuffix(g.URL(), "mcp")+path, nil)
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s from anywhere: %d", route, resp.StatusCode)
		}
	}
	g.write(configuration("", one, remote("two", "http://127.0.0.1:1/mcp")))
	var out admin.Outcome
	for _, route := range []string{"GET plan", "POST reload"} {
		method, path, _ := strings.Cut(route, " ")
		if code := operate(t, transport, method, path, &out); code != 200 || len(out.Added) != 1 || out.Added[0] != "two" {
			t.Errorf("%s: %d, %+v", route, code, out)
		}
	}
	var failure admin.Failure
	if code := operate(t, transport, "POST", "servers/three/restart", &failure); code != 404 || !strings.Contains(failure.Error, `"three"`) {
		t.Errorf("restart of a server that is not there: %d, %+v", code, failure)
	}
}

// TestControl_Profile has profiles served to the operator who asked for them, and to
// nobody else.
func TestControl_Profile(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		g := stoppedGateway(t)
		g.profile = wanted
		g.start("")
		transport := g.Transport()
		t.Cleanup(transport.CloseIdleConnections)
		asker := http.Client{Transport: transport}
		req, err := http.NewRequestWithContext(bounded(t), "GET", "http://localhost/debug/pprof/heap", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := asker.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		must(t, resp.Body.Close())
		if served := resp.StatusCode == http.StatusOK; served != wanted {
			t.Errorf("wanted %v: %s", wanted, resp.Status)
		}
		if resp, _ := ask(t, "GET", strings.TrimSuffix(g.URL(), "mcp")+"debug/pprof/heap", nil); resp.StatusCode != http.StatusNotFound {
			t.Errorf("wanted %v: from anywhere: %s", wanted, resp.Status)
		}
		g.close()
	}
}

// TestControl_Logs follows the journal until the gateway ends.
func TestControl_Logs(t *testing.T) {
	g := newGateway(t, "", piped("one", answering(tool("t")).OnPipes(t)))
	g.ready()
	transport, _ := g.find()
	req, err := http.NewRequestWithContext(bounded(t), "GET", "http://localhost/logs?follow=1&server=one", nil)
	must(t, err)
	asker := http.Client{Transport: transport}
	resp, err := asker.Do(req)
	must(t, err)
	defer resp.Body.Close()
	lines := json.NewDecoder(resp.Body)
	next := func() (l admin.Line, err error) {
		err = lines.Decode(&l)
		return l, err
	}
	if l, err := next(); err != nil || l.Server != "one" || l.From != admin.FromEvent || !strings.HasPrefix(l.Text, "ready") {
		t.Errorf("first: %+v, %v", l, err)
	}
	var before admin.Server
	if code := operate(t, transport, "POST", "servers/one/restart", &before); code != 200 || before.Name != "one" {
		t.Errorf("restart: %d, %+v", code, before)
	}
	for l := (admin.Line{}); !strings.HasPrefix(l.Text, "ready"); {
		if l, err = next(); err != nil {
			t.Fatal(err)
		}
	}
	g.close()
	for err == nil {
		_, err = next()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

// TestControl_Yield has a gateway that does not end with a client start beside one
// that does: commands find it from then on, and when it has ended the other one.
func TestControl_Yield(t *testing.T) {
	g := stoppedGateway(t)
	g.brief = true
	g.start("")
	if got := g.found(); got != g.URL() {
		t.Fatalf("found %q, want %q", got, g.URL())
	}
	ctx := t.Context()
	second, err := app.Start(ctx, app.Options{Config: g.load(nil), Files: []string{g.file()}, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	url := ""
	if err = second.Listen(ctx, "127.0.0.1:0"); err == nil {
		url = second.URL()
		eventually(t, "commands find the second", func() bool { return g.found() == url })
	}
	if err := errors.Join(err, second.Close()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "commands find the first again", func() bool { return g.found() == g.URL() })
}
