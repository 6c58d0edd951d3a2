package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// inMemory returns the options to reach a remote without a network.
func inMemory(rm *remote) mcphttp.DialOptions {
	return mcphttp.DialOptions{Transport: rm}
}

// TestDialSessionLost is C-078 and C-080: of many calls that meet the loss of a
// session, one begins the next, and each is sent once more in that.
func TestDialSessionLost(t *testing.T) {
	refusals := map[string]func(w http.ResponseWriter, r received){
		"404": func(w http.ResponseWriter, _ received) { w.WriteHeader(http.StatusNotFound) },
		"404 with an error": func(w http.ResponseWriter, r received) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(jsonrpc.AppendError(nil, r.msg.ID, jsonrpc.Errorf(-32001, "Session not found")))
		},
		"400 in words": func(w http.ResponseWriter, _ received) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`))
		},
	}
	for name, refuse := range refusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newMemoryRemote(t, nil)
				meet := make(chan struct{}) // closed when the server forgets
				server.on(func(w http.ResponseWriter, r received) bool {
					if r.msg.Method == mcp.MethodToolsCall && r.header.Get(mcp.HeaderSession) == "s1" {
						<-meet
						refuse(w, r)
						return true
					}
					return false
				})
				opts := inMemory(server)
				var gaps atomic.Int64
				opts.Gap = func() { gaps.Add(1) }
				c := begun(t, "http://h/mcp", opts)
				var calls sync.WaitGroup
				var sent atomic.Int64
				for range 20 {
					calls.Go(func() {
						call := toolCall("")
						call.Sent = func(jsonrpc.ID) { sent.Add(1) }
						if result, err := c.Do(t.Context(), call); err != nil || string(result.Raw) != `{"ok":true}` {
							t.Errorf("got %s, %v", result.Raw, err)
						}
					})
				}
				synctest.Wait()
				server.forget("s1")
				close(meet)
				calls.Wait()
				if got := server.all(mcp.MethodInitialize); len(got) != 2 || got[1].header.Get(mcp.HeaderSession) != "" || string(got[1].msg.Params.Raw) != string(got[0].msg.Params.Raw) {
					t.Errorf("%d initialize, the last %+v", len(got), got[len(got)-1])
				}
				if got := server.all(mcp.MethodInitialized); len(got) != 2 || got[1].header.Get(mcp.HeaderSession) != "s2" {
					t.Errorf("initialized: %+v", got)
				}
				perSession := map[string]int{}
				ids := map[string]bool{}
				for _, r := range server.all(mcp.MethodToolsCall) {
					perSession[r.header.Get(mcp.HeaderSession)]++
					ids[r.msg.ID.String()] = true
				}
				if perSession["s1"] != 20 || perSession["s2"] != 20 || len(ids) != 40 || sent.Load() != 40 {
					t.Errorf("calls per session %v, %d ids, Sent %d times", perSession, len(ids), sent.Load())
				}
				if gaps.Load() != 1 {
					t.Errorf("Gap was called %d times", gaps.Load())
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if got := server.all(http.MethodDelete); len(got) != 1 || got[0].header.Get(mcp.HeaderSession) != "s2" {
					t.Errorf("deleted %+v", got)
				}
			})
		})
	}
}

// A call that learns late that its old session is gone uses the new one.
func TestDialSessionLostLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, nil)
		late := make(chan struct{})
		server.on(func(w http.ResponseWriter, r received) bool {
			if r.header.Get(mcp.HeaderSession) != "s1" || r.msg.Method != mcp.MethodToolsCall {
				return false
			}
			<-late
			w.WriteHeader(http.StatusNotFound)
			return true
		})
		c := begun(t, "http://h/mcp", inMemory(server))
		var slow sync.WaitGroup
		slow.Go(func() {
			if _, err := c.Do(t.Context(), toolCall("")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		server.forget("s1")
		if _, err := c.Call(t.Context(), mcp.MethodPing, nil); err != nil {
			t.Fatal(err)
		}
		close(late)
		slow.Wait()
		if n := len(server.all(mcp.MethodInitialize)); n != 2 {
			t.Errorf("%d initialize", n)
		}
	})
}

// TestDialRenewalFails: one attempt for all that wait, none of them in a loop,
// and another with the next call.
func TestDialRenewalFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fail  func(w http.ResponseWriter, r received) bool
		want  string
		ended int // sessions that began in vain
	}{
		{"initialize refused", func(w http.ResponseWriter, r received) bool {
			if r.msg.Method == mcp.MethodInitialize {
				answerJSON(w, jsonrpc.AppendError(nil, r.msg.ID, jsonrpc.Errorf(-32603, "starting")))
			}
			return r.msg.Method == mcp.MethodInitialize
		}, "cannot be begun: starting (-32603)", 0},
		{"initialized refused", func(w http.ResponseWriter, r received) bool {
			if r.msg.Method == mcp.MethodInitialized {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			return r.msg.Method == mcp.MethodInitialized
		}, "cannot be begun: notifications/initialized: HTTP status 503", 1},
		{"new session unknown as well", func(w http.ResponseWriter, r received) bool {
			if r.msg.Method == mcp.MethodToolsCall {
				w.WriteHeader(http.StatusNotFound)
			}
			return r.msg.Method == mcp.MethodToolsCall
		}, "HTTP status 404", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newMemoryRemote(t, nil)
				broken, meet := atomic.Bool{}, make(chan struct{})
				c := begun(t, "http://h/mcp", inMemory(server))
				server.on(func(w http.ResponseWriter, r received) bool {
					if r.msg.Method == mcp.MethodInitialize {
						<-meet
					}
					return broken.Load() && tt.fail(w, r)
				})
				broken.Store(true)
				server.forget("s1")
				var calls sync.WaitGroup
				for range 20 {
					calls.Go(func() {
						_, err := c.Do(t.Context(), toolCall(""))
						if err == nil || !strings.Contains(err.Error(), tt.want) {
							t.Errorf("got %v", err)
						}
						if _, answered := errors.AsType[*jsonrpc.Error](err); answered {
							t.Errorf("the error passes for an answer to the call: %v", err)
						}
					})
				}
				synctest.Wait()
				close(meet)
				calls.Wait()
				if n := len(server.all(mcp.MethodInitialize)); n != 2 {
					t.Errorf("%d initialize", n)
				}
				if n := len(server.all(mcp.MethodToolsCall)); n > 40 {
					t.Errorf("%d calls", n)
				}
				if n := len(server.all(http.MethodDelete)); n != tt.ended {
					t.Errorf("%d sessions were ended", n)
				}
				broken.Store(false)
				if _, err := c.Do(t.Context(), toolCall("")); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

// A caller that leaves while a session is renewed does not take the others with it.
func TestDialRenewalOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, nil)
		c := begun(t, "http://h/mcp", inMemory(server))
		meet := make(chan struct{})
		server.on(func(_ http.ResponseWriter, r received) bool {
			if r.msg.Method == mcp.MethodInitialize {
				<-meet
			}
			return false
		})
		server.forget("s1")
		first, leave := context.WithCancelCause(t.Context())
		var calls sync.WaitGroup
		calls.Go(func() {
			if _, err := c.Do(first, toolCall("")); err != errTest {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		calls.Go(func() {
			if _, err := c.Do(t.Context(), toolCall("")); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		leave(errTest)
		synctest.Wait()
		close(meet)
		calls.Wait()
		if n := len(server.all(mcp.MethodInitialize)); n != 2 {
			t.Errorf("%d initialize", n)
		}
	})
}

// TestDialNotForgotten has failures that say nothing of the session, after which
// nothing is sent again.
func TestDialNotForgotten(t *testing.T) {
	for name, refuse := range map[string]func(w http.ResponseWriter, r received){
		"unknown method": func(w http.ResponseWriter, r received) {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(jsonrpc.AppendError(nil, r.msg.ID, jsonrpc.Errorf(-32601, "no such method")))
		},
		"400 under the call's id": func(w http.ResponseWriter, r received) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write(jsonrpc.AppendError(nil, r.msg.ID, jsonrpc.Errorf(-32000, "your shopping session is full")))
		},
		"400": func(w http.ResponseWriter, _ received) { w.WriteHeader(http.StatusBadRequest) },
		"500": func(w http.ResponseWriter, _ received) { http.Error(w, "session lost", http.StatusInternalServerError) },
		"404 to the resumption": func(w http.ResponseWriter, _ received) {
			startStream(w)
			say(w, "id: 1\ndata:\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newRemote(t, nil)
			c := begun(t, server.url, mcphttp.DialOptions{})
			server.on(func(w http.ResponseWriter, r received) bool {
				switch {
				case r.msg.Method == mcp.MethodToolsCall:
					refuse(w, r)
				case r.verb == http.MethodGet:
					w.WriteHeader(http.StatusNotFound)
				default:
					return false
				}
				return true
			})
			if _, err := c.Do(within10s(t), toolCall("")); err == nil {
				t.Error("no error")
			}
			if n := len(server.all(mcp.MethodToolsCall)); n != 1 {
				t.Errorf("sent %d times", n)
			}
			if n := len(server.all(mcp.MethodInitialize)); n != 1 {
				t.Errorf("%d initialize", n)
			}
		})
	}
}

// A server without sessions that answers 404 is not greeted again.
func TestDialNoSession(t *testing.T) {
	server := newRemote(t, func(w http.ResponseWriter, r received) bool {
		switch r.msg.Method {
		case mcp.MethodInitialize:
			answerJSON(w, jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{"protocolVersion":"2025-03-26"}`)))
		case mcp.MethodToolsCall:
			w.WriteHeader(http.StatusNotFound)
		default:
			return false
		}
		return true
	})
	c := begun(t, server.url, mcphttp.DialOptions{})
	if _, err := c.Do(within10s(t), toolCall("")); err == nil {
		t.Error("no error")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if a, b, d := len(server.all(mcp.MethodToolsCall)), len(server.all(mcp.MethodInitialize)), len(server.all(http.MethodDelete)); a != 1 || b != 1 || d != 0 {
		t.Errorf("%d calls, %d initialize, %d DELETE", a, b, d)
	}
}

