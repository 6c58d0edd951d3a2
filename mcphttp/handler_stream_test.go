package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcphttp"
)

// noisy sends ten notes and returns at once.
func noisy(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	for i := range 10 {
		if err := req.Peer.Notify(ctx, "notifications/progress", jsontext.Value(fmt.Sprintf(`{"progress":%d}`, i))); err != nil {
			return nil, err
		}
	}
	return jsontext.Value("{\n\t\"a\": 1.50,\r\n\"b\": \"x\"}"), nil
}

func note(i int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d}}`, i)
}

func TestStreamOrder(t *testing.T) {
	// C-125, scaled
	e := serveHTTP(t, &backend{tools: map[string]jsonrpc.HandlerFunc{"noisy": noisy}}, mcphttp.HandlerOptions{})
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"} {
		t.Run(version, func(t *testing.T) {
			body, h := modernCall("1", "noisy")
			if version != "2026-07-28" {
				body, h = legacyCall("1", "noisy"), e.initialize(version)
			}
			for range 100 {
				s := e.stream(testContext(t), "POST", body, h)
				if version == "2025-11-25" {
					if ev := s.must(); ev.id == "" || ev.data != "" || ev.retry == "" {
						t.Fatalf("priming event %+v", ev)
					}
				}
				for i := range 10 {
					ev := s.must()
					if ev.data != note(i) || (ev.id != "") != (version == "2025-11-25") || ev.retry != "" {
						t.Fatalf("event %d: %+v", i, ev)
					}
				}
				if ev := s.must(); ev.data != `{"jsonrpc":"2.0","id":1,"result":{ 	"a": 1.50,  "b": "x"}}` {
					t.Fatalf("response %+v", ev)
				}
				s.atEnd()
				s.body.Close()
			}
		})
	}
}

func TestStreamFlushesEachEvent(t *testing.T) {
	// C-071: in lock step, so that an event which is held back stops the test.
	next := make(chan struct{})
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"step": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		for i := range 10 {
			if err := req.Peer.Notify(ctx, "notifications/progress", jsontext.Value(fmt.Sprintf(`{"progress":%d}`, i))); err != nil {
				return nil, err
			}
			<-next
		}
		return nil, nil
	}}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	body, h := modernCall("1", "step")
	h["Accept-Encoding"] = "gzip"
	s := e.stream(testContext(t), "POST", body, h)
	for i := range 10 {
		if ev := s.must(); ev.data != note(i) {
			t.Fatalf("event %d: %+v", i, ev)
		}
		next <- struct{}{}
	}
	s.must()
	s.atEnd()
}

func TestStreamNotifyAfterAnswer(t *testing.T) {
	peers := make(chan jsonrpc.Peer, 2)
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"t": func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		peers <- req.Peer
		return nil, nil
	}}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	body, h := modernCall("1", "t")
	e.post(body, h)
	if err := (<-peers).Notify(testContext(t), "x", nil); err == nil {
		t.Error("a notification behind the answer was taken")
	}
}

func TestStreamResume(t *testing.T) {
	step, cut := make(chan struct{}), make(chan struct{})
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"t": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		for i := range 6 {
			if i == 3 {
				<-step
			}
			if err := req.Peer.Notify(ctx, "notifications/progress", jsontext.Value(fmt.Sprintf(`{"progress":%d}`, i))); err != nil {
				return nil, err
			}
		}
		<-cut
		return jsontext.Value(`{}`), nil
	}}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-11-25")
	ctx, leave := context.WithCancel(testContext(t))
	first := e.stream(ctx, "POST", legacyCall("1", "t"), session)
	ids := []string{first.must().id}
	for i := range 3 {
		ev := first.must()
		if ev.data != note(i) {
			t.Fatalf("event %d: %+v", i, ev)
		}
		ids = append(ids, ev.id)
	}
	standing := e.stream(testContext(t), "GET", "", session)
	standing.must()
	leave()
	close(step)

	resume := func(id string) *events {
		h := hdr{"Last-Event-Id": id}
		for k, v := range session {
			h[k] = v
		}
		s := e.stream(testContext(t), "GET", "", h)
		if ev := s.must(); ev.id != id || ev.data != "" {
			t.Fatalf("resumed with %+v", ev)
		}
		return s
	}
	second := resume(ids[2])
	for i := 2; i < 6; i++ {
		if ev := second.must(); ev.data != note(i) {
			t.Fatalf("event %d: %+v", i, ev)
		}
	}
	close(cut)
	if ev := second.must(); ev.data != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Fatalf("response %+v", ev)
	}
	second.atEnd()

	again := resume(ids[0]) // all is done by now
	for i := range 6 {
		if ev := again.must(); ev.data != note(i) {
			t.Fatalf("event %d: %+v", i, ev)
		}
	}
	again.must()
	again.atEnd()

	if err := b.session(0).Peer.Notify(ctx, "still", nil); err != nil {
		t.Fatal(err)
	}
	if ev := standing.must(); ev.data != `{"jsonrpc":"2.0","method":"still"}` {
		t.Errorf("the session's own stream: %+v", ev)
	}
	for _, id := range []string{"zz-1", "0", "-", "0-x", strings.Repeat("9", 100)} {
		h := hdr{"Last-Event-Id": id}
		for k, v := range session {
			h[k] = v
		}
		if a := e.do("GET", "", h); a.status != 400 {
			t.Errorf("Last-Event-ID %q: %d", id, a.status)
		}
	}
	h := hdr{"Last-Event-Id": ids[0]}
	for k, v := range e.initialize("2025-11-25") {
		h[k] = v
	}
	if a := e.do("GET", "", h); a.status != 400 {
		t.Errorf("an event of another session: %d %s", a.status, a.body)
	}
}

func TestStreamResumeIsBounded(t *testing.T) {
	const notes = 2000
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"t": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		for i := range notes {
			if err := req.Peer.Notify(ctx, "notifications/progress", jsontext.Value(fmt.Sprintf(`{"progress":%d}`, i))); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}, "short": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		return nil, req.Peer.Notify(ctx, "x", nil)
	}}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{QueueMessages: 10 * notes})
	session := e.initialize("2025-11-25")
	s := e.stream(testContext(t), "POST", legacyCall("1", "t"), session)
	first := s.must().id
	for range notes + 1 {
		s.must()
	}
	s.atEnd()
	h := hdr{"Last-Event-Id": first}
	for k, v := range session {
		h[k] = v
	}
	s = e.stream(testContext(t), "GET", "", h)
	s.must()
	n, last := 0, event{}
	for {
		ev, err := s.next()
		if err == io.EOF {
			break
		}
		n, last = n+1, ev
	}
	if n > 512 || n < 500 || !strings.Contains(last.data, `"result"`) {
		t.Errorf("%d events again, the last %+v", n, last)
	}
	for range 20 { // streams that are done are kept for a few requests only
		s := e.stream(testContext(t), "POST", legacyCall("1", "short"), session)
		for range 3 {
			s.must()
		}
		s.atEnd()
	}
	if a := e.do("GET", "", h); a.status != 400 {
		t.Errorf("an old stream: %d", a.status)
	}
}

func TestStandingStream(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2025-06-18"} {
		t.Run(version, func(t *testing.T) {
			b := &backend{}
			e := serveHTTP(t, b, mcphttp.HandlerOptions{})
			session := e.initialize(version)
			peer := b.session(0).Peer
			say := func(method string) {
				t.Helper()
				if err := peer.Notify(testContext(t), method, nil); err != nil {
					t.Fatal(err)
				}
			}
			open := func(ctx context.Context) *events {
				s := e.stream(ctx, "GET", "", session)
				if version == "2025-11-25" {
					s.must()
				}
				return s
			}
			expect := func(s *events, method string) {
				t.Helper()
				if ev := s.must(); ev.data != `{"jsonrpc":"2.0","method":"`+method+`"}` {
					t.Fatalf("got %+v, want %s", ev, method)
				}
			}
			say("before")
			one := open(testContext(t))
			expect(one, "before")
			say("first")
			expect(one, "first")
			two := open(testContext(t))
			one.atEnd() // replaced
			say("second")
			expect(two, "second")

			got := make(chan error, 1)
			go func() {
				res, err := peer.Call(testContext(t), "roots/list", nil)
				if err == nil && string(res.Raw) != `{"roots":[]}` {
					err = fmt.Errorf("result %s", res.Raw)
				}
				got <- err
			}()
			m, _ := jsonrpc.Parse([]byte(two.must().data))
			e.post(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":{"roots":[]}}`, session)
			if err := <-got; err != nil {
				t.Error(err)
			}
			e.do("DELETE", "", session)
			two.atEnd()
			if err := peer.Notify(testContext(t), "late", nil); !errors.Is(err, jsonrpc.ErrSessionClosed) {
				t.Errorf("after the end: %v", err)
			}
			if _, err := peer.Call(testContext(t), "late", nil); !errors.Is(err, jsonrpc.ErrSessionClosed) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}

