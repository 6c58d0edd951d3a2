package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// mute has a backend not answer tool calls.
func mute(_ *mcptest.Peer, m *jsonrpc.Message) bool { return m.Method == mcp.MethodToolsCall }

// TestTimeout is C-134 for a wire: the deadline holds, the server is told, and
// the connection stays.
func TestTimeout(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		b := newBackend(v, "a")
		b.script(mute)
		g := run(t, upstream.Options{Dial: b.host.Dial, RequestTimeout: 2 * time.Second})
		synctest.Wait()
		began := time.Now()
		_, err := g.call(t.Context(), "a")
		late, ok := errors.AsType[*upstream.TimeoutError](err)
		if !ok || late.Server != "b1" || time.Since(began) != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if want := `server "b1" did not answer tools/call within 2s`; err.Error() != want {
			t.Errorf("error %q", err)
		}
		synctest.Wait()
		if p := b.host.Peer(); p.Count(mcp.MethodCanceled) != 1 || p.Count(mcp.MethodToolsCall) != 1 {
			t.Error("the server was not told, or was called again")
		}
		pass(time.Minute)
		g.wantState(t, upstream.Ready)
		if b.host.Dials() != 1 {
			t.Errorf("%d dials", b.host.Dials())
		}
	})
}

// TestProgressExtends: signs of progress move the deadline, up to MaxTimeout
// (C-132, C-133), also when the caller did not ask for any, who then is told none.
// One who did is told under its own token, as it spelled it (C-116); tokens that
// were not given out move nothing and are not passed on (C-119).
func TestProgressExtends(t *testing.T) {
	for _, test := range []struct {
		name, meta, invented string
		took                 time.Duration
		told                 int
	}{
		{"asked", `,"_meta":{"progressToken":"t\u0031"}`, "", 9500 * time.Millisecond, 9},
		{"asked by number", `,"_meta":{"progressToken":0}`, "", 9500 * time.Millisecond, 9},
		{"not asked", ``, "", 9500 * time.Millisecond, 0},
		{"invented token", `,"_meta":{"progressToken":"t1"}`, `"t1"`, 2 * time.Second, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { progressExtends(t, test.meta, test.invented, test.took, test.told) })
		})
	}
}

func progressExtends(t *testing.T, meta, invented string, took time.Duration, told int) {
	b := newBackend(mcp.V20251125, "a")
	b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
		if m.Method != mcp.MethodToolsCall {
			return false
		}
		got, err := jsonrpc.ParseObject(m.Params.Get("_meta"))
		if err != nil {
			t.Error(err)
		}
		token := string(got.Get("progressToken"))
		if invented != "" {
			token = invented
		}
		go func() { // ends after 20 s
			for range 20 {
				pass(time.Second)
				p.Notify(mcp.MethodProgress, `{"progressToken":`+token+`,"progress":1.50}`)
			}
		}()
		return true
	})
	g := run(t, upstream.Options{Dial: b.host.Dial, RequestTimeout: 2 * time.Second, MaxTimeout: 9500 * time.Millisecond})
	synctest.Wait()
	params, err := jsonrpc.ParseObject(jsontext.Value(`{"name":"a"` + meta + `}`))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards notes
	var notes []string
	began := time.Now()
	_, err = g.server.Call(t.Context(), upstream.Request{
		Method: mcp.MethodToolsCall, Params: params,
		Notify: func(_ string, params jsonrpc.Object) {
			mu.Lock()
			defer mu.Unlock()
			notes = append(notes, string(params.Raw))
		},
	})
	if got := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || got != took {
		t.Errorf("%v after %v, want %v", err, got, took)
	}
	pass(time.Minute)
	mu.Lock()
	heard := notes
	mu.Unlock()
	if len(heard) != told {
		t.Errorf("told %d times, want %d: once a second until the end, and never after it", len(heard), told)
	}
	for _, h := range heard {
		if want := `{"progressToken":` + strings.TrimSuffix(strings.TrimPrefix(meta, `,"_meta":{"progressToken":`), "}") + `,"progress":1.50}`; h != want {
			t.Fatalf("told %s, want %s", h, want)
		}
	}
}

