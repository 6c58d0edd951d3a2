package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Guard makes requests to URLs that a server or its metadata named. Those are
// foreign text: each hop has to be https, or http on loopback, and the address
// that is really dialled, after names were resolved, has to be a public one.
// Hosts that the operator named may be at any address. Its methods may be called
// from any goroutine.
type Guard struct {
	named  []string // hosts in the operator's own file, in lower case
	direct *http.Transport
	proxy  *http.Transport
	client *http.Client
}

// GuardOptions configures a Guard. The zero value lets only public addresses
// through.
type GuardOptions struct {
	// Named are URLs that the operator wrote. Their hosts may be at any
	// address, at any port.
	Named []string
	// RootCAs are the certificates to trust. nil: the system's.
	RootCAs *x509.CertPool
}

const (
	// fetchTime is how long one request for metadata or a token may take.
	fetchTime = 30 * time.Second
	maxHops   = 3
)

// NewGuard returns a guard. CloseIdle ends its idle connections.
func NewGuard(opts GuardOptions) *Guard {
	g := &Guard{}
	for _, raw := range opts.Named {
		if u, err := url.Parse(raw); err == nil && u.Hostname() != "" {
			g.named = append(g.named, strings.ToLower(u.Hostname()))
		}
	}
	transport := func() *http.Transport {
		t := &http.Transport{
			ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 4,
			IdleConnTimeout: 30 * time.Second, ResponseHeaderTimeout: fetchTime, MaxResponseHeaderBytes: 64 << 10,
		}
		if opts.RootCAs != nil {
			t.TLSClientConfig = &tls.Config{RootCAs: opts.RootCAs, MinVersion: tls.VersionTLS12}
		}
		return t
	}
	g.direct, g.proxy = transport(), transport()
	g.direct.DialContext = g.dial
	g.proxy.Proxy = http.ProxyFromEnvironment
	g.client = &http.Client{
		Transport: g, Timeout: fetchTime,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.Method != http.MethodGet || via[0].Method != http.MethodGet { // it would take credentials along
				return http.ErrUseLastResponse
			}
			if len(via) > maxHops {
				return fmt.Errorf("more than %d redirects", maxHops)
			}
			return nil
		},
	}
	return g
}

// Client returns a client that follows redirects of GETs only, and checks each
// hop. It takes at most 30 s for a request.
func (g *Guard) Client() *http.Client { return g.client }

// operator returns a client for URLs that the operator wrote, which are not
// checked. It follows no redirects.
func (g *Guard) operator() *http.Client {
	transport := g.proxy // it heeds the environment's proxy, and checks no address
	return &http.Client{
		Transport: transport, Timeout: fetchTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// CloseIdle closes connections that are not in use.
func (g *Guard) CloseIdle() {
	g.direct.CloseIdleConnections()
	g.proxy.CloseIdleConnections()
}

// RoundTrip makes a request if its URL and its address may be asked. Behind a proxy it is
// the proxy that resolves the name, so that it is resolved here as well, as far
// as that can be done.
func (g *Guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := checkURL(req.URL); err != nil {
		return nil, err
	}
	behind, err := http.ProxyFromEnvironment(req)
	if err != nil {
		return nil, err
	}
	if behind == nil {
		return g.direct.RoundTrip(req)
	}
	if err := g.resolve(req.Context(), req.URL.Hostname()); err != nil {
		return nil, err
	}
	return g.proxy.RoundTrip(req)
}

// AddressError says that a URL leads to an address that is not dialled.
type AddressError struct {
	Host    string
	Address netip.Addr
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("%s is at %s, which is not a public address: it is asked only if the configuration names that host", e.Host, e.Address)
}

// dial connects to a host. The check is on the address that is dialled: what
// another look at the name would give does not matter.
func (g *Guard) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: 15 * time.Second}
	dialer.Control = func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return g.allow(host, to.Addr())
	}
	return dialer.DialContext(ctx, network, address)
}

// resolve checks the addresses of a host that a proxy will dial.
func (g *Guard) resolve(ctx context.Context, host string) error {
	if ip, err := netip.ParseAddr(host); err == nil {
		return g.allow(host, ip)
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		if _, unknown := errors.AsType[*net.DNSError](err); unknown { // only the proxy knows it
			return nil
		}
		return err
	}
	for _, ip := range addresses {
		if err := g.allow(host, ip); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) allow(host string, ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	switch {
	case public(ip), slices.Contains(g.named, strings.ToLower(host)):
		return nil
	case ip.IsLoopback() && slices.ContainsFunc(g.named, isLoopback): // by another name of the same
		return nil
	}
	return &AddressError{host, ip}
}

// isLoopback reports whether a host of a URL is this machine by its name alone.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// special are ranges of addresses that are not of the public internet, beside
// those that package netip knows, and those in which such an address may be
// wrapped (IANA special-purpose address registries).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("fec0::/10"),
}

// public reports whether an address is one of the public internet.
func public(ip netip.Addr) bool {
	if !ip.IsGlobalUnicast() || ip.IsPrivate() {
		return false
	}
	return !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) })
}

// checkURL refuses what is neither https nor http on loopback (2026-07-28,
// basic/authorization/security-considerations, Communication Security). The
// error does not show the URL's query.
func checkURL(u *url.URL) error {
	switch {
	case u.Host == "" || u.Hostname() == "":
		return fmt.Errorf("a URL of scheme %q without a host: expected https", u.Scheme)
	case u.User != nil:
		return fmt.Errorf("the URL for %s has a user in it: refused", u.Host)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%s://%s is not https, which it must be unless it is on loopback", u.Scheme, u.Host)
}

// parseURL is url.Parse with checkURL.
func parseURL(what, raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s is not a URL", what)
	}
	if err := checkURL(u); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return u, nil
}