func TestStandingStreamQueueIsBounded(t *testing.T) {
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-06-18")
	peer := b.session(0).Peer
	lost := make(chan error, 1)
	go func() {
		_, err := peer.Call(testContext(t), "roots/list", nil)
		lost <- err
	}()
	big := jsontext.Value(`"` + strings.Repeat("x", 64<<10) + `"`)
	var err error
	for i := range 10_000 {
		if nerr := peer.Notify(testContext(t), fmt.Sprint("n", i), big); nerr != nil {
			t.Fatal(nerr)
		}
		select {
		case err = <-lost:
		default:
			continue
		}
		break
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call that was pushed out of the queue: %v", err)
	}
	if err := peer.Notify(testContext(t), "last", nil); err != nil {
		t.Fatal(err)
	}
	s := e.stream(testContext(t), "GET", "", session)
	size := 0
	for {
		ev := s.must()
		size += len(ev.data)
		if strings.Contains(ev.data, `"last"`) {
			break
		}
	}
	if size > 2<<20 || size < 1<<19 {
		t.Errorf("%d bytes were kept", size)
	}
}

// deafClient sends a request and never reads.
func deafClient(t *testing.T, e *endpoint, method, body string, h hdr) {
	t.Helper()
	addr := strings.TrimPrefix(e.url, "http://")
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	writeRequest(t, conn, addr, method, body, h)
}