// TestCallerGivesUp: a caller's own end is its own.
func TestCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(mute)
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(jsonrpc.ErrCanceled) })
		if _, err := g.call(ctx, "a"); !errors.Is(err, jsonrpc.ErrCanceled) {
			t.Error(err)
		}
		synctest.Wait()
		if b.host.Peer().Count(mcp.MethodCanceled) != 1 {
			t.Error("the server was not told")
		}
	})
}

// TestQueue: so many run, so many wait, one more is refused.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(mute)
		g := run(t, upstream.Options{Dial: b.host.Dial, MaxInFlight: 2, MaxQueue: 3})
		synctest.Wait()
		results := make(chan error, 5)
		for range 5 {
			go func() {
				_, err := g.call(t.Context(), "a")
				results <- err
			}()
		}
		synctest.Wait()
		if st := g.server.Status(); st.InFlight != 2 || st.Queued != 3 {
			t.Errorf("%d run, %d wait", st.InFlight, st.Queued)
		}
		_, err := g.call(t.Context(), "a")
		if busy, ok := errors.AsType[*upstream.BusyError](err); !ok || busy.Server != "b1" {
			t.Errorf("one more: %v", err)
		}
		p := b.host.Peer()
		answer := func() {
			for _, m := range p.Log() {
				if m.Method == mcp.MethodToolsCall {
					p.Reply(&m, "{}")
				}
			}
			synctest.Wait()
		}
		for range 3 {
			answer()
		}
		for range 5 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if st := g.server.Status(); st.InFlight != 0 || st.Queued != 0 {
			t.Errorf("%d run, %d wait", st.InFlight, st.Queued)
		}
	})
}

// TestDeadChild is C-046: what is in flight fails at once, is not repeated, and
// an answer that was written before the end is delivered.
func TestDeadChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(mute)
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		failed, answered := make(chan error, 5), make(chan error, 1)
		for range 5 {
			go func() {
				_, err := g.call(t.Context(), "a")
				failed <- err
			}()
		}
		synctest.Wait()
		go func() {
			_, err := g.call(t.Context(), "last")
			answered <- err
		}()
		synctest.Wait()
		p := b.host.Peer()
		log := p.Log()
		began := time.Now()
		p.Reply(&log[len(log)-1], "{}")
		p.Close()
		for range 5 {
			err := <-failed
			if c, ok := errors.AsType[*upstream.CallError](err); !ok || c.Server != "b1" || !strings.Contains(err.Error(), "tools/call") {
				t.Error(err)
			}
		}
		if err := <-answered; err != nil {
			t.Errorf("the answer that was written: %v", err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		pass(time.Minute)
		if n := b.host.Count(mcp.MethodToolsCall); n != 6 {
			t.Errorf("%d calls reached the server", n)
		}
	})
}

// TestServerErrors: what the server answers is passed on and harms no connection.
func TestServerErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodToolsCall {
				p.Raw(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"error":{"message":"x","code":-1,"more":1.0}}`)
			}
			return m.Method == mcp.MethodToolsCall
		})
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		_, err := g.call(t.Context(), "a")
		answer, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || string(jsonrpc.AppendError(nil, jsonrpc.IntID(1), answer)) != `{"jsonrpc":"2.0","id":1,"error":{"message":"x","code":-1,"more":1.0}}` {
			t.Errorf("%v", err)
		}
		b.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodToolsCall {
				p.Reply(m, "null")
			}
			return m.Method == mcp.MethodToolsCall
		})
		if _, err = g.call(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), `server "b1": tools/call: the server's result is null`) {
			t.Errorf("%v", err)
		}
		pass(time.Minute)
		g.wantState(t, upstream.Ready)
		if b.host.Dials() != 1 || b.host.Count(mcp.MethodToolsCall) != 2 {
			t.Errorf("%d dials", b.host.Dials())
		}
	})
}

