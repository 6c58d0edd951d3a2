package mcphttp_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcphttp"
)

// stress returns how often something is done: few times, or with ROSTER_STRESS=1
// in the environment as often as it takes to believe that nothing is left.
func stress(few, many int) int {
	if os.Getenv("ROSTER_STRESS") == "1" {
		return many
	}
	return few
}

// usage is what the process holds.
type usage struct {
	heap        uint64 // bytes
	goroutines  int
	descriptors int // 0 where they cannot be counted
}

func measure() usage {
	runtime.GC()
	runtime.GC() // what finalizers and pools let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	entries, _ := os.ReadDir("/proc/self/fd") // only Linux has it
	return usage{m.HeapAlloc, runtime.NumGoroutine(), len(entries)}
}

// backTo waits until the process holds no more than before, give or take what
// connection pools and the runtime keep.
func backTo(t *testing.T, e *endpoint, before usage) {
	t.Helper()
	const heapSlack, slack = 4 << 20, 8
	var now usage
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		e.client.CloseIdleConnections()
		now = measure()
		if now.heap <= before.heap+heapSlack && now.goroutines <= before.goroutines+slack && now.descriptors <= before.descriptors+slack {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("before %+v, now %+v", before, now)
		}
	}
}

// plain is do without what the test would keep of each response until it ends.
func (e *endpoint) plain(verb, body string, h hdr) (int, http.Header) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, verb, e.url, strings.NewReader(body))
	if err != nil {
		e.t.Error(err)
		return 0, nil
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range h {
		req.Header.Set(name, value)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		e.t.Error(err)
		return 0, nil
	}
	_, _ = io.Copy(io.Discard, resp.Body) // the status is what matters
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header
}

// inParallel runs n jobs on a few goroutines.
func inParallel(n int, job func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				job(i)
			}
		})
	}
	wg.Wait()
}

func TestLeakSessions(t *testing.T) { // C-177
	n := stress(500, 10_000)
	for _, tt := range []struct {
		name  string
		opts  mcphttp.HandlerOptions
		leave func(e *endpoint, h hdr)
		stay  int // sessions that may be left
	}{
		{"abandoned", mcphttp.HandlerOptions{SessionIdle: 200 * time.Millisecond}, func(*endpoint, hdr) {}, 0},
		{"deleted", mcphttp.HandlerOptions{}, func(e *endpoint, h hdr) {
			if status, _ := e.plain("DELETE", "", h); status != 204 {
				t.Errorf("DELETE: %d", status)
			}
		}, 0},
		{"over the cap", mcphttp.HandlerOptions{MaxSessions: 50}, func(*endpoint, hdr) {}, 50},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := serveHTTP(t, forgetful{}, tt.opts)
			session := func(int) {
				status, header := e.plain("POST", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`, nil)
				if status != 200 {
					t.Errorf("initialize: %d", status)
				}
				tt.leave(e, hdr{"Mcp-Session-Id": header.Get("Mcp-Session-Id")})
			}
			inParallel(50, session)
			eventually(t, "end of the first sessions", func() bool { return e.handler.Sessions() <= tt.stay })
			before := measure()
			inParallel(n, session)
			eventually(t, "end of the sessions", func() bool { return e.handler.Sessions() <= tt.stay })
			backTo(t, e, before)
		})
	}
}

// forgetful is a backend that keeps nothing of its sessions.
type forgetful struct{}

func (forgetful) Handle(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	switch req.Method {
	case "initialize":
		return jsontext.Value(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"t","version":"0"}}`), nil
	case "tools/call":
		for i := 0; ctx.Err() == nil; i++ {
			if err := req.Peer.Notify(ctx, "notifications/progress", jsontext.Value(fmt.Sprintf(`{"progress":%d,"x":"%s"}`, i, strings.Repeat("x", 500)))); err != nil {
				return nil, err
			}
			if i == 50 { // and then it hangs until the client has gone
				<-ctx.Done()
			}
		}
		return nil, context.Cause(ctx)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")
}

func TestLeakStreams(t *testing.T) {
	n := stress(300, 10_000)
	e := serveSSE(t, forgetful{}, mcphttp.HandlerOptions{})
	host := strings.TrimPrefix(e.url, "http://")
	session := e.at("/mcp").initialize("2025-11-25")
	session["Accept"] = "text/event-stream"
	body, header := modernCall("1", "t")
	header["Accept"], header["Content-Type"] = "application/json, text/event-stream", "application/json"
	reset := func(i int) {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		switch i % 3 {
		case 0:
			sendRaw(conn, host, "GET", "/sse", "", hdr{"Accept": "text/event-stream"})
		case 1:
			sendRaw(conn, host, "GET", "/mcp", "", session)
		case 2:
			sendRaw(conn, host, "POST", "/mcp", body, header)
		}
		// The stream of the session says nothing behind its first event.
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
		_, _ = io.CopyN(io.Discard, conn, rand.Int64N(4000)) // the reset is to hit any point
		_ = conn.(*net.TCPConn).SetLinger(0)
	}
	inParallel(30, reset)
	eventually(t, "end of the first streams", func() bool { return e.handler.Sessions() == 1 })
	before := measure()
	inParallel(n, reset)
	eventually(t, "end of the streams", func() bool { return e.handler.Sessions() == 1 })
	backTo(t, e, before)
}

// sendRaw writes a request.
func sendRaw(w io.Writer, host, method, path, body string, h hdr) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n", method, path, host, len(body))
	for name, value := range h {
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	_, _ = io.WriteString(w, b.String()+"\r\n"+body) // the reader will see
}

func TestLeakRefusals(t *testing.T) {
	n := stress(2000, 50_000)
	b := &backend{}
	e := serveSSE(t, b, mcphttp.HandlerOptions{MaxBody: 4 << 10})
	mcp := e.at("/mcp")
	good, header := modern("1", "tools/list", "")
	mismatch := hdr{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}
	rows := []struct {
		at     *endpoint
		verb   string
		body   string
		header hdr
		status int
	}{
		{mcp, "POST", "{", nil, 400},
		{mcp, "POST", strings.Repeat("[", 3000), nil, 400},
		{mcp, "POST", strings.Repeat("x", 5000), nil, 413},
		{mcp, "POST", good, mismatch, 400},
		{mcp, "POST", good, hdr{"Origin": "https://evil.example"}, 403},
		{mcp, "POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, hdr{"Mcp-Session-Id": "none"}, 404},
		{mcp, "GET", "", hdr{"Mcp-Session-Id": "none"}, 404},
		{mcp, "PUT", "", nil, 405},
		{mcp, "POST", good, hdr{"Content-Type": "text/plain"}, 415},
		{mcp, "POST", strings.Replace(good, "tools/list", "no/such", 1), hdr{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "no/such"}, http.StatusNotFound},
		{e.at("/messages?sessionId=none"), "POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil, 404},
		{e.at("/sse"), "GET", "", hdr{"Accept": "text/html"}, 406},
	}
	if a := mcp.post(good, header); a.status != 200 {
		t.Fatalf("a good request: %d", a.status)
	}
	refused := func(i int) {
		row := rows[i%len(rows)]
		if status, _ := row.at.plain(row.verb, row.body, row.header); status != row.status {
			t.Errorf("%+v: status %d", row, status)
		}
	}
	inParallel(200, refused)
	before := measure()
	inParallel(n, refused)
	backTo(t, e, before)
}
