package jsonrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

var cancelled = jsonrpc.CancelNotification{Method: "notifications/cancelled", Member: "requestId"}

// start runs a Conn on one end of a pair of streams that hold size frames, and
// gives the other end to the test. The Conn is closed with the test.
func start(t *testing.T, size int, opts jsonrpc.ConnOptions) (*jsonrpc.Conn, *memStream) {
	t.Helper()
	near, far := memPipe(size)
	if opts.Cancel.Method == "" {
		opts.Cancel = cancelled
	}
	c := jsonrpc.NewConn(t.Context(), near, opts)
	t.Cleanup(func() {
		_ = far.Close() // never fails
		_ = c.Close()   // the test has looked at its error if it cares
	})
	return c, far
}

func handler(f func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error)) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(f)
}

// echo answers with the params; "slow" waits until it is cancelled.
var echo = handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	if r.Method == "slow" {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	if r.Params.IsZero() {
		return jsontext.Value("{}"), nil
	}
	return r.Params.Raw, nil
})

func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := start(t, 8, jsonrpc.ConnOptions{})
		tests := []struct {
			name, reply, want string
			code              int
		}{
			{"result", `{"jsonrpc":"2.0","id":%s,"result":{ "a" : 1.0 }}`, `{ "a" : 1.0 }`, 0},
			{"null result", `{"jsonrpc":"2.0","id":%s,"result":null}`, `null`, 0},
			{"members in another order", `{"result":[],"id":%s,"jsonrpc":"2.0"}`, `[]`, 0},
			{"error", `{"jsonrpc":"2.0","id":%s,"error":{"code":4242,"message":"quota","data":{"n":9007199254740993}}}`, "", 4242},
			{"neither", `{"jsonrpc":"2.0","id":%s}`, "", jsonrpc.CodeInternal},
			{"both", `{"jsonrpc":"2.0","id":%s,"result":{},"error":{"code":1,"message":"m"}}`, "", jsonrpc.CodeInternal},
			{"broken", `{"jsonrpc":"2.0","id":%s,"result":{]}}`, "", jsonrpc.CodeInternal},
			{"too deep", `{"result":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `,"jsonrpc":"2.0","id":%s}`, "", jsonrpc.CodeInternal},
		}
		for _, tt := range tests {
			go func() { // ends with the reply
				m := peer.receive(t)
				if m.Method != "x/y" || string(m.Params.Raw) != `{"p" : 1}` {
					t.Errorf("%s: the peer got %+v", tt.name, m)
				}
				peer.send(t, fmt.Sprintf(tt.reply, m.ID))
			}()
			got, err := c.Call(t.Context(), "x/y", jsontext.Value(`{"p" : 1}`))
			var e *jsonrpc.Error
			if errors.As(err, &e) != (tt.code != 0) || e != nil && e.Code != tt.code || string(got.Raw) != tt.want {
				t.Errorf("%s: got %s, %v", tt.name, got.Raw, err)
			}
			synctest.Wait()
		}
	})
}

// TestPeerErrorPassesUnchanged is C-106: what a server says of an error reaches
// the client behind a second connection byte for byte.
func TestPeerErrorPassesUnchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up, server := start(t, 8, jsonrpc.ConnOptions{})
		_, client := start(t, 8, jsonrpc.ConnOptions{Handler: handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			res, err := up.Call(ctx, r.Method, r.Params.Raw)
			if err != nil {
				return nil, fmt.Errorf("server a: %w", err)
			}
			return res.Raw, nil
		})})
		for _, line := range fixtureLines(t, "fid_errors") {
			client.send(t, `{"jsonrpc":"2.0","id":"x","method":"m"}`)
			id := server.receive(t).ID
			server.send(t, strings.Replace(line, `"@ID"`, id.String(), 1))
			frame, err := client.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(line, `"@ID"`, `"x"`, 1); string(frame) != want {
				t.Errorf("got  %s\nwant %s", frame, want)
			}
		}
	})
}

// TestRepliesToNothing is C-097.
func TestRepliesToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped []string
		c, peer := start(t, 8, jsonrpc.ConnOptions{Invalid: func(frame []byte, _ error) { dropped = append(dropped, string(frame)) }})
		want := []string{
			`{"jsonrpc":"2.0","id":99999,"result":{}}`,
			`{"jsonrpc":"2.0","id":"1","result":{}}`, // another type
			`{"jsonrpc":"2.0","error":{"code":-32700,"message":"no id"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"second":true}}`,
		}
		go func() { // ends with the second reply
			id := peer.receive(t).ID
			for _, frame := range want[:3] {
				peer.send(t, frame)
			}
			peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"first":true}}`, id))
			peer.send(t, want[3])
		}()
		got, err := c.Call(t.Context(), "x", nil)
		if err != nil || string(got.Raw) != `{"first":true}` {
			t.Errorf("got %s, %v", got.Raw, err)
		}
		synctest.Wait()
		if !slices.Equal(dropped, want) {
			t.Errorf("dropped %q", dropped)
		}
		answer(t, c, peer)
	})
}

