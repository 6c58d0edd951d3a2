package mcp

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// Keys of _meta that the protocol reserves (2026-07-28, basic, _meta).
const (
	MetaVersion        = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo     = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel       = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
	MetaServerInfo     = "io.modelcontextprotocol/serverInfo"
	MetaProgressToken  = "progressToken"
)

// Caller is who sends a request: what a stateless request says of its client in
// _meta, and what a session's client said in initialize.
type Caller struct {
	Version      Version
	Info         jsontext.Value // an Implementation object; nil: not said
	Capabilities jsontext.Value // a ClientCapabilities object; nil: not said
	LogLevel     string         // "": no log messages wanted (stateless requests only)
}

// ReadCaller reads the caller of a request off its params. The caller's Version
// is empty if the request does not name one in _meta, as no request of a session
// does. The error, with code -32602, is about a _meta that cannot be read.
func ReadCaller(params jsonrpc.Object) (Caller, error) {
	raw := params.Get("_meta")
	if raw == nil {
		return Caller{}, nil
	}
	meta, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return Caller{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta: %v", err)
	}
	version := meta.Get(MetaVersion)
	if version == nil {
		return Caller{}, nil
	}
	v, ok := jsonrpc.Text(version)
	if !ok {
		return Caller{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta: %q must be a string", MetaVersion)
	}
	c := Caller{Version: Version(v), Info: meta.Get(MetaClientInfo), Capabilities: meta.Get(MetaCapabilities)}
	c.LogLevel, _ = meta.Text(MetaLogLevel)
	return c, nil
}

// SetCaller returns params with _meta saying what c says, for a server that
// reads it there. Everything else in params and _meta stays as it is. With the
// zero Caller the reserved keys are removed, for a server that does not know
// them, and so is a _meta that has nothing else.
func SetCaller(params jsonrpc.Object, c Caller) jsontext.Value {
	meta := jsonrpc.Object{}
	if raw := params.Get("_meta"); raw != nil {
		meta, _ = jsonrpc.ParseObject(raw) // unreadable: replaced
	}
	if c.Version == "" {
		return removeCaller(params, meta)
	}
	info, caps := c.Info, c.Capabilities
	if caps == nil {
		caps = jsontext.Value("{}")
	}
	level := jsontext.Value(nil)
	if c.LogLevel != "" {
		level = String(c.LogLevel)
	}
	return Splice(params, Edit{"_meta", Splice(
		meta,
		Edit{MetaVersion, String(string(c.Version))},
		Edit{MetaClientInfo, info},
		Edit{MetaCapabilities, caps},
		Edit{MetaLogLevel, level},
	)})
}

func removeCaller(params, meta jsonrpc.Object) jsontext.Value {
	if meta.IsZero() {
		return params.Raw
	}
	out := Splice(meta, Edit{Name: MetaVersion}, Edit{Name: MetaClientInfo}, Edit{Name: MetaCapabilities}, Edit{Name: MetaLogLevel})
	if len(out) == len(meta.Raw) {
		return params.Raw
	}
	if rest, err := jsonrpc.ParseObject(out); err == nil && rest.Len() == 0 {
		return Splice(params, Edit{Name: "_meta"})
	}
	return Splice(params, Edit{"_meta", out})
}
