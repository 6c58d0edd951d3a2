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

// allowed are checks, by scenario and id, that may be worse through roster than at
// the server itself, with the reason.
var allowed = map[string]string{
	"server-stateless/sep-2575-server-sends-tools-list-changed-on-subscription": "the SDK's server announces a list that has not changed; roster tells of changes only",
	"server-sse-polling/incoming-sse-event":                                     "the SDK's server closes the stream without an event from which it could be resumed, and roster says that the result is lost",
}

// tally counts the checks of one name in a scenario: in one result those that pass
// and those that do not, minus those in another.
type tally struct{ passed, failed int }

// worse returns the checks that pass in direct and less often in through, or fail
// more often. Those that are allowed to are left out.
func worse(direct, through result) []string {
	var names []string
	for _, scenario := range slices.Sorted(maps.Keys(direct)) {
		tallies := make(map[check]tally)
		count := func(checks []check, by int) {
			for _, c := range checks {
				like := check{ID: c.ID, Name: c.Name}
				t := tallies[like]
				switch c.Status {
				case success:
					t.passed += by
				case failure, warning:
					t.failed += by
				}
				tallies[like] = t
			}
		}
		count(through[scenario], 1)
		count(direct[scenario], -1)
		keys := slices.SortedFunc(maps.Keys(tallies), func(a, b check) int {
			return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Name, b.Name))
		})
		for _, c := range keys {
			t := tallies[c]
			if (t.passed < 0 || t.failed > 0) && allowed[scenario+"/"+c.ID] == "" {
				names = append(names, fmt.Sprintf("%s: %s (%s) is worse than directly%s", scenario, c.ID, c.Name, why(through[scenario], c)))
			}
		}
	}
	return names
}

// why returns what the suite says of a check that does not pass.
func why(checks []check, like check) string {
	for _, c := range checks {
		if c.ID == like.ID && c.Name == like.Name && (c.Status == failure || c.Status == warning) {
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
	header := []string{"scenario"}
	names := make(map[string]bool)
	for _, c := range columns {
		header = append(header, c.title)
		for scenario := range c.result {
			names[scenario] = true
		}
	}
	rows := [][]string{header}
	needed := func(scenario string) bool { return required == nil || slices.Contains(required, scenario) }
	for _, scenario := range slices.Sorted(maps.Keys(names)) {
		row := []string{scenario}
		if !needed(scenario) {
			row[0] += " *"
		}
		for _, c := range columns {
			row = append(row, cell(c.result, scenario))
		}
		rows = append(rows, row)
	}
	if required != nil {
		rows = append(rows, total("required", columns, needed),
			total("others *", columns, func(scenario string) bool { return !needed(scenario) }))
	}
	rows = append(rows, total("all", columns, func(string) bool { return true }))
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		if _, err := fmt.Fprintln(tw, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
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

func total(title string, columns []column, counts func(scenario string) bool) []string {
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
	return row
}
