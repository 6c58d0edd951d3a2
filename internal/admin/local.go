package admin

import (
	"context"
	"net"
	"net/http"
	"time"
)

// LocalURL is where MCP is on the socket of a gateway. The routes of the operator
// are beside it.
const LocalURL = "http://localhost/mcp"

// Transport returns what makes requests to the gateway with a state directory,
// whatever host they name.
func Transport(dir string) *http.Transport {
	return TransportOver(func(ctx context.Context) (net.Conn, error) { return Dial(ctx, dir) })
}

// TransportOver returns what makes requests over connections that dial makes.
func TransportOver(dial func(context.Context) (net.Conn, error)) *http.Transport {
	const idle = 5 * time.Second
	return &http.Transport{
		DisableCompression: true, IdleConnTimeout: idle,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}
}

// Alive asks whether a gateway answers. It takes two seconds at most.
func Alive(ctx context.Context, t http.RoundTripper) bool {
	const within = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/livez", nil)
	if err != nil {
		return false
	}
	asker := http.Client{Transport: t}
	resp, err := asker.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
