//go:build unix

package stdio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-roster/roster/stdio"
)

// C-041, C-042: standard error is emptied whatever is written there: lines, or a
// progress bar that never ends a line. What is kept of it is bounded.
func TestStderrIsDrained(t *testing.T) {
	tests := []struct{ name, unit, mib string }{
		{"lines", "0123456789\n", "8"},
		{"progress", "50%\r", "2"},
		{"one line", "x", "8"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var mu sync.Mutex
			var lines, dropped, longest int
			c := testCommand("stderr", test.unit, test.mib)
			c.Stderr = func(line []byte, n int) {
				mu.Lock()
				defer mu.Unlock()
				lines, dropped, longest = lines+1, dropped+n, max(longest, len(line))
			}
			p := startChild(t, c)
			r, w := stdio.NewReader(p.Stdout(), nil), stdio.NewWriter(p.Stdin())
			for i := range 3 {
				call := fmt.Sprintf(`{"id":%d}`, i)
				if err := w.WriteFrame([]byte(call)); err != nil {
					t.Fatal(err)
				}
				if frame, err := r.ReadFrame(); err != nil || string(frame) != call {
					t.Fatalf("answer %q, %v", frame, err)
				}
			}
			_ = p.Stdin().Close()
			wait(t, p.Done(), "exit")
			if tail := p.Stderr(); len(tail) != 64<<10 || !bytes.HasSuffix(tail, []byte("before {\"id\":2}\n")) {
				t.Errorf("kept %d bytes, ending in %q", len(tail), tail[max(0, len(tail)-30):])
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if longest > 4<<10 {
				t.Errorf("the hook was given %d bytes", longest)
			}
			if test.unit != "x" && (lines > 1500 || lines+dropped < 1_000_000) {
				t.Errorf("the hook was called %d times and told of %d lines dropped", lines, dropped)
			}
		})
	}
}

func TestStderrHook(t *testing.T) {
	lines := make(chan string, 10)
	c := testCommand("exit", "0", "  first\r\n\n\rsecond \nlast")
	c.Stderr = func(line []byte, dropped int) { lines <- fmt.Sprint(string(line), dropped) }
	p := startChild(t, c)
	for _, want := range []string{"first0", "second0", "last0"} {
		select {
		case got := <-lines:
			if got != want {
				t.Errorf("line %q, want %q", got, want)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no line %q", want)
		}
	}
	wait(t, p.Done(), "exit")
}

// C-046: what was written whole before the death is delivered, half a line is not.
func TestLastWords(t *testing.T) {
	p := startChild(t, testCommand("last words"))
	wait(t, waited(p), "exit") // nothing was read yet
	frames, err := readAll(t, stdio.NewReader(p.Stdout(), nil))
	if !slices.Equal(frames, []string{`{"whole":true}`}) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("read %q and %v", frames, err)
	}
	wait(t, p.Done(), "end of output")
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("error %v", err)
	}
}

// waited returns a channel that is closed when the process is dead, its output
// perhaps not read.
func waited(p *stdio.Process) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			if !alive(p.PID()) {
				return
			}
			<-time.After(5 * time.Millisecond)
		}
	}()
	return done
}

// C-047: each kind of child is gone in bounded time, by the mildest means it heeds.
func TestClose(t *testing.T) {
	tests := []struct {
		child    string
		args     []string
		state    string
		stderr   string
		min, max time.Duration
	}{
		{child: "echo", state: "exit status 0", max: 400 * time.Millisecond},
		{child: "polite", state: "exit status 0", stderr: "goodbye\n", min: 500 * time.Millisecond, max: 2 * time.Second},
		{child: "rude", state: "signal: killed", min: time.Second, max: 4 * time.Second},
		{child: "wrapper", args: []string{"polite"}, state: "exit status 0", stderr: "goodbye\n", max: time.Second},
		{child: "wrapper", args: []string{"rude"}, state: "exit status 0", min: 500 * time.Millisecond, max: 4 * time.Second},
	}
	for _, test := range tests {
		t.Run(strings.Join(append([]string{test.child}, test.args...), " "), func(t *testing.T) {
			t.Parallel()
			c := testCommand(test.child, test.args...)
			c.ExitWait, c.TermWait = 500*time.Millisecond, 500*time.Millisecond
			p := startChild(t, c)
			pid := p.PID()
			if test.child != "echo" {
				pid = readPID(t, p.Stdout())
			}
			discard(p)
			begin := time.Now()
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(begin); took < test.min || took > test.max+30*time.Second {
				t.Errorf("took %v", took)
			}
			if alive(pid) || alive(p.PID()) {
				t.Error("still there")
			}
			var exit *stdio.ExitError
			if err := p.Err(); !errors.As(err, &exit) || exit.State.String() != test.state {
				t.Errorf("ended with %v, want %s", err, test.state)
			}
			if got := string(p.Stderr()); got != test.stderr {
				t.Errorf("standard error %q, want %q", got, test.stderr)
			}
			if err := p.Close(); err != nil {
				t.Errorf("closed again: %v", err)
			}
		})
	}
}

