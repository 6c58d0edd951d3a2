package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// ExitError says how a process ended.
type ExitError struct {
	Name   string           // the command's
	State  *os.ProcessState // nil if the system did not tell
	Stderr []byte           // the end of its standard error, at most 64 KiB
}

// Error returns the exit status and the last lines of standard error. They are the
// child's words: a secret it printed is in them, but for what [Command].Hide hides.
func (e *ExitError) Error() string {
	state := "unknown status"
	if e.State != nil {
		state = e.State.String()
	}
	text := fmt.Sprintf("%s exited: %s", e.Name, state)
	if lines := lastLines(e.Stderr); lines != "" {
		text += ": " + lines
	}
	return text
}

// Process is a child process with its three pipes. Standard error is always read;
// the end of it is kept. Its methods may be called from any goroutine.
type Process struct {
	command *Command
	process *os.Process
	group   *group
	stdin   *os.File
	stdout  *output
	stderr  *output
	errs    *stderrReader

	exited chan struct{} // closed when the process was waited for; state is set
	state  *os.ProcessState

	stopOnce sync.Once
	stop     chan struct{} // closed to ask for the end of the process
	done     chan struct{} // closed when the process has exited and its output ended; err is set
	err      error
	gone     chan struct{} // closed when nothing is left of the process; left is set
	left     error
}

// start starts a process and the goroutines that look after it:
//
//	run        holds the thread that started the process, until it was waited for
//	stderr.run empties standard error, until it ends or is closed by supervise
//	supervise  stops the process, and clears up behind it
func start(c *Command, path string, env []string) (*Process, error) {
	p := &Process{
		command: c,
		errs:    &stderrReader{ring: newRing(stderrRingSize), hook: c.Stderr, hide: c.Hide},
		exited:  make(chan struct{}),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
		gone:    make(chan struct{}),
	}
	child, err := p.openPipes()
	if err != nil {
		return nil, err
	}
	argv := append([]string{c.Name}, c.Args...)
	attr := &os.ProcAttr{Dir: c.Dir, Env: env, Files: child, Sys: processAttributes()}
	started := make(chan error, 1)
	go p.run(path, argv, attr, started) // ends when the process does
	err = <-started
	closeAll(child)
	if err != nil {
		closeAll([]*os.File{p.stdin, p.stdout.file, p.stderr.file})
		return nil, err
	}
	go p.errs.run(p.stderr) // ends with the pipe, which supervise closes
	go p.supervise()        // ends some time after the process, or after Stop
	return p, nil
}

// openPipes sets this process's ends of the pipes and returns the child's.
func (p *Process) openPipes() (child []*os.File, err error) {
	var files []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, r, w)
	}
	p.stdin, p.stdout, p.stderr = files[1], newOutput(files[2]), newOutput(files[4])
	return []*os.File{files[0], files[3], files[5]}, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // pipes: nothing is lost
	}
}

// run starts the process and waits for it on one thread: the system signals the
// death of a parent when the thread that started the child ends, and a thread of Go
// that is not held may end at any time.
func (p *Process) run(path string, argv []string, attr *os.ProcAttr, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	process, err := os.StartProcess(path, argv, attr)
	if err != nil {
		started <- err
		return
	}
	p.process, p.group = process, newGroup(process)
	started <- nil
	p.state, err = process.Wait()
	if err != nil {
		_ = process.Release() // somebody else waited for it
	}
	close(p.exited)
}

// supervise waits for the process to exit or to be stopped, and leaves nothing of it
// behind.
func (p *Process) supervise() {
	defer close(p.gone)
	defer p.group.close()
	var terminated time.Time
	select {
	case <-p.exited:
	case <-p.stop:
		terminated = p.escalate()
	}
	_ = p.stdin.Close() // it may be closed already
	select {
	case <-p.exited:
	default:
		p.left = fmt.Errorf("process %d of %s is still there after it was killed", p.process.Pid, p.command.Name)
	}
	p.finish(terminated)
}

