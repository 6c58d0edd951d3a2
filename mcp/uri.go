package mcp

import "strings"

// FoldURI returns the form in which URIs are compared: it lowers scheme and host, which is all that URIs of any scheme have in
// common (RFC 3986, section 6.2.2.1).
func FoldURI(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#{"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	if user, h, ok := strings.Cut(host, "@"); ok {
		host = user + "@" + strings.ToLower(h)
	} else {
		host = strings.ToLower(host)
	}
	return strings.ToLower(scheme) + "://" + host + path
}
