package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

const changed = `data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n\n"

// heard counts what hooks are told.
type heard struct{ notes, gaps atomic.Int64 }

func (h *heard) options(server *remote) mcphttp.DialOptions {
	return mcphttp.DialOptions{
		Transport:    server,
		Notification: func(*jsonrpc.Message) { h.notes.Add(1) },
		Gap:          func() { h.gaps.Add(1) },
	}
}

// TestDialNoStream is C-077: a server without a stream of its own is asked for
// it once, and all else works.
func TestDialNoStream(t *testing.T) {
	for _, status := range []int{405, 404, 400, 406, 501, 204} {
		synctest.Test(t, func(t *testing.T) {
			server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
				if r.verb == http.MethodGet {
					w.WriteHeader(status)
				}
				return r.verb == http.MethodGet
			})
			c := begun(t, "http://h/mcp", inMemory(server))
			time.Sleep(time.Hour)
			if n := len(server.all(http.MethodGet)); n != 1 {
				t.Errorf("%d: %d GET within an hour", status, n)
			}
			if _, err := c.Do(t.Context(), toolCall("")); err != nil {
				t.Error(err)
			}
		})
	}
}

// A server that has trouble with its stream is asked again, ever less often.
func TestDialStreamTrouble(t *testing.T) {
	for _, fail := range []func(w http.ResponseWriter){
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) },
		func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		startStream, // and ends it
	} {
		synctest.Test(t, func(t *testing.T) {
			server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
				if r.verb == http.MethodGet {
					fail(w)
				}
				return r.verb == http.MethodGet
			})
			begun(t, "http://h/mcp", inMemory(server))
			time.Sleep(time.Hour)
			if n := len(server.all(http.MethodGet)); n < 60 || n > 66 {
				t.Errorf("%d GET within an hour", n)
			}
		})
	}
}

// TestDialStream: what a server says on its own arrives; a stream that breaks is
// resumed where it was, after the time that the server asked for; where that is
// not possible, somebody is told.
func TestDialStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var times []time.Time
		var opened atomic.Int64
		server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
			if r.verb != http.MethodGet {
				return false
			}
			times = append(times, time.Now()) // one stream at a time
			switch opened.Add(1) {
			case 1: // ends after an event with an id
				startStream(w)
				say(w, ": ok\n\nid: 7\nretry: 4000\n%s", changed)
			case 2: // resumed; ends
				startStream(w)
				say(w, "%s%s", changed, changed)
			case 3: // does not know the event any more
				w.WriteHeader(http.StatusNotFound)
			default:
				startStream(w)
				say(w, "%s", changed)
				<-r.ctx.Done()
			}
			return true
		})
		var h heard
		begun(t, "http://h/mcp", h.options(server))
		synctest.Wait()
		if h.notes.Load() != 1 || h.gaps.Load() != 1 { // what was said before the stream was open is lost
			t.Errorf("first: %d notifications, %d gaps", h.notes.Load(), h.gaps.Load())
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if h.notes.Load() != 3 || h.gaps.Load() != 1 {
			t.Errorf("resumed: %d notifications, %d gaps", h.notes.Load(), h.gaps.Load())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if h.notes.Load() != 4 || h.gaps.Load() != 2 {
			t.Errorf("opened anew: %d notifications, %d gaps", h.notes.Load(), h.gaps.Load())
		}
		var last []string
		for _, r := range server.all(http.MethodGet) {
			last = append(last, r.header.Get(mcp.HeaderLastEvent))
			if r.header.Get(mcp.HeaderSession) != "s1" {
				t.Errorf("session %q", r.header.Get(mcp.HeaderSession))
			}
		}
		if !slices.Equal(last, []string{"", "7", "7", ""}) {
			t.Errorf("resumed from %q", last)
		}
		for i := 1; i < len(times); i++ {
			if d := times[i].Sub(times[i-1]); d != 4*time.Second {
				t.Errorf("waited %v, not as long as the server asked for", d)
			}
		}
	})
}

// A stream that fails because the server has lost the session begins the next
// one, before any call meets the loss.
func TestDialStreamFindsLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, nil)
		broken := make(chan struct{})
		server.on(func(w http.ResponseWriter, r received) bool {
			if r.verb != http.MethodGet || server.isDead(r) {
				return false
			}
			startStream(w)
			if r.header.Get(mcp.HeaderSession) == "s1" {
				<-broken
			} else {
				<-r.ctx.Done()
			}
			return true
		})
		var h heard
		begun(t, "http://h/mcp", h.options(server))
		synctest.Wait()
		server.forget("s1")
		close(broken)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(server.all(mcp.MethodInitialize)); n != 2 {
			t.Errorf("%d initialize", n)
		}
		if got := server.all(http.MethodGet); got[len(got)-1].header.Get(mcp.HeaderSession) != "s2" || len(got) != 3 {
			t.Errorf("%d GET, the last of session %q", len(got), got[len(got)-1].header.Get(mcp.HeaderSession))
		}
		if h.gaps.Load() < 2 {
			t.Errorf("%d gaps", h.gaps.Load())
		}
	})
}

// If the server has only stopped to offer the stream, the session stays.
func TestDialStreamWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
			if r.verb != http.MethodGet {
				return false
			}
			if n.Add(1) == 1 {
				startStream(w)
			} else {
				w.WriteHeader(http.StatusNotFound)
			}
			return true
		})
		begun(t, "http://h/mcp", inMemory(server))
		time.Sleep(time.Hour)
		if n.Load() != 2 || len(server.all(mcp.MethodInitialize)) != 1 || len(server.all(mcp.MethodPing)) != 1 {
			t.Errorf("%d GET, %d initialize, %d ping", n.Load(), len(server.all(mcp.MethodInitialize)), len(server.all(mcp.MethodPing)))
		}
	})
}

// An event over the limit is not asked for again and again.
func TestDialStreamHugeEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
			if r.verb != http.MethodGet {
				return false
			}
			startStream(w)
			if len(r.header[mcp.HeaderLastEvent]) > 0 {
				t.Error("resumed before the event that is too large")
			}
			say(w, "id: 1\n%sdata: %s\n\n", changed, strings.Repeat("x", 2000))
			return true
		})
		var h heard
		opts := h.options(server)
		opts.MaxMessage = 1000
		begun(t, "http://h/mcp", opts)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if h.notes.Load() < 2 || h.gaps.Load() < 2 {
			t.Errorf("%d notifications, %d gaps", h.notes.Load(), h.gaps.Load())
		}
	})
}

// isDead reports whether a request is of a session that the remote has forgotten.
func (rm *remote) isDead(r received) bool {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return rm.dead[r.header.Get(mcp.HeaderSession)]
}

// TestDialResume is C-075 for sessions: the stream of a call that breaks is
// resumed if it had an id, as long as that brings anything new.
func TestDialResume(t *testing.T) {
	const progress = `data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}` + "\n\n"
	for _, tt := range []struct {
		name    string
		version mcp.Version
		first   string
		resumed []string // what the resumptions send; "ID": the call's id; "404": the status
		last    []string // the events from which it is resumed
		after   time.Duration
		want    string
	}{
		{"answer in the rest", "", "id: 1\nretry: 3000\ndata:\n\n" + progress, []string{"id: 2\n" + progress + "ANSWER"}, []string{"1"}, 3 * time.Second, ""},
		{"answer in the third part", "", "id: 1\n" + progress, []string{"id: 2\n" + progress, "id: 3\nANSWER"}, []string{"1", "2"}, time.Second, ""},
		{"nothing new", "", "id: 1\n" + progress, []string{": still nothing\n\n"}, []string{"1"}, 0, "stream closed before the response"},
		{"refused", "", "id: 1\n" + progress, []string{"404"}, []string{"1"}, 0, "stream closed before the response, and not resumed: HTTP status 404 Not Found"},
		{"no id", "", progress + progress, nil, nil, 0, "stream closed before the response"},
		{"stateless", mcp.Latest, "id: 1\n" + progress, nil, nil, 0, "stream closed before the response"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var id atomic.Pointer[jsonrpc.ID]
				var part atomic.Int64
				server := newMemoryRemote(t, nil)
				var h heard
				c := begun(t, "http://h/mcp", h.options(server))
				synctest.Wait()
				server.on(func(w http.ResponseWriter, r received) bool {
					switch {
					case r.msg.Method == mcp.MethodToolsCall:
						id.Store(&r.msg.ID)
						startStream(w)
						say(w, "%s", tt.first)
					case r.verb == http.MethodGet:
						s := tt.resumed[part.Add(1)-1]
						if s == "404" {
							w.WriteHeader(http.StatusNotFound)
							return true
						}
						startStream(w)
						answer := "data: " + string(jsonrpc.AppendResult(nil, *id.Load(), jsontext.Value(`{"n":1}`))) + "\n\n"
						say(w, "%s", strings.ReplaceAll(s, "ANSWER", answer))
					default:
						return false
					}
					return true
				})
				began := time.Now()
				result, err := c.Do(t.Context(), toolCall(tt.version))
				if tt.want == "" && (err != nil || string(result.Raw) != `{"n":1}`) || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
					t.Errorf("got %s, %v", result.Raw, err)
				}
				if d := time.Since(began); d != tt.after {
					t.Errorf("after %v, want %v", d, tt.after)
				}
				var last []string
				for _, r := range server.all(http.MethodGet)[1:] {
					last = append(last, r.header.Get(mcp.HeaderLastEvent))
				}
				if !slices.Equal(last, tt.last) || len(server.all(mcp.MethodToolsCall)) != 1 {
					t.Errorf("resumed from %q, sent %d times", last, len(server.all(mcp.MethodToolsCall)))
				}
			})
		})
	}
}

// TestDialAsks: the server's requests are answered in the session, on whichever
// stream they come.
func TestDialAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, nil)
		server.on(func(w http.ResponseWriter, r received) bool {
			switch {
			case r.verb == http.MethodGet:
				startStream(w)
				say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"roots/list\"}\n\n")
				say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"slow\"}\n\n")
				say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"the same id\"}\n\n")
				say(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}\n\n")
				<-r.ctx.Done()
			case r.msg.Method == mcp.MethodToolsCall:
				startStream(w)
				say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\"}\n\n")
				for r.header.Get(mcp.HeaderSession) != "" && len(server.answers(7)) == 0 {
					time.Sleep(time.Second) // in a bubble: its clock costs nothing
				}
				say(w, "data: %s\n\n", jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{}`)))
			default:
				return false
			}
			return true
		})
		canceled := make(chan struct{})
		opts := inMemory(server)
		opts.Handler = jsonrpc.HandlerFunc(func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			switch req.Method {
			case mcp.MethodRootsList:
				return jsontext.Value(`{"roots":[]}`), nil
			case "slow":
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), jsonrpc.ErrCanceled) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				close(canceled)
				return nil, ctx.Err()
			}
			return nil, jsonrpc.Errorf(1, "not for the connection: %s", req.Method)
		})
		c := begun(t, "http://h/mcp", opts)
		<-canceled
		synctest.Wait()
		call := toolCall("")
		var seen []string
		call.Message = func(m *jsonrpc.Message) { seen = append(seen, m.Method) }
		call.Handler = jsonrpc.HandlerFunc(func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			return jsontext.Value(`{"action":"accept"}`), nil
		})
		if _, err := c.Do(t.Context(), call); err != nil || !slices.Equal(seen, []string{"elicitation/create"}) {
			t.Errorf("saw %q, %v", seen, err)
		}
		if got := server.answers(7); len(got) != 1 || string(got[0].msg.Result.Raw) != `{"action":"accept"}` || got[0].header.Get(mcp.HeaderSession) != "s1" {
			t.Errorf("answered %+v", got)
		}
		if got := server.answers(0); len(got) != 1 || string(got[0].msg.Result.Raw) != `{"roots":[]}` {
			t.Errorf("answered %+v", got)
		}
		// A stateless server cannot ask, and is not answered.
		call.Header = toolCall(mcp.Latest).Header
		if _, err := c.Do(t.Context(), call); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := server.all(http.MethodPost); len(server.answers(7)) != 1 || len(got) != 6 {
			t.Errorf("%d POSTs", len(got))
		}
	})
}

