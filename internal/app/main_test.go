package app_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/mcptest"
)

func TestMain(m *testing.M) {
	code := mcptest.Main(m)
	if code == 0 && !mcptest.IsPlug() {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// rounds returns how often a test repeats something: few times, or many if
// ROSTER_STRESS is set.
func rounds(few, many int) int {
	if os.Getenv("ROSTER_STRESS") != "" {
		return many
	}
	return few
}
