package mcphttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcphttp"
)

// sink is a ResponseWriter that forgets.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) WriteHeader(int)             {}

func benchBackend(size int) *backend {
	result := jsontext.Value(`{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`)
	return &backend{tools: map[string]jsonrpc.HandlerFunc{
		"t": func(context.Context, *jsonrpc.Request) (jsontext.Value, error) { return result, nil },
	}}
}

// BenchmarkHandler is a call without net/http around it.
func BenchmarkHandler(b *testing.B) {
	h := mcphttp.NewHandler(benchBackend(1024), mcphttp.HandlerOptions{})
	body, header := modernCall("1", "t")
	r := httptest.NewRequest("POST", "/", nil)
	r.Host = "127.0.0.1:7678"
	r.ContentLength = int64(len(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	reader := strings.NewReader("")
	w := &sink{http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(body)
		r.Body = io.NopCloser(reader)
		clear(w.header)
		h.ServeHTTP(w, r)
	}
}

// BenchmarkHandlerLoopback is a call over a connection, client included.
func BenchmarkHandlerLoopback(b *testing.B) {
	e := serveHTTP(b, benchBackend(1024), mcphttp.HandlerOptions{})
	body, h := modernCall("1", "t")
	b.ReportAllocs()
	for b.Loop() {
		req, _ := http.NewRequestWithContext(b.Context(), "POST", e.url, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		for k, v := range h {
			req.Header.Set(k, v)
		}
		resp, err := e.client.Do(req)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}
