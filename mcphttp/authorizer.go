package mcphttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// Authorizer has the credentials for the requests to one server. Its methods
// may be called from any goroutine, and may wait, as for a token.
type Authorizer interface {
	// Authorization returns the value of a request's Authorization field; "":
	// the request is made without one of the Authorizer's. With an error the
	// request is not made.
	Authorization(ctx context.Context) (string, error)
	// Refused hears that the server refused a request with status 401 or 403,
	// and so did not act on it. authorization is the value that the request
	// had, challenges are the response's WWW-Authenticate fields. If it returns
	// true, the request is made again; an error takes the place of the response.
	Refused(ctx context.Context, status int, authorization string, challenges []string) (again bool, err error)
}

// maxRefusals is how often one request is made again because an Authorizer says
// so: after a token was refreshed, after a login, and with more scopes.
const maxRefusals = 3

// roundTrip makes a request with the credentials that the Authorizer has now,
// and again as long as it has others for one that was refused.
func (c *Conn) roundTrip(req *http.Request) (*http.Response, error) {
	if c.opts.Authorizer == nil {
		return c.follow(req)
	}
	for n := 0; ; n++ {
		value, err := c.opts.Authorizer.Authorization(req.Context())
		if err != nil {
			return nil, fmt.Errorf("authorization: %w", err)
		}
		resp, err := c.follow(authorized(req, value))
		if err != nil || resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden || n == maxRefusals {
			return resp, err
		}
		again, err := c.opts.Authorizer.Refused(req.Context(), resp.StatusCode, value, resp.Header.Values("Www-Authenticate"))
		if err == nil && !again {
			return resp, nil
		}
		_, _ = io.CopyN(io.Discard, resp.Body, drainMax) // so that its connection can be used again
		_ = resp.Body.Close()
		if err != nil {
			return nil, err
		}
	}
}

// authorized returns a request of its own, with a body from the start.
func authorized(req *http.Request, value string) *http.Request {
	own := req.WithContext(req.Context())
	if value != "" {
		own.Header = req.Header.Clone()
		own.Header["Authorization"] = []string{value}
	}
	if req.GetBody != nil {
		own.Body, _ = req.GetBody() // ours never fail
	}
	return own
}
