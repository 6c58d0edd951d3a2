package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// column is one run of the suite in a table.
type column struct {
	title  string
	result result
}

// allowed are checks that pass at a server and need not pass through roster.
var allowed = map[string]string{
	"sep-2575-server-sends-tools-list-changed-on-subscription": "the server announces a list that has not changed, and roster tells of changes only",
}

// lost returns the checks that pass in direct and less often in through. Those that are
// allowed to are left out.
func lost(direct, through result) []string {
	var names []string
	for _, scenario := range slices.Sorted(maps.Keys(direct)) {
		passed := make(map[check]int)
		for _, c := range direct[scenario] {
			if c.Status == success {
				passed[check{ID: c.ID, Name: c.Name}]++
			}
		}
		for _, c := range through[scenario] {
			if c.Status == success {
				passed[check{ID: c.ID, Name: c.Name}]--
			}
		}
		keys := slices.SortedFunc(maps.Keys(passed), func(a, b check) int {
			return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Name, b.Name))
		})
		for _, c := range keys {
			if passed[c] > 0 && allowed[c.ID] == "" {
				names = append(names, fmt.Sprintf("%s: %s (%s): passes directly, and not through roster%s", scenario, c.ID, c.Name, why(through[scenario], c)))
			}
		}
	}
	return names
}

// why returns what the suite says of a check that does not pass.
func why(checks []check, like check) string {
	for _, c := range checks {
		if c.ID == like.ID && c.Name == like.Name && c.Status != success {
			return fmt.Sprintf(": %s %s", c.Status, c.Message)
		}
	}
	return ": the check was not made"
}

// failing returns the checks that fail or warn, but for those of scenarios that are
// expected to; of these it returns those that do not.
func failing(r result, expected []string) []string {
	var names []string
	for _, scenario := range slices.Sorted(maps.Keys(r)) {
		bad := r.count(scenario, failure) + r.count(scenario, warning)
		if slices.Contains(expected, scenario) {
			if bad == 0 {
				names = append(names, scenario+": passes, and is expected to fail: take it off expected-failures.yml")
			}
			continue
		}
		for _, c := range r[scenario] {
			if c.Status == failure || c.Status == warning {
				names = append(names, fmt.Sprintf("%s: %s (%s): %s %s", scenario, c.ID, c.Name, c.Status, c.Message))
			}
		}
	}
	return names
}

// table writes the columns side by side: for each scenario how many checks passed of
// how many that were decided. required are the scenarios that a version requires;
// nil: all.
func table(w io.Writer, columns []column, required []string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	header := []string{"scenario"}
	names := make(map[string]bool)
	for _, c := range columns {
		header = append(header, c.title)
		for scenario := range c.result {
			names[scenario] = true
		}
	}
	fmt.Fprintln(tw, strings.Join(header, "\t"))
	others := false
	for _, scenario := range slices.Sorted(maps.Keys(names)) {
		row := []string{scenario}
		if required != nil && !slices.Contains(required, scenario) {
			row[0] += " *"
			others = true
		}
		for _, c := range columns {
			row = append(row, cell(c.result, scenario))
		}
		fmt.Fprintln(tw, strings.Join(row, "\t"))
	}
	if others {
		fmt.Fprintln(tw, total("required", columns, func(s string) bool { return slices.Contains(required, s) }))
		fmt.Fprintln(tw, total("others *", columns, func(s string) bool { return !slices.Contains(required, s) }))
	}
	fmt.Fprintln(tw, total("all", columns, func(string) bool { return true }))
	return tw.Flush()
}

func cell(r result, scenarios ...string) string {
	passed, failed, warned, ran := 0, 0, 0, false
	for _, scenario := range scenarios {
		_, ok := r[scenario]
		ran = ran || ok
		passed += r.count(scenario, success)
		failed += r.count(scenario, failure)
		warned += r.count(scenario, warning)
	}
	text := fmt.Sprintf("%d/%d", passed, passed+failed+warned)
	switch {
	case !ran:
		return "-"
	case warned > 0:
		text += fmt.Sprintf(" (%d warned)", warned)
	}
	return text
}

func total(title string, columns []column, counts func(scenario string) bool) string {
	row := []string{title}
	for _, c := range columns {
		var scenarios []string
		for scenario := range c.result {
			if counts(scenario) {
				scenarios = append(scenarios, scenario)
			}
		}
		row = append(row, cell(c.result, scenarios...))
	}
	return strings.Join(row, "\t")
}
