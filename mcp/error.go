package mcp

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// Error codes that the protocol defines beside those of JSON-RPC
// (2026-07-28, basic, Error Codes).
const (
	CodeHeaderMismatch     = -32020
	CodeMissingCapability  = -32021
	CodeUnsupportedVersion = -32022

	// Codes of versions before 2026-07-28, which must not reach newer clients.
	CodeResourceNotFound = -32002
	CodeURLElicitation   = -32042
	CodeSessionNotFound  = -32001
)

// UnsupportedVersion returns the error for a request in a version that is not
// spoken here. supported nil: all of Versions.
func UnsupportedVersion(requested string, supported []Version) *jsonrpc.Error {
	if supported == nil {
		supported = Versions()
	}
	data := []byte(`{"supported":[`)
	for i, v := range supported {
		if i > 0 {
			data = append(data, ',')
		}
		data = jsonrpc.AppendString(data, string(v))
	}
	data = append(data, `],"requested":`...)
	data = jsonrpc.AppendString(data, requested)
	data = append(data, '}')
	e := jsonrpc.Errorf(CodeUnsupportedVersion, "unsupported protocol version %q", requested)
	e.Data = data
	return e
}

// MissingCapability returns the error for a request that needs capabilities
// that its client did not declare. required is a ClientCapabilities object.
func MissingCapability(required jsontext.Value) *jsonrpc.Error {
	e := jsonrpc.Errorf(CodeMissingCapability, "the client did not declare a capability that this request needs")
	e.Data = append(append([]byte(`{"requiredCapabilities":`), required...), '}')
	return e
}

// ErrorFor returns the form of a server's error for a client of a version
// (2026-07-28, basic, Error Codes): codes that the client's version forbids are
// replaced, all else passes as it came.
func ErrorFor(v Version, e *jsonrpc.Error) *jsonrpc.Error {
	if !v.Stateless() {
		return e
	}
	switch {
	case e.Code == CodeResourceNotFound:
		return e.Recode(jsonrpc.CodeInvalidParams)
	case e.Code == CodeURLElicitation:
		return e.Recode(jsonrpc.CodeInternal)
	case e.Code == CodeMissingCapability:
		return e
	case e.Code <= -32020 && e.Code >= -32099:
		return e.Recode(jsonrpc.CodeInternal)
	}
	return e
}
