package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// suiteTime is how long one run of the suite may take.
const suiteTime = 2 * time.Minute

// Statuses of checks that count. There are also INFO and SKIPPED.
const (
	success = "SUCCESS"
	failure = "FAILURE"
	warning = "WARNING"
)

// check is one check of a scenario, as the suite writes it.
type check struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Message string `json:"errorMessage"`
}

// result is what a run of the suite found, by scenario.
type result map[string][]check

// count returns how many checks of a scenario have a status.
func (r result) count(scenario, status string) int {
	n := 0
	for _, c := range r[scenario] {
		if c.Status == status {
			n++
		}
	}
	return n
}

// suite is the conformance suite.
type suite struct {
	node, script string // the program and what it runs
	results      string // directory for what it writes
}

// server runs the scenarios for servers of a version against a URL. name names the
// directory of the results.
func (s *suite) server(ctx context.Context, name, version, url string) (result, error) {
	return s.run(ctx, name, "server-", append([]string{"server", "--url", url}, scenarios(version)...))
}

// client runs the scenarios for clients of a version against a command: a program,
// and arguments with spaces between.
func (s *suite) client(ctx context.Context, name, version, command string) (result, error) {
	return s.run(ctx, name, "", append([]string{"client", "--command", command, "--timeout", "30000"}, scenarios(version)...))
}

// scenarios returns the flags that select the scenarios of a version: those that
// the version requires, or for one without such a list all that apply.
func scenarios(version string) []string {
	if !listed(version) {
		return []string{"--suite", "all", "--spec-version", version}
	}
	return []string{"--requirements", version}
}

// run runs the suite and reads what it wrote. That checks failed is no error.
func (s *suite) run(ctx context.Context, name, prefix string, args []string) (result, error) {
	dir := filepath.Join(s.results, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, suiteTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, append(append([]string{s.script}, args...), "--output-dir", dir)...)
	ownGroup(cmd)
	cmd.Cancel = func() error { return killGroup(cmd) }
	cmd.WaitDelay = stopTime
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	_ = killGroup(cmd) // what it may have left behind
	if saved := os.WriteFile(filepath.Join(dir, "output.txt"), output.Bytes(), 0o644); saved != nil {
		return nil, saved
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: the suite did not end: %w", name, context.Cause(ctx))
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return nil, err
	}
	found, err := read(dir, prefix)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: the suite wrote no results; it said:\n%s", name, output.Bytes())
	}
	return found, nil
}

// read reads the results in a directory. Those of a scenario are in a directory of
// its name between the prefix and the time.
func read(dir, prefix string) (result, error) {
	found := make(result)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != "checks.json" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		scenario := strings.TrimPrefix(filepath.ToSlash(rel), prefix)
		if n := len(scenario) - len("-2006-01-02T15-04-05-000Z"); n > 0 {
			scenario = scenario[:n]
		}
		var checks []check
		if err := json.Unmarshal(data, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found[scenario] = checks
		return nil
	})
	return found, err
}

// lists reads the lists of names of a YAML file that has nothing but such lists,
// comments and what it is safe to skip: "key:" and below it "  - name".
func lists(path string) (map[string][]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]string)
	key := ""
	for line := range strings.Lines(string(data)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimRight(line, " \n")
		if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			key = name
		}
		if name, ok := strings.CutPrefix(line, "  - "); ok && !strings.Contains(name, ":") {
			found[key] = append(found[key], name)
		}
	}
	return found, nil
}