// TestOtherNotifications go to the hook, in order, and no change does.
func TestOtherNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		p := b.host.Peer()
		p.Notify(mcp.MethodMessage, `{"level":"info","data":1}`)
		b.change(p)
		p.Notify(mcp.MethodUpdated, `{"uri":"x:1"}`)
		synctest.Wait()
		if got := g.noted(); got != "notifications/message notifications/resources/updated" {
			t.Errorf("got %s", got)
		}
	})
}

// web is a server over HTTP of which a test decides what it answers.
type web struct {
	backend *backend
	mu      sync.Mutex // guards the fields below
	fail    func(call *jsonrpc.Call) error
	headers []map[string]string // of tool calls
	in      client.Incoming
}

// webWire sends to a backend unless the web fails the request.
type webWire struct {
	client.Wire
	web  *web
	done chan struct{}
	once sync.Once
}

func (w *web) Dial(ctx context.Context, in client.Incoming) (client.Wire, error) {
	wire, err := w.backend.host.Dial(ctx, in)
	w.mu.Lock()
	w.in = in
	w.mu.Unlock()
	return &webWire{Wire: wire, web: w, done: make(chan struct{})}, err
}

func (w *web) set(fail func(call *jsonrpc.Call) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail = fail
}

func (w *webWire) Do(ctx context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	w.web.mu.Lock()
	fail := w.web.fail
	if call.Method == mcp.MethodToolsCall {
		w.web.headers = append(w.web.headers, call.Header)
	}
	w.web.mu.Unlock()
	if fail != nil {
		if err := fail(call); err != nil {
			return jsonrpc.Object{}, err
		}
	}
	return w.Wire.Do(ctx, call)
}

func (w *webWire) Done() <-chan struct{} { return w.done }
func (w *webWire) Close() error {
	w.once.Do(func() { close(w.done) })
	return w.Wire.Close()
}

type httpError struct {
	status int
	answer *jsonrpc.Error
}

func (e *httpError) Error() string    { return fmt.Sprintf("HTTP status %d", e.status) }
func (e *httpError) HTTPStatus() int  { return e.status }
func (e *httpError) HTTPBody() []byte { return nil }
func (e *httpError) Unwrap() error {
	if e.answer == nil {
		return nil
	}
	return e.answer
}

// TestHTTPFailures: which of them make a connection a failed one.
func TestHTTPFailures(t *testing.T) {
	refused := errors.New("connection refused")
	tests := []struct {
		name   string
		always bool // not only the call, but whatever is sent
		err    error
		state  upstream.State
	}{
		{"401", true, &httpError{status: 401}, upstream.Ready},
		{"403", true, &httpError{status: 403}, upstream.Ready},
		{"429", true, &httpError{status: 429}, upstream.Ready},
		{"one refused connection", false, refused, upstream.Ready},
		{"one 502", false, &httpError{status: 502}, upstream.Ready},
		{"the server's error", true, jsonrpc.Errorf(-32603, "no"), upstream.Ready},
		{"nobody listens", true, refused, upstream.Down},
		{"502 for everything", true, &httpError{status: 502}, upstream.Down},
		{"404 for everything", true, &httpError{status: 404}, upstream.Down},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eras(t, func(t *testing.T, v mcp.Version) {
				w := &web{backend: newBackend(v, "a")}
				g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
				pass(time.Second) // a stream may come
				w.set(func(call *jsonrpc.Call) error {
					if tt.always || call.Method == mcp.MethodToolsCall {
						return tt.err
					}
					return nil
				})
				if _, err := g.call(t.Context(), "a"); !errors.Is(err, tt.err) {
					t.Error(err)
				}
				synctest.Wait()
				g.wantState(t, tt.state)
				if g.published() != 1 || g.tools() != "a" {
					t.Errorf("published %d times", g.published())
				}
				w.set(nil)
				pass(5 * time.Second)
				g.wantState(t, upstream.Ready)
				if _, err := g.call(t.Context(), "a"); err != nil || g.published() != 1 {
					t.Errorf("%v, published %d times", err, g.published())
				}
			})
		})
	}
}

