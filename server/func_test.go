package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

type order struct {
	ID    int64    `json:"id" jsonschema:"the order's number"`
	Parts []uint64 `json:"parts,omitempty"`
	Note  string   `json:"note,omitzero"`
}

// callTool calls a tool that is alone in a Memory.
func callTool(t testing.TB, tool *server.Tool, v mcp.Version, arguments string) (jsonrpc.Object, error) {
	t.Helper()
	m := newMemory()
	add(t, m.Tools, tool)
	params := `{"name":"` + tool.Name() + `"}`
	if arguments != "" {
		params = `{"name":"` + tool.Name() + `","arguments":` + arguments + `}`
	}
	return m.Do(t.Context(), &server.Request{
		Request: &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: mcp.MethodToolsCall, Params: parse(t, params), Peer: &stuckPeer{}},
		Caller:  mcp.Caller{Version: v},
	})
}

func TestC100_NumbersAreExact(t *testing.T) {
	var got order
	tool, err := server.NewFuncTool(server.FuncTool{Name: "order"}, func(_ context.Context, _ *server.ToolCall, in order) (order, error) {
		got = in
		return in, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"9007199254740993", "9223372036854775807", "-9223372036854775808", "0"} {
		value := `{"id":` + n + `,"parts":[18446744073709551615,9007199254740993]}`
		result, err := callTool(t, tool, mcp.Latest, value)
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.ID) != n || got.Parts[0] != 18446744073709551615 || got.Parts[1] != 9007199254740993 {
			t.Errorf("%s arrived as %+v", value, got)
		}
		want := `{"content":[{"type":"text","text":` + string(mcp.String(value)) + `}],"structuredContent":` + value + `}`
		if string(result.Raw) != want {
			t.Errorf("%s\nwant %s", result.Raw, want)
		}
	}
}

