package mcphttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// canned answers every request with the same result, at no cost of its own.
type canned struct{ head, tail string }

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(req.Body)
	id, _, _ := strings.Cut(strings.TrimPrefix(string(body), `{"jsonrpc":"2.0","id":`), ",")
	answer := c.head + id + c.tail
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		ContentLength: int64(len(answer)), Body: io.NopCloser(strings.NewReader(answer)), Request: req,
	}, nil
}

// BenchmarkDo is a tool call: without a network, which is our own cost, and over
// loopback beside what net/http takes for the same bytes.
func BenchmarkDo(b *testing.B) {
	result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 200) + `"}]}`
	ctx, cancel := context.WithTimeout(context.Background(), 10*dialTime)
	defer cancel()
	run := func(b *testing.B, c *mcphttp.Conn, v mcp.Version) {
		call := toolCall(v)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Do(ctx, call); err != nil {
				b.Fatal(err)
			}
		}
	}
	memory := canned{`{"jsonrpc":"2.0","id":`, `,"result":` + result + `}`}
	b.Run("memory", func(b *testing.B) {
		run(b, dial(b, "http://h/mcp", mcphttp.DialOptions{Transport: memory}), mcp.Latest)
	})
	for _, streamed := range []bool{false, true} {
		for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
			b.Run(fmt.Sprintf("loopback/%s/streamed=%v", v, streamed), func(b *testing.B) {
				server := httptest.NewServer(benchServer(result, streamed))
				defer server.Close()
				c := dial(b, server.URL+"/mcp", mcphttp.DialOptions{})
				if v.Stateless() {
					run(b, c, v)
					return
				}
				greet(b, c)
				run(b, c, "")
			})
		}
	}
	b.Run("loopback/net/http", func(b *testing.B) {
		server := httptest.NewServer(benchServer(result, false))
		defer server.Close()
		client := server.Client()
		b.ReportAllocs()
		for b.Loop() {
			resp, err := client.Post(server.URL+"/mcp", "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`))
			if err != nil {
				b.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	})
}

func benchServer(result string, streamed bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m, err := jsonrpc.Parse(body)
		switch {
		case err != nil:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.IsNotification():
			w.WriteHeader(http.StatusAccepted)
		case m.Method == mcp.MethodInitialize:
			w.Header().Set(mcp.HeaderSession, "s")
			answerJSON(w, jsonrpc.AppendResult(nil, m.ID, jsontext.Value(`{"protocolVersion":"2025-11-25"}`)))
		case streamed:
			w.Header().Set("Content-Type", "text/event-stream")
			say(w, "data: %s\n\n", jsonrpc.AppendResult(nil, m.ID, jsontext.Value(result)))
		default:
			answerJSON(w, jsonrpc.AppendResult(nil, m.ID, jsontext.Value(result)))
		}
	}
}
