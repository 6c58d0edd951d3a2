package app_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// fixtureTool returns the definition in the first line of a fixture, and the
// arguments of the calls in the others.
func fixtureTool(t *testing.T) (definition string, arguments []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/mod_xmcpheader.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		m, err := jsonrpc.Parse(bytes.ReplaceAll(lines.Bytes(), []byte(`"@ID"`), []byte("1")))
		if err != nil {
			t.Fatal(err)
		}
		if m.IsRequest() {
			arguments = append(arguments, string(m.Params.Get("arguments")))
			continue
		}
		list, err := jsonrpc.Elements(m.Result.Get("tools"))
		if err != nil {
			t.Fatal(err)
		}
		definition = string(list[0])
	}
	return definition, arguments
}

// headerLog has the header fields of the requests for one method.
type headerLog struct {
	mu  sync.Mutex
	got []http.Header
}

func (l *headerLog) take(req *jsonrpc.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, http.Header(req.Header).Clone())
}

func (l *headerLog) all() []http.Header {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// post sends a request of 2026-07-28 with header fields of its own.
func post(t *testing.T, url, method, params string, header map[string]string) (int, string) {
	t.Helper()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	body := `{"jsonrpc":"2.0","id":"e-1","method":"` + method + `","params":` + strings.TrimSuffix(params, "}") + "," + meta + "}}"
	req, err := http.NewRequestWithContext(bounded(t), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set(mcp.HeaderVersion, "2026-07-28")
	req.Header.Set(mcp.HeaderMethod, method)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestHeaders_NamesFollowTheRenaming(t *testing.T) { // C-206
	log := &headerLog{}
	b := &mcptest.Backend{Version: mcp.V20260728, Do: func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		log.take(req)
		switch req.Method {
		case mcp.MethodToolsCall:
			return jsontext.Value(`{"resultType":"complete","content":[]}`), nil
		case mcp.MethodPromptsGet:
			return jsontext.Value(`{"resultType":"complete","messages":[]}`), nil
		}
		return jsontext.Value(`{"resultType":"complete","contents":[],"ttlMs":0,"cacheScope":"private"}`), nil
	}}
	b.Set(mcp.Tools, tool("search"))
	b.Set(mcp.Prompts, `{"name":"ask"}`)
	b.Set(mcp.Resources, `{"name":"r","uri":"test://r/ü"}`)
	g := newGateway(t, "", remote("b1", b.OnHTTP(t).URL))
	g.ready()
	for _, tt := range []struct{ method, params, header, want string }{
		{mcp.MethodToolsCall, `{"name":"b1__search","arguments":{}}`, "b1__search", "search"},
		{mcp.MethodPromptsGet, `{"name":"b1__ask"}`, "b1__ask", "ask"},
		{mcp.MethodResourcesRead, `{"uri":"test://r/ü"}`, mcp.EncodeHeader("test://r/ü"), mcp.EncodeHeader("test://r/ü")},
	} {
		n := len(log.all())
		if status, body := post(t, g.URL(), tt.method, tt.params, map[string]string{mcp.HeaderName: tt.header}); status != 200 {
			t.Fatalf("%s: %d %s", tt.method, status, body)
		}
		got := log.all()
		if len(got) != n+1 {
			t.Fatalf("%s came %d times", tt.method, len(got)-n)
		}
		h := got[n]
		if h.Get(mcp.HeaderName) != tt.want || h.Get(mcp.HeaderMethod) != tt.method || h.Get(mcp.HeaderVersion) != "2026-07-28" {
			t.Errorf("%s went out with %q", tt.method, h)
		}
	}
	// A header that does not fit the body never reaches the server (C-207).
	n := len(log.all())
	status, body := post(t, g.URL(), mcp.MethodToolsCall, `{"name":"b1__search","arguments":{}}`, map[string]string{mcp.HeaderName: "search"})
	if status != 400 || !strings.Contains(body, "-32020") || !strings.Contains(body, `"e-1"`) || len(log.all()) != n {
		t.Errorf("%d %s", status, body)
	}
}

func TestHeaders_ParametersAreMadeAnew(t *testing.T) { // C-210
	definition, arguments := fixtureTool(t)
	log := &headerLog{}
	b := &mcptest.Backend{Version: mcp.V20260728, Do: func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		log.take(req)
		return jsontext.Value(`{"resultType":"complete","content":[]}`), nil
	}}
	b.Set(mcp.Tools, definition)
	g := newGateway(t, "", remote("b1", b.OnHTTP(t).URL))
	g.ready()
	call := func(arguments string, more map[string]string) (int, string, http.Header) {
		n := len(log.all())
		header := map[string]string{mcp.HeaderName: "b1__sql"}
		for name, value := range more {
			header[name] = value
		}
		status, body := post(t, g.URL(), mcp.MethodToolsCall, `{"name":"b1__sql","arguments":`+arguments+`}`, header)
		if got := log.all(); len(got) > n {
			return status, body, got[n]
		}
		return status, body, nil
	}
	const region = "Mcp-Param-Region"
	full := map[string]string{region: mcp.EncodeHeader("a\nb 世"), "Mcp-Param-Count": "42.0", "Mcp-Param-Flag": "true", "Mcp-Param-Other": "as it is"}
	status, body, got := call(arguments[0], full)
	if status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	if v, err := mcp.DecodeHeader(got.Get(region)); err != nil || v != "a\nb 世" {
		t.Errorf("%s: %q", region, got.Get(region))
	}
	if got.Get("Mcp-Param-Count") != "42" || got.Get("Mcp-Param-Flag") != "true" {
		t.Errorf("%q", got)
	}
	if got.Get("Mcp-Param-Other") != "as it is" {
		t.Errorf("a field that nobody here knows was not passed on: %q", got)
	}
	// Null and absent arguments have no field.
	if status, body, got = call(arguments[1], nil); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	for name := range got {
		if strings.HasPrefix(name, mcp.HeaderParamPrefix) {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	// One that is missing, or says something else, never reaches the server.
	for _, header := range []map[string]string{nil, {region: "eu", "Mcp-Param-Count": "42", "Mcp-Param-Flag": "true"}} {
		if status, body, got = call(arguments[0], header); status != 400 || !strings.Contains(body, "-32020") || got != nil {
			t.Errorf("%v: %d %s", header, status, body)
		}
	}
	// A client in a session has no such fields: they are made from the body.
	n := len(log.all())
	result(t, g.http(mcp.V20250618), mcp.MethodToolsCall, `{"name":"b1__sql","arguments":`+arguments[0]+`}`)
	if got := log.all(); len(got) != n+1 || got[n].Get("Mcp-Param-Count") != "42" {
		t.Errorf("for a client in a session: %q", got[n:])
	}
}

func TestHeaders_MismatchAtTheServerListsAnewAndRetriesOnce(t *testing.T) { // C-210
	const plain = `{"name":"f","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}}`
	const annotated = `{"name":"f","inputSchema":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"X"}}}}`
	for name, learns := range map[string]bool{"the list explains it": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			log := &headerLog{}
			b := &mcptest.Backend{Version: mcp.V20260728, Do: func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
				log.take(req)
				if http.Header(req.Header).Get("Mcp-Param-X") == "" {
					return nil, jsonrpc.Errorf(mcp.CodeHeaderMismatch, "Mcp-Param-X is missing")
				}
				return jsontext.Value(`{"resultType":"complete","content":[]}`), nil
			}}
			b.Set(mcp.Tools, plain)
			g := newGateway(t, "", remote("b1", b.OnHTTP(t).URL))
			g.ready()
			c := g.http(mcp.V20251125)
			if learns {
				b.Set(mcp.Tools, annotated) // and tells nobody
			}
			lists := b.Count(mcp.MethodToolsList)
			a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"b1__f","arguments":{"x":"1"}}`)
			if err != nil {
				t.Fatal(err)
			}
			if learns != (a.Error == "") {
				t.Errorf("%+v", a)
			}
			if got := log.all(); len(got) != 2 || learns && got[1].Get("Mcp-Param-X") != "1" {
				t.Errorf("calls went out with %q", got)
			}
			if b.Count(mcp.MethodToolsList) == lists {
				t.Error("the tools were not listed anew")
			}
		})
	}
}

func TestHeaders_WrongAnnotationsHideToolsOfHTTPServersOnly(t *testing.T) {
	const wrong = `{"name":"w","inputSchema":{"type":"object","properties":{"x":{"type":"array","x-mcp-header":"X"}}}}`
	remoteOne := &mcptest.Backend{Version: mcp.V20260728}
	remoteOne.Set(mcp.Tools, wrong, tool("t"))
	pipedOne := &mcptest.Backend{Version: mcp.V20260728}
	pipedOne.Set(mcp.Tools, wrong, tool("t"))
	g := newGateway(t, "", remote("h", remoteOne.OnHTTP(t).URL), piped("p", pipedOne.OnPipes(t)))
	g.ready()
	got := strings.Join(list(t, g.http(mcp.Latest), mcp.Tools), "\n")
	for name, want := range map[string]bool{`"h__t"`: true, `"h__w"`: false, `"p__t"`: true, `"p__w"`: true} {
		if strings.Contains(got, name) != want {
			t.Errorf("%s listed: %v", name, !want)
		}
	}
	if !strings.Contains(g.log.String(), "h") || !strings.Contains(g.log.String(), "x-mcp-header") {
		t.Error("the log does not say why a tool is left out")
	}
}
