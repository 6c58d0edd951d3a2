package mcphttp_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

type answerTest struct {
	name     string
	response reply
	want     string // the result, or what the error says
	code     int    // of a *jsonrpc.Error
	status   int    // of a *StatusError
}

// TestDialAnswers has the forms in which an answer comes, at once and in pieces:
// C-059, C-061 to C-063, C-069, C-070, C-075.
func TestDialAnswers(t *testing.T) {
	const (
		ok    = `{"jsonrpc":"2.0","id":"@ID","result":{"n":1.0}}`
		sse   = "text/event-stream"
		plain = "application/json"
	)
	tests := []answerTest{
		{name: "JSON", response: respond("200 OK", plain, ok), want: `{"n":1.0}`},
		{name: "C-069 JSON in capitals", response: respond("200 OK", "Application/JSON;charset=UTF-8", ok), want: `{"n":1.0}`},
		{name: "C-069 SSE with charset", response: reply{"200 OK", "text/event-stream; charset=utf-8", "data: " + ok + "\n\n", chunked}, want: `{"n":1.0}`},
		{name: "C-069 no type, JSON", response: respond("200 OK", "", "\n "+ok), want: `{"n":1.0}`},
		{name: "C-069 no type, long JSON", response: respond("200 OK", "", `{"x":"`+strings.Repeat("x", 2000)+`",`+ok[1:]), want: `{"n":1.0}`},
		{name: "C-069 no type, text", response: respond("200 OK", "", "hello"), want: `HTTP status 200 OK, content type "", body begins "hello"`, status: 200},
		{name: "C-069 HTML with JSON in it", response: respond("200 OK", "text/html", ok), want: `HTTP status 200 OK, content type "text/html", body begins "{\"jsonrpc\"`, status: 200},
		{name: "C-070 a page", response: respond("200 OK", "text/html; charset=utf-8", "<!doctype html><p>"), want: `body begins "<!doctype html><p>"`, status: 200},
		{name: "C-070 empty", response: respond("200 OK", plain, ""), want: "HTTP status 200 OK, content type \"application/json\", empty body", status: 200},
		{name: "C-070 empty, no type", response: respond("200 OK", "", ""), want: "empty body", status: 200},
		{name: "202 for a request", response: respond("202 Accepted", "", ""), want: "HTTP status 202 Accepted", status: 202},
		{name: "white space only", response: respond("200 OK", plain, " \n"), want: "HTTP status 200 OK", status: 200},
		{name: "array", response: respond("200 OK", plain, `[{"jsonrpc":"2.0","method":"notifications/x"},`+ok+`]`), want: `{"n":1.0}`},
		{name: "array in an event", response: stream("data: [" + ok + "]\n\n"), want: `{"n":1.0}`},
		{name: "empty array", response: respond("200 OK", plain, `[]`), want: "no answer to the request"},
		{name: "another's answer", response: respond("200 OK", plain, `{"jsonrpc":"2.0","id":"x","result":{}}`), want: "no answer to the request"},
		{name: "broken JSON", response: respond("200 OK", plain, `{"jsonrpc":"2.0","id":"@ID","result":{`), want: "the server's message is invalid: not valid JSON"},
		{name: "broken JSON in an event", response: stream("data: {\"jsonrpc\n\ndata: " + ok + "\n\n"), want: "the server's message is invalid"},
		{name: "broken notification in an event", response: stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":3}\n\ndata: " + ok + "\n\n"), want: `{"n":1.0}`},
		{name: "event of another type", response: stream("event: ping\ndata: 12:30\n\nevent: message\ndata: " + ok + "\n\n"), want: `{"n":1.0}`},
		{name: "events of a server with a store", response: stream("id: 5f_1\ndata: \n\nevent: message\nid: 5f_2\ndata: " + ok + "\n\n"), want: `{"n":1.0}`},
		{name: "error", response: respond("200 OK", plain, `{"jsonrpc":"2.0","id":"@ID","error":{"code":-32000,"message":"no"}}`), want: "no (-32000)", code: -32000},
		{name: "error under another id", response: stream(`data: {"jsonrpc":"2.0","id":"server-error","error":{"code":-32000,"message":"no"}}` + "\n\n"), want: "stream closed before the response"},
		{name: "error with id null", response: respond("200 OK", plain, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`), want: "no (-32600)", code: -32600},
		{name: "error with id null in a 400", response: respond("400 Bad Request", plain, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`), want: "HTTP status 400 Bad Request: Bad Request: Server not initialized (-32000)", code: -32000, status: 400},
		{name: "error without id in a 400", response: respond("400 Bad Request", plain, `{"jsonrpc":"2.0","error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"]}}}`), want: "no (-32022)", code: -32022, status: 400},
		{name: "error of another type in a 404", response: respond("404 Not Found", "text/plain", `{"jsonrpc":"2.0","id":"@ID","error":{"code":-32601,"message":"no"}}`), want: "no (-32601)", code: -32601, status: 404},
		{name: "status without body", response: respond("405 Method Not Allowed", "", ""), want: "HTTP status 405 Method Not Allowed", status: 405},
		{name: "status with a page", response: respond("502 Bad Gateway", "text/html", "<p>sorry"), want: `HTTP status 502 Bad Gateway, content type "text/html", body begins "<p>sorry"`, status: 502},
		{name: "status of nobody", response: respond("599", "", ""), want: "HTTP status 599", status: 599},
		{name: "C-075 stream without response", response: stream("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n"), want: "stream closed before the response"},
		{name: "C-075 stream torn off", response: reply{"200 OK", sse, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n", torn}, want: "stream closed before the response: "},
		{name: "body shorter than said", response: reply{"200 OK", plain, ok, short}, want: "reading the response"},
	}
	for _, file := range []string{"crlf.sse", "multiline_data.sse", "comments.sse", "priming.sse", "ends_without_response.sse"} {
		want := `{"content":[{"type":"text","text":"ok"}]}`
		if file == "ends_without_response.sse" {
			want = "stream closed before the response"
		}
		if file == "multiline_data.sse" {
			want = "{\"content\":[{\"type\":\"text\",\n\"text\":\"ok\"}]}"
		}
		tests = append(tests, answerTest{name: file, response: stream(fixture(t, "sse", file)), want: want})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, piece := range []int{1 << 20, 1} {
				server := newRawRemote(t, func(conn net.Conn, _ *http.Request, body string) bool {
					writePieces(conn, tt.response.to(body), piece)
					return false
				})
				c := dial(t, server.url, mcphttp.DialOptions{})
				result, err := c.Do(within10s(t), toolCall(mcp.Latest))
				checkAnswer(t, result, err, tt.want, tt.code, tt.status)
				if n := len(server.bodies()); n != 1 {
					t.Errorf("the call was sent %d times", n)
				}
			}
		})
	}
}