func writeRequest(t *testing.T, conn net.Conn, host, method, body string, h hdr) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", method, host, len(body))
	for k, v := range h {
		fmt.Fprintf(&b, "%s: %s\r\n", k, v)
	}
	if _, err := io.WriteString(conn, b.String()+"\r\n"+body); err != nil {
		t.Fatal(err)
	}
}

func TestStreamSlowReader(t *testing.T) {
	// A client that does not read is dropped when too much waits for it. Who
	// sends to it never waits, and other clients do not notice.
	piece := jsontext.Value(`"` + strings.Repeat("x", 32<<10) + `"`)
	const bound = 1 << 20
	flood := func(ctx context.Context, peer jsonrpc.Peer) (sent int, longest time.Duration, err error) {
		for sent < 256<<20 {
			begin := time.Now()
			if err := peer.Notify(ctx, "n", piece); err != nil {
				return sent, longest, err
			}
			longest = max(longest, time.Since(begin))
			sent += len(piece)
		}
		return sent, longest, nil
	}
	type outcome struct {
		sent    int
		longest time.Duration
		err     error
		cause   error
	}
	results := make(chan outcome, 1)
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{
		"flood": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
			sent, longest, err := flood(ctx, req.Peer)
			if req.Session == nil {
				select {
				case <-ctx.Done():
				case <-time.After(patience):
				}
			}
			results <- outcome{sent, longest, err, context.Cause(ctx)}
			return nil, err
		},
	}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{QueueBytes: bound})
	modernBody, modernHeader := modernCall("1", "flood")
	session := e.initialize("2025-06-18")
	for _, era := range []string{"stateless", "session"} {
		t.Run(era, func(t *testing.T) {
			body, h := modernBody, modernHeader
			if era == "session" {
				body, h = legacyCall("1", "flood"), session
			}
			deafClient(t, e, "POST", body, h)
			if a := e.post(list, e.initialize("2025-06-18")); a.status != 200 {
				t.Errorf("another client: %d", a.status)
			}
			select {
			case r := <-results:
				// What the kernel's buffers took in comes on top.
				if r.err == nil || r.sent > bound+32<<20 {
					t.Errorf("%d bytes were taken, then %v", r.sent, r.err)
				}
				if r.longest > patience/2 {
					t.Errorf("a notification waited %v", r.longest)
				}
				if era == "stateless" && !errors.Is(r.cause, jsonrpc.ErrCanceled) {
					t.Errorf("the request's context ended with %v", r.cause)
				}
			case <-time.After(2 * patience):
				t.Fatal("the flood hangs")
			}
		})
	}
	t.Run("standing", func(t *testing.T) {
		deafClient(t, e, "GET", "", session)
		peer := b.session(0).Peer
		var err error
		for range 8192 {
			if err = peer.Notify(testContext(t), "n", piece); err != nil {
				break
			}
		}
		if err == nil {
			t.Error("the deaf client was never dropped")
		}
		if a := e.post(list, session); a.status != 200 { // only the stream is lost
			t.Errorf("the session afterwards: %d", a.status)
		}
		s := e.stream(testContext(t), "GET", "", session)
		if err := peer.Notify(testContext(t), "end", nil); err != nil {
			t.Fatal(err)
		}
		for !strings.Contains(s.must().data, `"end"`) {
		}
	})
}

