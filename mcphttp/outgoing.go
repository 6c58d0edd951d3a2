package mcphttp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/mcp-roster/roster/mcp"
)

// fields are the header fields of the requests of one session, or of those that
// are in none. They are shared by all its requests and never change.
type fields struct{ post, get http.Header }

// newFields adds the protocol's fields to those that all requests have.
func newFields(common http.Header, s *session) fields {
	post := maps.Clone(common)
	if s != nil && s.version.Known() {
		post[mcp.HeaderVersion] = []string{string(s.version)}
	}
	if s != nil && s.id != "" {
		post[mcp.HeaderSession] = []string{s.id}
	}
	get := maps.Clone(post)
	get["Accept"] = []string{"text/event-stream"}
	post["Accept"] = []string{"application/json, text/event-stream"}
	post["Content-Type"] = []string{"application/json"}
	return fields{post, get}
}

// ownField reports whether a field is set here and nowhere else.
func ownField(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Content-Type", "Content-Length", "Host",
		"Idempotency-Key", "X-Idempotency-Key", mcp.HeaderSession, mcp.HeaderLastEvent:
		return true
	}
	return false
}

// callField reports whether a field is about one call.
func callField(name string) bool {
	switch name {
	case mcp.HeaderVersion, mcp.HeaderMethod, mcp.HeaderName:
		return true
	}
	return strings.HasPrefix(name, mcp.HeaderParamPrefix)
}

// with returns a header with fields of one call added. The version of a session
// is not the call's to choose.
func with(header http.Header, extra map[string]string, s *session) http.Header {
	if len(extra) == 0 {
		return header
	}
	out := make(http.Header, len(header)+len(extra))
	maps.Copy(out, header)
	values := make([]string, 0, len(extra))
	for name, value := range extra {
		name = http.CanonicalHeaderKey(name)
		if ownField(name) || s != nil && name == mcp.HeaderVersion {
			continue
		}
		values = append(values, value)
		out[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return out
}

func (c *Conn) fields(s *session) fields {
	if s == nil {
		return c.common
	}
	return s.fields
}

// post sends a message.
func (c *Conn) post(ctx context.Context, frame []byte, s *session, extra map[string]string) (*http.Response, error) {
	req := c.request.WithContext(ctx)
	req.Method = http.MethodPost
	req.Header = with(c.fields(s).post, extra, s)
	req.ContentLength = int64(len(frame))
	// In this form net/http knows that the body is at hand, and sends it in one
	// packet with the header.
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(frame)), nil }
	req.Body, _ = req.GetBody()
	return c.roundTrip(req)
}

// get opens a stream, as the continuation of one if lastEvent is not empty.
func (c *Conn) get(ctx context.Context, s *session, lastEvent string) (*http.Response, error) {
	req := c.request.WithContext(ctx)
	req.Method = http.MethodGet
	req.Header = c.fields(s).get
	if lastEvent != "" {
		req.Header = maps.Clone(req.Header)
		req.Header[mcp.HeaderLastEvent] = []string{lastEvent}
	}
	resp, err := c.roundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || mediaType(resp.Header.Get("Content-Type")) != "text/event-stream" {
		defer func() { _ = resp.Body.Close() }()
		return nil, c.statusError(resp)
	}
	return resp, nil
}

// delete ends a session.
func (c *Conn) delete(ctx context.Context, s *session) error {
	req := c.request.WithContext(ctx)
	req.Method = http.MethodDelete
	req.Header = s.fields.get
	resp, err := c.roundTrip(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// maxRedirects is how often one request is redirected.
const maxRedirects = 4

// follow makes a request and follows redirects that repeat it as it is at the
// same origin: others would take credentials elsewhere, or turn a POST into a
// GET. A redirect that is not followed is returned as the response.
func (c *Conn) follow(req *http.Request) (*http.Response, error) {
	for n := 0; ; n++ {
		resp, err := c.transport.RoundTrip(req)
		if err != nil {
			return nil, fmt.Errorf("HTTP request: %w", err)
		}
		if resp.Body == nil {
			resp.Body = http.NoBody
		}
		next := redirected(req, resp)
		if next == nil || n == maxRedirects {
			return resp, nil
		}
		_ = resp.Body.Close()
		req = next
	}
}

// redirected returns the request to make after a response, nil if there is none
// or it must not be made.
func redirected(req *http.Request, resp *http.Response) *http.Request {
	switch resp.StatusCode {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther:
		if req.Method != http.MethodGet {
			return nil
		}
	default:
		return nil
	}
	target, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" || !sameOrigin(target, req.URL) {
		return nil
	}
	next := req.WithContext(req.Context())
	target.User, target.Fragment, target.RawFragment = nil, "", ""
	next.URL = target
	if req.GetBody != nil {
		if next.Body, err = req.GetBody(); err != nil {
			return nil
		}
	}
	return next
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Host, b.Host)
}

// binding is the context of one HTTP request. It ends when the Conn is closed
// and, until the response is no longer needed, when the caller's ends.
type binding struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	caller func() bool // stops heeding the caller's
	conn   func() bool // stops heeding the Conn's
}

func (c *Conn) bind(ctx context.Context) *binding {
	b := new(binding)
	b.ctx, b.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	b.caller = context.AfterFunc(ctx, func() { b.cancel(context.Cause(ctx)) })
	b.conn = context.AfterFunc(c.ctx, func() { b.cancel(context.Cause(c.ctx)) })
	return b
}

func (b *binding) end() {
	b.caller()
	b.conn()
	b.cancel(nil)
}

// How much is read, and how long, of a body in which nothing more is expected, so
// that its connection can be used again.
const (
	drainMax  = 64 << 10
	drainTime = 100 * time.Millisecond
)

// drain reads the rest of a body that should end now, and ends its request. The
// caller of Do does not wait for that, and its context may end.
func (c *Conn) drain(body io.ReadCloser, b *binding) {
	b.caller()
	c.tasks.Go(func() { // ends within drainTime, or with c.ctx
		late := time.AfterFunc(drainTime, func() { b.cancel(nil) })
		_, _ = io.CopyN(io.Discard, body, drainMax)
		_ = body.Close()
		late.Stop()
		b.end()
	})
}