func fixture(t testing.TB, dir, file string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", dir, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// checkAnswer compares a result or an error.
func checkAnswer(t *testing.T, result jsonrpc.Object, err error, want string, code, status int) {
	t.Helper()
	if strings.HasPrefix(want, "{") {
		if err != nil || string(result.Raw) != want {
			t.Errorf("got %s, %v; want %s", result.Raw, err, want)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Fatalf("got %s, error %v; want %q", result.Raw, err, want)
	}
	rpc, answered := errors.AsType[*jsonrpc.Error](err)
	if answered != (code != 0) || answered && rpc.Code != code {
		t.Errorf("JSON-RPC error %v, want code %d", rpc, code)
	}
	if answered && !rpc.FromPeer() {
		t.Error("the error is not the server's own")
	}
	e, ok := errors.AsType[*mcphttp.StatusError](err)
	if ok != (status != 0) || ok && e.HTTPStatus() != status {
		t.Errorf("HTTP status error %v, want %d", e, status)
	}
}

// TestDialNotifications is C-066: what servers say to a notification.
func TestDialNotifications(t *testing.T) {
	hung := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: still here\n"
	for _, tt := range []struct{ name, response, want string }{
		{"202", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", ""},
		{"202 text", fixture(t, "http", "notif_202_text.http"), ""},
		{"200 empty", fixture(t, "http", "notif_200_empty.http"), ""},
		{"200 JSON", respond("200 OK", "application/json", "{}").to(""), ""},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", ""},
		{"a stream that stays open", hung, ""},
		{"400", respond("400 Bad Request", "application/json", `{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}`).to(""), "HTTP status 400 Bad Request: no (-32600)"},
		{"500", respond("500 Internal Server Error", "", "").to(""), "HTTP status 500"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newRawRemote(t, func(conn net.Conn, _ *http.Request, body string) bool {
				if strings.Contains(body, `"id"`) {
					writePieces(conn, pong.to(body), 1<<20)
				} else {
					writePieces(conn, tt.response, 1<<20)
				}
				if tt.response == hung && !strings.Contains(body, `"id"`) {
					_, _ = io.Copy(io.Discard, conn) // until the client closes it
				}
				return true
			})
			c := dial(t, server.url, mcphttp.DialOptions{})
			ctx := within10s(t)
			err := c.Notify(ctx, "notifications/x", nil)
			if ctx.Err() != nil {
				t.Error("waited for the end of the body")
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if _, err := c.Call(within10s(t), mcp.MethodPing, nil); err != nil {
				t.Errorf("the next call: %v", err)
			}
		})
	}
}

// TestDialProgressAtOnce is C-073: what comes before the result is not held back
// until it. The server sends the result only when the progress was seen.
func TestDialProgressAtOnce(t *testing.T) {
	seen := make(chan struct{})
	server := newRemote(t, func(w http.ResponseWriter, r received) bool {
		startStream(w)
		say(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n\n")
		select {
		case <-seen:
		case <-r.ctx.Done():
		}
		say(w, "data: %s\n\n", jsonrpc.AppendResult(nil, r.msg.ID, jsontext.Value(`{}`)))
		return true
	})
	c := dial(t, server.url, mcphttp.DialOptions{Notification: func(*jsonrpc.Message) { t.Error("not for the connection") }})
	call := toolCall(mcp.Latest)
	call.Message = func(m *jsonrpc.Message) {
		if m.Method == mcp.MethodProgress {
			close(seen)
		}
	}
	if _, err := c.Do(within10s(t), call); err != nil {
		t.Error(err)
	}
}

// TestDialHeaders has what requests say of themselves: C-199, and that a
// stateless request is never in a session.
func TestDialHeaders(t *testing.T) {
	server := newRemote(t, nil)
	server.on(func(w http.ResponseWriter, r received) bool {
		if r.msg.Method == mcp.MethodInitialize {
			server.begin(w, r, "2025-06-18")
			return true
		}
		return false
	})
	c := dial(t, server.url, mcphttp.DialOptions{Header: http.Header{
		"authorization": {"Bearer x"}, "X-Many": {"1", "2"}, "Mcp-Session-Id": {"forged"}, "Accept": {"text/html"},
		"Mcp-Protocol-Version": {"1999-01-01"}, "Accept-Encoding": {"gzip"}, "Content-Type": {"text/html"},
	}})
	if _, err := c.Do(within10s(t), toolCall(mcp.Latest)); err != nil {
		t.Fatal(err)
	}
	greet(t, c)
	get := server.await(t, http.MethodGet, 1)[0]
	call := toolCall("")
	call.Header = map[string]string{"traceparent": "00-1", "mcp-session-id": "forged", "mcp-protocol-version": "1999-01-01"}
	if _, err := c.Do(within10s(t), call); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(within10s(t), toolCall(mcp.Latest)); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	calls := server.all(mcp.MethodToolsCall)
	for _, tt := range []struct {
		name             string
		got              received
		session, version string
		accept           string
	}{
		{"stateless before a session", calls[0], "", "2026-07-28", "application/json, text/event-stream"},
		{"initialize", server.all(mcp.MethodInitialize)[0], "", "", "application/json, text/event-stream"},
		{"initialized", server.all(mcp.MethodInitialized)[0], "s1", "2025-06-18", "application/json, text/event-stream"},
		{"GET", get, "s1", "2025-06-18", "text/event-stream"},
		{"in the session", calls[1], "s1", "2025-06-18", "application/json, text/event-stream"},
		{"stateless beside the session", calls[2], "", "2026-07-28", "application/json, text/event-stream"},
		{"DELETE", server.all(http.MethodDelete)[0], "s1", "2025-06-18", "text/event-stream"},
	} {
		h := tt.got.header
		if h.Get(mcp.HeaderSession) != tt.session || h.Get(mcp.HeaderVersion) != tt.version || h.Get("Accept") != tt.accept {
			t.Errorf("%s: header %v", tt.name, h)
		}
		if h.Get("Authorization") != "Bearer x" || !slices.Equal(h["X-Many"], []string{"1", "2"}) || h.Get("Accept-Encoding") != "" {
			t.Errorf("%s: configured fields in %v", tt.name, h)
		}
		if tt.got.verb == http.MethodPost && h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: content type %q", tt.name, h.Get("Content-Type"))
		}
	}
	if got := calls[1].header.Get("Traceparent"); got != "00-1" {
		t.Errorf("the call's own field: %q", got)
	}
	if got := calls[2].header.Get(mcp.HeaderName); got != "x" {
		t.Errorf("Mcp-Name: %q", got)
	}
}

func TestDialHost(t *testing.T) {
	hosts := make(chan string, 1)
	server := newRawRemote(t, func(conn net.Conn, req *http.Request, body string) bool {
		hosts <- req.Host
		writePieces(conn, pong.to(body), 1<<20)
		return true
	})
	c := dial(t, server.url, mcphttp.DialOptions{Header: http.Header{"Host": {"inner.example"}}})
	if _, err := c.Call(within10s(t), mcp.MethodPing, nil); err != nil {
		t.Fatal(err)
	}
	if got := <-hosts; got != "inner.example" {
		t.Errorf("asked for host %q", got)
	}
}

// TestDialRedirects: a request is repeated as it is at the same origin, and
// nowhere else.
func TestDialRedirects(t *testing.T) {
	stolen := newRemote(t, nil)
	for _, tt := range []struct {
		name, location string
		status         int
		want           string // of the error; "": followed
	}{
		{"307 to another path", "/other", 307, ""},
		{"308 to the whole URL", "SELF/other?x=1", 308, ""},
		{"307 with a user", "http://u:p@HOST/other", 307, ""},
		{"302", "/other", 302, "HTTP status 302 Found to SELF/other, which is not followed"},
		{"301", "/other", 301, "HTTP status 301"},
		{"303", "/other", 303, "HTTP status 303"},
		{"307 to another origin", stolen.url + "?secret=1", 307, "HTTP status 307 Temporary Redirect to " + stolen.url + ", which is not followed"},
		{"308 to another scheme", "https://HOST/mcp", 308, "HTTP status 308 Permanent Redirect to https://HOST/mcp, which"},
		{"307 without location", "", 307, "HTTP status 307"},
		{"307 to nonsense", "http://%zz", 307, "HTTP status 307"},
		{"307 for ever", "/mcp", 307, "HTTP status 307 Temporary Redirect to SELF/mcp"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := newRemote(t, nil)
			self := strings.TrimSuffix(server.url, "/mcp")
			expand := strings.NewReplacer("SELF", self, "HOST", strings.TrimPrefix(self, "http://")).Replace
			calls := 0
			server.on(func(w http.ResponseWriter, r received) bool {
				calls++
				if calls > 1 && tt.location != "/mcp" {
					return false
				}
				if tt.location != "" {
					w.Header().Set("Location", expand(tt.location))
				}
				w.WriteHeader(tt.status)
				return true
			})
			c := dial(t, server.url, mcphttp.DialOptions{Header: http.Header{"Authorization": {"Bearer x"}}})
			_, err := c.Do(within10s(t), toolCall(mcp.Latest))
			got := server.all("")
			if tt.want != "" {
				if err == nil || !strings.HasPrefix(err.Error(), expand(tt.want)) || strings.Contains(err.Error(), "secret") {
					t.Errorf("got %v", err)
				}
				if len(got) > 5 || tt.location != "/mcp" && len(got) != 1 {
					t.Errorf("%d requests", len(got))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != 2 || got[1].verb != http.MethodPost || got[1].body != got[0].body || got[1].header.Get("Authorization") != "Bearer x" {
				t.Errorf("got %+v", got)
			}
		})
	}
	if n := len(stolen.all("")); n != 0 {
		t.Errorf("another origin got %d requests", n)
	}
}

// TestDialAtMostOnce: a request that may have been read is not sent again, even
// if the connection was an old one and the configuration invites it.
func TestDialAtMostOnce(t *testing.T) {
	server := newRawRemote(t, func(conn net.Conn, _ *http.Request, body string) bool {
		if strings.Contains(body, mcp.MethodToolsCall) {
			return false
		}
		writePieces(conn, pong.to(body), 1<<20)
		return true
	})
	c := dial(t, server.url, mcphttp.DialOptions{Header: http.Header{"Idempotency-Key": {"k"}, "x-idempotency-key": {"k"}}})
	if _, err := c.Call(within10s(t), mcp.MethodPing, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(within10s(t), toolCall("")); err == nil {
		t.Error("no error")
	}
	if got := server.bodies(); len(got) != 2 {
		t.Errorf("the server got %q", got)
	}
}

// TestDialSecrets: no error has what of the URL may be secret.
func TestDialSecrets(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := ln.Addr().String()
	_ = ln.Close()
	var failures []error
	for _, url := range []string{
		"http://user:hunter2@" + gone + "/mcp?token=hunter2",
		"http://user:hunter2/x@h",
		"http://h/%zz?token=hunter2",
		"http://h:hunter2",
		"ftp://user:hunter2@h/",
		"hunter2",
		"http:///hunter2",
	} {
		c, err := mcphttp.Dial(context.Background(), url, mcphttp.DialOptions{})
		if err == nil {
			_, err = c.Call(within10s(t), mcp.MethodPing, nil)
			failures = append(failures, c.Notify(within10s(t), "x", nil))
			_ = c.Close()
		}
		failures = append(failures, err)
	}
	redirecting := newRemote(t, func(w http.ResponseWriter, _ received) bool {
		w.Header().Set("Location", "https://user:hunter2@example.com/?token=hunter2")
		w.WriteHeader(http.StatusTemporaryRedirect)
		return true
	})
	c := dial(t, strings.Replace(redirecting.url, "http://", "http://user:hunter2@", 1)+"?token=hunter2", mcphttp.DialOptions{})
	_, err = c.Call(within10s(t), mcp.MethodPing, nil)
	failures = append(failures, err)
	for _, err := range failures {
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("got %v", err)
		}
	}
	if got := redirecting.all("")[0].header.Get("Authorization"); got != "Basic dXNlcjpodW50ZXIy" {
		t.Errorf("the URL's user is sent as %q", got)
	}
}

// TestDialStatusError: what a refusal has for those who can act on it.
func TestDialStatusError(t *testing.T) {
	server := newRemote(t, func(w http.ResponseWriter, _ received) bool {
		w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://x"`)
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(strings.Repeat("x", 5000)))
		return true
	})
	c := dial(t, server.url, mcphttp.DialOptions{})
	_, err := c.Call(within10s(t), mcp.MethodPing, nil)
	e, ok := errors.AsType[*mcphttp.StatusError](err)
	if !ok || e.Challenge != `Bearer resource_metadata="https://x"` || len(e.HTTPBody()) != 512 || e.ContentType != "text/plain" {
		t.Errorf("got %+v", e)
	}
	if len(err.Error()) > 200 {
		t.Errorf("a long text: %s", err)
	}
}

// A small request is written at once, header and body: the server can act on the
// first packet.
func TestDialOnePacket(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	first := make(chan string, 1)
	go func() { // ends with the connection
		defer func() { _ = ln.Close() }()
		conn, err := ln.Accept()
		if err != nil {
			close(first)
			return
		}
		defer func() { _ = conn.Close() }()
		packet := make([]byte, 64<<10)
		n, _ := conn.Read(packet)
		_, body, _ := strings.Cut(string(packet[:n]), "\r\n\r\n")
		writePieces(conn, pong.to(body), 1<<20)
		first <- body
	}()
	c := dial(t, "http://"+ln.Addr().String(), mcphttp.DialOptions{})
	_, err = c.Do(within10s(t), toolCall(mcp.Latest))
	if body := <-first; err != nil || !strings.HasSuffix(body, "}}") {
		t.Errorf("the first packet has the body %q; %v", body, err)
	}
}
