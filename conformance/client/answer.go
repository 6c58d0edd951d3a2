package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// maxRounds is how often a request is sent again with answers.
const maxRounds = 5

// asked answers what a server asks during a request, as if a user were there who
// accepts everything without touching the form.
type asked struct{}

// Handle answers one request; see jsonrpc.Handler.
func (asked) Handle(_ context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	return reply(r.Method, r.Params)
}

// answer returns the edits of a request's params that answer what its result asks
// for. The state goes back as it came, if there is any.
func answer(result jsonrpc.Object) ([]mcp.Edit, error) {
	questions, err := jsonrpc.ParseObject(result.Get("inputRequests"))
	if err != nil {
		return nil, fmt.Errorf("inputRequests: %w", err)
	}
	out := []byte{'{'}
	for key, raw := range questions.All() {
		question, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("inputRequests: %w", err)
		}
		method, _ := question.Text("method")
		params, err := jsonrpc.ParseObject(question.Get("params"))
		if err != nil && question.Get("params") != nil {
			return nil, fmt.Errorf("inputRequests: %s: %w", method, err)
		}
		given, err := reply(method, params)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, mcp.String(key)...), ':'), given...)
	}
	return []mcp.Edit{
		{Name: "inputResponses", Value: append(out, '}')},
		{Name: "requestState", Value: result.Get("requestState")},
	}, nil
}

func reply(method string, params jsonrpc.Object) (jsontext.Value, error) {
	switch method {
	case mcp.MethodElicit:
		content, err := defaults(params.Get("requestedSchema"))
		return fmt.Appendf(nil, `{"action":"accept","content":%s}`, content), err
	case mcp.MethodSampling:
		return jsontext.Value(`{"role":"assistant","model":"none","content":{"type":"text","text":"I have nothing to say."}}`), nil
	case mcp.MethodRootsList:
		return jsontext.Value(`{"roots":[]}`), nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
}

// defaults returns the content of a form in which nothing was entered: the default
// values of its schema, and of properties without one what an empty form
// has for a boolean.
func defaults(schema jsontext.Value) (jsontext.Value, error) {
	form, err := jsonrpc.ParseObject(schema)
	if err != nil {
		return nil, fmt.Errorf("requestedSchema: %w", err)
	}
	properties, err := jsonrpc.ParseObject(form.Get("properties"))
	if err != nil {
		return nil, fmt.Errorf("requestedSchema: properties: %w", err)
	}
	var edits []mcp.Edit
	for name, raw := range properties.All() {
		property, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("requestedSchema: %s: %w", name, err)
		}
		value := property.Get("default")
		if kind, _ := property.Text("type"); value == nil && kind == "boolean" {
			value = jsontext.Value("true")
		}
		if value != nil {
			edits = append(edits, mcp.Edit{Name: name, Value: value})
		}
	}
	return mcp.Splice(jsonrpc.Object{}, edits...), nil
}
