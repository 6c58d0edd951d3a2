package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is one line of test2json; see "go doc test2json".
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// counter reads events, writes what a person wants to see of them, and counts.
type counter struct {
	w                       io.Writer
	passed, failed, skipped int

	running      map[event]*strings.Builder // output of tests that have not ended, by {Package, Test}
	failedBefore map[string]int             // failed tests of a package that has not ended
}

func newCounter(w io.Writer) *counter {
	return &counter{w: w, running: map[event]*strings.Builder{}, failedBefore: map[string]int{}}
}

// read reads events to the end of r. Lines that are not events are shown as they are.
func (c *counter) read(r io.Reader) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 {
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				c.add(e)
			} else {
				fmt.Fprintf(c.w, "%s", line)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *counter) add(e event) {
	switch {
	case e.Action == "build-output":
		fmt.Fprint(c.w, e.Output)
	case e.Test != "":
		c.addTest(e)
	case e.Action == "output":
		if e.Output != "PASS\n" {
			fmt.Fprint(c.w, e.Output)
		}
	case e.Action == "fail":
		c.failPackage(e.Package)
	}
}

// addTest takes an event of one test. What a test printed is shown if it fails.
func (c *counter) addTest(e event) {
	key := event{Package: e.Package, Test: e.Test}
	if c.running[key] == nil {
		c.running[key] = &strings.Builder{}
	}
	switch e.Action {
	case "output":
		c.running[key].WriteString(e.Output)
		return
	case "pass":
		c.passed++
	case "skip":
		c.skipped++
	case "fail":
		c.failed++
		c.failedBefore[e.Package]++
		fmt.Fprint(c.w, c.running[key])
	default: // run, pause, cont, bench
		return
	}
	delete(c.running, key)
}

// failPackage shows what the tests that never ended had printed: one of them
// says why, a panic or a time-out.
func (c *counter) failPackage(pkg string) {
	var unfinished []string
	for key := range c.running {
		if key.Package == pkg {
			unfinished = append(unfinished, key.Test)
		}
	}
	slices.Sort(unfinished)
	for _, test := range unfinished {
		key := event{Package: pkg, Test: test}
		fmt.Fprint(c.w, c.running[key])
		delete(c.running, key)
	}
	if c.failedBefore[pkg] == 0 {
		c.failed++
	}
	delete(c.failedBefore, pkg)
}
