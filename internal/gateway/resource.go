package gateway

import (
	"context"
	"errors"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// readResource passes resources/read on: to the server that lists the URI, else
// to those with a template that matches, in order, until one has it, else to the
// one whose result showed this client a link to it. A read that is tried again
// with a server's state goes to that server.
func (s *Source) readResource(ctx context.Context, r *server.Request) (jsonrpc.Object, error) {
	uri, ok := r.Params.Text("uri")
	if !ok {
		return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.uri must be a string")
	}
	if r.Caller.Version.Stateless() {
		st, err := s.sealer.open(r)
		switch {
		case err != nil:
			return jsonrpc.Object{}, err
		case st.kind != 0:
			return s.plain(ctx, st.server, r, nil)
		}
	}
	all := s.sees(r)
	e, ok := all.Find(mcp.Resources, uri)
	if !ok {
		var err error
		if all, err = s.ready(ctx, r); err != nil {
			return jsonrpc.Object{}, err
		}
		e, ok = all.Find(mcp.Resources, uri)
	}
	if ok {
		return s.plain(ctx, e.Server, r, nil)
	}
	missing := unknownResource(r, uri)
	var result jsonrpc.Object
	for t := range all.Matching(uri) {
		if result, missing = s.plain(ctx, t.Server, r, nil); !isNotFound(missing) {
			return result, missing
		}
	}
	if name, ok := s.links.owner(r, uri); ok {
		return s.plain(ctx, name, r, nil)
	}
	return result, missing
}

// unknownResource is the error for a URI that nobody has, in the words of the
// caller's version (server/resources, Error Handling).
func unknownResource(r *server.Request, uri string) error {
	e := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource %q: no server lists it or has a template for it", uri)
	if !r.Caller.Version.Stateless() {
		e.Code = mcp.CodeResourceNotFound
	}
	e.Data = append(append([]byte(`{"uri":`), mcp.String(uri)...), '}')
	return e
}

// isNotFound reports whether a server said that it has no such resource.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && (e.Code == mcp.CodeResourceNotFound || e.Code == jsonrpc.CodeInvalidParams)
}

// templateOwner returns the first server with a template that makes a URI.
func templateOwner(all lists, uri string) (owner string, ok bool) {
	for t := range all.Matching(uri) {
		return t.Server, true
	}
	return "", false
}