// A second initialize ends the session before it.
func TestDialInitializeAgain(t *testing.T) {
	server := newRemote(t, nil)
	c := begun(t, server.url, mcphttp.DialOptions{})
	greet(t, c)
	if got := server.await(t, http.MethodDelete, 1); got[0].header.Get(mcp.HeaderSession) != "s1" {
		t.Errorf("deleted %q", got[0].header.Get(mcp.HeaderSession))
	}
	if _, err := c.Do(within10s(t), toolCall("")); err != nil {
		t.Error(err)
	}
	if got := server.all(mcp.MethodToolsCall); got[0].header.Get(mcp.HeaderSession) != "s2" {
		t.Errorf("the call is in session %q", got[0].header.Get(mcp.HeaderSession))
	}
}

// TestDialCancel: when a caller gives up, a stateless server sees its stream
// close; one with sessions is told in words, but not of initialize.
func TestDialCancel(t *testing.T) {
	for _, tt := range []cancelTest{
		{name: "stateless", method: mcp.MethodToolsCall, version: mcp.Latest},
		{name: "session", method: mcp.MethodToolsCall, told: true},
		{name: "session, kept", method: mcp.MethodToolsCall, keep: true},
		{name: "initialize", method: mcp.MethodInitialize},
	} {
		for _, streamed := range []bool{false, true} {
			name := fmt.Sprintf("%s streamed %v", tt.name, streamed)
			t.Run(name, func(t *testing.T) {
				server := newRemote(t, nil)
				testCancel(t, server, begun(t, server.url, mcphttp.DialOptions{}), tt, streamed, func() {})
			})
			t.Run(name+" in memory", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newMemoryRemote(t, nil)
					testCancel(t, server, begun(t, "http://h/mcp", inMemory(server)), tt, streamed, synctest.Wait)
				})
			})
		}
	}
}