// pipeListener accepts connections without buffers: a write blocks until the
// other end reads. writes is told of each that begins.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	writes chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return &tellingConn{c, l.writes}, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

type tellingConn struct {
	net.Conn
	writes chan struct{}
}

func (c *tellingConn) Write(p []byte) (int, error) {
	select {
	case c.writes <- struct{}{}:
	default:
	}
	return c.Conn.Write(p)
}

func TestStreamBlockedWrite(t *testing.T) {
	// A write that is under way when its client is dropped does not hold the
	// request, however long a write may take.
	l := &pipeListener{make(chan net.Conn), make(chan struct{}), make(chan struct{}, 1)}
	done := make(chan error, 1)
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"flood": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		err := req.Peer.Notify(ctx, "n", nil)
		<-l.writes // blocked from here on
		for err == nil {
			err = req.Peer.Notify(ctx, "n", nil)
		}
		<-ctx.Done()
		done <- context.Cause(ctx)
		return nil, err
	}}}
	h := mcphttp.NewHandler(b, mcphttp.HandlerOptions{WriteTimeout: time.Hour, QueueMessages: 10})
	server := &http.Server{Handler: h}
	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(l) })
	near, far := net.Pipe()
	l.conns <- far
	body, header := modernCall("1", "flood")
	writeRequest(t, near, "localhost", "POST", body, header)
	select {
	case err := <-done:
		if !errors.Is(err, jsonrpc.ErrCanceled) {
			t.Errorf("the request's context ended with %v", err)
		}
	case <-time.After(patience):
		t.Fatal("the request hangs in a write")
	}
	if err := h.Close(testContext(t)); err != nil {
		t.Errorf("Close: %v", err)
	}
	_ = server.Close()
	near.Close()
	wg.Wait()
}

