package demo

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// A dot of one pixel, and a sound without samples.
const (
	dot     = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
	silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
)

// newStudio makes a server for what else than lists can be difficult.
func newStudio() (server.Source, error) {
	m := server.NewMemory(server.MemoryOptions{Name: "studio", Version: version})
	for _, t := range []struct {
		definition string
		call       func(context.Context, *server.ToolCall) (jsontext.Value, error)
	}{
		{`{"name":"invite","description":"Invite somebody; asks who","inputSchema":{"type":"object"}}`, invite},
		{`{"name":"visit","description":"Ask to open a page","inputSchema":{"type":"object"}}`, visit},
		{`{"name":"paint","description":"A dot and silence","inputSchema":{"type":"object","properties":{
			"color":{"enum":["red","green"],"description":"Of the dot"},
			"size":{"type":"integer","minimum":1},
			"round":{"type":"boolean","default":true}},"required":["color","size"]}}`, paint},
		{`{"name":"count","description":"Count to three, and report it","inputSchema":{"type":"object"}}`, count},
		{`{"name":"echo","description":"Answer with the arguments","inputSchema":{"type":"object"}}`, echo},
	} {
		tool, err := server.NewTool(jsontext.Value(t.definition), t.call)
		if err != nil {
			return nil, err
		}
		if err := m.Tools.Add(tool); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func invite(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	const params = `{"mode":"form","message":"Who is to come?","requestedSchema":{"type":"object","properties":{
		"name":{"type":"string","title":"Name"},
		"age":{"type":"integer"},
		"vegetarian":{"type":"boolean","default":false}},"required":["name","age"]}}`
	answers, err := call.Ask(ctx, "", server.Question{Key: "guest", Method: mcp.MethodElicit, Params: jsontext.Value(params)})
	if err != nil {
		return nil, err
	}
	action, _ := answers["guest"].Text("action")
	if action != "accept" {
		return server.TextResult("nobody comes: " + action), nil
	}
	return server.TextResult("invited: " + string(answers["guest"].Get("content"))), nil
}

func visit(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	const params = `{"mode":"url","message":"Please sign","url":"https://sign.example.com/form?id=7"}`
	answers, err := call.Ask(ctx, "", server.Question{Key: "page", Method: mcp.MethodElicit, Params: jsontext.Value(params)})
	if err != nil {
		return nil, err
	}
	action, _ := answers["page"].Text("action")
	return server.TextResult("answered: " + action), nil
}

func paint(_ context.Context, call *server.ToolCall) (jsontext.Value, error) {
	args, err := jsonrpc.ParseObject(call.Arguments)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s},{"type":"image","data":"%s","mimeType":"image/png"},`+
		`{"type":"audio","data":"%s","mimeType":"audio/wav"},`+
		`{"type":"resource","resource":{"uri":"demo://studio/raw","mimeType":"application/octet-stream","blob":"AAEC"}}]}`,
		mcp.String("a dot of "+string(args.Raw)), dot, silence), nil
}

func count(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	const last = 3
	for i := range last {
		if err := call.Progress(ctx, float64(i+1), last, "counting"); err != nil {
			return nil, err
		}
	}
	return server.TextResult("three"), nil
}

func echo(_ context.Context, call *server.ToolCall) (jsontext.Value, error) {
	return server.TextResult(string(call.Arguments)), nil
}