// answer checks that the connection still works.
func answer(t *testing.T, c *jsonrpc.Conn, peer *memStream) {
	t.Helper()
	go func() { // ends with the reply
		for {
			if m := peer.receive(t); m.IsRequest() {
				peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
				return
			}
		}
	}()
	if _, err := c.Call(t.Context(), "still there", nil); err != nil {
		t.Errorf("a later call: %v", err)
	}
}

// TestGoneWithCallsInFlight is C-046: a reply that was written before the end
// is delivered, the others fail at once.
func TestGoneWithCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := start(t, 8, jsonrpc.ConnOptions{})
		var calls sync.WaitGroup
		results := make([]error, 5)
		begin := time.Now()
		for i := range results {
			calls.Go(func() {
				_, results[i] = c.Call(t.Context(), "x", nil)
			})
			synctest.Wait()
		}
		first := peer.receive(t).ID
		peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, first))
		peer.hangUp()
		calls.Wait()
		if time.Since(begin) > 0 {
			t.Errorf("the calls waited %v", time.Since(begin))
		}
		for i, err := range results {
			if i == 0 && err != nil || i > 0 && !errors.Is(err, jsonrpc.ErrClosed) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		<-c.Done()
		if err := c.Err(); err != nil {
			t.Errorf("an orderly end is the error %v", err)
		}
		if _, err := c.Call(t.Context(), "x", nil); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("a later call: %v", err)
		}
	})
}

// TestReplyAfterFailedWrite: the peer takes no more, but what it says can be read.
func TestReplyAfterFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, peer := memPipe(8)
		c := jsonrpc.NewConn(t.Context(), near, jsonrpc.ConnOptions{})
		defer func() { _ = c.Close() }()
		begin := time.Now()
		done := make(chan error, 2)
		for range 2 {
			go func() { // ends with the connection
				_, err := c.Call(t.Context(), "x", nil)
				done <- err
			}()
		}
		id := peer.receive(t).ID
		peer.receive(t)
		broken := errors.New("broken pipe")
		near.breakWrites(broken)
		if err := c.Notify(t.Context(), "y", nil); err != nil {
			t.Errorf("queueing: %v", err)
		}
		synctest.Wait()
		if err := c.Notify(t.Context(), "y", nil); !errors.Is(err, broken) || !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("after the failed write: %v", err)
		}
		peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
		if err := <-done; err != nil {
			t.Errorf("the call that was answered: %v", err)
		}
		if err := <-done; !errors.Is(err, broken) || !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("the other call: %v", err)
		}
		<-c.Done()
		if took := time.Since(begin); took != time.Second {
			t.Errorf("ended after %v", took)
		}
		if !errors.Is(c.Err(), broken) {
			t.Errorf("ended with %v", c.Err())
		}
	})
}

// TestEndAfterFailedWrite: the end of input is not orderly then, nor waited for.
func TestEndAfterFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, peer := memPipe(8)
		c := jsonrpc.NewConn(t.Context(), near, jsonrpc.ConnOptions{Handler: echo})
		defer func() { _ = c.Close() }()
		begin := time.Now()
		peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		broken := errors.New("broken pipe")
		near.breakWrites(broken)
		if err := c.Notify(t.Context(), "y", nil); err != nil {
			t.Errorf("queueing: %v", err)
		}
		synctest.Wait()
		peer.hangUp()
		<-c.Done()
		if took := time.Since(begin); took > 0 || !errors.Is(c.Err(), broken) {
			t.Errorf("ended after %v with %v", took, c.Err())
		}
	})
}