func TestBatch(t *testing.T) {
	// C-205
	hang := newHanging()
	started := make(chan struct{}, 2)
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{
		"noisy": noisy, "hang": hang.Handle,
		"pair": func(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) { // ends when two run
			started <- struct{}{}
			for len(started) < 2 && ctx.Err() == nil {
				select {
				case <-ctx.Done():
				case <-time.After(time.Millisecond):
				}
			}
			return nil, nil
		},
	}}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-03-26")
	const response = `{"jsonrpc":"2.0","id":77,"result":{}}`
	const notification = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

	for name, body := range map[string]string{"notifications": "[" + notification + "," + notification + "]", "responses": "[" + response + "]"} {
		if a := e.post(body, session); a.status != 202 || a.body != "" {
			t.Errorf("%s: %d %q", name, a.status, a.body)
		}
	}
	a := e.post("["+notification+","+list+","+response+`,{"jsonrpc":"2.0","id":"x","method":"no/such"},{"jsonrpc":"2.0","id":9},{"jsonrpc":"2.0","id":5,"method":"initialize","params":{}}]`, session)
	answers, err := jsonrpc.Elements(jsontext.Value(a.body))
	got := map[string]int{}
	for _, x := range answers {
		id, code := messageID(t, string(x))
		got[id] = code
	}
	want := map[string]int{"1": 0, `"x"`: -32601, "9": -32600, "5": -32600}
	if a.status != 200 || err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("mixed: %d %s", a.status, a.body)
	}
	a = e.post("["+legacyCall("1", "pair")+","+legacyCall("2", "pair")+"]", session)
	if answers, err := jsonrpc.Elements(jsontext.Value(a.body)); err != nil || len(answers) != 2 {
		t.Errorf("pair: %d %s", a.status, a.body)
	}

	s := e.stream(testContext(t), "POST", "["+legacyCall("1", "noisy")+","+list[:22]+`2,"method":"tools/list"}]`, session)
	ids, notes := map[string]bool{}, 0
	for range 12 {
		m, err := jsonrpc.Parse([]byte(s.must().data))
		if err != nil {
			t.Fatal(err)
		}
		if m.Method != "" {
			notes++
		} else {
			ids[m.ID.String()] = true
		}
	}
	s.atEnd()
	if notes != 10 || !ids["1"] || !ids["2"] {
		t.Errorf("%d notes, responses to %v", notes, ids)
	}

	var wg sync.WaitGroup
	var cancelled answer
	wg.Go(func() { cancelled = e.post("["+legacyCall("3", "hang")+"]", session) })
	within(t, "the call", wait(hang.running))
	e.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`, session)
	wg.Wait()
	if cancelled.status != 200 || cancelled.body != "" {
		t.Errorf("a batch of which all was cancelled: %d %q", cancelled.status, cancelled.body)
	}

	before := b.calls.Load()
	for name, c := range map[string]struct {
		body   string
		h      hdr
		status int
		code   int
	}{
		"empty":           {"[]", session, 400, -32600},
		"no message":      {"[1]", session, 400, -32600},
		"not JSON":        {"[" + list, session, 400, -32700},
		"too many":        {"[" + strings.Repeat(notification+",", 1024) + notification + "]", session, 400, -32600},
		"no session":      {"[" + list + "]", nil, 400, -32600},
		"unknown session": {"[" + list + "]", hdr{"Mcp-Session-Id": "x"}, 404, -32001},
		"other version":   {"[" + list + "]", hdr{"Mcp-Session-Id": session["Mcp-Session-Id"], "Mcp-Protocol-Version": "2025-06-18"}, 400, -32600},
	} {
		a := e.post(c.body, c.h)
		if id, code := messageID(t, a.body); a.status != c.status || id != "" || code != c.code {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	if b.calls.Load() != before {
		t.Error("the handler was called for a batch that was refused")
	}
}
