package jsonrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// TestAnswers is what a Conn says to one frame.
func TestAnswers(t *testing.T) {
	wrong := handler(func(_ context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
		switch r.Method {
		case "coded":
			return nil, fmt.Errorf("looked up: %w", &jsonrpc.Error{Code: 7, Message: "not found", Data: jsontext.Value(`[1]`)})
		case "plain":
			return nil, errors.New("disk full")
		}
		return r.Params.Raw, nil
	})
	tests := []struct {
		name, frame, want string // want "": nothing
		opts              jsonrpc.ConnOptions
	}{
		{"echo", `{"jsonrpc":"2.0","id":"007","method":"echo","params":{"n":1.0}}`, `{"jsonrpc":"2.0","id":"007","result":{"n":1.0}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"error with a code", `{"jsonrpc":"2.0","id":0,"method":"coded"}`, `{"jsonrpc":"2.0","id":0,"error":{"code":7,"message":"not found","data":[1]}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"plain error", `{"jsonrpc":"2.0","id":1,"method":"plain"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"disk full"}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"no handler", `{"jsonrpc":"2.0","id":1,"method":"x\ny"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found: x\ny"}}`, jsonrpc.ConnOptions{}},
		{"not JSON", `{"jsonrpc":"2.0","id":5,"method":`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32700,"message":"not valid JSON at byte 33: ends where a value is expected"}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"not JSON at all", `Listening...`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"not valid JSON at byte 0: 'L' where a value is expected"}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"not JSON, muted", `Listening...`, ``, jsonrpc.ConnOptions{Handler: wrong, MuteInvalid: true}},
		{"not JSON, no handler", `Listening...`, ``, jsonrpc.ConnOptions{}},
		{"params with an id, muted", `{"jsonrpc":"2.0","id":5,"method":"x","params":7}`, `{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"params must be an object"}}`, jsonrpc.ConnOptions{Handler: wrong, MuteInvalid: true}},
		{"batch", `[{"jsonrpc":"2.0","id":5,"method":"x"}]`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"a JSON array (batch) is not accepted here: send one message"}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"x"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"id must be a string or an integer, not null"}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"null id and params", `{"jsonrpc":"2.0","params":[],"id":null,"method":"x"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"id must be a string or an integer, not null"}}`, jsonrpc.ConnOptions{Handler: wrong}},
		{"notification with params that are none", `{"jsonrpc":"2.0","method":"x","params":[]}`, ``, jsonrpc.ConnOptions{Handler: wrong}},
		{"notification", `{"jsonrpc":"2.0","method":"x"}`, ``, jsonrpc.ConnOptions{Handler: wrong}},
		{"broken answer to nothing", `{"jsonrpc":"2.0","id":3,"result":{}`, ``, jsonrpc.ConnOptions{Handler: wrong}},
		{"answer to nothing", `{"jsonrpc":"2.0","id":3,"result":{}}`, ``, jsonrpc.ConnOptions{Handler: wrong}},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`, ``, jsonrpc.ConnOptions{Handler: wrong}},
		{"id twice", `{"jsonrpc":"2.0","id":3,"id":4,"method":"x"}`, `{"jsonrpc":"2.0","error":{"code":-32600,"message":"member \"id\" stands twice"}}`, jsonrpc.ConnOptions{Handler: wrong}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, peer := start(t, 4, tt.opts)
				peer.send(t, tt.frame)
				synctest.Wait()
				select {
				case frame := <-peer.in:
					if string(frame) != tt.want {
						t.Errorf("got  %s\nwant %s", frame, tt.want)
					}
				default:
					if tt.want != "" {
						t.Errorf("no answer, want %s", tt.want)
					}
				}
			})
		})
	}
}

// TestSlowRequestBlocksNothing is C-123.
func TestSlowRequestBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, peer := start(t, 8, jsonrpc.ConnOptions{Handler: echo})
		begin := time.Now()
		peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		for _, id := range []string{"2", `"2"`} {
			peer.send(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
			if m := peer.receive(t); m.ID.String() != id || m.Error != nil {
				t.Errorf("got %+v", m)
			}
		}
		if time.Since(begin) > 0 {
			t.Errorf("waited %v", time.Since(begin))
		}
	})
}

// A peer may send what needs its first request before that is answered.
func TestFirstRequestIsHandledFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := false // the answers order what the goroutines do with it
		_, peer := start(t, 3, jsonrpc.ConnOptions{First: "begin", Handler: handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			switch {
			case r.Method == "begin":
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				began = true
			case r.Method == "early":
			case !began:
				t.Errorf("%s was handled before the first request", r.Method)
			}
			return jsontext.Value("{}"), nil
		})})
		for _, frame := range []string{
			`{"jsonrpc":"2.0","id":0,"method":"early"}`,
			`{"jsonrpc":"2.0","id":1,"method":"begin"}`,
			`{"jsonrpc":"2.0","method":"note"}`,
			`{"jsonrpc":"2.0","id":2,"method":"next"}`,
		} {
			peer.send(t, frame)
		}
		got := map[string]bool{}
		for range 3 {
			m := peer.receive(t)
			got[m.ID.String()] = true
			if m.ID == jsonrpc.IntID(2) && !got["0"] {
				t.Error("what came before the first request waited for it")
			}
		}
		synctest.Wait()
	})
}

// late is a stream that has frames to read when it has been closed.
type late struct {
	closed chan struct{}
	frames []string
}

func (s *late) ReadFrame() ([]byte, error) {
	<-s.closed
	if len(s.frames) == 0 {
		return nil, io.EOF
	}
	frame := s.frames[0]
	s.frames = s.frames[1:]
	return []byte(frame), nil
}

func (s *late) WriteFrames([][]byte) error { return nil }

func (s *late) Close() error {
	close(s.closed)
	return nil
}

// Requests that were on their way when the connection was closed are not handled.
func TestRequestsBehindClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &late{closed: make(chan struct{}), frames: []string{
			`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":2,"method":"x"}`,
		}}
		c := jsonrpc.NewConn(t.Context(), stream, jsonrpc.ConnOptions{Handler: handler(
			func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
				t.Error("the request was handled")
				return jsontext.Value("{}"), nil
			})})
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNotificationsBeforeResult is C-125.
func TestNotificationsBeforeResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, peer := start(t, 3, jsonrpc.ConnOptions{Handler: handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			for i := range 10 {
				if err := r.Peer.Notify(ctx, "progress", fmt.Appendf(nil, `{"n":%d}`, i)); err != nil {
					return nil, err
				}
			}
			return jsontext.Value("{}"), nil
		})})
		for run := range 1000 {
			peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x"}`, run))
			for i := range 10 {
				if m := peer.receive(t); m.Method != "progress" || string(m.Params.Raw) != fmt.Sprintf(`{"n":%d}`, i) {
					t.Fatalf("run %d: notification %d is %+v", run, i, m)
				}
			}
			if m := peer.receive(t); !m.IsResponse() || m.ID != jsonrpc.IntID(int64(run)) {
				t.Fatalf("run %d: got %+v", run, m)
			}
		}
	})
}

