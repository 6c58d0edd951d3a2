package server

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/mcp"
)

// FuncTool describes a tool whose schemas come from the types of a Go function;
// see NewFuncTool. Name is required.
type FuncTool struct {
	Name        string
	Title       string
	Description string
	// Annotations are hints to clients; nil: none (2026-07-28, schema,
	// ToolAnnotations).
	Annotations jsontext.Value
	// Input and Output are used instead of the schemas of the function's types.
	// What they refer to by $ref must lie in themselves: nothing is ever fetched.
	Input, Output jsontext.Value
}

// NewFuncTool returns a tool that is a Go function. In and Out become its
// schemas as package jsonschema infers them: fields are named by their json tags
// and described by their jsonschema tags; those without omitzero or omitempty are
// required, others than those are refused.
//
// Arguments are checked against the schema and decoded exactly, an int64 digit by
// digit. What is wrong with them is told to the model, in a result that is marked
// as an error, so that it can mend its call; so is an error of f, unless it is a
// *jsonrpc.Error.
//
// What f returns is the result's structured content, and again its text, for
// clients that know only that. An Out of string is a text and nothing else; one of
// jsontext.Value is a whole CallToolResult. f may run any number of times at once,
// and its context ends when the caller gives up.
func NewFuncTool[In, Out any](about FuncTool, f func(ctx context.Context, call *ToolCall, in In) (Out, error)) (*Tool, error) {
	if f == nil {
		return nil, fmt.Errorf("tool %q: %w", about.Name, errNoFunction)
	}
	input, err := schemaOf[In](about.Input)
	if err != nil {
		return nil, fmt.Errorf("tool %q: schema of the input: %w", about.Name, err)
	}
	var out Out
	var output *schema
	switch any(out).(type) {
	case string, jsontext.Value:
		if about.Output != nil {
			return nil, fmt.Errorf("tool %q: a function that returns %T has no structured output", about.Name, out)
		}
	default:
		if output, err = schemaOf[Out](about.Output); err != nil {
			return nil, fmt.Errorf("tool %q: schema of the output: %w", about.Name, err)
		}
	}
	return NewTool(about.definition(input, output), func(ctx context.Context, call *ToolCall) (jsontext.Value, error) {
		in, err := decode[In](input, call.Arguments)
		if err != nil {
			return nil, err
		}
		out, err := f(ctx, call, in)
		if err != nil {
			return nil, err
		}
		return output.result(out)
	})
}

// definition returns the tool as it is listed.
func (t *FuncTool) definition(input, output *schema) jsontext.Value {
	d := append([]byte(`{"name":`), mcp.String(t.Name)...)
	if t.Title != "" {
		d = append(append(d, `,"title":`...), mcp.String(t.Title)...)
	}
	if t.Description != "" {
		d = append(append(d, `,"description":`...), mcp.String(t.Description)...)
	}
	d = append(append(d, `,"inputSchema":`...), input.raw...)
	if output != nil {
		d = append(append(d, `,"outputSchema":`...), output.raw...)
	}
	if t.Annotations != nil {
		d = append(append(d, `,"annotations":`...), t.Annotations...)
	}
	return append(d, '}')
}
