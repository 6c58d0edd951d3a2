package interop

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
)

// A table collects what to print when all is over.
type table struct {
	columns []string
	rows    [][]string
}

func (tb *table) add(cells ...string) { tb.rows = append(tb.rows, cells) }

func (tb *table) log(t *testing.T) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{tb.columns}, tb.rows...) {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
	t.Log("\n" + b.String())
}

// runCell runs a subtest and returns how its result looks in the table.
func runCell(t *testing.T, name string, f func(*testing.T)) string {
	ran := false
	ok := t.Run(name, func(t *testing.T) {
		ran = true
		f(t)
	})
	switch {
	case !ran:
		return "not run"
	case !ok:
		return "FAIL"
	}
	return "ok"
}