// answers returns the answers to a request of the remote's own.
func (rm *remote) answers(id int64) []received {
	return slices.DeleteFunc(rm.all(http.MethodPost), func(r received) bool {
		return !r.msg.IsResponse() || r.msg.ID != jsonrpc.IntID(id)
	})
}

// Without a handler the server's requests are refused; more of them at once than
// anybody needs are not even looked at.
func TestDialAsksBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
			if r.verb == http.MethodGet {
				startStream(w)
				for i := range 3000 {
					say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"roots/list\"}\n\n", i)
				}
				<-r.ctx.Done()
			}
			return r.verb == http.MethodGet
		})
		var running atomic.Int64
		opts := inMemory(server)
		opts.Handler = jsonrpc.HandlerFunc(func(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) {
			running.Add(1)
			<-ctx.Done()
			time.Sleep(time.Second)
			running.Add(-1)
			return nil, ctx.Err()
		})
		c := begun(t, "http://h/mcp", opts)
		synctest.Wait()
		if running.Load() != 1024 {
			t.Errorf("%d at once", running.Load())
		}
		_ = c.Close()
		if running.Load() != 0 {
			t.Errorf("%d still run behind Close", running.Load())
		}
	})
	server := newRemote(t, func(w http.ResponseWriter, r received) bool {
		if r.verb == http.MethodGet {
			startStream(w)
			say(w, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n\n")
			<-r.ctx.Done()
		}
		return r.verb == http.MethodGet
	})
	begun(t, server.url, mcphttp.DialOptions{})
	eventually(t, "refusal", func() bool { return len(server.answers(1)) == 1 })
	if e := server.answers(1)[0].msg.Error; e == nil || e.Code != jsonrpc.CodeMethodNotFound {
		t.Errorf("answered %v", e)
	}
}

