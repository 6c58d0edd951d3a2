package demo

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

const version = "1.0.0"

// schemas of the arguments that demo tools take.
const (
	noArguments  = `{"type":"object"}`
	textArgument = `{"type":"object","properties":{"text":{"type":"string","description":"Any text"}},"required":["text"]}`
	repeatSchema = `{"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer","minimum":1,"maximum":100}},"required":["text"]}`
)

// newTool returns a tool whose result is what answer returns for its arguments.
func newTool(name, description, schema string, answer func(args jsonrpc.Object) (string, error)) (*server.Tool, error) {
	definition := fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":%s,"annotations":{"readOnlyHint":true}}`,
		mcp.String(name), mcp.String(description), schema)
	return server.NewTool(definition, func(_ context.Context, call *server.ToolCall) (jsontext.Value, error) {
		args := jsonrpc.Object{}
		if call.Arguments != nil {
			var err error
			if args, err = jsonrpc.ParseObject(call.Arguments); err != nil {
				return nil, fmt.Errorf("arguments: %w", err)
			}
		}
		text, err := answer(args)
		if err != nil {
			return nil, err
		}
		return server.TextResult(text), nil
	})
}

// onText makes a function of a text into one of arguments.
func onText(f func(text string) string) func(jsonrpc.Object) (string, error) {
	return func(args jsonrpc.Object) (string, error) {
		text, ok := args.Text("text")
		if !ok {
			return "", fmt.Errorf("the argument text must be a string")
		}
		return f(text), nil
	}
}