// TestCancel covers C-091, C-122 and the use of an id again.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type run struct {
			release chan struct{}
			cause   error
		}
		runs := make(chan *run, 8)
		_, peer := start(t, 8, jsonrpc.ConnOptions{Handler: handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			if r.ID.IsZero() {
				return nil, nil
			}
			this := &run{release: make(chan struct{})}
			runs <- this
			<-this.release // does not listen to ctx
			this.cause = context.Cause(ctx)
			return r.Params.Raw, nil
		})})
		lines := fixtureLines(t, "ids_zero")
		peer.send(t, lines[0])
		first := <-runs
		for _, ignored := range []string{
			`{"requestId":1}`, `{"requestId":"0"}`, `{"requestId":null}`, `{"requestId":{}}`, `{"requestID":0}`, `{}`, `null`,
		} {
			peer.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":`+ignored+`}`)
		}
		peer.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
		peer.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":[0]}`)
		peer.send(t, lines[1]) // this one counts
		peer.send(t, `{"jsonrpc":"2.0","id":0,"method":"again","params":{"again":true}}`)
		second := <-runs
		close(first.release) // it ends while its id is another's
		synctest.Wait()
		close(second.release)
		if m := peer.receive(t); m.ID != jsonrpc.IntID(0) || string(m.Result.Raw) != `{"again":true}` {
			t.Errorf("got %+v", m)
		}
		peer.send(t, lines[1]) // its request was answered
		peer.send(t, lines[1])
		synctest.Wait()
		if !errors.Is(first.cause, jsonrpc.ErrCanceled) || second.cause != nil {
			t.Errorf("the causes are %v and %v", first.cause, second.cause)
		}
		select {
		case frame := <-peer.in:
			t.Errorf("unexpected %s", frame)
		default:
		}
	})
}

func TestSameIDTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, peer := start(t, 8, jsonrpc.ConnOptions{Handler: echo})
		peer.send(t, `{"jsonrpc":"2.0","id":"a","method":"slow"}`)
		peer.send(t, `{"jsonrpc":"2.0","id":"\u0061","method":"ping"}`) // the same string
		if m := peer.receive(t); m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidRequest || m.ID.String() != `"\u0061"` {
			t.Errorf("got %+v", m)
		}
		if c.CancelRequest(jsonrpc.IntID(1)) || !c.CancelRequest(jsonrpc.StringID("a")) || c.CancelRequest(jsonrpc.StringID("a")) {
			t.Error("CancelRequest does not tell what it did")
		}
		peer.send(t, `{"jsonrpc":"2.0","id":"a","method":"ping"}`)
		if m := peer.receive(t); m.Error != nil || m.ID != jsonrpc.StringID("a") {
			t.Errorf("got %+v", m)
		}
	})
}

// TestTooManyRequests: a request that was cancelled counts until its handler
// has returned.
func TestTooManyRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		_, peer := start(t, 8, jsonrpc.ConnOptions{MaxRequests: 2, Handler: handler(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			<-release
			return jsontext.Value("{}"), nil
		})})
		peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
		peer.send(t, `{"jsonrpc":"2.0","id":2,"method":"x"}`)
		peer.send(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		peer.send(t, `{"jsonrpc":"2.0","id":3,"method":"x"}`)
		if m := peer.receive(t); m.ID != jsonrpc.IntID(3) || m.Error == nil || m.Error.Code != jsonrpc.CodeInternal {
			t.Errorf("got %+v", m)
		}
		close(release)
		if m := peer.receive(t); m.ID != jsonrpc.IntID(2) || m.Error != nil {
			t.Errorf("got %+v", m)
		}
		synctest.Wait()
		peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
		if m := peer.receive(t); m.ID != jsonrpc.IntID(1) || m.Error != nil {
			t.Errorf("got %+v", m)
		}
	})
}

// TestFloodOfNotifications: the handler of notifications hangs, and the peer
// goes on sending; requests are still answered.
func TestFloodOfNotifications(t *testing.T) {
	tests := []struct {
		name        string
		send, taken int
		params      string
	}{
		{"many", 5000, 1 + 1024, `{}`},
		{"large", 40, 16, `{"x":"` + strings.Repeat("x", 1<<20-100) + `"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				handled := 0
				_, peer := start(t, 0, jsonrpc.ConnOptions{Handler: handler(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
					<-release
					handled++
					return nil, nil
				})})
				frame := `{"jsonrpc":"2.0","method":"note","params":` + tt.params + `}`
				for range tt.send {
					peer.send(t, frame)
				}
				peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"x","params":7}`)
				if m := peer.receive(t); m.Error == nil {
					t.Errorf("got %+v", m)
				}
				close(release)
				synctest.Wait()
				if handled != tt.taken {
					t.Errorf("%d notifications were handled, want %d", handled, tt.taken)
				}
			})
		})
	}
}

// TestNotificationHook: the hook sees notifications and responses in one order.
func TestNotificationHook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		c, peer := start(t, 8, jsonrpc.ConnOptions{
			Handler:      handler(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) { panic("not for the handler") }),
			Notification: func(m *jsonrpc.Message) { seen = append(seen, string(m.Params.Raw)) },
		})
		go func() { // ends with the reply
			id := peer.receive(t).ID
			for i := range 3 {
				peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","method":"note","params":{"n":%d}}`, i))
			}
			peer.send(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, id))
		}()
		if _, err := c.Call(t.Context(), "x", nil); err != nil {
			t.Error(err)
		}
		if got := strings.Join(seen, ""); got != `{"n":0}{"n":1}{"n":2}` {
			t.Errorf("before the reply came %s", got)
		}
	})
}

