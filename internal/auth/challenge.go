package auth

import (
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// challenge is what the Bearer challenges of a response say.
type challenge struct {
	metadata string   // URL of the protected resource metadata
	scopes   []string // that the request needs
	failure  string   // the error code
}

// readChallenge reads WWW-Authenticate fields (RFC 6750, section 3; RFC 9728,
// section 5.1). A field that cannot be read says nothing.
func readChallenge(fields []string) challenge {
	var c challenge
	for _, field := range fields {
		parsed, err := oauthex.ParseWWWAuthenticate([]string{field})
		if err != nil {
			continue
		}
		for _, p := range parsed {
			if p.Scheme != "bearer" && p.Scheme != "dpop" {
				continue
			}
			if v := p.Params["resource_metadata"]; v != "" && c.metadata == "" {
				c.metadata = v
			}
			if v := p.Params["scope"]; v != "" && c.scopes == nil {
				c.scopes = strings.Fields(v)
			}
			if v := p.Params["error"]; v != "" && c.failure == "" {
				c.failure = v
			}
		}
	}
	return c
}

// union returns the scopes of both lists, each once, the first list's first.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// covers reports whether all of b are in a.
func covers(a, b []string) bool {
	return !slices.ContainsFunc(b, func(s string) bool { return !slices.Contains(a, s) })
}
