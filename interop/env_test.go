package interop

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// bounded returns a context that ends after limit, or before the test binary would be stopped: that leaves processes behind,
// since no cleanup runs.
func bounded(t *testing.T, limit time.Duration) (context.Context, context.CancelFunc) {
	end := time.Now().Add(limit)
	if alarm, ok := t.Deadline(); ok && alarm.Add(-time.Minute).Before(end) {
		end = alarm.Add(-time.Minute)
	}
	return context.WithDeadline(t.Context(), end)
}

// environment is this process's environment with more in it.
func environment(more map[string]string) map[string]string {
	env := make(map[string]string)
	for _, kv := range os.Environ() {
		if k, v, ok := strings.Cut(kv, "="); ok {
			env[k] = v
		}
	}
	maps.Copy(env, more)
	return env
}

func environ(more map[string]string) []string {
	var list []string
	for k, v := range environment(more) {
		list = append(list, k+"="+v)
	}
	return list
}

// checkLeftovers fails the test if a process that belongs to it outlives everything that was stopped, and kills it.
// It can look on Linux only.
func (w *world) checkLeftovers(t *testing.T) {
	end := time.Now().Add(10 * time.Second) // processes that were told to end need a moment
	awaitExits(w.leftovers(), end)
	awaitExits(w.leftovers(), end) // what those started last
	left := w.leftovers()
	for _, pid := range left {
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		t.Errorf("left running: %d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Signal(syscall.SIGKILL)
		}
	}
}

func (w *world) leftovers() []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var pids []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), []byte("\x00"+markName+"="+w.mark+"\x00")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}
