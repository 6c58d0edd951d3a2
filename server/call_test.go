package server_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

func rawTool(t testing.TB, name string, call func(ctx context.Context, c *server.ToolCall) (jsontext.Value, error)) *server.Tool {
	t.Helper()
	tool, err := server.NewTool(jsontext.Value(`{"name":"`+name+`","inputSchema":{"type":"object"}}`), call)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestC119_ProgressOnlyForATokenThatCame(t *testing.T) {
	for _, tt := range []struct{ name, meta, token string }{
		{"none", ``, ""},
		{"null _meta", `,"_meta":null`, ""},
		{"no token", `,"_meta":{"other":1}`, ""},
		{"null", `,"_meta":{"progressToken":null}`, ""},
		{"object", `,"_meta":{"progressToken":{}}`, ""},
		{"boolean", `,"_meta":{"progressToken":true}`, ""},
		{"string", `,"_meta":{"progressToken":"tok"}`, `"tok"`},
		{"escaped", `,"_meta":{"progressToken":"\u0074ok"}`, `"\u0074ok"`},
		{"integer", `,"_meta":{"progressToken":9007199254740993}`, `9007199254740993`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				var call *server.ToolCall
				add(t, m.Tools, rawTool(t, "work", func(ctx context.Context, c *server.ToolCall) (jsontext.Value, error) {
					call = c
					for _, bad := range []float64{math.NaN(), math.Inf(1)} {
						if err := c.Progress(ctx, bad, 0, ""); (err != nil) != (tt.token != "") {
							t.Errorf("progress of %v: %v", bad, err)
						}
					}
					if err := c.Progress(ctx, 0.5, 0, ""); err != nil {
						t.Error(err)
					}
					return server.TextResult("done"), c.Progress(ctx, 1e21, 2e21, "half \"way\"")
				}))
				c := connect(t, server.New(m, server.Options{}))
				c.initialize("2025-06-18")
				synctest.Wait()
				c.take()
				c.ask(`1`, "tools/call", `"name":"work"`+tt.meta)
				want := []string{`1 {"content":[{"type":"text","text":"done"}]}`}
				if tt.token != "" {
					want = []string{
						`notifications/progress {"progressToken":` + tt.token + `,"progress":0.5}`,
						`notifications/progress {"progressToken":` + tt.token + `,"progress":1e+21,"total":2e+21,"message":"half \"way\""}`,
						want[0],
					}
				}
				wantLines(t, c, want...)
				if err := call.Progress(t.Context(), 3, 0, ""); (err != nil) != (tt.token != "") {
					t.Errorf("after the end: %v", err)
				}
				wantLines(t, c)
			})
		})
	}
}

func TestC123_SlowCallHoldsUpNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		add(t, m.Tools, emptyTool(t, "fast"), rawTool(t, "slow", func(ctx context.Context, _ *server.ToolCall) (jsontext.Value, error) {
			time.Sleep(30 * time.Second)
			return server.TextResult("slow"), nil
		}))
		c := connect(t, server.New(m, server.Options{}))
		c.initialize("2025-11-25")
		synctest.Wait()
		c.take()
		c.ask(`1`, "tools/call", `"name":"slow"`)
		c.ask(`2`, "tools/call", `"name":"slow",`+meta)
		c.ask(`3`, "ping", ``)
		c.ask(`4`, "tools/list", meta)
		c.ask(`5`, "tools/call", `"name":"fast"`)
		synctest.Wait()
		if n := len(c.take()); n != 3 {
			t.Errorf("%d of 3 answered at once", n)
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if n := len(c.take()); n != 2 {
			t.Errorf("%d of 2 answered in the end", n)
		}
	})
}

func TestC125_NotesBeforeTheResponse(t *testing.T) {
	for wire, dial := range wires {
		t.Run(wire, func(t *testing.T) {
			m := newMemory()
			add(t, m.Tools, rawTool(t, "noisy", func(ctx context.Context, c *server.ToolCall) (jsontext.Value, error) {
				for i := range 10 {
					if err := c.Progress(ctx, float64(i+1), 10, ""); err != nil {
						return nil, err
					}
				}
				return server.TextResult("done"), nil
			}))
			srv := server.New(m, server.Options{})
			t.Cleanup(srv.Close)
			var notes atomic.Int64 // on the goroutine that reads, before the response is handed over
			c := &client{t: t, version: mcp.V20250618, notes: make(chan jsonrpc.Message, 1)}
			c.wire = dial(t, srv, func(*jsonrpc.Message) { notes.Add(1) })
			c.begin()
			for range 200 {
				notes.Store(0)
				c.do("tools/call", `{"name":"noisy","_meta":{"progressToken":1}}`)
				if n := notes.Load(); n != 10 {
					t.Fatalf("%d notes before the response", n)
				}
			}
		})
	}
}

