package mcphttp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/mcp-roster/roster/jsonrpc"
)

// StatusError is a response that is not one of the protocol: its status is not
// 2xx, or its body is neither JSON nor a stream of events. If the body is an
// error response of JSON-RPC, the *jsonrpc.Error is wrapped in it.
type StatusError struct {
	Status      int
	ContentType string
	Body        []byte // its first 512 bytes
	// Challenge is the WWW-Authenticate field of a 401 or 403.
	Challenge string
	rpc       *jsonrpc.Error
}

const bodyHead = 512

func (e *StatusError) Error() string {
	text := fmt.Sprintf("HTTP status %d", e.Status)
	if s := http.StatusText(e.Status); s != "" {
		text += " " + s
	}
	if e.rpc != nil {
		return text + ": " + e.rpc.Error()
	}
	if e.Status < 300 || len(e.Body) > 0 {
		text += fmt.Sprintf(", content type %q", e.ContentType)
	}
	if len(e.Body) > 0 {
		text += fmt.Sprintf(", body begins %q", head(e.Body, 80))
	}
	return text
}

func head(b []byte, n int) []byte { return b[:min(len(b), n)] }

// Unwrap returns the *jsonrpc.Error in the body, if there is one.
func (e *StatusError) Unwrap() error {
	if e.rpc == nil {
		return nil
	}
	return e.rpc
}

// HTTPStatus returns Status.
func (e *StatusError) HTTPStatus() int { return e.Status }

// HTTPBody returns Body.
func (e *StatusError) HTTPBody() []byte { return e.Body }

// statusError reads what is worth telling of a response, and drains a short body
// so that the connection can be used again.
func statusError(resp *http.Response) *StatusError {
	e := &StatusError{
		Status:      resp.StatusCode,
		ContentType: resp.Header.Get("Content-Type"),
		Challenge:   resp.Header.Get("Www-Authenticate"),
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e.Body = head(body, bodyHead)
	if err == nil {
		if m, err := jsonrpc.Parse(body); err == nil && m.Error != nil {
			e.rpc = m.Error
		}
	}
	return e
}

// expired reports whether a failure says that the session it was sent in is
// gone. Servers should say so by 404; some say it by 400 and in words.
func (e *StatusError) expired() bool {
	if e.Status == http.StatusNotFound {
		return true
	}
	return e.Status == http.StatusBadRequest && e.rpc != nil && e.rpc.Code == -32000 &&
		strings.Contains(strings.ToLower(e.rpc.Message), "session")
}

func isExpired(err error) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.expired()
}

// mediaType returns a content type without parameters, in lower case.
func mediaType(contentType string) string {
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		t, _, _ = strings.Cut(contentType, ";")
		t = strings.ToLower(strings.TrimSpace(t))
	}
	return t
}
