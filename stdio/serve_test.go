//go:build unix

package stdio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/stdio"
)

// serveTest answers the requests of the tests below.
func serveTest(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	switch req.Method {
	case "echo":
		return req.Params.Raw, nil
	case "size": // a string of as many bytes
		n, err := strconv.Atoi(string(req.Params.Get("n")))
		return jsontext.Value(`"` + strings.Repeat("x", n) + `"`), err
	case "progress": // 20 notifications and 256 KiB
		for i := range 20 {
			if err := req.Peer.Notify(ctx, "notifications/progress", jsontext.Value(fmt.Sprintf(`{"progress":%d}`, i))); err != nil {
				return nil, err
			}
		}
		return jsontext.Value(`"` + strings.Repeat("x", 256<<10) + `"`), nil
	case "slow":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "die":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forever()
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "no method %s", req.Method)
}

// childServer serves on its standard streams. Its arguments are noise to print first.
func childServer(args []string) {
	for _, line := range args {
		fmt.Println(line)
	}
	if err := stdio.Serve(context.Background(), os.Stdin, os.Stdout, jsonrpc.HandlerFunc(serveTest), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childDeaf does not read its input until it gets SIGTERM.
func childDeaf([]string) { forever() }

// dial connects to a child that is closed when the test ends.
func dial(t *testing.T, c *stdio.Command, opts jsonrpc.ConnOptions) *stdio.Client {
	t.Helper()
	client, err := c.Dial(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	return client
}

func callContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// C-045: a client that sends 500 requests before it reads gets its answers: reading
// and writing do not wait for each other.
func TestServeBothPipesFull(t *testing.T) {
	p := startChild(t, testCommand("server"))
	const requests = 500
	w := bufio.NewWriterSize(p.Stdin(), 1<<20)
	padding := strings.Repeat("p", 1000)
	for i := range requests {
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"method":"progress","params":{"pad":"%s"}}`+"\n", i, padding) // Flush tells
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	answered := make(map[string]bool)
	notes := 0
	r := stdio.NewReader(p.Stdout(), nil)
	for len(answered) < requests {
		frame, err := r.ReadFrame()
		if err != nil {
			t.Fatalf("after %d answers: %v", len(answered), err)
		}
		m, err := jsonrpc.Parse(frame)
		switch {
		case err != nil:
			t.Fatal(err)
		case m.IsNotification():
			notes++
		case m.Error != nil || len(m.Result.Raw) != 256<<10+2 || answered[m.ID.String()]:
			t.Fatalf("answer %.200s", frame)
		default:
			answered[m.ID.String()] = true
		}
	}
	if notes != 20*requests {
		t.Errorf("%d notifications, want %d", notes, 20*requests)
	}
}

// Large requests and large answers in flight at once do not block each other.
func TestLargeBothWays(t *testing.T) {
	client := dial(t, testCommand("server"), jsonrpc.ConnOptions{})
	ctx := callContext(t)
	params := jsontext.Value(`{"x":"` + strings.Repeat("y", 1<<20) + `"}`)
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			result, err := client.Call(ctx, "echo", params)
			if err != nil || string(result.Raw) != string(params) {
				t.Errorf("got %d bytes and error %v", len(result.Raw), err)
			}
		})
	}
	calls.Wait()
}

// C-123: a slow request does not hold up others.
func TestSlowHandler(t *testing.T) {
	client := dial(t, testCommand("server"), jsonrpc.ConnOptions{})
	slow, stop := context.WithCancel(callContext(t))
	sent := make(chan struct{})
	done := make(chan error, 1)
	go func() { // ends with stop
		_, err := client.Do(slow, &jsonrpc.Call{Method: "slow", Sent: func(jsonrpc.ID) { close(sent) }})
		done <- err
	}()
	wait(t, sent, "the slow call")
	for range 10 {
		if _, err := client.Call(callContext(t), "echo", jsontext.Value(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		t.Errorf("the slow call ended: %v", err)
	default:
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// C-044: each answer comes whole, without a further message to push it.
func TestWholeAnswers(t *testing.T) {
	client := dial(t, testCommand("server"), jsonrpc.ConnOptions{})
	for _, kib := range []int{15, 16, 17, 64, 1024} {
		for _, n := range []int{kib<<10 - 1, kib << 10, kib<<10 + 1} {
			result, err := client.Call(callContext(t), "size", jsontext.Value(fmt.Sprintf(`{"n":%d}`, n)))
			if err != nil || len(result.Raw) != n+2 {
				t.Errorf("%d bytes: got %d and error %v", n, len(result.Raw)-2, err)
			}
		}
	}
}

// C-046: calls in flight fail soon after the child died, and say so.
func TestCallsFailWhenChildDies(t *testing.T) {
	client := dial(t, testCommand("server"), jsonrpc.ConnOptions{})
	ctx := callContext(t)
	var calls, sent sync.WaitGroup
	var failed atomic.Int64
	for range 5 {
		sent.Add(1)
		calls.Go(func() {
			_, err := client.Do(ctx, &jsonrpc.Call{Method: "slow", Sent: func(jsonrpc.ID) { sent.Done() }})
			if errors.Is(err, jsonrpc.ErrClosed) {
				failed.Add(1)
			}
		})
	}
	sent.Wait()
	if _, err := client.Call(ctx, "echo", jsontext.Value(`{}`)); err != nil { // they are being handled
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := client.Call(ctx, "die", nil); err == nil {
		t.Error("an answer of the dead")
	}
	calls.Wait()
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if failed.Load() != 5 {
		t.Errorf("%d calls failed as they should, want 5", failed.Load())
	}
	wait(t, client.Done(), "end of the connection")
	var exit *stdio.ExitError
	if err := client.Err(); !errors.As(err, &exit) || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("error %v", err)
	}
}

// C-058: a child that dies at once says why in the connection's error.
func TestDialDeadChild(t *testing.T) {
	client := dial(t, testCommand("exit", "2", "missing API key"), jsonrpc.ConnOptions{})
	_, err := client.Call(callContext(t), "echo", nil)
	if !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("call: %v", err)
	}
	wait(t, client.Done(), "end of the connection")
	if err := client.Err(); err == nil || !strings.HasSuffix(err.Error(), "exit status 2: missing API key") {
		t.Errorf("connection: %v", err)
	}
}

// C-034: noise on the wire is reported and harms nothing.
func TestDialNoise(t *testing.T) {
	noise := make(chan string, 10)
	c := testCommand("server", "+ File server ready", "", "[INFO] x")
	c.Noise = func(line []byte) { noise <- string(line) }
	client := dial(t, c, jsonrpc.ConnOptions{})
	if _, err := client.Call(callContext(t), "echo", jsontext.Value(`{}`)); err != nil {
		t.Fatal(err)
	}
	if a, b := <-noise, <-noise; a != "+ File server ready" || b != "[INFO] x" {
		t.Errorf("noise %q and %q", a, b)
	}
}

// A child that does not read cannot keep a writer: the connection can be closed.
func TestCloseWhileWriting(t *testing.T) {
	client := dial(t, testCommand("deaf"), jsonrpc.ConnOptions{})
	params := jsontext.Value(`"` + strings.Repeat("x", 1<<20) + `"`)
	done := make(chan error, 1)
	go func() { // ends when the connection is closed
		_, err := client.Call(context.WithoutCancel(t.Context()), "echo", params)
		done <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := client.Call(ctx, "echo", params); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call with a deadline: %v", err)
	}
	begin := time.Now()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if err := <-done; !errors.Is(err, jsonrpc.ErrClosed) {
		t.Errorf("a call without: %v", err)
	}
	if err := client.Err(); err != nil {
		t.Errorf("closed connection: %v", err)
	}
}

// A frame over the limit ends the connection, and the child with it.
func TestDialLimit(t *testing.T) {
	c := testCommand("server")
	c.MaxFrame = 100_000
	client := dial(t, c, jsonrpc.ConnOptions{})
	if _, err := client.Call(callContext(t), "size", jsontext.Value(`{"n":99000}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Call(callContext(t), "size", jsontext.Value(`{"n":1000000}`)); err == nil {
		t.Error("no error")
	}
	wait(t, client.Done(), "end of the connection")
	var tooLong *stdio.FrameTooLongError
	if err := client.Err(); !errors.As(err, &tooLong) {
		t.Errorf("error %v", err)
	}
	wait(t, client.Process().Done(), "end of the child")
}

// A server that closes its output is leaving.
func TestDialOutputCloses(t *testing.T) {
	client := dial(t, testCommand("mute"), jsonrpc.ConnOptions{})
	if _, err := client.Call(callContext(t), "echo", nil); err == nil {
		t.Error("no error")
	}
	wait(t, client.Process().Done(), "end of the child")
}

func childMute([]string) {
	_ = os.Stdout.Close()
	forever()
}

// C-050, C-181: connections leave nothing behind.
func TestConnectionsLeaveNothing(t *testing.T) {
	cycle := func(method string) {
		client, err := testCommand("server").Dial(t.Context(), jsonrpc.ConnOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = client.Call(callContext(t), method, jsontext.Value(`{}`)) // to die is an error
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	cycle("echo")
	files, goroutines := descriptors(t), runtime.NumGoroutine()
	for range 10 {
		cycle("echo")
		cycle("die")
	}
	if n := zombies(t); n > 0 {
		t.Errorf("%d zombies", n)
	}
	eventually(t, "as many goroutines as before", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := descriptors(t); n > files {
		t.Errorf("%d open files, %d before", n, files)
	}
}

// stuck is a source and a destination that block until they are freed.
type stuck struct {
	entered chan struct{} // gets a value when a call is made
	free    chan struct{}
}

func newStuck(t *testing.T) stuck {
	s := stuck{make(chan struct{}, 10), make(chan struct{})}
	t.Cleanup(func() { close(s.free) })
	return s
}

func (s stuck) Read([]byte) (int, error) {
	s.entered <- struct{}{}
	<-s.free
	return 0, io.EOF
}

func (s stuck) Write(b []byte) (int, error) {
	s.entered <- struct{}{}
	<-s.free
	return len(b), nil
}

// C-052: Serve returns when its context ends, whatever it waits for.
func TestServeStops(t *testing.T) {
	const request = `{"jsonrpc":"2.0","id":1,"method":"size","params":{"n":200000}}` + "\n"
	source, sink, pipeIn, pipeOut := newStuck(t), newStuck(t), osPipe(t), osPipe(t)
	tests := []struct {
		name    string
		in      io.Reader
		out     io.Writer
		blocked func() // waits until Serve is in the call that blocks
	}{
		{"read that cannot be interrupted", source, io.Discard, func() { <-source.entered }},
		{"read from a pipe", pipeIn.r, io.Discard, func() {}},
		{"write that cannot be interrupted", io.MultiReader(strings.NewReader(request), source), sink, func() { <-sink.entered }},
		{"write to a full pipe", io.MultiReader(strings.NewReader(request), source), pipeOut.w, func() {
			if _, err := pipeOut.r.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error, 1)
			go func() { // ends with ctx
				done <- stdio.Serve(ctx, test.in, test.out, jsonrpc.HandlerFunc(serveTest), nil)
			}()
			test.blocked()
			stop := errors.New("stop")
			begin := time.Now()
			cancel(stop)
			select {
			case err := <-done:
				if !errors.Is(err, stop) {
					t.Errorf("error %v", err)
				}
			case <-time.After(60 * time.Second):
				t.Fatal("Serve did not return")
			}
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
	// A pipe that Serve could interrupt is as it was before.
	if _, err := pipeIn.w.WriteString("xx"); err != nil {
		t.Fatal(err)
	}
	if n, err := pipeIn.r.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("reading on: %d, %v", n, err)
	}
}

type pipe struct{ r, w *os.File }

func osPipe(t *testing.T) pipe {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = r.Close()
		_ = w.Close()
	})
	return pipe{r, w}
}

// A handler that does not heed its context does not keep Serve.
func TestServeStubbornHandler(t *testing.T) {
	free, began := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(free) })
	ctx, cancel := context.WithCancel(t.Context())
	h := jsonrpc.HandlerFunc(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
		close(began)
		<-free
		return nil, nil
	})
	in := osPipe(t)
	done := make(chan struct{})
	go func() { // ends soon after ctx
		defer close(done)
		_ = stdio.Serve(ctx, in.r, io.Discard, h, nil)
	}()
	if _, err := in.w.WriteString("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n"); err != nil {
		t.Fatal(err)
	}
	wait(t, began, "the request")
	cancel()
	wait(t, done, "Serve")
}

// What was asked before the end of the input is answered.
func TestServeEnd(t *testing.T) {
	tests := []struct {
		name, in, out string
		err           error
	}{
		{"nothing", "", "", nil},
		{
			"C-038 mark, C-037 CRLF", "\ufeff\r\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"echo\",\"params\":{}}\r\n",
			"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{}}\n", nil,
		},
		{"half a line", "{\"jsonrpc\":", "", io.ErrUnexpectedEOF},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out writes
			err := stdio.Serve(callContext(t), strings.NewReader(test.in), &out, jsonrpc.HandlerFunc(serveTest), &stdio.ServeOptions{})
			if !errors.Is(err, test.err) {
				t.Errorf("error %v, want %v", err, test.err)
			}
			if out.String() != test.out {
				t.Errorf("answered %q, want %q", out.String(), test.out)
			}
		})
	}
}

// A request is taken back by MCP's notification unless told otherwise.
func TestServeCancel(t *testing.T) {
	const in = `{"jsonrpc":"2.0","id":"a","method":"slow"}` + "\n" +
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}` + "\n"
	var cause error
	h := jsonrpc.HandlerFunc(func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		if req.Method == "slow" {
			<-ctx.Done()
			cause = context.Cause(ctx)
		}
		return nil, nil
	})
	var out writes
	if err := stdio.Serve(callContext(t), strings.NewReader(in), &out, h, nil); err != nil {
		t.Error(err)
	}
	if !errors.Is(cause, jsonrpc.ErrCanceled) || out.String() != "" {
		t.Errorf("the request ended with %v and the answer %q", cause, out.String())
	}
}

func BenchmarkCall(b *testing.B) {
	for _, size := range []int{100, 10_000, 1 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			client, err := testCommand("server").Dial(b.Context(), jsonrpc.ConnOptions{})
			if err != nil {
				b.Fatal(err)
			}
			defer client.Close()
			params := jsontext.Value(`{"x":"` + strings.Repeat("y", size) + `"}`)
			b.SetBytes(2 * int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := client.Call(b.Context(), "echo", params); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
