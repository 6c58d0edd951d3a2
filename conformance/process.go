package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"
)

const (
	startTime = 20 * time.Second // until a server is ready
	stopTime  = 5 * time.Second  // until one that was told to end is killed
)

// process is a server that runs until stop.
type process struct {
	name   string
	cmd    *exec.Cmd
	output tail
	done   chan struct{} // closed when it has ended
}

// start starts a command in a process group of its own, and waits until a line of
// its output matches ready, the first group of which it returns. If ready is nil,
// it does not wait.
func start(ctx context.Context, name string, ready *regexp.Regexp, program string, args ...string) (*process, string, error) {
	p := &process{name: name, cmd: exec.Command(program, args...), done: make(chan struct{})}
	ownGroup(p.cmd)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	p.cmd.Stdout, p.cmd.Stderr = in, in
	err = p.cmd.Start()
	_ = in.Close()
	if err != nil {
		_ = out.Close()
		return nil, "", err
	}
	found := make(chan string, 1)
	go p.read(out, ready, found) // ends when nobody has the pipe's other end any more
	go func() {                  // ends with the process, which stop ends
		_ = p.cmd.Wait()
		close(p.done)
	}()
	if ready == nil {
		return p, "", nil
	}
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case match := <-found:
		return p, match, nil
	case <-p.done:
		err = errors.New("it ended")
	case <-timer.C:
		err = fmt.Errorf("it was not ready after %v", startTime)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	p.stop()
	return nil, "", fmt.Errorf("%s: %w; its output ends:\n%s", name, err, p.output.String())
}

func (p *process) read(out io.ReadCloser, ready *regexp.Regexp, found chan<- string) {
	defer out.Close()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.output.add(append(lines.Bytes(), '\n'))
		if ready == nil {
			continue
		}
		if m := ready.FindStringSubmatch(lines.Text()); m != nil {
			select {
			case found <- m[1]:
			default:
			}
		}
	}
}

// stop tells the process to end, and kills what is left of its group after a while.
func (p *process) stop() {
	_ = terminate(p.cmd)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	_ = killGroup(p.cmd)
	<-p.done
}

// answers waits until an HTTP server answers anything at all.
func (p *process) answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodOptions, url, nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			return resp.Body.Close()
		}
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("%s ended; its output ends:\n%s", p.name, p.output.String())
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", p.name, context.Cause(ctx))
		}
	}
}

// freeAddress returns an address that was free a moment ago, for a server that cannot
// say which one it was given.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// tail keeps the last bytes of an output.
type tail struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

const tailSize = 8 << 10

func (t *tail) add(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - tailSize; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
