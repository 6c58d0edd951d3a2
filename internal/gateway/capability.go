package gateway

import (
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// askable has the requests that servers may make of clients, and the capability
// that a client declares for each.
var askable = map[string]string{
	mcp.MethodElicit:    "elicitation",
	mcp.MethodSampling:  "sampling",
	mcp.MethodRootsList: "roots",
}

// canAnswer returns an error for a question that the caller cannot be asked.
func canAnswer(c mcp.Caller, method string, params jsonrpc.Object) error {
	capability, known := askable[method]
	if !known {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", method)
	}
	caps, err := jsonrpc.ParseObject(c.Capabilities)
	if err != nil || caps.Get(capability).Kind() != '{' {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client of this call has not declared the capability %q", method, capability)
	}
	declared, err := jsonrpc.ParseObject(caps.Get(capability))
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s: the client of this call declares %q in a way that cannot be read", method, capability)
	}
	switch method {
	case mcp.MethodElicit:
		return canElicit(c.Version, declared, isURLMode(params))
	case mcp.MethodSampling:
		if (params.Get("tools") != nil || params.Get("toolChoice") != nil) && declared.Get("tools").Kind() != '{' {
			return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the client of this call has not declared that it samples with tools", method)
		}
	}
	return nil
}

// canElicit looks at the mode: an empty capability stands for forms alone
// (2025-11-25, client/elicitation, Capabilities).
func canElicit(v mcp.Version, declared jsonrpc.Object, url bool) error {
	switch {
	case url && (!v.HasURLElicitation() || declared.Get("url").Kind() != '{'):
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the client of this call has not declared URL mode", mcp.MethodElicit)
	case !url && v.HasURLElicitation() && declared.Get("url") != nil && declared.Get("form") == nil:
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: the client of this call has declared URL mode alone, not forms", mcp.MethodElicit)
	}
	return nil
}

// askableOf returns of a client's capabilities those that say what it can be asked.
func askableOf(capabilities jsontext.Value) jsontext.Value {
	out := []byte{'{'}
	caps, _ := jsonrpc.ParseObject(capabilities) // unreadable: declares nothing
	for name, value := range caps.All() {
		if value.Kind() != '{' || !slices.Contains(slices.Collect(maps.Values(askable)), name) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonrpc.AppendString(out, name), ':'), value...)
	}
	return append(out, '}')
}

func isURLMode(params jsonrpc.Object) bool {
	mode, _ := params.Text("mode")
	return mode == "url"
}

func canAnswerSomething(c mcp.Caller) bool {
	if string(c.Capabilities) == "{}" {
		return false
	}
	caps, err := jsonrpc.ParseObject(c.Capabilities)
	if err != nil {
		return false
	}
	for _, capability := range askable {
		if caps.Get(capability).Kind() == '{' {
			return true
		}
	}
	return false
}

// canAnswerAll returns the error for a result that asks its client for something
// that it has not declared.
func canAnswerAll(c mcp.Caller, requests jsontext.Value) error {
	if requests == nil {
		return nil
	}
	all, err := jsonrpc.ParseObject(requests)
	if err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternal, "the server's inputRequests: %v", err)
	}
	for key, raw := range all.All() {
		method, params, err := question(key, raw)
		if err != nil {
			return err
		}
		if canAnswer(c, method, params) == nil {
			continue
		}
		capability, known := askable[method]
		if !known {
			return jsonrpc.Errorf(jsonrpc.CodeInternal, "the server asks for input by %q, which is not a way to ask", method)
		}
		required := `{"` + capability + `":{}}`
		if method == mcp.MethodElicit && isURLMode(params) {
			required = `{"elicitation":{"url":{}}}`
		}
		return mcp.MissingCapability(jsontext.Value(required))
	}
	return nil
}

// question reads one member of inputRequests.
func question(key string, raw jsontext.Value) (method string, params jsonrpc.Object, err error) {
	q, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return "", params, jsonrpc.Errorf(jsonrpc.CodeInternal, "the server's inputRequests[%q]: %v", key, err)
	}
	method, _ = q.Text("method")
	if given := q.Get("params"); given != nil {
		if params, err = jsonrpc.ParseObject(given); err != nil {
			return "", params, jsonrpc.Errorf(jsonrpc.CodeInternal, "the server's inputRequests[%q].params: %v", key, err)
		}
	}
	return method, params, nil
}
