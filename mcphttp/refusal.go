package mcphttp

import (
	"net/http"
	"strconv"

	"github.com/mcp-roster/roster/jsonrpc"
)

// refusal is an HTTP request that is answered with an error and that no
// jsonrpc.Handler has seen.
type refusal struct {
	status int
	id     jsonrpc.ID // zero: the error has none
	err    *jsonrpc.Error
	allow  string // the Allow header of a 405
}

func refused(status, code int, format string, args ...any) *refusal {
	return &refusal{status: status, err: jsonrpc.Errorf(code, format, args...)}
}

// badRequest is the refusal for an error of the protocol's own.
func badRequest(err *jsonrpc.Error) *refusal {
	return &refusal{status: http.StatusBadRequest, err: err}
}

func notAllowed(allow string) *refusal {
	f := refused(http.StatusMethodNotAllowed, jsonrpc.CodeInvalidRequest, "HTTP method not allowed here: use %s", allow)
	f.allow = allow
	return f
}

func (f *refusal) write(w http.ResponseWriter) {
	if f.allow != "" {
		w.Header().Set("Allow", f.allow)
	}
	writeJSON(w, f.status, jsonrpc.AppendError(nil, f.id, f.err))
}

// writeJSON writes a whole response.
func writeJSON(w http.ResponseWriter, status int, body []byte) {
	writeParts(w, status, body)
}

// typeJSON is the value of Content-Type that many responses share.
var typeJSON = []string{"application/json"}

// writeParts writes a JSON response that lies in several places, so that a big
// part need not be copied.
func writeParts(w http.ResponseWriter, status int, parts ...[]byte) {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	h := w.Header()
	h["Content-Type"] = typeJSON
	h["Content-Length"] = []string{strconv.Itoa(size)}
	w.WriteHeader(status)
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			return // the client has gone
		}
	}
}