// A process that exits leaves nothing behind, even if a descendant that ignores
// SIGTERM holds its pipes open.
func TestExitLeavesNothing(t *testing.T) {
	p := startChild(t, testCommand("wrapper", "rude"))
	r := stdio.NewReader(p.Stdout(), nil)
	frame, err := r.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscanf(string(frame), `{"pid":%d}`, &pid); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stdin().Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadFrame(); err == nil {
		t.Error("the output did not end")
	}
	wait(t, p.Done(), "exit")
	eventually(t, "end of the descendant", func() bool { return !alive(pid) })
}

// C-050, C-181: many starts, crashes and stops leave no zombie, no open file and no
// goroutine.
func TestNothingPilesUp(t *testing.T) {
	cycle := func() {
		crash := startQuick(t, testCommand("exit", "1", "crash"))
		discard(crash)
		wait(t, crash.Done(), "crash")
		if err := crash.Close(); err != nil {
			t.Error(err)
		}
		stop := startQuick(t, testCommand("echo"))
		discard(stop)
		if err := stop.Close(); err != nil {
			t.Error(err)
		}
		if _, err := (&stdio.Command{Name: "/dev/null"}).Start(t.Context()); err == nil {
			t.Error("started /dev/null")
		}
		bad := testCommand("echo")
		bad.Args = []string{"\x00"} // found, and refused by the system
		if _, err := bad.Start(t.Context()); err == nil {
			t.Error("started with a NUL in an argument")
		}
	}
	cycle()
	files, goroutines := descriptors(t), runtime.NumGoroutine()
	for range 25 {
		cycle()
	}
	if n := zombies(t); n > 0 {
		t.Errorf("%d zombies", n)
	}
	eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := descriptors(t); n > files {
		t.Errorf("%d open files, %d before", n, files)
	}
}

// startQuick starts a child that the caller closes.
func startQuick(t *testing.T, c *stdio.Command) *stdio.Process {
	t.Helper()
	p, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// On Linux a child hears of the sudden death of its parent, and not of the end of a
// thread of its parent.
func TestParentDies(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux")
	}
	parent := startChild(t, testCommand("parent"))
	pid := readPID(t, parent.Stdout())
	if !alive(pid) {
		t.Fatal("the grandchild is dead already")
	}
	if err := syscall.Kill(parent.PID(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "end of the grandchild", func() bool { return !alive(pid) })
}

// A child outlives the thread of the goroutine that asked for it.
func TestThreadEnds(t *testing.T) {
	started := make(chan *stdio.Process)
	for range 3 { // one may be the main thread, which does not end
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			p, err := testCommand("polite").Start(t.Context())
			if err != nil {
				t.Error(err)
			}
			started <- p
		}()
	}
	var children []*stdio.Process
	for range 3 {
		if p := <-started; p != nil {
			t.Cleanup(func() { _ = p.Close() })
			children = append(children, p)
		}
	}
	for _, p := range children {
		readPID(t, p.Stdout())
		discard(p)
	}
	<-time.After(200 * time.Millisecond) // nothing is to happen, so there is nothing to wait for
	for _, p := range children {
		if p.Err() != nil || !alive(p.PID()) {
			t.Errorf("the child died with a thread: %v", p.Err())
		}
	}
}

// A start that is not wanted any more does not happen.
func TestStartCancelled(t *testing.T) {
	ctx, cancel := contextWithCause(t)
	cancel(errors.New("changed my mind"))
	if _, err := testCommand("echo").Start(ctx); err == nil || !strings.Contains(err.Error(), "changed my mind") {
		t.Errorf("error %v", err)
	}
}