type cancelTest struct {
	name    string
	method  string
	version mcp.Version
	keep    bool
	told    bool
}

func testCancel(t *testing.T, server *remote, c *mcphttp.Conn, tt cancelTest, streamed bool, settle func()) {
	closed := make(chan struct{})
	server.on(func(w http.ResponseWriter, r received) bool {
		if r.msg.Method != tt.method {
			return false
		}
		if streamed {
			startStream(w)
		}
		<-r.ctx.Done()
		close(closed)
		return true
	})
	ctx, cancel := context.WithCancelCause(within10s(t))
	call := toolCall(tt.version)
	call.Method, call.KeepOnCancel = tt.method, tt.keep
	var id jsonrpc.ID
	call.Sent = func(sent jsonrpc.ID) { id = sent }
	seen := len(server.all(tt.method))
	done := make(chan error, 1)
	go func() { // ends with ctx
		_, err := c.Do(ctx, call)
		done <- err
	}()
	server.await(t, tt.method, seen+1)
	cancel(errTest)
	if err := <-done; err != errTest {
		t.Errorf("got %v", err)
	}
	<-closed
	settle()
	if tt.told {
		got := server.await(t, mcp.MethodCanceled, 1)[0]
		want := fmt.Sprintf(`{"requestId":%s,"reason":"gone on purpose"}`, id)
		if string(got.msg.Params.Raw) != want || got.header.Get(mcp.HeaderSession) != "s1" {
			t.Errorf("told %s in %q, want %s", got.msg.Params.Raw, got.header.Get(mcp.HeaderSession), want)
		}
	}
	if n := len(server.all(mcp.MethodCanceled)); !tt.told && n != 0 {
		t.Errorf("told %d times", n)
	}
}

