package mcphttp

import (
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/mcp-roster/roster/jsonrpc"
)

// Guard refuses HTTP requests that a web page may have been tricked into
// sending: those with a Host that is not ours, as after DNS rebinding, and those
// with an Origin that is not allowed (2026-07-28, basic/transports/
// streamable-http, Security & Endpoint). Loopback names and addresses with any
// port are always allowed; the zero Guard allows nothing else.
//
// Every route of a server needs it, not only the one of MCP: see Wrap.
type Guard struct {
	// Hosts are further values of Host: "gw.example.com" for any port,
	// "gw.example.com:8443" for that one, "*" for all.
	Hosts []string
	// Origins are further values of Origin, such as "https://app.example.com",
	// or "*" for all. The origin of a Host that is allowed by name is allowed.
	Origins []string
}

// Check returns why a request is refused, nil if it is not.
func (g *Guard) Check(r *http.Request) error {
	named := g.hostNamed(r.Host)
	if !named && !slices.Contains(g.Hosts, "*") {
		return fmt.Errorf("host %q is not allowed here", r.Host)
	}
	for _, origin := range r.Header["Origin"] {
		if !g.originAllowed(origin) && !(named && sameHost(origin, r.Host)) {
			return fmt.Errorf("origin %q is not allowed here", origin)
		}
	}
	return nil
}

// Wrap returns a handler that answers requests that Check refuses with 403, and
// OPTIONS as a browser wants it before a page may use the routes. The others it
// hands to next, with the header fields for pages already in the response.
//
// It goes before authentication: a browser asks with OPTIONS as nobody, and a page
// is to see a 401.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.admit(w, r, methods) {
			next.ServeHTTP(w, r)
		}
	})
}

// admit reports whether a request is still to be served. methods are those that
// its route has.
func (g *Guard) admit(w http.ResponseWriter, r *http.Request, methods string) bool {
	if err := g.Check(r); err != nil {
		refused(http.StatusForbidden, jsonrpc.CodeInvalidRequest, "%v", err).write(w)
		return false
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		allowOrigin(w, origin)
	}
	if r.Method == http.MethodOptions {
		preflight(w, r, methods)
		return false
	}
	return true
}

// hostNamed reports whether a Host is loopback or in the list by its name.
func (g *Guard) hostNamed(hostport string) bool {
	host := hostname(hostport)
	return loopback(host) || slices.ContainsFunc(g.Hosts, func(h string) bool {
		return strings.EqualFold(h, hostport) || strings.EqualFold(h, host)
	})
}

func (g *Guard) originAllowed(origin string) bool {
	for _, o := range g.Origins {
		if o == "*" || strings.EqualFold(strings.TrimSuffix(o, "/"), origin) {
			return true
		}
	}
	u, ok := webOrigin(origin)
	return ok && loopback(u.Hostname())
}

// sameHost reports whether a page came from the very host that it now asks.
func sameHost(origin, host string) bool {
	u, ok := webOrigin(origin)
	return ok && strings.EqualFold(u.Host, host)
}

func webOrigin(origin string) (*url.URL, bool) {
	u, err := url.Parse(origin)
	return u, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil
}

func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// hostname returns the value of a Host header without its port and brackets.
func hostname(hostport string) string {
	if strings.HasPrefix(hostport, "[") {
		host, _, _ := strings.Cut(hostport[1:], "]")
		return host
	}
	host, port, found := strings.Cut(hostport, ":")
	if found && strings.Contains(port, ":") {
		return hostport // an IPv6 address without brackets
	}
	return host
}

// allowOrigin adds the CORS headers for a request whose origin was checked.
func allowOrigin(w http.ResponseWriter, origin string) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	h.Set("Vary", "Origin")
}

// preflight answers OPTIONS; a browser asks so before it sends what a page
// wants to send. Header names are echoed, since those of tool parameters
// cannot be listed.
func preflight(w http.ResponseWriter, r *http.Request, methods string) {
	h := w.Header()
	if r.Header.Get("Origin") != "" {
		h.Set("Access-Control-Allow-Methods", strings.TrimSuffix(methods, ", OPTIONS"))
		if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
			h.Set("Access-Control-Allow-Headers", asked)
			h.Add("Vary", "Access-Control-Request-Headers")
		}
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			h.Set("Access-Control-Allow-Private-Network", "true")
		}
		h.Set("Access-Control-Max-Age", "600")
	}
	h.Set("Allow", methods)
	w.WriteHeader(http.StatusNoContent)
}
