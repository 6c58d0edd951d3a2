package server_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// fakeClient is the other end of a request: it keeps what it is told and answers what
// it is asked.
type fakeClient struct {
	mu      sync.Mutex
	told    []string // method and params
	answers map[string]jsontext.Value
}

func (c *fakeClient) Notify(_ context.Context, method string, params jsontext.Value) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told = append(c.told, method+" "+string(params))
	return nil
}

func (c *fakeClient) Call(_ context.Context, method string, params jsontext.Value) (jsonrpc.Object, error) {
	_ = c.Notify(context.Background(), method, params)
	answer, ok := c.answers[method]
	if !ok {
		return jsonrpc.Object{}, jsonrpc.Errorf(-1, "User rejected")
	}
	return jsonrpc.ParseObject(answer)
}

// request makes a request as a wire does.
func request(t *testing.T, peer jsonrpc.Peer, session *jsonrpc.Session, method, params string) *jsonrpc.Request {
	t.Helper()
	m, err := jsonrpc.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return &jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params, Session: session, Peer: peer}
}

// begin begins a session in version 2025-11-25.
func begin(t *testing.T, srv *server.Server, peer jsonrpc.Peer, capabilities string) *jsonrpc.Session {
	t.Helper()
	session := jsonrpc.NewSession("", peer)
	t.Cleanup(session.Close)
	if _, err := srv.Handle(t.Context(), request(t, peer, session, "initialize",
		`{"protocolVersion":"2025-11-25","clientInfo":{"name":"c","version":"1"},"capabilities":`+capabilities+`}`)); err != nil {
		t.Fatal(err)
	}
	return session
}

func statelessMeta(capabilities string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
}

const nameParams = `{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`

// greeter asks for a name, then for a colour, and says both.
func greeter(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	name := call.State()
	if name == "" {
		answers, err := call.Ask(ctx, "", server.Question{Key: "name", Method: mcp.MethodElicit, Params: jsontext.Value(nameParams)})
		if err != nil {
			return nil, err
		}
		name = string(answers["name"].Get("content"))
	}
	answers, err := call.Ask(ctx, name, server.Question{Key: "colour", Method: mcp.MethodSampling, Params: nil})
	if err != nil {
		return nil, err
	}
	return server.TextResult(name + string(answers["colour"].Get("content"))), nil
}

func newGreeter(t *testing.T) *server.Server {
	t.Helper()
	m := server.NewMemory(server.MemoryOptions{Name: "s", Version: "1", Logging: true})
	tool, err := server.NewTool(jsontext.Value(`{"name":"greet","inputSchema":{"type":"object"}}`), greeter)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Tools.Add(tool); err != nil {
		t.Fatal(err)
	}
	srv := server.New(m, server.Options{})
	t.Cleanup(srv.Close)
	return srv
}