// TestDialTimeout: a silent server costs a caller its deadline and no more.
func TestDialTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, func(_ http.ResponseWriter, r received) bool {
			if r.msg.Method == mcp.MethodToolsCall {
				<-r.ctx.Done()
			}
			return r.msg.Method == mcp.MethodToolsCall
		})
		c := begun(t, "http://h/mcp", inMemory(server))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := c.Do(ctx, toolCall(""))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if n := len(server.all(mcp.MethodCanceled)); n != 1 {
			t.Errorf("the server was told %d times", n)
		}
		if _, err := c.Do(ctx, toolCall("")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if n := len(server.all(mcp.MethodToolsCall)); n != 1 {
			t.Errorf("%d calls were sent, one of them after its deadline", n)
		}
	})
}

// TestDialClose: what waits fails, the session is ended, and nothing is sent
// afterwards.
func TestDialClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, func(_ http.ResponseWriter, r received) bool {
			if r.msg.Method == mcp.MethodToolsCall {
				<-r.ctx.Done()
			}
			return r.msg.Method == mcp.MethodToolsCall
		})
		c := begun(t, "http://h/mcp", inMemory(server))
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				if _, err := c.Do(t.Context(), toolCall("")); !errors.Is(err, jsonrpc.ErrClosed) {
					t.Errorf("got %v", err)
				}
			})
		}
		synctest.Wait()
		for range 2 {
			calls.Go(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				<-c.Done()
			})
		}
		calls.Wait()
		if err := c.Err(); err != nil {
			t.Error(err)
		}
		n := len(server.all(""))
		if last := server.all("")[n-1]; last.verb != http.MethodDelete || len(server.all(http.MethodDelete)) != 1 {
			t.Errorf("the last request is %+v", last)
		}
		if _, err := c.Do(t.Context(), toolCall("")); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := c.Notify(t.Context(), "x", nil); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if len(server.all("")) != n || len(server.all(mcp.MethodCanceled)) != 0 {
			t.Error("something was sent after Close, or in vain")
		}
	})
}

