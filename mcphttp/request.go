package mcphttp

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// headerValue returns a header field. One that stands more than once becomes
// a list, which equals no value that we look for.
func headerValue(h http.Header, name string) string {
	switch v := h[name]; len(v) {
	case 0:
		return ""
	case 1:
		return v[0]
	default:
		return strings.Join(v, ", ")
	}
}

// accepts reports whether an Accept header admits all of the media types. No
// header admits everything (RFC 9110, section 12.5.1).
func accepts(h http.Header, types ...string) bool {
	fields := h["Accept"]
	if len(fields) == 0 {
		return true
	}
	all := strings.Join(fields, ",")
	for _, t := range types {
		if !anyAccepts(all, t) {
			return false
		}
	}
	return true
}

// prefersStream reports whether an Accept header names streams before JSON,
// without weights that would say more than the order does.
func prefersStream(h http.Header) bool {
	fields := h["Accept"]
	return len(fields) == 1 && !strings.Contains(fields[0], ";") &&
		strings.HasPrefix(strings.TrimLeft(fields[0], " \t"), "text/event-stream")
}

// anyAccepts goes by the most specific range that matches the media type.
func anyAccepts(ranges, mediaType string) bool {
	major, _, _ := strings.Cut(mediaType, "/")
	best, ok := 0, false
	for r := range strings.SplitSeq(ranges, ",") {
		name, params, _ := strings.Cut(r, ";")
		name = strings.TrimSpace(name)
		rank := 0
		switch {
		case strings.EqualFold(name, mediaType):
			rank = 3
		case strings.EqualFold(name, major+"/*"):
			rank = 2
		case name == "*/*":
			rank = 1
		}
		if rank > best {
			best, ok = rank, !zeroQuality(params)
		}
	}
	return ok
}

func zeroQuality(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		k, v, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(k, "q") {
			q, err := strconv.ParseFloat(v, 64)
			return err == nil && q == 0
		}
	}
	return false
}

// isJSON reports whether a Content-Type is JSON.
func isJSON(contentType string) bool {
	if contentType == "application/json" {
		return true
	}
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	return t == "application/json" || strings.HasPrefix(t, "application/") && strings.HasSuffix(t, "+json")
}

// limitBodyTime gives a request's body the time that it may take to arrive. The
// limit stays if the request is refused, when net/http reads what is left.
func limitBodyTime(w http.ResponseWriter, o *HandlerOptions) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(o.BodyTimeout)) // unsupported: the server's own limits hold
}

// readBody reads a request's body into a buffer of its own, which is not used
// again: what is parsed from it may be kept by who handles it.
func readBody(w http.ResponseWriter, r *http.Request, o *HandlerOptions) ([]byte, *refusal) {
	limit := o.MaxBody
	tooLarge := func() *refusal {
		return refused(http.StatusRequestEntityTooLarge, jsonrpc.CodeInvalidRequest, "body over the limit of %d bytes", limit)
	}
	if r.ContentLength > limit {
		return nil, tooLarge()
	}
	body, err := readAll(r.Body, r.ContentLength, limit)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, refused(http.StatusRequestTimeout, jsonrpc.CodeInvalidRequest, "the body took longer than %v to arrive", o.BodyTimeout)
	case err != nil:
		return nil, refused(http.StatusBadRequest, jsonrpc.CodeParse, "the body could not be read: %v", err)
	case int64(len(body)) > limit:
		return nil, tooLarge()
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // of the wait for the client to leave there is none
	return body, nil
}

// readAll reads at most one byte more than limit. A length that was announced
// is believed up to 1 MiB.
func readAll(body io.Reader, length, limit int64) ([]byte, error) {
	if length >= 0 && length <= 1<<20 {
		buf := make([]byte, length)
		_, err := io.ReadFull(body, buf)
		return buf, err
	}
	return io.ReadAll(io.LimitReader(body, limit+1))
}

// checkHeaders applies what the version that is spoken per request asks of a
// request's headers and of _meta, but for what needs the schemas of tools
// (2026-07-28, basic/transports/streamable-http, Server Validation).
func checkHeaders(h http.Header, m *jsonrpc.Message, caller *mcp.Caller) *refusal {
	switch method := headerValue(h, mcp.HeaderMethod); {
	case method == "":
		return mismatch("the %s header is missing", "Mcp-Method")
	case method != m.Method:
		return mismatch("Mcp-Method header %q is not the body's method %q", method, m.Method)
	}
	if member := mcp.NameMember(m.Method); member != "" {
		if f := checkName(h, m, member); f != nil {
			return f
		}
	}
	if caller.Capabilities.Kind() != '{' {
		return badRequest(jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
			"params._meta needs %q, an object", mcp.MetaCapabilities))
	}
	switch m.Method {
	case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return refused(http.StatusNotFound, jsonrpc.CodeMethodNotFound,
			"method not found: %s is not part of protocol version %s", m.Method, caller.Version)
	}
	return nil
}

// checkName compares the Mcp-Name header with the member that it repeats.
func checkName(h http.Header, m *jsonrpc.Message, member string) *refusal {
	field := headerValue(h, mcp.HeaderName)
	if field == "" {
		return mismatch("the %s header is missing", "Mcp-Name")
	}
	header, err := mcp.DecodeHeader(field)
	if err != nil {
		return mismatch("the Mcp-Name header %v", err)
	}
	value := m.Params.Get(member)
	if jsonrpc.TextIs(value, header) {
		return nil
	}
	body, ok := jsonrpc.Text(value)
	if !ok {
		return mismatch("Mcp-Name header %q, but params has no string %q", header, member)
	}
	return mismatch("Mcp-Name header %q is not the body's %s %q", header, member, body)
}

func mismatch(format string, args ...any) *refusal {
	return badRequest(jsonrpc.Errorf(mcp.CodeHeaderMismatch, "header mismatch: "+format, args...))
}
