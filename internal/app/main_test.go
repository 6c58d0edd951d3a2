package app_test

import (
	"os"
	"testing"

	"github.com/mcp-roster/roster/internal/mcptest"
)

func TestMain(m *testing.M) { os.Exit(mcptest.Main(m)) }

// rounds returns how often a test repeats something: few times, or many if
// ROSTER_STRESS is set.
func rounds(few, many int) int {
	if os.Getenv("ROSTER_STRESS") != "" {
		return many
	}
	return few
}