// C-073: what a call sends before its result is not held back.
func TestC073_ProgressIsNotHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		add(t, m.Tools, rawTool(t, "long", func(ctx context.Context, c *server.ToolCall) (jsontext.Value, error) {
			if err := c.Progress(ctx, 1, 0, ""); err != nil {
				return nil, err
			}
			time.Sleep(10 * time.Second)
			return server.TextResult("done"), nil
		}))
		c := connect(t, server.New(m, server.Options{}))
		c.ask(`1`, "tools/call", `"name":"long","_meta":{"progressToken":"p",`+meta[len(`"_meta":{`):])
		wantLines(t, c, `notifications/progress {"progressToken":"p","progress":1}`)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if n := len(c.take()); n != 1 {
			t.Errorf("%d messages in the end", n)
		}
	})
}

func TestCallIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		ended := make(chan error, 1)
		add(t, m.Tools, rawTool(t, "wait", func(ctx context.Context, _ *server.ToolCall) (jsontext.Value, error) {
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}))
		c := connect(t, server.New(m, server.Options{}))
		c.ask(`"w"`, "tools/call", `"name":"wait",`+meta)
		synctest.Wait()
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}`)
		if err := <-ended; !errors.Is(err, jsonrpc.ErrCanceled) {
			t.Error(err)
		}
		wantLines(t, c)
	})
}

// garbage answers what it is told to.
type garbage struct {
	*server.Memory
	result string
	err    error
}

func (g *garbage) Do(context.Context, *server.Request) (jsonrpc.Object, error) {
	if g.err != nil {
		return jsonrpc.Object{}, g.err
	}
	obj, err := jsonrpc.ParseObject(jsontext.Value(g.result))
	if err != nil {
		return jsonrpc.Object{Raw: jsontext.Value(g.result)}, nil //nolint:nilerr // a source may do that
	}
	return obj, nil
}

func (g *garbage) List(ctx context.Context, r *server.Request, k mcp.Kind, cursor *string) (jsontext.Value, error) {
	if g.err != nil {
		return nil, g.err
	}
	return g.Memory.List(ctx, r, k, cursor)
}

func TestResultsOfASource(t *testing.T) {
	const info = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mem","version":"1"}}`
	for _, tt := range []struct{ method, result, stateless, session string }{
		{"tools/call", `{}`, `{"resultType":"complete",` + info + `}`, `{}`},
		{"tools/call", `{ "a" : 1.50 }`, `{ "a" : 1.50,"resultType":"complete",` + info + ` }`, `{ "a" : 1.50 }`},
		{"tools/call", `{"resultType":"complete","x":9007199254740993}`, `{"resultType":"complete","x":9007199254740993,` + info + `}`, `{"x":9007199254740993}`},
		{"tools/call", `{"resultType":5}`, `{"resultType":"complete",` + info + `}`, `{}`},
		{"tools/call", `{"resultType":"input_required","inputRequests":{}}`, `{"resultType":"input_required","inputRequests":{},` + info + `}`, `-32603`},
		{"tools/call", `{"resultType":"task"}`, `-32603`, `-32603`},
		{
			"tools/call", `{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other"}}}`,
			`{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other"}},"resultType":"complete"}`, `{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"other"}}}`,
		},
		{"tools/call", `{"_meta":5}`, `{"_meta":5,"resultType":"complete"}`, `{"_meta":5}`},
		{"tools/call", `{"content":[],"structuredContent":[1]}`, `{"content":[],"structuredContent":[1],"resultType":"complete",` + info + `}`, `{"content":[]}`},
		{"tools/call", `{"content":[],"structuredContent":{"a":1}}`, `{"content":[],"structuredContent":{"a":1},"resultType":"complete",` + info + `}`, `{"content":[],"structuredContent":{"a":1}}`},
		{"resources/read", `{"contents":[]}`, `{"contents":[],"resultType":"complete","ttlMs":0,"cacheScope":"private",` + info + `}`, `{"contents":[]}`},
		{"resources/read", `{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"public"}`, `{"resultType":"complete","contents":[],"ttlMs":5,"cacheScope":"public",` + info + `}`, `{"contents":[]}`},
		{"resources/read", `{"resultType":"input_required"}`, `{"resultType":"input_required",` + info + `}`, `-32603`}, // C-217: no cache hints
		{"prompts/get", `[]`, `-32603`, `-32603`},
		{"prompts/get", `null`, `-32603`, `-32603`},
		{"prompts/get", `"x"`, `-32603`, `-32603`},
		{"prompts/get", ``, `-32603`, `-32603`},
	} {
		t.Run(tt.method+" "+tt.result, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, server.New(&garbage{Memory: newMemory(), result: tt.result}, server.Options{}))
				c.initialize("2025-11-25")
				synctest.Wait()
				c.take()
				for version, want := range map[string]string{"": tt.session, "," + meta: tt.stateless} {
					c.ask(`1`, tt.method, `"name":"a","uri":"u:a"`+version)
					synctest.Wait()
					m := c.take()[0]
					got := string(m.Result.Raw)
					if m.Error != nil {
						got = fmt.Sprint(m.Error.Code)
					}
					if got != want {
						t.Errorf("%s\n got %s\nwant %s", version, got, want)
					}
				}
			})
		})
	}
}