func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped int
		c, peer := start(t, 8, jsonrpc.ConnOptions{Invalid: func([]byte, error) { dropped++ }})
		reason := errors.New(`no "patience" left`)
		for _, keep := range []bool{false, true} {
			ctx, cancel := context.WithCancelCause(t.Context())
			done := make(chan error)
			var sent jsonrpc.ID
			go func() { // ends with ctx
				_, err := c.Do(ctx, &jsonrpc.Call{Method: "x", KeepOnCancel: keep, Sent: func(id jsonrpc.ID) { sent = id }})
				done <- err
			}()
			id := peer.receive(t).ID
			cancel(reason)
			if err := <-done; err != reason || sent != id {
				t.Errorf("keep %v: %v, id %v sent as %v", keep, err, sent, id)
			}
			if !keep {
				m := peer.receive(t)
				want := fmt.Sprintf(`{"requestId":%s,"reason":"no \"patience\" left"}`, id)
				if m.Method != cancelled.Method || !m.IsNotification() || string(m.Params.Raw) != want {
					t.Errorf("the peer was told %s", m.Params.Raw)
				}
			}
			peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"late":true}}`, id))
		}
		answer(t, c, peer)
		if dropped != 2 {
			t.Errorf("%d late replies dropped, want 2", dropped)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Call(ctx, "never sent", nil); err != context.Canceled {
			t.Errorf("a call that ended before it began: %v", err)
		}
		answer(t, c, peer)
	})
}

// TestReplyMeetsCancel lets the reply and the end of the caller's patience meet.
func TestReplyMeetsCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := start(t, 8, jsonrpc.ConnOptions{})
		go func() { // ends with the connection
			for {
				frame, err := peer.ReadFrame()
				if err != nil {
					return
				}
				if m, _ := jsonrpc.Parse(frame); m.IsRequest() {
					_ = peer.WriteFrames([][]byte{jsonrpc.AppendResult(nil, m.ID, m.Params.Raw)}) // fails at the end
				}
			}
		}()
		for i := range 2000 {
			ctx, cancel := context.WithCancel(t.Context())
			want := fmt.Sprintf(`{"n":%d}`, i)
			go cancel()
			got, err := c.Call(ctx, "x", jsontext.Value(want))
			if err != nil && err != context.Canceled || err == nil && string(got.Raw) != want {
				t.Fatalf("call %d: %s, %v", i, got.Raw, err)
			}
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stopped := make(chan error, 1)
		c, peer := start(t, 1, jsonrpc.ConnOptions{Handler: handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			<-ctx.Done()
			stopped <- context.Cause(ctx)
			return nil, ctx.Err()
		})})
		peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
		var calls sync.WaitGroup
		for range 100 { // most of them wait for the writer, which waits for us
			calls.Go(func() {
				if _, err := c.Call(t.Context(), "x", nil); !errors.Is(err, jsonrpc.ErrClosed) {
					t.Errorf("call: %v", err)
				}
			})
		}
		synctest.Wait()
		for range 3 {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		calls.Wait()
		select {
		case <-c.Done():
		default:
			t.Error("not done after Close")
		}
		select {
		case <-c.Session().Done():
		default:
			t.Error("the session is not done after Close")
		}
		if err := <-stopped; !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("the handler was stopped by %v", err)
		}
		if err := c.Notify(t.Context(), "x", nil); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("notify: %v", err)
		}
	})
}

func TestContextEndsConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		near, _ := memPipe(1)
		c := jsonrpc.NewConn(ctx, near, jsonrpc.ConnOptions{})
		why := errors.New("why")
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := c.Call(t.Context(), "x", nil)
		if !errors.Is(err, why) || !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("call: %v", err)
		}
		if <-c.Done(); c.Err() != why || c.Close() != why {
			t.Errorf("ended with %v", c.Err())
		}
	})
}

func TestReadErrorEndsConn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := memPipe(1)
		exit := errors.New("exit status 3")
		c := jsonrpc.NewConn(t.Context(), &endingStream{memStream: near, after: time.Second, err: exit}, jsonrpc.ConnOptions{})
		_, err := c.Call(t.Context(), "x", nil)
		if !errors.Is(err, jsonrpc.ErrClosed) || !errors.Is(err, exit) {
			t.Errorf("call: %v", err)
		}
		if <-c.Done(); c.Err() != exit || c.Close() != exit {
			t.Errorf("ended with %v", c.Err())
		}
	})
}

// endingStream ends with an error some time after it was first read.
type endingStream struct {
	*memStream
	after time.Duration
	err   error
}

func (s *endingStream) ReadFrame() ([]byte, error) {
	time.Sleep(s.after) // in a bubble: every test that uses it runs in one
	return nil, s.err
}

// TestSenderDoesNotOutwaitItsContext: the peer does not read.
func TestSenderDoesNotOutwaitItsContext(t *testing.T) {
	tests := []struct {
		name string
		opts jsonrpc.ConnOptions
	}{
		{"frames", jsonrpc.ConnOptions{MaxQueue: 3}},
		{"bytes", jsonrpc.ConnOptions{MaxQueueBytes: 2500}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, peer := start(t, 1, tt.opts)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				params := jsontext.Value(`{"x":"` + strings.Repeat("x", 1000) + `"}`)
				sent := 0
				for ; sent < 100; sent++ {
					if err := c.Notify(ctx, "x", params); err != nil {
						if err != context.DeadlineExceeded {
							t.Errorf("notify: %v", err)
						}
						break
					}
					synctest.Wait() // the writer has taken what it can
				}
				if want := 1 + 1 + 3; sent != want { // in the stream, in the writer, in the queue
					t.Errorf("%d frames were taken, want %d", sent, want)
				}
				late, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				if _, err := c.Call(late, "x", nil); err != context.DeadlineExceeded {
					t.Errorf("call: %v", err)
				}
				for range sent {
					peer.receive(t)
				}
				answer(t, c, peer)
			})
		})
	}
}

// TestBothDirectionsFull is C-045 and its like: neither end reads before it has
// written, over pipes that hold nothing, or 64 KiB.
func TestBothDirectionsFull(t *testing.T) {
	tests := []struct {
		name string
		pipe func() (jsonrpc.Stream, jsonrpc.Stream)
		size int
	}{
		{"io", ioPipe, 1 << 20},
		{"os", func() (jsonrpc.Stream, jsonrpc.Stream) { return osPipe(t) }, 100 << 10},
		{"memory", func() (jsonrpc.Stream, jsonrpc.Stream) { a, b := memPipe(0); return a, b }, 100 << 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			near, far := tt.pipe()
			a := jsonrpc.NewConn(t.Context(), near, jsonrpc.ConnOptions{Handler: echo})
			b := jsonrpc.NewConn(t.Context(), far, jsonrpc.ConnOptions{Handler: echo})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			params := jsontext.Value(`{"x":"` + strings.Repeat("x", tt.size) + `"}`)
			var calls sync.WaitGroup
			for range 16 {
				for _, c := range []*jsonrpc.Conn{a, b} {
					calls.Go(func() {
						got, err := c.Call(ctx, "echo", params)
						if err != nil || string(got.Raw) != string(params) {
							t.Errorf("%d bytes, %v", len(got.Raw), err)
						}
					})
				}
			}
			calls.Wait()
			if err := errors.Join(a.Close(), b.Close()); err != nil && !errors.Is(err, io.ErrClosedPipe) {
				t.Error(err)
			}
		})
	}
}

// TestRequestsBeforeReading is C-045: 500 requests are pushed before anything
// is read, and each is answered with 20 notifications and 64 KiB.
func TestRequestsBeforeReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const requests, notes = 500, 20
		big := jsontext.Value(`{"x":"` + strings.Repeat("x", 64<<10) + `"}`)
		_, peer := start(t, 0, jsonrpc.ConnOptions{Handler: handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			for range notes {
				if err := r.Peer.Notify(ctx, "progress", nil); err != nil {
					t.Errorf("notify: %v", err)
				}
			}
			return big, nil
		})})
		for i := range requests {
			peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, i))
		}
		answered, told := map[string]bool{}, 0
		for len(answered) < requests {
			switch m := peer.receive(t); {
			case m.IsNotification():
				told++
			case m.Error != nil || answered[m.ID.String()]:
				t.Fatalf("id %s: %v", m.ID, m.Error)
			default:
				answered[m.ID.String()] = true
			}
		}
		if told != requests*notes {
			t.Errorf("%d notifications", told)
		}
	})
}
