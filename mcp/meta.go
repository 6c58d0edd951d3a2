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

// callerShapes is what the members of _meta that say who calls must be.
var callerShapes = memberShapes{
	{MetaVersion, true, aString},
	{MetaClientInfo, false, anObject},
	{MetaCapabilities, false, anObject},
	{MetaLogLevel, false, aString},
}

// ReadCaller reads the caller of a request off its params. The caller's Version
// is empty if the request does not name one in _meta, as no request of a session
// does. The error, with code -32602, is about a _meta that cannot be read. A null
// _meta counts as none.
func ReadCaller(params jsonrpc.Object) (Caller, error) {
	meta, err := params.Meta()
	if err != nil {
		return Caller{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta: %v", err)
	}
	version := meta.Get(MetaVersion)
	if version == nil {
		return Caller{}, nil
	}
	if err := callerShapes.check(meta); err != nil {
		return Caller{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta: %v", err)
	}
	c := Caller{Version: readVersion(version), Info: meta.Get(MetaClientInfo), Capabilities: meta.Get(MetaCapabilities)}
	c.LogLevel, _ = meta.Text(MetaLogLevel)
	return c, nil
}

// SetCaller returns params with _meta saying what c says; see EditCaller.
func SetCaller(params jsonrpc.Object, c Caller) jsontext.Value {
	edit, changed := EditCaller(params, c, nil)
	if !changed {
		return params.Raw
	}
	return Splice(params, edit)
}

// EditCaller returns the edit of params after which _meta says what c says, for a
// server that reads it there, and has the progress token, if that is not nil; false
// if there is nothing to change. Everything else in _meta stays as it is. With
// the zero Caller the reserved keys are removed, for a server that does not know
// them, and so is a _meta that then has nothing.
func EditCaller(params jsonrpc.Object, c Caller, token jsontext.Value) (Edit, bool) {
	meta, _ := params.Meta() // unreadable: replaced
	var edits [5]Edit
	n := 0
	set := func(name string, v jsontext.Value) {
		if v != nil || meta.Find(name) >= 0 {
			edits[n] = Edit{name, v}
			n++
		}
	}
	if token != nil {
		set(MetaProgressToken, token)
	}
	if c.Version == "" {
		set(MetaVersion, nil)
		set(MetaClientInfo, nil)
		set(MetaCapabilities, nil)
		set(MetaLogLevel, nil)
	} else {
		if c.Capabilities == nil {
			c.Capabilities = jsontext.Value("{}")
		}
		level := jsontext.Value(nil)
		if c.LogLevel != "" {
			level = String(c.LogLevel)
		}
		set(MetaVersion, String(string(c.Version)))
		set(MetaClientInfo, c.Info)
		set(MetaCapabilities, c.Capabilities)
		set(MetaLogLevel, level)
	}
	if n == 0 {
		return Edit{}, false
	}
	out := Splice(meta, edits[:n]...)
	if c.Version == "" && token == nil && n == meta.Len() {
		return Edit{Name: "_meta"}, true
	}
	return Edit{"_meta", out}, true
}