// Bounds are compared with the number that came, not with the float next to it.
func TestC100_BoundsAreExact(t *testing.T) {
	tool, err := server.NewFuncTool(server.FuncTool{Name: "a", Input: jsontext.Value(`{"type":"object","properties":{"n":{"maximum":9007199254740992}}}`)},
		func(context.Context, *server.ToolCall, map[string]jsontext.Value) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	for n, bad := range map[string]bool{"9007199254740992": false, "9007199254740993": true, "18446744073709551615": true, "-9007199254740993": false, "1e300": true} {
		result, err := callTool(t, tool, mcp.Latest, `{"n":`+n+`}`)
		if err != nil || (result.Get("isError") != nil) != bad {
			t.Errorf("%s: %s, %v", n, result.Raw, err)
		}
	}
}

func TestWrongArgumentsAreToldToTheModel(t *testing.T) {
	ran := false
	tool, err := server.NewFuncTool(server.FuncTool{Name: "order"}, func(context.Context, *server.ToolCall, order) (string, error) {
		ran = true
		return "ok", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for arguments, say := range map[string]string{
		``:                              "id",
		`{}`:                            "id",
		`{"id":"5"}`:                    "integer",
		`{"id":1.5}`:                    "integer",
		`{"id":5.0}`:                    "5.0",
		`{"id":5,"extra":1}`:            "extra",
		`{"ID":5}`:                      "id",
		`{"id":5,"parts":[-1]}`:         "minimum",
		`{"id":5,"parts":{}}`:           "parts",
		`{"id":5,"note":null}`:          "note",
		`{"id":9223372036854775808}`:    "int64",
		`{"id":5,"note":{"a":1,"a":2}}`: "duplicate",
	} {
		result, err := callTool(t, tool, mcp.Latest, arguments)
		if err != nil {
			t.Errorf("%s: %v", arguments, err)
			continue
		}
		if got := string(result.Raw); string(result.Get("isError")) != "true" || !strings.Contains(got, say) {
			t.Errorf("%s: %s, want an error about %s", arguments, got, say)
		}
	}
	if ran {
		t.Error("the function ran")
	}
}

func TestFuncToolResults(t *testing.T) {
	type list struct {
		Names []string       `json:"names"`
		More  map[string]int `json:"more"`
	}
	empty, err := server.NewFuncTool(server.FuncTool{Name: "list"}, func(context.Context, *server.ToolCall, struct{}) (list, error) { return list{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	result, err := callTool(t, empty, mcp.Latest, `{}`)
	if want := `{"names":[],"more":{}}`; err != nil || string(result.Get("structuredContent")) != want { // C-102
		t.Errorf("%s, %v", result.Raw, err)
	}
	whole, err := server.NewFuncTool(server.FuncTool{Name: "whole"}, func(context.Context, *server.ToolCall, struct{}) (jsontext.Value, error) {
		return jsontext.Value(`{"content":[],"x":1}`), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(whole.Definition()), "outputSchema") {
		t.Errorf("%s", whole.Definition())
	}
	if result, err := callTool(t, whole, mcp.Latest, ``); err != nil || string(result.Raw) != `{"content":[],"x":1}` {
		t.Errorf("%s, %v", result.Raw, err)
	}
	for name, fail := range map[string]error{"plain": errors.New("try \"b\" instead"), "rpc": jsonrpc.Errorf(-32602, "no")} {
		tool, err := server.NewFuncTool(server.FuncTool{Name: name}, func(context.Context, *server.ToolCall, struct{}) (list, error) { return list{}, fail })
		if err != nil {
			t.Fatal(err)
		}
		result, err := callTool(t, tool, mcp.Latest, ``)
		if name == "plain" && (err != nil || string(result.Raw) != `{"content":[{"type":"text","text":"try \"b\" instead"}],"isError":true}`) {
			t.Errorf("%s, %v", result.Raw, err)
		}
		if name == "rpc" && !errors.Is(err, fail) {
			t.Errorf("%s, %v", result.Raw, err)
		}
	}
	// An output that is not what the schema says is the server's fault.
	lies, err := server.NewFuncTool(server.FuncTool{Name: "lies", Output: jsontext.Value(`{"type":"object","required":["z"]}`)},
		func(context.Context, *server.ToolCall, struct{}) (list, error) { return list{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := callTool(t, lies, mcp.Latest, ``); err == nil {
		t.Error("a result that does not match the output schema")
	}
}

func TestC163_NoReferenceIsFetched(t *testing.T) {
	var asked atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer web.Close()
	for _, ref := range []string{web.URL + "/x", "file:///etc/passwd", "other.json", "#/$defs/missing", "#anchor"} {
		schema := jsontext.Value(`{"type":"object","properties":{"a":{"$ref":"` + ref + `"}}}`)
		// A tool of a function needs its schema; it is refused, with the reason.
		_, err := server.NewFuncTool(server.FuncTool{Name: "a", Input: schema}, func(context.Context, *server.ToolCall, map[string]any) (string, error) { return "", nil })
		if err == nil || !strings.Contains(err.Error(), `tool "a"`) {
			t.Errorf("%s: %v", ref, err)
		}
		// One that is defined by hand is listed as it is.
		definition := `{"name":"b","inputSchema":` + string(schema) + `}`
		tool, err := server.NewTool(jsontext.Value(definition), func(context.Context, *server.ToolCall) (jsontext.Value, error) { return server.TextResult(""), nil })
		if err != nil || string(tool.Definition()) != definition {
			t.Errorf("%s: %v", ref, err)
		} else if _, err := callTool(t, tool, mcp.Latest, `{"a":1}`); err != nil {
			t.Error(err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestC164_SchemasAreBounded(t *testing.T) {
	doubling := `{"type":"object","$defs":{"d0":{"type":"object"}`
	for i := range 30 {
		doubling += fmt.Sprintf(`,"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i+1, i, i)
	}
	doubling += `},"allOf":[{"$ref":"#/$defs/d30"}]}`
	for name, schema := range map[string]string{
		"doubling":    doubling,
		"itself":      `{"type":"object","$ref":"#"}`,
		"each other":  `{"type":"object","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"properties":{"x":{"$ref":"#/$defs/a"}}}`,
		"deep":        `{"type":"object","properties":` + strings.Repeat(`{"a":{"properties":`, 100_000) + `{}` + strings.Repeat(`}}`, 100_000) + `}`,
		"many":        `{"type":"object",` + strings.Repeat(`"a":1,`, 1<<18) + `"b":1}`,
		"not JSON":    `{"type":"object"`,
		"bad pattern": `{"type":"object","properties":{"a":{"pattern":"("}}}`,
		"no object":   `{"type":"string"}`,
	} {
		begin := time.Now()
		_, err := server.NewFuncTool(server.FuncTool{Name: "a", Input: jsontext.Value(schema)}, func(context.Context, *server.ToolCall, map[string]any) (string, error) { return "", nil })
		if err == nil {
			t.Errorf("%s: taken", name)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
	// What is allowed is checked in good time, whatever comes.
	tree, err := server.NewFuncTool(server.FuncTool{Name: "tree", Input: jsontext.Value(`{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#"}},"s":{"type":"string","pattern":"^(a+)+$"}}}`)},
		func(context.Context, *server.ToolCall, map[string]any) (string, error) { return "fine", nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{
		`{"s":"` + strings.Repeat("a", 100_000) + `!"}`,
		strings.Repeat(`{"kids":[`, 200) + strings.Repeat(`]}`, 200),
	} {
		begin := time.Now()
		if _, err := callTool(t, tree, mcp.Latest, arguments); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d > 30*time.Second {
			t.Errorf("took %v", d)
		}
	}
}

func TestFuncToolsThatCannotBe(t *testing.T) {
	ok := func(context.Context, *server.ToolCall, struct{}) (string, error) { return "", nil }
	if _, err := server.NewFuncTool(server.FuncTool{}, ok); err == nil {
		t.Error("a tool without a name")
	}
	if _, err := server.NewFuncTool(server.FuncTool{Name: "a", Output: jsontext.Value(`{}`)}, ok); err == nil {
		t.Error("structured output of a string")
	}
	if _, err := server.NewFuncTool(server.FuncTool{Name: "a", Annotations: jsontext.Value(`{`)}, ok); err == nil {
		t.Error("broken annotations")
	}
	if _, err := server.NewFuncTool(server.FuncTool{Name: "a"}, func(context.Context, *server.ToolCall, string) (string, error) { return "", nil }); err == nil {
		t.Error("arguments that are no object")
	}
	if _, err := server.NewFuncTool(server.FuncTool{Name: "a"}, func(context.Context, *server.ToolCall, struct{ F func() }) (string, error) { return "", nil }); err == nil {
		t.Error("an argument that JSON does not have")
	}
	if _, err := server.NewFuncTool[struct{}, string](server.FuncTool{Name: "a"}, nil); err == nil {
		t.Error("no function")
	}
}