// TestEraChangesOverHTTP is C-204 over HTTP, where no process ends.
func TestEraChangesOverHTTP(t *testing.T) {
	answer := &httpError{status: 400, answer: &jsonrpc.Error{Code: -32022, Message: "no", Data: jsontext.Value(`{"supported":["2025-06-18"]}`)}}
	modern := &httpError{status: 400, answer: &jsonrpc.Error{Code: -32022, Message: "no", Data: jsontext.Value(`{"supported":["2026-07-28"]}`)}}
	tests := []struct {
		name    string
		from    mcp.Version
		to      mcp.Version
		old     error // what a request of the old version gets now
		repeats bool  // the call itself is repaired
	}{
		{"to sessions, plain 400", mcp.V20260728, mcp.V20250618, &httpError{status: 400}, false},
		{"to sessions, -32022", mcp.V20260728, mcp.V20250618, answer, true},
		{"to stateless", mcp.V20251125, mcp.V20260728, &httpError{status: 400, answer: jsonrpc.Errorf(-32602, "no _meta")}, false},
		{"to stateless, -32022", mcp.V20251125, mcp.V20260728, modern, true},
		{"to stateless, -32022 without versions", mcp.V20251125, mcp.V20260728, &httpError{status: 400, answer: jsonrpc.Errorf(-32022, "no")}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &web{backend: newBackend(tt.from, "a")}
				g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
				pass(time.Second) // a stream may come
				w.backend.mu.Lock()
				w.backend.version = tt.to
				w.backend.mu.Unlock()
				w.set(func(call *jsonrpc.Call) error {
					params, _ := jsonrpc.ParseObject(call.Params)
					meta := string(params.Get("_meta"))
					stateless := strings.Contains(meta, mcp.MetaVersion)
					if call.Method != mcp.MethodInitialize && stateless == tt.from.Stateless() {
						return tt.old
					}
					return nil
				})
				_, err := g.call(t.Context(), "a")
				if (err == nil) != tt.repeats {
					t.Errorf("the call that met it: %v", err)
				}
				pass(3 * time.Second)
				g.wantState(t, upstream.Ready)
				if v := g.server.Status().Version; v != tt.to {
					t.Errorf("version %s", v)
				}
				if _, err := g.call(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestEraChangesIntoNone: a server that suddenly speaks no version that we do is
// down, and a call that met that says so.
func TestEraChangesIntoNone(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		w := &web{backend: newBackend(v, "a")}
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		pass(time.Second) // a stream may come
		w.set(func(*jsonrpc.Call) error {
			return &httpError{status: 400, answer: &jsonrpc.Error{Code: -32022, Message: "no", Data: jsontext.Value(`{"supported":["2099-01-01"]}`)}}
		})
		for _, call := range []string{"a call that meets it", "a call later"} {
			_, err := g.call(t.Context(), "a")
			if _, down := errors.AsType[*upstream.UnavailableError](err); !down {
				t.Errorf("%s: %v", call, err)
			}
			if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
				t.Errorf("%s has the answer of another request: %v", call, answer)
			}
		}
		g.wantState(t, upstream.Down)
	})
}

// TestDownForAnAnswer: what a server answered when its connection was given up is
// no answer to the calls that come while it is down.
func TestDownForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{backend: newBackend(mcp.V20251125, "a")}
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		pass(time.Second) // a stream may come
		w.set(func(*jsonrpc.Call) error {
			return &httpError{status: 400, answer: jsonrpc.Errorf(-32022, "no")}
		})
		if _, err := g.call(t.Context(), "a"); err == nil {
			t.Error("the call that met it succeeded")
		}
		synctest.Wait()
		g.wantState(t, upstream.Down)
		_, err := g.call(t.Context(), "a")
		if _, down := errors.AsType[*upstream.UnavailableError](err); !down {
			t.Errorf("while the server is down: %v", err)
		}
		if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
			t.Errorf("a call has the answer of another request: %v", answer)
		}
	})
}