// A session that begins while the Conn is closed is ended, as is one whose
// caller has left.
func TestDialSessionNobodyWants(t *testing.T) {
	for _, closing := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			server := newMemoryRemote(t, nil)
			server.on(func(w http.ResponseWriter, r received) bool {
				if r.msg.Method != mcp.MethodInitialize {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set(mcp.HeaderSession, "s1")
				w.(http.Flusher).Flush()
				<-r.ctx.Done()
				return true
			})
			c := dial(t, "http://h/mcp", inMemory(server))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var calls sync.WaitGroup
			calls.Go(func() {
				if _, err := c.Call(ctx, mcp.MethodInitialize, nil); err == nil {
					t.Error("no error")
				}
			})
			synctest.Wait()
			if closing {
				_ = c.Close()
			} else {
				cancel()
			}
			calls.Wait()
			synctest.Wait()
			if got := server.all(http.MethodDelete); len(got) != 1 || got[0].header.Get(mcp.HeaderSession) != "s1" {
				t.Errorf("closing %v: deleted %+v", closing, got)
			}
		})
	}
}

// A server that does not answer DELETE does not keep Close for long.
func TestDialCloseSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newMemoryRemote(t, func(_ http.ResponseWriter, r received) bool {
			if r.verb == http.MethodDelete {
				<-r.ctx.Done()
			}
			return r.verb == http.MethodDelete
		})
		c := begun(t, "http://h/mcp", inMemory(server))
		began := time.Now()
		if err := c.Close(); err != nil || time.Since(began) > 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

// TestDialChurn is C-182, smaller: sessions that are lost again and again leave
// neither connections nor goroutines behind.
func TestDialChurn(t *testing.T) {
	server := newRemote(t, nil)
	server.on(func(w http.ResponseWriter, r received) bool {
		if r.verb == http.MethodGet {
			startStream(w)
			<-r.ctx.Done()
			return true
		}
		return false
	})
	c := begun(t, server.url, mcphttp.DialOptions{})
	for i := range 300 {
		if i%10 == 9 {
			server.forget(fmt.Sprintf("s%d", server.sessions.Load()))
		}
		if _, err := c.Do(within10s(t), toolCall("")); err != nil {
			t.Fatal(err)
		}
	}
	if n := server.sessions.Load(); n != 31 {
		t.Errorf("%d sessions", n)
	}
	if n := server.opened.Load(); n > 80 {
		t.Errorf("%d connections were opened", n)
	}
	open := func() (n int) {
		for _, r := range server.all(http.MethodGet) {
			if r.ctx.Err() == nil {
				n++
			}
		}
		return n
	}
	eventually(t, "end of the old streams", func() bool { return open() <= 1 })
}

// TestDialRaces has everything at once, for the race detector.
func TestDialRaces(t *testing.T) {
	server := newRemote(t, nil)
	var n atomic.Int64
	server.on(func(w http.ResponseWriter, r received) bool {
		if r.verb == http.MethodGet {
			startStream(w)
			say(w, "id: 1\ndata: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"ping\"}\n\n", n.Load())
			return true
		}
		if n.Add(1)%20 == 0 {
			server.forget(fmt.Sprintf("s%d", server.sessions.Load()))
		}
		return false
	})
	c := begun(t, server.url, mcphttp.DialOptions{Gap: func() {}})
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for k := range 60 {
				ctx, cancel := context.WithCancel(within10s(t))
				if (i+k)%7 == 0 {
					time.AfterFunc(time.Duration(k)*10*time.Microsecond, cancel)
				}
				if i == 0 && k%20 == 0 {
					_, _ = c.Call(ctx, mcp.MethodInitialize, jsontext.Value(`{"protocolVersion":"2025-11-25"}`))
					_ = c.Notify(ctx, mcp.MethodInitialized, nil)
				}
				_, _ = c.Do(ctx, toolCall(""))
				cancel()
			}
		})
	}
	work.Go(func() {
		server.await(t, "", 150)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	work.Wait()
}
