package mcptest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/stdio"
)

// plugVariable has the address of the Socket that a child process belongs to.
const plugVariable = "ROSTER_TEST_PLUG"

// Main runs the tests, or is the child process of a Socket if this process was
// started as one. TestMain passes its result to os.Exit.
func Main(m *testing.M) int {
	if addr := os.Getenv(plugVariable); addr != "" {
		return plug(addr)
	}
	return m.Run()
}

// IsPlug reports whether this process is the child of a Socket.
func IsPlug() bool { return os.Getenv(plugVariable) != "" }

// plug is the child: it passes on what it reads to its Socket, and what comes
// from there to its output, until that ends.
func plug(addr string) int {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "plug:", err)
		return 1
	}
	if _, err := fmt.Fprintln(conn, os.Getpid()); err != nil {
		return 1
	}
	go func() { // ends with the process
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// Socket is a server on pipes: real child processes, which are this test binary
// once more, whose pipes lead back into the test, where their words are made. The
// package's TestMain must call Main.
type Socket struct {
	serve    func(ctx context.Context, conn net.Conn, n int)
	listener net.Listener
	cancel   context.CancelFunc
	tasks    sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	plugged map[*plugged]struct{}
	starts  int
}

// plugged is a child process that runs.
type plugged struct {
	pid  int
	conn net.Conn
	gone chan struct{}
}

// NewSocket returns a Socket of which each process is served by serve until that
// returns. n counts the processes from 1. ctx ends when the process's input has
// ended, be it that the process is gone, and with the test.
func NewSocket(t testing.TB, serve func(ctx context.Context, conn net.Conn, n int)) *Socket {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Socket{serve: serve, listener: l, plugged: make(map[*plugged]struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.tasks.Go(func() { s.accept(ctx) }) // ends with the listener
	t.Cleanup(s.close)
	return s
}

func (s *Socket) accept(ctx context.Context) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.tasks.Go(func() { s.run(ctx, conn) }) // ends with the connection
	}
}

func (s *Socket) run(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	line, err := in.ReadString('\n')
	pid, convErr := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || convErr != nil {
		return
	}
	p := &plugged{pid: pid, conn: conn, gone: make(chan struct{})}
	defer close(p.gone)
	s.mu.Lock()
	s.plugged[p] = struct{}{}
	s.starts++
	n := s.starts
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.plugged, p)
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	s.serve(ctx, buffered{conn, in, cancel}, n)
}

// buffered is a connection of which something was read ahead. It says when the
// other end is gone.
type buffered struct {
	net.Conn
	in   *bufio.Reader
	gone func()
}

func (b buffered) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if err != nil {
		b.gone()
	}
	return n, err
}

// Command returns the program to start and the environment that it needs.
func (s *Socket) Command() (name string, env map[string]string) {
	return os.Args[0], map[string]string{
		plugVariable: s.listener.Addr().String(),
		"GORACE":     "atexit_sleep_ms=0", // else each lingers for a second
	}
}

// Starts returns how many processes there were.
func (s *Socket) Starts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starts
}

// Pids returns the processes that run.
func (s *Socket) Pids() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []int
	for p := range s.plugged {
		out = append(out, p.pid)
	}
	return out
}

// Kill kills the processes that run, without a word to them, and waits until
// they are gone.
func (s *Socket) Kill() {
	s.mu.Lock()
	var all []*plugged
	for p := range s.plugged {
		all = append(all, p)
		if process, err := os.FindProcess(p.pid); err == nil {
			_ = process.Kill() // it may be gone
		}
	}
	s.mu.Unlock()
	for _, p := range all {
		<-p.gone
	}
}

func (s *Socket) close() {
	_ = s.listener.Close()
	s.cancel()
	s.tasks.Wait()
}

// OnPipes returns a Socket whose processes are all served by a backend.
func (b *Backend) OnPipes(t testing.TB) *Socket {
	t.Helper()
	return NewSocket(t, func(ctx context.Context, conn net.Conn, _ int) {
		_ = stdio.Serve(ctx, conn, conn, b, nil) // it ends as the test wants
	})
}

// Hangup is what the function of a NewRawSocket panics with to end the process,
// after these last bytes.
type Hangup string

// NewRawSocket returns a Socket that hands each message to on, in order, with a
// function that writes a frame.
func NewRawSocket(t testing.TB, on func(m *jsonrpc.Message, write func(frame string))) *Socket {
	t.Helper()
	return NewSocket(t, func(_ context.Context, conn net.Conn, _ int) {
		write := func(frame string) { _, _ = io.WriteString(conn, frame+"\n") } // it may be gone
		lines := bufio.NewReader(conn)
		defer func() {
			switch last := recover().(type) {
			case nil:
			case Hangup:
				_, _ = io.WriteString(conn, string(last))
			default:
				panic(last)
			}
		}()
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			if m, err := jsonrpc.Parse(line); err == nil {
				on(&m, write)
			}
		}
	})
}