// TestDialEndless is C-162: an answer without an end is cut off at the limit,
// and other callers do not notice.
func TestDialEndless(t *testing.T) {
	unit := strings.Repeat("x", 10_000)
	for name, send := range map[string]func(w io.Writer) error{
		"a JSON string": func(w io.Writer) error {
			w.(http.ResponseWriter).Header().Set("Content-Type", "application/json")
			_, err := io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"x":"`)
			for err == nil {
				_, err = io.WriteString(w, unit)
			}
			return err
		},
		"an event": func(w io.Writer) error {
			startStream(w.(http.ResponseWriter))
			_, err := io.WriteString(w, "data: ")
			for err == nil {
				_, err = io.WriteString(w, unit)
			}
			return err
		},
		"a refusal": func(w io.Writer) error {
			w.(http.ResponseWriter).WriteHeader(http.StatusTeapot)
			var err error
			for err == nil {
				_, err = io.WriteString(w, unit)
			}
			return err
		},
		"a size": func(w io.Writer) error {
			h := w.(http.ResponseWriter).Header()
			h.Set("Content-Type", "application/json")
			h.Set("Content-Length", "1000000000")
			w.(http.ResponseWriter).WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newRemote(t, func(w http.ResponseWriter, r received) bool {
				if r.msg.Method == mcp.MethodToolsCall {
					if err := send(w); err == nil && name != "a size" {
						t.Error("all was taken")
					}
				}
				return r.msg.Method == mcp.MethodToolsCall
			})
			c := dial(t, server.url, mcphttp.DialOptions{MaxMessage: 1 << 20})
			_, err := c.Do(within10s(t), toolCall(mcp.Latest))
			want := "limit of"
			if name == "a refusal" {
				want = "HTTP status 418"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
			if _, err := c.Call(within10s(t), mcp.MethodPing, nil); err != nil {
				t.Errorf("another call: %v", err)
			}
		})
	}
	t.Run("tiny events", func(t *testing.T) {
		const many = 50_000
		server := newRemote(t, func(w http.ResponseWriter, r received) bool {
			startStream(w)
			for range many {
				_, _ = io.WriteString(w, changed)
			}
			say(w, "data: %s\n\n", jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{}`)))
			return true
		})
		n := 0
		c := dial(t, server.url, mcphttp.DialOptions{MaxMessage: 1 << 10, Notification: func(*jsonrpc.Message) { n++ }})
		if _, err := c.Do(within10s(t), toolCall(mcp.Latest)); err != nil || n != many {
			t.Errorf("%d notifications, %v", n, err)
		}
	})
}

// A connection is used again after any kind of answer; after a streamed one, too,
// if the server ends the stream soon.
func TestDialConnectionsAreReused(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, result []byte){
		"JSON": answerJSON,
		"stream": func(w http.ResponseWriter, result []byte) {
			startStream(w)
			say(w, "data: %s\n\n", result)
		},
		"refusal": func(w http.ResponseWriter, _ []byte) { http.Error(w, "no", http.StatusTeapot) },
	} {
		t.Run(name, func(t *testing.T) {
			server := newRemote(t, func(w http.ResponseWriter, r received) bool {
				answer(w, jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{}`)))
				return true
			})
			c := dial(t, server.url, mcphttp.DialOptions{})
			for range 50 {
				ctx, cancel := context.WithTimeout(context.Background(), dialTime)
				_, _ = c.Do(ctx, toolCall(mcp.Latest))
				cancel() // at once: it does not end the connection
			}
			if n := server.opened.Load(); n > 10 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// The rest of a streamed answer is read even if the caller's context ends at
// once, as it does with most.
func TestDialStreamIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var torn atomic.Bool
		server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
			startStream(w)
			say(w, "data: %s\n\n", jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{}`)))
			select {
			case <-r.ctx.Done():
				torn.Store(true)
			case <-time.After(50 * time.Millisecond):
			}
			return true
		})
		c := dial(t, "http://h/mcp", inMemory(server))
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := c.Do(ctx, toolCall(mcp.Latest)); err != nil {
			t.Error(err)
		}
		cancel()
		time.Sleep(time.Second)
		if torn.Load() {
			t.Error("the stream was torn off")
		}
	})
}

// An answer is not held back by a stream that stays open behind it, and neither
// is Close.
func TestDialStreamStaysOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
			startStream(w)
			say(w, "data: %s\n\n", jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{}`)))
			<-r.ctx.Done()
			return true
		})
		c := dial(t, "http://h/mcp", inMemory(server))
		began := time.Now()
		for range 10 {
			if _, err := c.Do(t.Context(), toolCall(mcp.Latest)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Close(); err != nil || time.Since(began) > 0 {
			t.Errorf("took %v, %v", time.Since(began), err)
		}
	})
}

