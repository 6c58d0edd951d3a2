package server

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// finish gives a result the form that the caller's version requires, and
// changes nothing else in it.
func (s *Server) finish(r *Request, result jsonrpc.Object) (jsontext.Value, error) {
	if !result.IsObject() {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s: the result is not a JSON object", r.Method)
	}
	kind, named := result.Text("resultType")
	if !r.Caller.Version.Stateless() {
		return finishSession(r, result, kind)
	}
	if named && kind != "complete" && kind != "input_required" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s: the server answered with resultType %q, which nobody here has agreed on", r.Method, kind)
	}
	var edits [4]mcp.Edit
	n := 0
	if !named {
		edits[n] = mcp.Edit{Name: "resultType", Value: jsontext.Value(`"complete"`)}
		n++
	}
	if r.Method == mcp.MethodResourcesRead && kind != "input_required" {
		if result.Get("ttlMs") == nil {
			edits[n] = mcp.Edit{Name: "ttlMs", Value: jsontext.Value("0")}
			n++
		}
		if result.Get("cacheScope") == nil {
			edits[n] = mcp.Edit{Name: "cacheScope", Value: jsontext.Value(`"private"`)}
			n++
		}
	}
	if meta := s.withServerInfo(result); meta != nil {
		edits[n] = mcp.Edit{Name: "_meta", Value: meta}
		n++
	}
	return mcp.SpliceInto(r.Scratch, result, edits[:n]...), nil
}

// withServerInfo returns the result's _meta with the server's identity added;
// nil if one is there or there is no place for it.
func (s *Server) withServerInfo(result jsonrpc.Object) jsontext.Value {
	meta, err := result.Meta()
	switch {
	case err != nil || meta.Get(mcp.MetaServerInfo) != nil:
		return nil
	case meta.IsZero():
		return s.meta
	}
	return mcp.Splice(meta, mcp.Edit{Name: mcp.MetaServerInfo, Value: s.name})
}

// finishSession takes out what only stateless versions have.
func finishSession(r *Request, result jsonrpc.Object, kind string) (jsontext.Value, error) {
	if kind != "" && kind != "complete" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal,
			"%s: the server wants more input (resultType %q), which this client's protocol version %s cannot give", r.Method, kind, r.Caller.Version)
	}
	edits := make([]mcp.Edit, 0, 3)
	edits = append(edits, mcp.Edit{Name: "resultType"})
	if r.Method == mcp.MethodResourcesRead && kind != "" {
		edits = append(edits, mcp.Edit{Name: "ttlMs"}, mcp.Edit{Name: "cacheScope"})
	}
	if r.Method == mcp.MethodToolsCall && !r.Caller.Version.HasAnyOutput() {
		if v := result.Get("structuredContent"); v != nil && v.Kind() != '{' {
			edits = append(edits, mcp.Edit{Name: "structuredContent"})
		}
	}
	return mcp.SpliceInto(r.Scratch, result, edits...), nil
}
