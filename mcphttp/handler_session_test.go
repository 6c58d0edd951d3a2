package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// hanging is a tool that says when it runs, and when and why its context ended.
type hanging struct {
	running chan struct{}
	ended   chan error
}

func newHanging() *hanging {
	return &hanging{make(chan struct{}, 16), make(chan error, 16)}
}

func (h *hanging) Handle(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) {
	h.running <- struct{}{}
	<-ctx.Done()
	h.ended <- context.Cause(ctx)
	return nil, context.Cause(ctx)
}

func (h *hanging) cause(t *testing.T) error {
	t.Helper()
	select {
	case err := <-h.ended:
		return err
	case <-time.After(patience):
		t.Fatal("the context did not end")
		return nil
	}
}

func TestSessionStaleID(t *testing.T) {
	// C-083, C-082
	e := serveHTTP(t, &backend{}, mcphttp.HandlerOptions{})
	stale := hdr{"Mcp-Session-Id": "stale", "Mcp-Protocol-Version": "2025-11-25"}
	a := e.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`, stale)
	id := a.header.Get("Mcp-Session-Id")
	if a.status != 200 || id == "" || id == "stale" {
		t.Fatalf("initialize: %d, session %q", a.status, id)
	}
	if a := e.post(list, stale); a.status != 404 {
		t.Errorf("stale id afterwards: %d", a.status)
	}
	if a := e.post(list, hdr{"Mcp-Session-Id": id}); a.status != 200 {
		t.Errorf("new id: %d", a.status)
	}
}

func TestSessionRefused(t *testing.T) {
	e := serveHTTP(t, &backend{}, mcphttp.HandlerOptions{})
	a := e.post(`{"jsonrpc":"2.0","id":"r","method":"initialize","params":{"protocolVersion":"2025-11-25","refuse":1}}`, nil)
	if id, code := messageID(t, a.body); a.status != 200 || id != `"r"` || code != -32602 || a.header.Get("Mcp-Session-Id") != "" {
		t.Errorf("%d %s %v", a.status, a.body, a.header)
	}
	if n := e.handler.Sessions(); n != 0 {
		t.Errorf("%d sessions", n)
	}
}

func TestSessionDelete(t *testing.T) {
	// C-084
	hang := newHanging()
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"hang": hang.Handle}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	one, two := e.initialize("2025-11-25"), e.initialize("2025-11-25")
	call := make(chan answer, 1)
	go func() { call <- e.post(legacyCall(`"c"`, "hang"), one) }()
	within(t, "the call", wait(hang.running))
	if a := e.do("DELETE", "", one); a.status != 204 || a.body != "" {
		t.Errorf("DELETE: %d %s", a.status, a.body)
	}
	if err := hang.cause(t); !errors.Is(err, jsonrpc.ErrSessionClosed) {
		t.Errorf("the call ended with %v", err)
	}
	if a := <-call; !strings.Contains(a.body, `"id":"c"`) {
		t.Errorf("the call was answered with %d %s", a.status, a.body)
	}
	within(t, "the end of the session", b.session(0).Done())
	for _, method := range []string{"POST", "GET", "DELETE"} {
		if a := e.do(method, list, one); a.status != 404 {
			t.Errorf("%s with the id of a deleted session: %d", method, a.status)
		}
	}
	if a := e.post(list, two); a.status != 200 {
		t.Errorf("the other session: %d", a.status)
	}
	if a := e.do("DELETE", "", hdr{"Mcp-Session-Id": "never"}); a.status != 404 {
		t.Errorf("DELETE of an unknown session: %d", a.status)
	}
}

func TestSessionStrayNotification(t *testing.T) {
	// C-086
	e := serveHTTP(t, &backend{}, mcphttp.HandlerOptions{})
	session := e.initialize("2025-11-25")
	a := e.post(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, nil)
	if id, code := messageID(t, a.body); a.status != 400 || id != "" || code != -32600 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := e.post(list, session); a.status != 200 {
		t.Errorf("the session afterwards: %d", a.status)
	}
}

func TestSessionPrincipal(t *testing.T) {
	e := serveHTTP(t, &backend{}, mcphttp.HandlerOptions{
		Principal: func(r *http.Request) string { return r.Header.Get("X-Who") },
	})
	a := e.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, hdr{"X-Who": "ann"})
	id := a.header.Get("Mcp-Session-Id")
	for who, want := range map[string]int{"ann": 200, "bob": 404, "": 404} {
		h := hdr{"Mcp-Session-Id": id, "X-Who": who}
		if a := e.post(list, h); a.status != want {
			t.Errorf("POST by %q: %d", who, a.status)
		}
		if who != "ann" {
			if a := e.do("DELETE", "", h); a.status != want {
				t.Errorf("DELETE by %q: %d", who, a.status)
			}
			if a := e.do("GET", "", h); a.status != want {
				t.Errorf("GET by %q: %d", who, a.status)
			}
		}
	}
}

func TestSessionCap(t *testing.T) {
	const most = 6
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{MaxSessions: most})
	var all []hdr
	for range most {
		all = append(all, e.initialize("2025-11-25"))
	}
	for _, i := range []int{0, 1, 3, 4, 5} { // 2 is idle for longest now
		e.post(list, all[i])
	}
	all = append(all, e.initialize("2025-11-25"))
	within(t, "the end of the longest idle session", b.session(2).Done())
	ctx, leave := context.WithCancel(testContext(t))
	defer leave()
	for i, h := range all {
		want := 200
		if i == 2 {
			want = 404
		}
		if a := e.post(list, h); a.status != want {
			t.Errorf("session %d: %d", i, a.status)
		}
		if want == 200 {
			e.stream(ctx, "GET", "", h).must() // no session with an open stream is idle
		}
	}
	a := e.post(`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}`, nil)
	if id, code := messageID(t, a.body); a.status != 503 || id != "9" || code != jsonrpc.CodeInternal {
		t.Errorf("initialize when none is idle: %d %s", a.status, a.body)
	}
	if n := e.handler.Sessions(); n != most {
		t.Errorf("%d sessions", n)
	}
}

func TestSessionLeak(t *testing.T) {
	// C-177, scaled: sessions whose clients never send DELETE, then such as do.
	const n = 300
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{SessionIdle: 50 * time.Millisecond})
	e.initialize("2025-11-25")
	within(t, "the end of the first session", b.session(0).Done())
	before := runtime.NumGoroutine()
	for range n {
		e.initialize("2025-11-25")
	}
	for i := range n {
		within(t, "the end of an idle session", b.session(1+i).Done())
	}
	for range n {
		if a := e.do("DELETE", "", e.initialize("2025-11-25")); a.status != 204 && a.status != 404 {
			t.Fatalf("DELETE: %d", a.status)
		}
	}
	if left := e.handler.Sessions(); left != 0 {
		t.Errorf("%d sessions left", left)
	}
	if after := runtime.NumGoroutine(); after > before+5 {
		t.Errorf("%d goroutines, %d before", after, before)
	}
}

func TestSessionInUseIsNotIdle(t *testing.T) {
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{SessionIdle: 20 * time.Millisecond})
	kept := e.initialize("2025-06-18")
	ctx, leave := context.WithCancel(testContext(t))
	defer leave()
	e.stream(ctx, "GET", "", kept)
	e.initialize("2025-06-18")
	within(t, "the end of the idle session", b.session(1).Done())
	select {
	case <-b.session(0).Done():
		t.Error("a session with an open stream was ended")
	default:
	}
}

func TestSessionCancel(t *testing.T) {
	// C-091 for the id 0; a cancelled request is answered without a message.
	for _, id := range []string{"0", `"a\u0062"`} {
		hang := newHanging()
		noted := func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			if err := req.Peer.Notify(ctx, "notifications/message", nil); err != nil {
				return nil, err
			}
			return hang.Handle(ctx, req)
		}
		b := &backend{tools: map[string]jsonrpc.HandlerFunc{"hang": hang.Handle, "noted": noted}}
		e := serveHTTP(t, b, mcphttp.HandlerOptions{})
		session := e.initialize("2025-06-18")
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + strings.ReplaceAll(id, `\u0062`, "b") + `}}`
		for _, tool := range []string{"hang", "noted"} {
			call := make(chan answer, 1)
			go func() { call <- e.post(legacyCall(id, tool), session) }()
			within(t, "the call", wait(hang.running))
			if a := e.post(cancel, e.initialize("2025-06-18")); a.status != 202 {
				t.Errorf("cancel from another session: %d", a.status)
			}
			if a := e.post(legacyCall(id, tool), session); a.status != 400 || !strings.Contains(a.body, "in use") {
				t.Errorf("an id that is in use: %d %s", a.status, a.body)
			}
			if a := e.post(cancel, session); a.status != 202 {
				t.Errorf("cancel: %d", a.status)
			}
			if err := hang.cause(t); err != jsonrpc.ErrCanceled {
				t.Errorf("cause %v", err)
			}
			a := <-call
			if a.status != 200 || a.header.Get("Content-Type") != "text/event-stream" || strings.Contains(a.body, `"id"`) {
				t.Errorf("%s: %d %s %q", tool, a.status, a.header.Get("Content-Type"), a.body)
			}
			if a := e.post(strings.Replace(list, "1", id, 1), session); a.status != 200 {
				t.Errorf("the id again: %d", a.status)
			}
		}
	}
}

func TestDisconnect(t *testing.T) {
	for _, era := range []string{"2026-07-28", "2025-11-25", "2025-03-26"} {
		for _, streaming := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s streaming %v", era, streaming), func(t *testing.T) {
				running, release, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
				b := &backend{tools: map[string]jsonrpc.HandlerFunc{"t": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
					if streaming {
						_ = req.Peer.Notify(ctx, "notifications/message", nil)
					}
					close(running)
					select {
					case <-ctx.Done():
					case <-release:
					}
					ended <- context.Cause(ctx)
					return nil, nil
				}}}
				e := serveHTTP(t, b, mcphttp.HandlerOptions{StreamAfter: -1})
				ctx, leave := context.WithCancel(testContext(t))
				body, h := modernCall("1", "t")
				if era != "2026-07-28" {
					body, h = legacyCall("1", "t"), e.initialize(era)
				}
				left := make(chan struct{})
				go func() {
					defer close(left)
					req, _ := http.NewRequestWithContext(ctx, "POST", e.url, strings.NewReader(body))
					req.Header.Set("Content-Type", "application/json")
					for k, v := range h {
						req.Header.Set(k, v)
					}
					resp, err := e.client.Do(req)
					if err == nil {
						buf := make([]byte, 1<<10)
						for err == nil {
							_, err = resp.Body.Read(buf)
						}
						resp.Body.Close()
					}
				}()
				within(t, "the call", running)
				leave()
				within(t, "the disconnect", left)
				if era != "2026-07-28" {
					// A second connection is served after the first is known to be
					// closed; the call goes on.
					e.post(list, h)
					close(release)
				}
				select {
				case err := <-ended:
					if want := era == "2026-07-28"; errors.Is(err, jsonrpc.ErrCanceled) != want {
						t.Errorf("context ended with %v", err)
					}
				case <-time.After(patience):
					t.Fatal("the call did not end")
				}
			})
		}
	}
}

func TestPeerCall(t *testing.T) {
	asked, proceed := make(chan error, 1), make(chan struct{})
	ask := func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		res, err := req.Peer.Call(ctx, "elicitation/create", jsontext.Value(`{"message":"?"}`))
		if err != nil {
			return nil, err
		}
		return res.Raw, nil
	}
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{
		"ask": ask,
		"impatient": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(10*time.Millisecond, func() { cancel(errors.New("bored")) })
			return ask(ctx, req)
		},
		"careless": func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			go func() {
				_, err := req.Peer.Call(context.Background(), "ping", nil)
				asked <- err
			}()
			<-proceed
			return nil, nil
		},
	}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-06-18")

	t.Run("answered", func(t *testing.T) {
		s := e.stream(testContext(t), "POST", legacyCall("7", "ask"), session)
		m, err := jsonrpc.Parse([]byte(s.must().data))
		if err != nil || m.Method != "elicitation/create" || string(m.Params.Raw) != `{"message":"?"}` {
			t.Fatalf("request %+v, %v", m, err)
		}
		other := e.initialize("2025-06-18")
		reply := func(h hdr, text string) int {
			return e.post(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"who":"`+text+`"}}`, h).status
		}
		if a, b := reply(other, "stranger"), reply(session, "me"); a != 202 || b != 202 {
			t.Errorf("replies: %d, %d", a, b)
		}
		if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":7,"result":{"who":"me"}}` {
			t.Errorf("answer %+v", ev)
		}
		s.atEnd()
	})
	t.Run("answered with an error", func(t *testing.T) {
		s := e.stream(testContext(t), "POST", legacyCall("7", "ask"), session)
		m, _ := jsonrpc.Parse([]byte(s.must().data))
		e.post(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":{"code":-1,"message":"no","x":1.50}}`, session)
		if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":7,"error":{"code":-1,"message":"no","x":1.50}}` {
			t.Errorf("answer %+v", ev)
		}
	})
	t.Run("given up", func(t *testing.T) {
		s := e.stream(testContext(t), "POST", legacyCall("7", "impatient"), session)
		m, _ := jsonrpc.Parse([]byte(s.must().data))
		if ev := s.must(); ev.data != `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+m.ID.String()+`,"reason":"bored"}}` {
			t.Errorf("cancel %+v", ev)
		}
		s.must()
		s.atEnd()
	})
	t.Run("outlived", func(t *testing.T) {
		s := e.stream(testContext(t), "POST", legacyCall("7", "careless"), session)
		m, _ := jsonrpc.Parse([]byte(s.must().data))
		close(proceed)
		if ev := s.must(); !strings.Contains(ev.data, `"notifications/cancelled","params":{"requestId":`+m.ID.String()+`,`) {
			t.Errorf("cancel %+v", ev)
		}
		if ev := s.must(); !strings.Contains(ev.data, `"id":7`) {
			t.Errorf("answer %+v", ev)
		}
		s.atEnd()
		select {
		case err := <-asked:
			if err == nil {
				t.Error("a call behind the answer succeeded")
			}
		case <-time.After(patience):
			t.Fatal("the call hangs")
		}
	})
	t.Run("stateless", func(t *testing.T) {
		body, h := modernCall("7", "ask")
		if a := e.post(body, h); !strings.Contains(a.body, "cannot be asked") {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("session ends", func(t *testing.T) {
		s := e.stream(testContext(t), "POST", legacyCall("7", "ask"), session)
		s.must()
		e.do("DELETE", "", session)
		if ev := s.must(); !strings.Contains(ev.data, jsonrpc.ErrSessionClosed.Error()) {
			t.Errorf("answer %+v", ev)
		}
	})
}

func TestSessionNotificationsInOrder(t *testing.T) {
	// Notifications of one session are handled one at a time, those of another
	// do not wait for them.
	entered, release := make(chan string, 3), make(chan struct{})
	h := jsonrpc.HandlerFunc(func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		if req.Method == mcp.MethodInitialize {
			return jsontext.Value(`{"protocolVersion":"2025-06-18"}`), nil
		}
		entered <- req.Method
		<-release
		return nil, nil
	})
	e := serveHTTP(t, h, mcphttp.HandlerOptions{})
	one, two := e.initialize("2025-06-18"), e.initialize("2025-06-18")
	var wg sync.WaitGroup
	note := func(method string, h hdr) {
		wg.Go(func() { e.post(`{"jsonrpc":"2.0","method":"`+method+`"}`, h) })
	}
	note("a", one)
	<-entered
	note("b", one)
	note("c", two)
	if got := <-entered; got != "c" {
		t.Errorf("%s was handled beside a", got)
	}
	close(release)
	if got := <-entered; got != "b" {
		t.Errorf("then %s", got)
	}
	wg.Wait()
}
