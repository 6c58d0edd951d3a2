package client

import (
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// ServerInfo is what a server says of itself when a connection begins, in its
// answer to server/discover or initialize.
type ServerInfo struct {
	// Version is the protocol version that requests use.
	Version mcp.Version
	// Info is the server's Implementation object; nil if it gave none.
	Info jsontext.Value
	// Capabilities is the server's capabilities object; it may be empty.
	Capabilities jsonrpc.Object
	// Instructions are for the model; "" if the server has none.
	Instructions string
	// Supported has the versions that a stateless server listed.
	Supported []string
	// Hints say how long all this holds; from a stateless server only.
	Hints mcp.Hints
}

// Lists reports whether the server declares that it has things of a kind.
func (s *ServerInfo) Lists(k mcp.Kind) bool {
	return declared(s.Capabilities.Get(k.Capability()))
}

// ListChanged reports whether the server declares that it says when its list
// of a kind changes.
func (s *ServerInfo) ListChanged(k mcp.Kind) bool {
	c, err := jsonrpc.ParseObject(s.Capabilities.Get(k.Capability()))
	return err == nil && string(c.Get("listChanged")) == "true"
}

// declared reports whether the value of a capability says that it is there.
func declared(v jsontext.Value) bool {
	return len(v) > 0 && v.Kind() != 'n' && v.Kind() != 'f'
}

// readDiscover reads a DiscoverResult (2026-07-28, server/discover); false if
// the result is not one.
func readDiscover(result jsonrpc.Object) (ServerInfo, bool) {
	list, err := jsonrpc.Elements(result.Get("supportedVersions"))
	if err != nil {
		return ServerInfo{}, false
	}
	info := ServerInfo{Hints: readHints(result)}
	for _, v := range list {
		if s, ok := jsonrpc.Text(v); ok {
			info.Supported = append(info.Supported, s)
		}
	}
	info.Capabilities = object(result.Get("capabilities"))
	info.Instructions, _ = result.Text("instructions")
	meta := object(result.Get("_meta"))
	for _, v := range []jsontext.Value{meta.Get(mcp.MetaServerInfo), result.Get("serverInfo")} {
		if v.Kind() == '{' {
			info.Info = v
			break
		}
	}
	return info, true
}

// readInitialize reads an InitializeResult (2025-11-25, basic/lifecycle), but
// for its version.
func readInitialize(result jsonrpc.Object) ServerInfo {
	info := ServerInfo{Capabilities: object(result.Get("capabilities"))}
	info.Instructions, _ = result.Text("instructions")
	if v := result.Get("serverInfo"); v.Kind() == '{' {
		info.Info = v
	}
	return info
}

// object parses a value, {} if it is not an object.
func object(v jsontext.Value) jsonrpc.Object {
	if len(v) > 0 {
		if o, err := jsonrpc.ParseObject(v); err == nil {
			return o
		}
	}
	return jsonrpc.Object{Raw: jsontext.Value("{}")}
}

// readHints reads the caching hints of a result. What is absent or makes no
// sense counts as 0 and private.
func readHints(result jsonrpc.Object) mcp.Hints {
	h := mcp.Hints{Public: string(result.Get("cacheScope")) == `"public"`}
	const most = float64(365 * 24 * time.Hour / time.Millisecond)
	if ms, err := strconv.ParseFloat(string(result.Get("ttlMs")), 64); err == nil && ms > 0 {
		h.TTL = time.Duration(min(ms, most)) * time.Millisecond
	}
	return h
}