func TestAskInSession(t *testing.T) {
	srv := newGreeter(t)
	client := &fakeClient{answers: map[string]jsontext.Value{
		mcp.MethodElicit:   jsontext.Value(`{"action":"accept","content":{"name":"Ada"}}`),
		mcp.MethodSampling: jsontext.Value(`{"content":{"text":"blue"}}`),
	}}
	session := begin(t, srv, client, `{"elicitation":{},"sampling":{}}`)
	result, err := srv.Handle(t.Context(), request(t, client, session, "tools/call", `{"name":"greet"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"content":[{"type":"text","text":"{\"name\":\"Ada\"}{\"text\":\"blue\"}"}]}`; string(result) != want {
		t.Errorf("got %s, want %s", result, want)
	}
	if len(client.told) != 2 || client.told[0] != "elicitation/create "+nameParams {
		t.Errorf("the client was asked %q", client.told)
	}

	client.answers = nil
	_, err = srv.Handle(t.Context(), request(t, client, session, "tools/call", `{"name":"greet"}`))
	if rpc, ok := errors.AsType[*jsonrpc.Error](err); !ok || rpc.Code != -1 {
		t.Errorf("a client that rejects: got %v, want its error", err)
	}
}

func TestAskStateless(t *testing.T) {
	const (
		both  = `{"elicitation":{},"sampling":{}}`
		first = `{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":` + nameParams + `}}`
		done  = `"requestState":"Ada","inputResponses":{"colour":{"content":"blue"}}`
	)
	tests := []struct {
		name         string
		capabilities string
		more         string // members of params
		want         string // how the result begins
		code         int    // or the error's code
	}{
		{"nothing yet", both, "", first, 0},
		{"another answer", both, `"inputResponses":{"other":{}}`, first, 0},
		{"an answer that is none", both, `"inputResponses":{"name":12345}`, first, 0},
		{"answers that are none", both, `"inputResponses":[]`, "", jsonrpc.CodeInvalidParams},
		{"null", both, `"inputResponses":null`, "", jsonrpc.CodeInvalidParams},
		{
			"second round", both, `"inputResponses":{"name":{"action":"accept","content":"Ada"},"extra":1}`,
			`{"resultType":"input_required","inputRequests":{"colour":{"method":"sampling/createMessage","params":{}}},"requestState":"\"Ada\""`, 0,
		},
		{"all there", both, done, `{"content":[{"type":"text","text":"Ada\"blue\""}],"resultType":"complete"`, 0},
		{"not declared", `{"sampling":{}}`, "", "", mcp.CodeMissingCapability},
		{"nothing declared", `{}`, done, "", mcp.CodeMissingCapability},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := &fakeClient{}
			params := `{"name":"greet",` + statelessMeta(tt.capabilities) + `}`
			if tt.more != "" {
				params = `{"name":"greet",` + tt.more + `,` + statelessMeta(tt.capabilities) + `}`
			}
			result, err := newGreeter(t).Handle(t.Context(), request(t, client, nil, "tools/call", params))
			if rpc, _ := errors.AsType[*jsonrpc.Error](err); (rpc == nil) != (tt.code == 0) || rpc != nil && rpc.Code != tt.code {
				t.Fatalf("got error %v, want code %d", err, tt.code)
			}
			if !strings.HasPrefix(string(result), tt.want) {
				t.Errorf("got %s, want it to begin with %s", result, tt.want)
			}
			if len(client.told) > 0 {
				t.Errorf("the client was sent %q during a stateless request", client.told)
			}
		})
	}
}

func TestLog(t *testing.T) {
	m := server.NewMemory(server.MemoryOptions{Name: "s", Version: "1", Logging: true})
	tool, err := server.NewTool(jsontext.Value(`{"name":"log","inputSchema":{"type":"object"}}`),
		func(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
			for _, level := range []string{"debug", "info", "error"} {
				if err := call.Log(ctx, level, "here", jsontext.Value(`"x"`)); err != nil {
					return nil, err
				}
			}
			return server.TextResult("done"), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Tools.Add(tool); err != nil {
		t.Fatal(err)
	}
	srv := server.New(m, server.Options{})
	t.Cleanup(srv.Close)
	tests := []struct {
		name      string
		level     string
		stateless bool
		want      string
	}{
		{"session", "", false, "info error"},
		{"session that asks", "debug", false, "debug info error"},
		{"session that asks for less", "warning", false, "error"},
		{"stateless", "", true, ""},
		{"stateless that asks", "info", true, "info error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client := &fakeClient{}
			params := `{"name":"log"}`
			var session *jsonrpc.Session
			if tt.stateless {
				params = `{"name":"log",` + statelessMeta(`{}`) + `}`
				if tt.level != "" {
					params = strings.Replace(params, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"`+tt.level+`",`, 1)
				}
			} else {
				session = begin(t, srv, client, `{}`)
				if tt.level != "" {
					if _, err := srv.Handle(t.Context(), request(t, client, session, "logging/setLevel", `{"level":"`+tt.level+`"}`)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := srv.Handle(t.Context(), request(t, client, session, "tools/call", params)); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, level := range strings.Fields(tt.want) {
				want = append(want, `notifications/message {"level":"`+level+`","logger":"here","data":"x"}`)
			}
			if strings.Join(client.told, "\n") != strings.Join(want, "\n") {
				t.Errorf("got %q, want %q", client.told, want)
			}
		})
	}
}
