package gateway_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/mcptest"
	"go.uber.org/goleak"
)

var update = flag.Bool("update", false, "write testdata and docs/compatibility.md anew")

// patience bounds every wait of the tests that use real time.
const patience = 30 * time.Second

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

// until waits for something to become true.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// receive takes a value off a channel.
func receive[T any](t *testing.T, what string, ch <-chan T) T {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case v := <-ch:
		return v
	case <-timeout.C:
		t.Fatalf("waited in vain: %s", what)
		panic("unreachable")
	}
}
