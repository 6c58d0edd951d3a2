package interop

import (
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("looks for processes in /proc, which only Linux has")
	}
	ready := regexp.MustCompile(`port=(\d+)`)
	for _, tt := range []struct {
		name, script, want string
		limit, grace       time.Duration
	}{
		{name: "ready and ends", script: "echo port=1; sleep 60 & wait", limit: time.Minute, grace: time.Minute},
		{name: "ready and stays", script: "trap '' TERM; echo port=1; while :; do sleep 1; done", limit: time.Minute, grace: 100 * time.Millisecond, want: "was killed"},
		{name: "ends at once", script: "sleep 60 & echo broken; exit 3", limit: time.Minute, want: "exit status 3"},
		{name: "never ready", script: "echo waiting; sleep 60", limit: 500 * time.Millisecond, want: "was not ready"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := emptyWorld(t) // fails the test if the sleep is left
			cmd := exec.Command("sh", "-c", tt.script)
			cmd.Env = append(os.Environ(), markName+"="+w.mark)
			p, got, err := startProcess(t.Context(), cmd, "it", ready, tt.limit)
			if err == nil {
				if got != "1" {
					t.Errorf("port %q, want 1", got)
				}
				if len(w.leftovers()) == 0 {
					t.Error("the running process is not found")
				}
				err = p.stop(tt.grace)
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
