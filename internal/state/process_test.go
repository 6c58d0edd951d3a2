package state_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/state"
)

// childDir is the environment variable that makes this program a child that has
// the state directory of its value, and does what it is told on its standard
// input.
const childDir = "STATE_TEST_DIR"

// child is another process. It says how it found the directory, does what it is
// told, line by line, and answers each line.
func child(dir string) int {
	s, err := state.Open(dir, nil)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.Writable())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var epoch uint64
		switch _, err := fmt.Sscanf(lines.Text(), "save %d", &epoch); {
		case err == nil:
			s.SaveIndex(state.Index{Epoch: epoch})
			fmt.Println("saved")
		case lines.Text() == "flush":
			fmt.Println(s.Flush())
		case lines.Text() == "read":
			fmt.Println(s.Index().Epoch)
		}
	}
	if err := s.Close(); err != nil {
		return 1
	}
	return 0
}

// process is a child as its parent sees it.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// start starts a child on a directory, and returns what it says about it.
func start(t *testing.T, dir string) (p *process, writable string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	p = &process{t: t, cmd: exec.CommandContext(ctx, os.Args[0])}
	p.cmd.Env = append(os.Environ(), childDir+"="+dir, "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p, p.answer()
}

func (p *process) answer() string {
	p.t.Helper()
	if !p.out.Scan() {
		p.t.Fatalf("the child says nothing: %v", p.out.Err())
	}
	return p.out.Text()
}

// tell has the child do something and returns its answer.
func (p *process) tell(line string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatal(err)
	}
	return p.answer()
}

// end closes the child's standard input and waits for it.
func (p *process) end() {
	p.t.Helper()
	if err := p.in.Close(); err != nil {
		p.t.Error(err)
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Error(err)
	}
}

// kill ends the child at once.
func (p *process) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	_ = p.cmd.Wait() // says that it was killed
}

// A second process reads and does not write; when the first has ended, however
// it did, it takes over, and what it had to save is there.
func TestSecondProcess(t *testing.T) {
	for name, end := range map[string]func(*process){"ends": (*process).end, "is killed": (*process).kill} {
		t.Run("the first "+name, func(t *testing.T) {
			dir := t.TempDir()
			first, writable := start(t, dir)
			if writable != "true" {
				t.Fatalf("the first process is told %q", writable)
			}
			first.tell("save 1")
			if got := first.tell("flush"); got != "<nil>" {
				t.Fatal(got)
			}
			second := open(t, dir, nil)
			if second.Writable() || second.Index().Epoch != 1 {
				t.Fatalf("writable %v, epoch %d", second.Writable(), second.Index().Epoch)
			}
			second.SaveIndex(state.Index{Epoch: 2})
			if err := second.Flush(); err == nil || !strings.Contains(err.Error(), "another process") {
				t.Errorf("Flush: %v", err)
			}
			if got := first.tell("read"); got != "1" {
				t.Errorf("the second process wrote: epoch %s", got)
			}
			end(first)
			flush(t, second)
			if !second.Writable() || second.Index().Epoch != 2 {
				t.Errorf("writable %v, epoch %d", second.Writable(), second.Index().Epoch)
			}
			third, writable := start(t, dir)
			if got := third.tell("read"); writable != "false" || got != "2" {
				t.Errorf("the third process is told %q, epoch %s", writable, got)
			}
			third.end()
		})
	}
}

// A process that starts before the one before it has ended keeps what it learns,
// without being asked to, even if it ends at once: clients are known that start
// their command twice.
func TestProcessesInARow(t *testing.T) {
	dir := t.TempDir()
	for epoch := range uint64(5) {
		first, writable1 := start(t, dir)
		second, writable2 := start(t, dir)
		if writable1 != "true" || writable2 != "false" {
			t.Fatalf("the first process is told %q, the second %q", writable1, writable2)
		}
		second.tell(fmt.Sprint("save ", epoch+1))
		first.end()
		second.end()
		s := open(t, dir, nil)
		if got := s.Index().Epoch; !s.Writable() || got != epoch+1 {
			t.Errorf("writable %v, epoch %d, want %d", s.Writable(), got, epoch+1)
		}
		closeStore(t, s)
	}
}

// A process that is killed at any moment while it writes leaves whole files.
func TestKilledAtAnyMoment(t *testing.T) {
	dir := t.TempDir()
	for round := range 10 {
		p, _ := start(t, dir)
		for i := range round * 3 {
			p.tell(fmt.Sprint("save ", 1000*round+i))
			if _, err := fmt.Fprintln(p.in, "flush"); err != nil {
				t.Fatal(err)
			}
			if i < round*3-1 {
				p.answer()
			}
		}
		p.kill() // in the middle of the last flush, if it is there yet
		s := open(t, dir, nil)
		if round > 0 {
			if got := int(s.Index().Epoch); got < 1000*round+round*3-2 {
				t.Fatalf("round %d: epoch %d", round, got)
			}
		}
		closeStore(t, s)
		for _, f := range files(t, dir) {
			if strings.Contains(f, ".damaged") || strings.Contains(f, ".new-") {
				t.Fatalf("round %d: %s", round, f)
			}
		}
	}
}