// escalate ends the process: politely first. It returns when its group was told to
// terminate, zero if that was not necessary.
func (p *Process) escalate() (terminated time.Time) {
	_ = p.stdin.Close() // it may be closed already
	if waitFor(p.exited, p.command.exitWait()) {
		return time.Time{}
	}
	terminated = time.Now()
	if runtime.GOOS != "windows" {
		p.group.terminate()
		if waitFor(p.exited, p.command.termWait()) {
			return terminated
		}
	}
	p.group.kill()
	_ = p.process.Kill() // not in the group, if it moved to another
	waitFor(p.exited, killWait)
	return terminated
}

// finish takes the rest of the output, says how the process ended, and ends what is
// left of its group: politely first here, too.
func (p *Process) finish(terminated time.Time) {
	rest := p.left == nil && !p.group.empty()
	if rest && terminated.IsZero() {
		p.group.terminate()
		terminated = time.Now()
	}
	drained := time.Now().Add(drainWait)
	for _, out := range []*output{p.stdout, p.stderr} {
		waitFor(out.ended, time.Until(drained))
		_ = out.file.Close() // a pipe: nothing is lost
	}
	exit := &ExitError{Name: p.command.Name, Stderr: p.errs.tail()}
	if p.left == nil {
		exit.State = p.state
	}
	p.err = exit
	close(p.done)

	if rest && !p.groupEndsBy(terminated.Add(p.command.termWait())) {
		p.group.kill()
		p.groupEndsBy(time.Now().Add(drainWait))
	}
}

// groupEndsBy reports whether nothing of the group is left at some time before the
// deadline.
func (p *Process) groupEndsBy(deadline time.Time) bool {
	for pause := 5 * time.Millisecond; !p.group.empty(); pause = min(2*pause, 200*time.Millisecond) {
		left := time.Until(deadline)
		if left <= 0 {
			return false
		}
		<-time.After(min(pause, left))
	}
	return true
}

// waitFor reports whether done was closed within d.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// PID returns the process's id.
func (p *Process) PID() int { return p.process.Pid }

// Stdin is the process's standard input. Closing it asks the process to exit.
func (p *Process) Stdin() io.WriteCloser { return p.stdin }

// Stdout is the process's standard output. It must be read. Half a second after the
// process has exited it ends, even if a descendant holds it open.
func (p *Process) Stdout() io.Reader { return p.stdout }

// Stderr returns a copy of the last 64 KiB of the process's standard error.
func (p *Process) Stderr() []byte { return p.errs.tail() }

// Done is closed when the process has exited and its output has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil until Done is closed, then an [*ExitError], whatever the status.
func (p *Process) Err() error {
	select {
	case <-p.done:
		return p.err
	default:
		return nil
	}
}

// Stop begins to end the process, unless that has begun: its input is closed; if it
// has not exited after ExitWait its group gets SIGTERM, and after TermWait SIGKILL.
// Stop does not wait.
func (p *Process) Stop() { p.stopOnce.Do(func() { close(p.stop) }) }

// Close does what Stop does and waits until the process and its group are gone. That
// takes at most ExitWait, TermWait, and three seconds. The error says that the
// process survived even SIGKILL; how it ended is in Err.
func (p *Process) Close() error {
	p.Stop()
	<-p.gone
	return p.left
}

// output is the read end of a pipe that tells when it ended.
type output struct {
	file  *os.File
	once  sync.Once
	ended chan struct{} // closed at the first error of a Read
}

func newOutput(f *os.File) *output { return &output{file: f, ended: make(chan struct{})} }

func (o *output) Read(p []byte) (int, error) {
	n, err := o.file.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		o.once.Do(func() { close(o.ended) })
	}
	return n, err
}

// interruptible reports whether interrupt works.
func (o *output) interruptible() bool { return o.file.SetReadDeadline(time.Time{}) == nil }

// interrupt makes reads fail until resume.
func (o *output) interrupt() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) } // it is interruptible, or closed

func (o *output) resume() { _ = o.file.SetReadDeadline(time.Time{}) } // likewise