// TestHeaderMismatch: the tools are listed again and the call is made once more,
// with the fields that the new list asks for; once only.
func TestHeaderMismatch(t *testing.T) {
	for _, cured := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := &web{backend: newBackend(mcp.V20260728, "a")}
			g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
			pass(time.Second) // a stream may come
			w.backend.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				if m.Method == mcp.MethodToolsList {
					p.Reply(m, `{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"R"}}}}]}`)
				}
				return m.Method == mcp.MethodToolsList
			})
			w.set(func(call *jsonrpc.Call) error {
				if call.Method == mcp.MethodToolsCall && (call.Header["Mcp-Param-R"] != "v" || !cured) {
					return &httpError{status: 400, answer: jsonrpc.Errorf(mcp.CodeHeaderMismatch, "Mcp-Param-R is missing")}
				}
				return nil
			})
			params, _ := jsonrpc.ParseObject(jsontext.Value(`{"name":"a","arguments":{"r":"v"}}`))
			_, err := g.server.Call(t.Context(), upstream.Request{Method: mcp.MethodToolsCall, Params: params})
			if (err == nil) != cured || len(w.headers) != 2 || w.backend.listed() != 2 {
				t.Errorf("%v after %d calls and %d walks", err, len(w.headers), w.backend.listed())
			}
			synctest.Wait()
			g.wantState(t, upstream.Ready)
		})
	}
}

// TestGap: what a wire may have lost is looked for and asked for again.
func TestGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{backend: newBackend(mcp.V20251125, "a")}
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		g.server.Subscribe([]string{"x:1", "x:2"})
		pass(time.Second) // a stream may come
		g.server.Subscribe([]string{"x:2"})
		synctest.Wait()
		p := w.backend.host.Peer()
		if p.Count(mcp.MethodSubscribe) != 2 || p.Count(mcp.MethodUnsubscribe) != 1 {
			t.Errorf("subscribed %d times", p.Count(mcp.MethodSubscribe))
		}
		w.backend.set("a", "b")
		w.in.Gap()
		pass(time.Second)
		if g.tools() != "a b" || p.Count(mcp.MethodSubscribe) != 3 {
			t.Errorf("tools %q, subscribed %d times", g.tools(), p.Count(mcp.MethodSubscribe))
		}
	})
}

// TestCallsOutliveConnection: over HTTP a call that runs is not harmed when the
// connection is made anew.
func TestCallsOutliveConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{backend: newBackend(mcp.V20251125, "a")}
		w.backend.script(func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodToolsCall {
				time.AfterFunc(20*time.Second, func() { p.Reply(m, "{}") })
			}
			return m.Method == mcp.MethodToolsCall
		})
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		pass(time.Second) // a stream may come
		time.AfterFunc(time.Second, g.server.Restart)
		if _, err := g.call(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		g.wantState(t, upstream.Ready)
		if w.backend.host.Dials() != 2 {
			t.Errorf("%d dials", w.backend.host.Dials())
		}
	})
}

// loginError is a wire's word that a login is wanted.
type loginError struct{}

func (loginError) Error() string      { return "log in first" }
func (loginError) NeedsLogin() string { return "b1" }

// TestLoginWhileListing has a server want a login, once it is connected: for
// everything, and then it does not pass for one that only lists badly, or for one list.
func TestLoginWhileListing(t *testing.T) {
	for _, tt := range []struct {
		name  string
		wants func(method string) bool
		state upstream.State
	}{
		{"for everything", func(string) bool { return true }, upstream.NeedsLogin},
		{"for one list", func(method string) bool { return method == mcp.MethodPromptsList }, upstream.Degraded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			eras(t, func(t *testing.T, v mcp.Version) {
				w := &web{backend: newBackend(v, "a")}
				greeted := false
				w.set(func(call *jsonrpc.Call) error {
					switch {
					case call.Method == mcp.MethodInitialize, call.Method == mcp.MethodDiscover && !greeted:
						greeted = true
						return nil
					case call.Method == mcp.MethodPing, call.Method == mcp.MethodDiscover:
						pass(time.Second) // whoever says too early how the server is, says it now
					}
					if tt.wants(call.Method) {
						return loginError{}
					}
					return nil
				})
				g := run(t, upstream.Options{Dial: w.Dial, HTTP: true, BackoffMin: time.Hour, BackoffMax: time.Hour})
				pass(20 * time.Second)
				g.wantState(t, tt.state)
				g.mu.Lock()
				defer g.mu.Unlock()
				if tt.state == upstream.NeedsLogin && slices.Contains(g.states, upstream.Degraded) {
					t.Errorf("states %q", g.states)
				}
			})
		})
	}
}