func TestErrorsOfASource(t *testing.T) {
	for _, tt := range []struct {
		err                error
		stateless, session int
	}{
		{errors.New("some failure"), -32603, -32603},
		{fmt.Errorf("wrapped: %w", jsonrpc.Errorf(7, "seven")), 7, 7},
		{jsonrpc.Errorf(-32002, "not found"), -32602, -32002},
		{jsonrpc.Errorf(-32042, "open this"), -32603, -32042},
		{jsonrpc.Errorf(-32020, "header"), -32603, -32020},
		{jsonrpc.Errorf(-32022, "version"), -32603, -32022},
		{jsonrpc.Errorf(-32099, "undefined"), -32603, -32099},
		{mcp.MissingCapability(jsontext.Value(`{"sampling":{}}`)), -32021, -32021},
	} {
		t.Run(tt.err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := connect(t, server.New(&garbage{Memory: newMemory(), err: tt.err}, server.Options{}))
				c.initialize("2025-11-25")
				synctest.Wait()
				c.take()
				for _, method := range []string{"tools/call", "tools/list"} {
					c.ask(`1`, method, `"name":"a"`)
					c.ask(`2`, method, `"name":"a",`+meta)
					c.ask(`3`, method, `"name":"a","cursor":"x",`+meta)
					synctest.Wait()
					got := c.takeLines()
					slices.Sort(got)
					want := []string{fmt.Sprint("1 error ", tt.session), fmt.Sprint("2 error ", tt.stateless), fmt.Sprint("3 error ", tt.stateless)}
					if !slices.Equal(got, want) {
						t.Errorf("%s: %q, want %q", method, got, want)
					}
				}
			})
		})
	}
}

