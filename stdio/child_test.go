//go:build unix

package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-roster/roster/stdio"
)

// childVariable selects what the test binary does when a test starts it as a child.
const childVariable = "STDIO_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childVariable); mode != "" {
		child, ok := children()[mode]
		if !ok {
			fmt.Fprintln(os.Stderr, "no such child:", mode)
			os.Exit(9)
		}
		child(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// children are the programs that tests start.
func children() map[string]func(args []string) {
	return map[string]func([]string){
		"echo":       childEcho,
		"report":     childReport,
		"exit":       childExit,
		"rude":       childRude,
		"polite":     childPolite,
		"wrapper":    childWrapper,
		"stderr":     childStderr,
		"last words": childLastWords,
		"parent":     childParent,
		"server":     childServer,
		"deaf":       childDeaf,
		"mute":       childMute,
	}
}

// childEcho writes each line of its input back until that ends.
func childEcho([]string) {
	_, _ = io.Copy(os.Stdout, os.Stdin)
}

type report struct {
	Args []string
	Dir  string
	Env  []string
}

// childReport says how it was started.
func childReport(args []string) {
	dir, _ := os.Getwd()
	_ = json.NewEncoder(os.Stdout).Encode(report{args, dir, os.Environ()})
}

// childExit prints to standard error and exits: with args[0], saying args[1].
func childExit(args []string) {
	fmt.Fprint(os.Stderr, args[1])
	code, _ := strconv.Atoi(args[0])
	os.Exit(code)
}

// childRude ignores the end of its input and SIGTERM. It says its pid.
func childRude([]string) {
	signal.Ignore(syscall.SIGTERM)
	fmt.Printf("{\"pid\":%d}\n", os.Getpid())
	forever()
}

// childPolite ignores the end of its input and says goodbye on SIGTERM.
func childPolite([]string) {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	fmt.Printf("{\"pid\":%d}\n", os.Getpid())
	<-term
	fmt.Fprintln(os.Stderr, "goodbye")
}

// childWrapper starts another child of the kind args[0], which has its pipes, and
// exits when its input ends or has something.
func childWrapper(args []string) {
	_ = os.Setenv(childVariable, args[0])
	attr := &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	}
	if _, err := os.StartProcess(os.Args[0], os.Args[:1], attr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// childStderr writes args[1] MiB to standard error before it echoes a line: made of
// args[0].
func childStderr(args []string) {
	size, _ := strconv.Atoi(args[1])
	flood := bytes.Repeat([]byte(args[0]), (1<<20)/len(args[0]))
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		for range size {
			_, _ = os.Stderr.Write(flood)
		}
		fmt.Fprintf(os.Stderr, "before %s\n", in.Text())
		fmt.Println(in.Text())
	}
}

// childLastWords writes a whole line and half of one, and dies.
func childLastWords([]string) {
	fmt.Print("{\"whole\":true}\n{\"half\":")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	forever()
}

// childParent starts a child that ignores the end of its input, says its pid, and
// waits to be killed.
func childParent([]string) {
	c := testCommand("polite")
	p, err := c.Start(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	_, _ = io.Copy(os.Stdout, p.Stdout())
	forever()
}

// forever blocks for longer than any test, in a way that the runtime does not take
// for a deadlock.
func forever() { <-time.After(time.Hour) }

// testCommand returns a command that starts the test binary as one of children.
func testCommand(child string, args ...string) *stdio.Command {
	return &stdio.Command{
		Name:     os.Args[0],
		Args:     args,
		Env:      []string{childVariable + "=" + child, "GORACE=atexit_sleep_ms=0"},
		ExitWait: 200 * time.Millisecond,
		TermWait: 300 * time.Millisecond,
	}
}

// startChild starts a child that is closed when the test ends.
func startChild(t *testing.T, c *stdio.Command) *stdio.Process {
	t.Helper()
	p, err := c.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(30*time.Second, p.Stop) // ends reads of its output
	t.Cleanup(func() {
		watchdog.Stop()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// discard reads what a child writes until it ends.
func discard(p *stdio.Process) {
	go func() { _, _ = io.Copy(io.Discard, p.Stdout()) }() // ends with the process
}

// wait waits for a channel to be closed.
func wait(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: still not after 20 s", what)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("%s: still not after 20 s", what)
		}
		<-tick.C
	}
}

// readPID reads the frame in which a child says its pid.
func readPID(t *testing.T, src io.Reader) int {
	t.Helper()
	frame, err := stdio.NewReader(src, nil).ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ PID int }
	if err := json.Unmarshal(frame, &said); err != nil || said.PID == 0 {
		t.Fatalf("%q is not a pid: %v", frame, err)
	}
	return said.PID
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if runtime.GOOS != "linux" { // zombies count as alive there
		return syscall.Kill(pid, 0) == nil
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	rest := string(stat[bytes.LastIndexByte(stat, ')')+1:])
	return !strings.HasPrefix(rest, " Z") && !strings.HasPrefix(rest, " X")
}

// zombies counts the children of this process that were not waited for.
func zombies(t *testing.T) int {
	t.Helper()
	n := 0
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skip("needs /proc")
	}
	for _, entry := range entries {
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
			n++
		}
	}
	return n
}

// descriptors counts the open files of this process.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc")
	}
	return len(entries)
}

func contextWithCause(t *testing.T) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(t.Context())
}