// TestFirstGap: that a session's stream was opened is no reason to list twice.
func TestFirstGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{backend: newBackend(mcp.V20251125, "a")}
		w.backend.script(func(_ *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodInitialized {
				time.AfterFunc(50*time.Millisecond, w.in.Gap)
			}
			return false
		})
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		pass(time.Minute)
		if g.tools() != "a" || w.backend.listed() != 1 {
			t.Errorf("tools %q after %d walks", g.tools(), w.backend.listed())
		}
	})
}

// TestOwnStream: what comes on a call's own stream goes to the caller, but for
// list changes.
func TestOwnStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{backend: newBackend(mcp.V20251125, "a")}
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		pass(time.Second)
		w.backend.set("a", "b")
		w.set(func(call *jsonrpc.Call) error {
			for _, m := range []string{mcp.MethodProgress, mcp.Tools.ChangedMethod(), mcp.MethodMessage} {
				if call.Message != nil {
					call.Message(&jsonrpc.Message{Method: m})
				}
			}
			return nil
		})
		var got []string
		_, err := g.server.Call(t.Context(), upstream.Request{
			Method: mcp.MethodToolsCall,
			Notify: func(method string, _ jsonrpc.Object) { got = append(got, method) },
		})
		if err != nil || strings.Join(got, " ") != "notifications/message" {
			t.Errorf("got %q, %v", got, err)
		}
		pass(time.Second)
		if g.tools() != "a b" {
			t.Errorf("tools %q", g.tools())
		}
	})
}

// timeout is an error of a dialler.
type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// TestUnreachable: a host that does not answer to a dialler is away, though
// nobody can be asked for a sign of life in time.
func TestUnreachable(t *testing.T) {
	eras(t, func(t *testing.T, v mcp.Version) {
		w := &web{backend: newBackend(v, "a")}
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		pass(time.Second)
		w.set(func(*jsonrpc.Call) error {
			pass(30 * time.Second)
			return &net.OpError{Op: "dial", Net: "tcp", Err: timeout{}}
		})
		if _, err := g.call(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "i/o timeout") {
			t.Error(err)
		}
		pass(32 * time.Second)
		g.wantState(t, upstream.Down)
		if g.tools() != "a" {
			t.Errorf("tools %q", g.tools())
		}
		w.set(nil)
		pass(10 * time.Second)
		g.wantState(t, upstream.Ready)
	})
}

// TestRestartInFlight: a process that is restarted fails what it was doing.
func TestRestartInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBackend(mcp.V20251125, "a")
		b.script(mute)
		g := run(t, upstream.Options{Dial: b.host.Dial})
		synctest.Wait()
		time.AfterFunc(time.Second, g.server.Restart)
		began := time.Now()
		_, err := g.call(t.Context(), "a")
		if _, ok := errors.AsType[*upstream.CallError](err); !ok || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestDoubtsAreFew: a server that answers errors with odd statuses is asked for a
// sign of life once in a while, not for each.
func TestDoubtsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &web{backend: newBackend(mcp.V20251125, "a")}
		g := run(t, upstream.Options{Dial: w.Dial, HTTP: true})
		pass(time.Second)
		w.set(func(call *jsonrpc.Call) error {
			if call.Method == mcp.MethodToolsCall {
				return &httpError{status: 400, answer: jsonrpc.Errorf(-32602, "unknown tool")}
			}
			return nil
		})
		for range 100 {
			if _, err := g.call(t.Context(), "a"); err == nil {
				t.Error("no error")
			}
			pass(50 * time.Millisecond)
		}
		if n := w.backend.host.Count(mcp.MethodPing); n < 1 || n > 6 {
			t.Errorf("%d pings in 5 s", n)
		}
		g.wantState(t, upstream.Ready)
	})
}