// TestDialListen: the stream of a subscription belongs to its call.
func TestDialListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		closed := make(chan struct{})
		server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
			startStream(w)
			say(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/acknowledged\"}\n\n:\n\n%s", changed)
			<-r.ctx.Done()
			close(closed)
			return true
		})
		c := dial(t, "http://h/mcp", inMemory(server))
		var seen []string
		call := toolCall(mcp.Latest)
		call.Method = mcp.MethodListen
		call.Message = func(m *jsonrpc.Message) { seen = append(seen, m.Method) }
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := c.Do(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		<-closed
		if fmt.Sprint(seen) != "[notifications/subscriptions/acknowledged notifications/tools/list_changed]" {
			t.Errorf("saw %q", seen)
		}
		if n := len(server.all("")); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// A new session's stream is open before the first request is made, unless the
// server takes its time to say so: what is sent on a stream that is not there is lost.
func TestDialStreamFirst(t *testing.T) {
	tests := []struct {
		name  string
		after time.Duration // until the server answers GET
		want  time.Duration // until requests can be made
	}{
		{"soon", 100 * time.Millisecond, 100 * time.Millisecond},
		{"late", time.Hour, 250 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newMemoryRemote(t, func(w http.ResponseWriter, r received) bool {
					if r.verb != http.MethodGet {
						return false
					}
					select {
					case <-time.After(tt.after):
						startStream(w)
						<-r.ctx.Done()
					case <-r.ctx.Done():
					}
					return true
				})
				began := time.Now()
				begun(t, "http://h/mcp", inMemory(server))
				if took := time.Since(began); took != tt.want {
					t.Errorf("the session took %v to begin, want %v", took, tt.want)
				}
			})
		})
	}
}
