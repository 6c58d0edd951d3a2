package mcphttp

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
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
	// Location is where a redirect that was not followed leads to, without user
	// and query.
	Location string

	rpc        *jsonrpc.Error
	identified bool // rpc came under an id that may be ours
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
	if e.Location != "" {
		return text + " to " + e.Location + ", which is not followed"
	}
	if e.Status < 300 || len(e.Body) > 0 {
		text += fmt.Sprintf(", content type %q", e.ContentType)
	}
	if e.Status < 300 && len(e.Body) == 0 {
		text += ", empty body"
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
func (c *Conn) statusError(resp *http.Response) *StatusError {
	e := &StatusError{
		Status:      resp.StatusCode,
		ContentType: resp.Header.Get("Content-Type"),
		Challenge:   resp.Header.Get("Www-Authenticate"),
		Location:    location(resp),
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	e.Body = head(c.shown(body), bodyHead)
	if err != nil {
		return e
	}
	if m, err := jsonrpc.Parse(body); err == nil && m.Error != nil {
		_, e.identified = m.ID.Int() // ours are integers
		e.rpc = m.Error
	}
	return e
}

// shown hides secrets before text is cut, so that no half of one is left.
func (c *Conn) shown(body []byte) []byte {
	if c.opts.Hide == nil {
		return body
	}
	return []byte(c.opts.Hide(string(body)))
}

// location returns where a response redirects to, without what may be secret.
func location(resp *http.Response) string {
	if resp.StatusCode < 300 || resp.StatusCode > 399 || resp.Request == nil {
		return ""
	}
	to, err := resp.Request.URL.Parse(resp.Header.Get("Location"))
	if err != nil {
		return ""
	}
	plain := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}
	return plain.String()
}

// mediaType returns a content type without parameters, in lower case.
func mediaType(contentType string) string {
	switch contentType {
	case "", "application/json", "text/event-stream":
		return contentType
	}
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		t, _, _ = strings.Cut(contentType, ";")
		t = strings.ToLower(strings.TrimSpace(t))
	}
	return t
}
