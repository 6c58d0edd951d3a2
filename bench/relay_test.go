package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// startRelay returns a relay in front of an echo server, both in this process.
func startRelay(t *testing.T) *httptest.Server {
	t.Helper()
	toChild, fromRelay := io.Pipe()
	toRelay, fromChild := io.Pipe()
	r := newRelay(fromRelay)
	var running sync.WaitGroup
	running.Go(func() { _ = newEchoServer(2).serve(toChild, fromChild); _ = fromChild.Close() })
	running.Go(func() { _ = r.read(toRelay) })
	srv := httptest.NewServer(r)
	t.Cleanup(func() {
		srv.Close()
		_ = fromRelay.Close()
		running.Wait()
	})
	return srv
}

func post(c *http.Client, url, body string) (int, []byte, error) {
	resp, err := c.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

func TestRelayKeepsID(t *testing.T) {
	srv := startRelay(t)
	tests := []struct{ name, body, want string }{
		{"number", `{"jsonrpc":"2.0","id":7,"method":"ping"}`, `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"string", `{"id":"a\"\\","jsonrpc":"2.0","method":"ping"}`, `{"jsonrpc":"2.0","id":"a\"\\","result":{}}`},
		{"big", `{"jsonrpc":"2.0","method":"ping","id":12345678901234567890}`, `{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}`},
		{"lines", "{\r\n\"jsonrpc\":\"2.0\",\n\n\"id\":7,\"method\":\n\"ping\"}\n", `{"jsonrpc":"2.0","id":7,"result":{}}`},
		{"error", `{"jsonrpc":"2.0","id":7,"method":"server/discover"}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"method not found"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, body, err := post(srv.Client(), srv.URL, tt.body)
			if err != nil || status != http.StatusOK {
				t.Fatalf("status %d, error %v", status, err)
			}
			if string(body) != tt.want {
				t.Errorf("body = %s\nwant   %s", body, tt.want)
			}
		})
	}
}

func TestRelayNotification(t *testing.T) {
	srv := startRelay(t)
	status, body, err := post(srv.Client(), srv.URL, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if err != nil || status != http.StatusAccepted || len(body) != 0 {
		t.Errorf("status %d, body %q, error %v; want 202 and no body", status, body, err)
	}
}

// Every caller must get its own id with its own reply, small or larger than
// every buffer on the way.
func TestRelayConcurrent(t *testing.T) {
	srv := startRelay(t)
	const callers, calls = 64, 10
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}, Timeout: 30 * time.Second}
	defer client.CloseIdleConnections()
	failed := make(chan error, callers)
	for c := range callers {
		go func() { failed <- callInTurn(client, srv.URL, c, calls) }()
	}
	for range callers {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

func callInTurn(client *http.Client, url string, caller, calls int) error {
	for i := range calls {
		id := fmt.Sprintf(`"%d/%d"`, caller, i)
		size := caller*calls + i
		if i == 0 && caller%8 == 0 {
			size += 300 << 10
		}
		pad := strings.Repeat("x", size)
		_, body, err := post(client, url, fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"echo","arguments":{"size":%d,"query":"%s"}}}`, id, size, pad))
		if err != nil {
			return err
		}
		var reply struct {
			ID     json.RawMessage
			Result struct{ Content []struct{ Text string } }
		}
		if err := json.Unmarshal(body, &reply); err != nil {
			return fmt.Errorf("call %s: %w", id, err)
		}
		if string(reply.ID) != id || len(reply.Result.Content) != 1 || reply.Result.Content[0].Text != string(text(size)) {
			return fmt.Errorf("call %s for %d bytes got the reply of %s, %d bytes in all", id, size, reply.ID, len(body))
		}
	}
	return nil
}

func TestRelayServerGone(t *testing.T) {
	r := newRelay(io.Discard)
	srv := httptest.NewServer(r)
	defer srv.Close()
	child, end := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- r.read(child) }()
	got := make(chan int, 1)
	go func() {
		status, _, _ := post(srv.Client(), srv.URL, `{"jsonrpc":"2.0","id":7,"method":"ping"}`)
		got <- status
	}()
	gone := errors.New("gone")
	_ = end.CloseWithError(gone)
	if err := <-ended; !errors.Is(err, gone) {
		t.Errorf("read returned %v, want %v", err, gone)
	}
	if status := <-got; status != http.StatusBadGateway {
		t.Errorf("status = %d, want 502", status)
	}
}

func TestListHandler(t *testing.T) {
	srv := httptest.NewServer(newListHandler(35, 12))
	defer srv.Close()
	_, body, err := post(srv.Client(), srv.URL, `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		ID     string
		Result struct{ Tools []json.RawMessage }
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		t.Fatal(err)
	}
	if reply.ID != "x" || len(reply.Result.Tools) != 420 {
		t.Fatalf("id %q, %d tools; want x, 420", reply.ID, len(reply.Result.Tools))
	}
	names := map[string]bool{}
	for _, tool := range reply.Result.Tools {
		var def struct{ Name string }
		if err := json.Unmarshal(tool, &def); err != nil {
			t.Fatal(err)
		}
		names[def.Name] = true
		if len(tool) < 500 || len(tool) > 700 {
			t.Errorf("definition of %s has %d bytes", def.Name, len(tool))
		}
	}
	if len(names) != 420 || !names["s01__echo"] {
		t.Errorf("%d different names", len(names))
	}
}

func TestEchoServer(t *testing.T) {
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"server/discover"}
{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":3,"method":"tools/list"}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"echo","arguments":{"size":100}}}
`)
	var out bytes.Buffer
	if err := newEchoServer(12).serve(in, &out); err != nil {
		t.Fatal(err)
	}
	var replies []map[string]json.RawMessage
	for dec := json.NewDecoder(&out); ; {
		var reply map[string]json.RawMessage
		if err := dec.Decode(&reply); err != nil {
			break
		}
		replies = append(replies, reply)
	}
	if len(replies) != 4 {
		t.Fatalf("%d replies, want 4", len(replies))
	}
	if replies[0]["error"] == nil || replies[1]["result"] == nil {
		t.Errorf("server/discover must fail and initialize succeed: %s", replies[:2])
	}
	var list struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(replies[2]["result"], &list); err != nil || len(list.Tools) != 12 {
		t.Errorf("%d tools, error %v", len(list.Tools), err)
	}
	if want := string(text(100)); !strings.Contains(string(replies[3]["result"]), want) {
		t.Errorf("result %s lacks %q", replies[3]["result"], want)
	}
}
