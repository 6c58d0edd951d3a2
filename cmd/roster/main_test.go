package main

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/upstream"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"roster": main})
}

// TestScripts runs the program as its users do. Each script has a home, a state
// directory and a configuration directory of its own, $CLIENTS with files as MCP
// clients write them, $DEPLOY with our directory of that name, and these commands beside those of testscript:
//
//	exits CODE COMMAND...   run a command, which must end with that code
//	until PATTERN COMMAND...
//	                        run a command again until its output matches: for completion,
//	                        which gives up when a busy machine lets it wait
//	await                   wait for the gateway of this script; sets $URL, and $BASE without the path
//	await ready             wait until none of its servers is starting, too
//	await gone              wait until there is none any more
//	taken                   take a port; sets $TAKEN to its address
//	proxy                   start an HTTP proxy that answers 418 to all; sets $PROXY to its URL
//	json FILE               the file must be one JSON value
//	probe URL               a GET, as a probe sends it, must be answered 200
func TestScripts(t *testing.T) {
	clients, err := filepath.Abs(filepath.Join("..", "..", "internal", "clientfile", "testdata", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	deploy, err := filepath.Abs(filepath.Join("..", "..", "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // else each process under the race detector takes a second to end
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("XDG_CONFIG_HOME", filepath.Join(env.WorkDir, "config"))
			env.Setenv("ROSTER_STATE_DIR", filepath.Join(env.WorkDir, "state"))
			env.Setenv("CLIENTS", clients)
			env.Setenv("DEPLOY", deploy)
			return os.MkdirAll(filepath.Join(env.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "until": untilShown, "await": await, "taken": taken, "proxy": proxy, "json": isJSON, "probe": probe,
		},
	})
}

// proxy starts a server that is asked for what is elsewhere.
func proxy(ts *testscript.TestScript, _ bool, _ []string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "asked for "+r.URL.String(), http.StatusTeapot)
	}))
	ts.Defer(server.Close)
	ts.Setenv("PROXY", server.URL)
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func untilShown(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: until PATTERN COMMAND...")
	}
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	within := time.After(time.Minute)
	for {
		ts.Check(ts.Exec(args[1], args[2:]...))
		if pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-within:
			ts.Fatalf("there was no output that matches %s", args[0])
		default:
		}
	}
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	what := "running"
	if len(args) == 1 {
		what = args[0]
	}
	within := time.After(time.Minute)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		url := endpoint(ts)
		if url != "" {
			ts.Setenv("URL", url)
			ts.Setenv("BASE", strings.TrimSuffix(url, "/mcp"))
		}
		switch {
		case what == "gone" && url == "":
			return
		case what == "running" && url != "":
			return
		case what == "ready" && url != "" && settled(ts):
			return
		}
		select {
		case <-tick.C:
		case <-within:
			ts.Fatalf("the gateway was not %s in time", what)
		}
	}
}

// endpoint returns the URL of the only gateway that runs; "" if there is none.
func endpoint(ts *testscript.TestScript) string {
	status, ok := status(ts)
	if !ok {
		return ""
	}
	return status.URL
}

// status asks the only gateway that runs.
func status(ts *testscript.TestScript) (admin.Status, bool) {
	dirs, err := filepath.Glob(filepath.Join(ts.Getenv("ROSTER_STATE_DIR"), "*"))
	ts.Check(err)
	if len(dirs) != 1 {
		return admin.Status{}, false
	}
	transport := admin.Transport(dirs[0])
	defer transport.CloseIdleConnections()
	asker := http.Client{Transport: transport, Timeout: 10 * time.Second}
	resp, err := asker.Get("http://localhost/status")
	if err != nil {
		return admin.Status{}, false
	}
	defer resp.Body.Close()
	var st admin.Status
	err = json.NewDecoder(resp.Body).Decode(&st)
	return st, err == nil
}

// settled reports whether no server of the gateway is starting.
func settled(ts *testscript.TestScript) bool {
	st, ok := status(ts)
	return ok && !slices.ContainsFunc(st.Servers, func(s admin.Server) bool { return s.State == upstream.Starting })
}

func taken(ts *testscript.TestScript, _ bool, _ []string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	ts.Setenv("TAKEN", l.Addr().String())
}

func isJSON(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &v))
}

func probe(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Get(args[0])
	ts.Check(err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("%s is answered %s", args[0], resp.Status)
	}
}