// TestEndOfInput: the peer stops sending while its requests are handled.
func TestEndOfInput(t *testing.T) {
	tests := []struct {
		name    string
		takes   time.Duration // for the handler
		read    bool          // by the peer
		ends    time.Duration // after the end of input
		answers int
	}{
		{"idle", 0, true, 0, 1},
		{"answered in time", 3 * time.Second, true, 3 * time.Second, 1},
		{"never answered", time.Hour, true, 5 * time.Second, 0},
		{"never read", time.Second, false, 5 * time.Second, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, peer := start(t, 0, jsonrpc.ConnOptions{Handler: handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
					select {
					case <-time.After(tt.takes):
					case <-ctx.Done():
					}
					return jsontext.Value(`{}`), nil
				})})
				peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
				peer.hangUp()
				begin := time.Now()
				answers := 0
				go func() { // ends with the connection
					for tt.read {
						if _, err := peer.ReadFrame(); err != nil {
							return
						}
						answers++
					}
				}()
				<-c.Done()
				synctest.Wait()
				if took := time.Since(begin); took != tt.ends || answers != tt.answers {
					t.Errorf("ended after %v with %d answers", took, answers)
				}
				if err := c.Err(); err != nil {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}

// TestHandlerThatNeverReturns: the connection ends without it, Close waits.
func TestHandlerThatNeverReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		c, peer := start(t, 0, jsonrpc.ConnOptions{Handler: handler(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			<-release
			return nil, nil
		})})
		peer.send(t, `{"jsonrpc":"2.0","id":1,"method":"x"}`)
		peer.hangUp()
		<-c.Done()
		closed := make(chan struct{})
		go func() { // ends when the handler does
			_ = c.Close() // it ended before
			close(closed)
		}()
		time.Sleep(time.Hour)
		select {
		case <-closed:
			t.Error("Close did not wait for the handler")
		default:
		}
		close(release)
		<-closed
	})
}

// TestRequestsBothWays: a handler asks the peer something before it answers.
func TestRequestsBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := memPipe(0)
		ask := handler(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			if r.Method == "answer" {
				return r.Params.Raw, nil
			}
			got, err := r.Session.Peer.Call(ctx, "answer", r.Params.Raw)
			return got.Raw, err
		})
		a := jsonrpc.NewConn(t.Context(), near, jsonrpc.ConnOptions{Handler: ask})
		b := jsonrpc.NewConn(t.Context(), far, jsonrpc.ConnOptions{Handler: ask})
		for _, c := range []*jsonrpc.Conn{a, b} {
			if got, err := c.Call(t.Context(), "ask", jsontext.Value(`{"q":1}`)); err != nil || string(got.Raw) != `{"q":1}` {
				t.Errorf("got %s, %v", got.Raw, err)
			}
		}
		if err := errors.Join(a.Close(), b.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestNotificationAtOnce has a notification wait in the stream when the
// connection begins: the Handler gets it.
func TestNotificationAtOnce(t *testing.T) {
	for range 100 {
		near, far := memPipe(1)
		frame := []byte(`{"jsonrpc":"2.0","method":"hello"}`)
		if err := far.WriteFrames([][]byte{frame}); err != nil {
			t.Fatal(err)
		}
		got := make(chan string, 1)
		c := jsonrpc.NewConn(t.Context(), near, jsonrpc.ConnOptions{
			Handler: handler(func(_ context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
				got <- r.Method
				return nil, nil
			}),
		})
		select {
		case <-got:
		case <-time.After(10 * time.Second):
			t.Fatal("the notification is lost")
		}
		_ = c.Close()
	}
}

// lateStream has one frame, which it gives out when it has been closed.
type lateStream struct {
	frame  string
	closed chan struct{}
	once   sync.Once
	reads  int
}

func (s *lateStream) ReadFrame() ([]byte, error) {
	<-s.closed
	if s.reads++; s.reads > 1 {
		return nil, io.EOF
	}
	return []byte(s.frame), nil
}

func (s *lateStream) WriteFrames([][]byte) error { return nil }

func (s *lateStream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// TestRequestMeetsClose has a request be read just when the connection closes: it
// is not handled any more.
func TestRequestMeetsClose(t *testing.T) {
	stream := &lateStream{frame: `{"jsonrpc":"2.0","id":1,"method":"late"}`, closed: make(chan struct{})}
	c := jsonrpc.NewConn(t.Context(), stream, jsonrpc.ConnOptions{
		Handler: handler(func(context.Context, *jsonrpc.Request) (jsontext.Value, error) {
			t.Error("handled")
			return nil, nil
		}),
	})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