// Row 13 of the checks on a POST: headers that repeat arguments.
func TestSeeds3_13_HeadersRepeatArguments(t *testing.T) {
	m := newMemory()
	tool, err := server.NewTool(jsontext.Value(`{"name":"q","inputSchema":{"type":"object","properties":{`+
		`"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}}`),
		func(context.Context, *server.ToolCall) (jsontext.Value, error) { return server.TextResult("ran"), nil })
	if err != nil {
		t.Fatal(err)
	}
	add(t, m.Tools, tool)
	srv := server.New(m, server.Options{})
	for _, tt := range []struct {
		name, arguments string
		header          map[string][]string
		code            int
	}{
		{"all agree", `{"region":"eu","n":42}`, map[string][]string{"Mcp-Param-Region": {"eu"}, "Mcp-Param-N": {"42"}}, 0},
		{"as numbers", `{"n":4.2e1}`, map[string][]string{"Mcp-Param-N": {"42.0"}}, 0},
		{"base64", `{"region":"ü"}`, map[string][]string{"Mcp-Param-Region": {mcp.EncodeHeader("ü")}}, 0},
		{"null", `{"region":null}`, map[string][]string{}, 0},
		{"absent", `{}`, map[string][]string{}, 0},
		{"missing", `{"region":"eu"}`, map[string][]string{}, -32020},
		{"differs", `{"region":"eu"}`, map[string][]string{"Mcp-Param-Region": {"us"}}, -32020},
		{"bad base64", `{"region":"eu"}`, map[string][]string{"Mcp-Param-Region": {"=?base64?!!?="}}, -32020},
		{"bad characters", `{"region":"eu"}`, map[string][]string{"Mcp-Param-Region": {"e\x01u"}}, -32020},
		{"beyond 2^53-1", `{"n":9007199254740992}`, map[string][]string{"Mcp-Param-N": {"9007199254740992"}}, -32020},
		{"no arguments", ``, map[string][]string{"Mcp-Param-Region": {"eu"}}, -32020},
	} {
		t.Run(tt.name, func(t *testing.T) {
			params := `{"name":"q",` + meta
			if tt.arguments != "" {
				params += `,"arguments":` + tt.arguments
			}
			req := &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: "tools/call", Header: tt.header, Params: parse(t, params+`}`), Peer: &stuckPeer{}}
			_, err := srv.Handle(t.Context(), req)
			code := 0
			if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
				code = e.Code
			}
			if code != tt.code {
				t.Errorf("%v, want code %d", err, tt.code)
			}
			req.Header = nil // a wire without headers
			if _, err := srv.Handle(t.Context(), req); err != nil {
				t.Errorf("without headers: %v", err)
			}
		})
	}
}

func TestToolErrors(t *testing.T) {
	m := newMemory()
	add(t, m.Tools,
		rawTool(t, "fails", func(context.Context, *server.ToolCall) (jsontext.Value, error) {
			return nil, errors.New("no \"such\" file")
		}),
		rawTool(t, "refuses", func(context.Context, *server.ToolCall) (jsontext.Value, error) {
			return nil, fmt.Errorf("in: %w", jsonrpc.Errorf(-32602, "bad"))
		}),
		rawTool(t, "nothing", func(context.Context, *server.ToolCall) (jsontext.Value, error) { return nil, nil }),
		rawTool(t, "null", func(_ context.Context, c *server.ToolCall) (jsontext.Value, error) {
			if c.Arguments != nil {
				return nil, errors.New("arguments that are null are there")
			}
			return server.TextResult("ok"), nil
		}))
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, server.New(m, server.Options{}))
		c.initialize("2025-11-25")
		synctest.Wait()
		c.take()
		c.ask(`1`, "tools/call", `"name":"fails"`)
		wantLines(t, c, `1 {"content":[{"type":"text","text":"no \"such\" file"}],"isError":true}`)
		c.ask(`2`, "tools/call", `"name":"refuses"`)
		wantLines(t, c, `2 error -32602`)
		c.ask(`3`, "tools/call", `"name":"nothing"`)
		wantLines(t, c, `3 error -32603`)
		c.ask(`4`, "tools/call", `"name":"null","arguments":null`)
		wantLines(t, c, `4 {"content":[{"type":"text","text":"ok"}]}`)
	})
}

func TestDefinitionsAreChecked(t *testing.T) {
	noop := func(context.Context, *server.ToolCall) (jsontext.Value, error) { return nil, nil }
	for _, d := range []string{
		``, `[]`, `{}`, `{"name":"a"}`, `{"name":5,"inputSchema":{}}`, `{"name":"a","inputSchema":{"type":"array"}}`,
		`{"name":"a","inputSchema":{"type":"object","properties":{"o":{"type":"object","x-mcp-header":"O"}}}}`,
	} {
		if _, err := server.NewTool(jsontext.Value(d), noop); err == nil {
			t.Errorf("%s is a tool", d)
		}
	}
	if _, err := server.NewTool(jsontext.Value(`{"name":"a","inputSchema":{"type":"object"}}`), nil); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("a tool without a function: %v", err)
	}
	if _, err := server.NewPrompt(jsontext.Value(`{"name":"a"}`), nil); err == nil {
		t.Error("a prompt without a function")
	}
	if _, err := server.NewResource(jsontext.Value(`{"uri":"a:b","name":"a"}`), nil); err == nil {
		t.Error("a resource without a function")
	}
	for _, d := range []string{`{"uriTemplate":"a:{","name":"a"}`, `{"uriTemplate":"a:{x}","name":"a"}`} {
		if _, err := server.NewTemplate(jsontext.Value(d), nil); err == nil {
			t.Errorf("%s without a function", d)
		}
	}
}
