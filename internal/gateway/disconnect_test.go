package gateway_test

import (
	"bufio"
	"context"
	web "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// TestDisconnectInSession: what a client with a session asked for goes on when its
// connection breaks: the server is not told, and ends the call as it wants.
func TestDisconnectInSession(t *testing.T) {
	release, ended := make(chan struct{}), make(chan error, 1)
	b := newBackend(mcp.V20251125)
	b.custom = func(ctx context.Context, _ *jsonrpc.Request) (jsontext.Value, error) {
		b.started <- "custom"
		select {
		case <-ctx.Done():
		case <-release:
		}
		ended <- ctx.Err()
		return text("done")
	}
	f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	handler := mcphttp.NewHandler(f.server, mcphttp.HandlerOptions{})
	broken := make(chan struct{}, 64)
	site := httptest.NewServer(web.HandlerFunc(func(w web.ResponseWriter, r *web.Request) {
		stop := context.AfterFunc(r.Context(), func() { broken <- struct{}{} })
		defer stop()
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		_ = handler.Close(t.Context())
		site.CloseClientConnections()
		site.Close()
	})
	c := mcptest.CallHTTP(t, site.URL, mcp.V20251125)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() { _, _ = c.Call(ctx, mcp.MethodToolsCall, `{"name":"custom"}`) })
	receive(t, "the call", b.started)
	cancel()
	wait.Wait()
	receive(t, "the connection breaks", broken)
	for range 3 { // whatever the gateway would tell the server comes before these
		if a, err := c.Call(t.Context(), mcp.MethodToolsCall, `{"name":"touch"}`); err != nil || a.Error != "" {
			t.Fatalf("%+v, %v", a, err)
		}
	}
	if len(ended) > 0 {
		t.Error("the call was cancelled")
	}
	close(release)
	if err := receive(t, "its end", ended); err != nil {
		t.Errorf("the call was cancelled: %v", err)
	}
}

// TestQuestionComesOnTheCallsStream: a client with a session over HTTP that has no
// other stream is asked on that of its call, under an id of ours, and the server
// gets the answer under its own.
func TestQuestionComesOnTheCallsStream(t *testing.T) {
	host := &mcptest.Host{}
	answers := make(chan string, 1)
	host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		switch {
		case m.Method == mcp.MethodToolsCall:
			p.Raw(`{"jsonrpc":"2.0","id":"own \u00e9 1","method":"elicitation/create","params":` + formParams + `}`)
		case m.IsResponse():
			answers <- string(m.ID.Raw()) + " " + string(m.Result.Raw)
			p.Reply(&jsonrpc.Message{ID: jsonrpc.IntID(callOf(p))}, `{"content":[]}`)
		default:
			answerLists(p, m, mcp.V20251125)
		}
	}
	f := newGateway(t, behind{name: "s", dial: host.Dial})
	handler := mcphttp.NewHandler(f.server, mcphttp.HandlerOptions{})
	site := httptest.NewServer(handler)
	t.Cleanup(func() {
		_ = handler.Close(t.Context())
		site.CloseClientConnections()
		site.Close()
	})
	session := ""
	post := func(body string) (*web.Response, *bufio.Scanner) {
		t.Helper()
		req, err := web.NewRequestWithContext(t.Context(), web.MethodPost, site.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
		if session != "" {
			req.Header.Set(mcp.HeaderSession, session)
			req.Header.Set(mcp.HeaderVersion, string(mcp.V20251125))
		}
		resp, err := site.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		return resp, bufio.NewScanner(resp.Body)
	}
	begun, _ := post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + everyCapability + `,"clientInfo":{"name":"c","version":"1"}}}`)
	session = begun.Header.Get(mcp.HeaderSession)
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	_, stream := post(`{"jsonrpc":"2.0","id":"mine","method":"tools/call","params":{"name":"custom"}}`)
	var seen []string
	for stream.Scan() {
		data, ok := strings.CutPrefix(stream.Text(), "data: ")
		if !ok {
			continue
		}
		m, err := jsonrpc.Parse([]byte(data))
		if err != nil {
			continue // the first event of a stream is empty
		}
		if m.Method != mcp.MethodElicit {
			seen = append(seen, "result "+string(m.ID.Raw()))
			break
		}
		seen = append(seen, m.Method+" "+string(m.Params.Raw))
		post(`{"jsonrpc":"2.0","id":` + string(m.ID.Raw()) + `,"result":{"action":"decline"}}`)
	}
	if got, want := strings.Join(seen, "\n"), "elicitation/create "+formParams+"\nresult \"mine\""; got != want {
		t.Errorf("on the stream of the call came\n%s\nwant\n%s", got, want)
	}
	if got, want := receive(t, "the answer", answers), `"own \u00e9 1" {"action":"decline"}`; got != want {
		t.Errorf("the server got %s, want %s", got, want)
	}
}

// callOf returns the id of the last call that a peer got.
func callOf(p *mcptest.Peer) int64 {
	id := int64(0)
	for _, m := range p.Log() {
		if m.Method == mcp.MethodToolsCall {
			id, _ = m.ID.Int()
		}
	}
	return id
}

// located has one resource whose URI has a scheme and a host.
type located struct{ *backend }

func (l located) Handle(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	if r.Method == mcp.MethodResourcesList {
		return jsontext.Value(`{"resources":[{"uri":"http://ex.test/a","name":"a"}]}`), nil
	}
	return l.backend.Handle(ctx, r)
}

// TestUpdatesNameTheWatchersURI: who watches a resource under another spelling hears
// of it under that, and its server is asked once for all, under its own.
func TestUpdatesNameTheWatchersURI(t *testing.T) {
	b := newBackend(mcp.V20251125)
	f := newGateway(t, behind{name: "s", dial: overPipe(t, located{b})})
	uris := []string{"http://ex.test/a", "HTTP://EX.test/a"}
	var all []*party
	for _, uri := range uris {
		p := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
		if _, err := p.send(t.Context(), mcp.MethodSubscribe, `{"uri":"`+uri+`"}`); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if n := b.watches(uris[0]); n != 1 || b.watches(uris[1]) != 0 {
		t.Errorf("%d subscriptions at the server", n)
	}
	b.updated(t.Context(), uris[0])
	for i, p := range all {
		if got := receive(t, "an update", p.updates); got != uris[i] {
			t.Errorf("update of %s, want %s", got, uris[i])
		}
	}
}
