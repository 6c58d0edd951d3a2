package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resourceMetadata is what is used of protected resource metadata (RFC 9728,
// section 2).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
}

// serverMetadata is what is used of an authorization server's metadata (RFC
// 8414, section 2; RFC 8628, section 4; RFC 9207, section 3). The type of
// package oauthex has no device endpoint, and its reader takes an issuer that
// differs by a slash, which 2026-07-28 forbids.
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	DeviceEndpoint        string   `json:"device_authorization_endpoint"`
	ScopesSupported       []string `json:"scopes_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	SigningAlgorithms     []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	ClientIDDocuments     bool     `json:"client_id_metadata_document_supported"`
	IssInResponse         bool     `json:"authorization_response_iss_parameter_supported"`
}

// site is where to get tokens for a server: its resource identifier and its
// authorization server.
type site struct {
	resource string
	scopes   []string // that the resource names as the usual ones
	meta     serverMetadata
}

// errAbsent says that there is no document at a URL.
var errAbsent = errors.New("there is nothing")

// maxDocument is the most bytes that a metadata document may have.
const maxDocument = 1 << 20

// getJSON reads a document. That the server answers with 4xx is errAbsent, and
// nothing else is: a server that is broken does not make us believe that it has no
// metadata.
func getJSON(ctx context.Context, c *http.Client, at string, v any) error {
	u, err := parseURL("metadata URL", at)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := c.Do(req)
	if err != nil {
		return plain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500:
		return errAbsent
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answered %s", place(u), resp.Status)
	case err != nil:
		return fmt.Errorf("reading %s: %w", place(u), err)
	case len(body) > maxDocument:
		return fmt.Errorf("%s is larger than %d bytes", place(u), maxDocument)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("%s is not the JSON that was expected of it", place(u))
	}
	return nil
}

// place is a URL without query and fragment, which may be nobody's business.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.Path }

// plain takes the URL, which may have a secret in it, out of an error of
// net/http.
func plain(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		if u, bad := url.Parse(e.URL); bad == nil {
			return fmt.Errorf("%s: %w", u.Host, e.Err)
		}
		return e.Err
	}
	return err
}

// discover finds the authorization server of a server (2026-07-28,
// basic/authorization/authorization-server-discovery). wanted is the issuer to
// choose; "": the first.
func discover(ctx context.Context, c *http.Client, server string, ch challenge, wanted string) (site, error) {
	resource, err := findResource(ctx, c, server, ch.metadata)
	if errors.Is(err, errAbsent) {
		return discoverOld(ctx, c, server, wanted)
	}
	if err != nil {
		return site{}, fmt.Errorf("protected resource metadata: %w", err)
	}
	issuers := resource.AuthorizationServers
	switch {
	case len(issuers) == 0:
		return site{}, errors.New("protected resource metadata: it names no authorization server")
	case wanted == "":
		wanted = issuers[0]
	case !slices.Contains(issuers, wanted):
		return site{}, fmt.Errorf("the server names the authorization server %s, but the configuration expects %s: credentials go to no other", strings.Join(issuers, ", "), wanted)
	}
	meta, err := findIssuer(ctx, c, wanted)
	if errors.Is(err, errAbsent) {
		return site{}, fmt.Errorf("the authorization server %s has no metadata", wanted)
	}
	if err != nil {
		return site{}, fmt.Errorf("metadata of the authorization server: %w", err)
	}
	return site{resource.Resource, resource.ScopesSupported, meta}, nil
}

// findResource reads the protected resource metadata where the challenge says,
// or else at the two well-known places.
func findResource(ctx context.Context, c *http.Client, server, named string) (resourceMetadata, error) {
	u, err := url.Parse(server)
	if err != nil {
		return resourceMetadata{}, errors.New("server URL is malformed")
	}
	places := []string{named}
	if named == "" {
		const wellKnown = "/.well-known/oauth-protected-resource"
		root := u.Scheme + "://" + u.Host + wellKnown
		places = []string{root}
		if path := strings.TrimSuffix(u.EscapedPath(), "/"); path != "" {
			places = []string{root + path, root}
		}
	}
	for _, at := range places {
		var m resourceMetadata
		err := getJSON(ctx, c, at, &m)
		switch {
		case errors.Is(err, errAbsent) && named == "":
			continue
		case errors.Is(err, errAbsent): // what the server itself points at is not made up
			return m, errors.New("there is none where the server's challenge says")
		case err != nil:
			return m, err
		}
		return m, m.check(u)
	}
	return resourceMetadata{}, errAbsent
}

// check refuses metadata of another resource (RFC 9728, section 3.3): a token for
// it would be good there. The resource may be the server's URL or, since many
// servers say it so, one that the URL is below of.
func (m *resourceMetadata) check(server *url.URL) error {
	r, err := url.Parse(m.Resource)
	if err == nil && r.Fragment == "" && r.User == nil && strings.EqualFold(r.Scheme, server.Scheme) && sameHost(r, server) {
		path := strings.TrimSuffix(r.EscapedPath(), "/")
		if server.EscapedPath() == path || strings.HasPrefix(server.EscapedPath(), path+"/") {
			return nil
		}
	}
	return fmt.Errorf("it is of the resource %q, which is not the server %q", m.Resource, place(server))
}

func sameHost(a, b *url.URL) bool {
	return strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "http" {
		return "80"
	}
	return "443"
}

// findIssuer reads an authorization server's metadata at its well-known places,
// in their order. The document must be that of the issuer, letter by letter.
func findIssuer(ctx context.Context, c *http.Client, issuer string) (serverMetadata, error) {
	u, err := parseURL("issuer", issuer)
	if err != nil {
		return serverMetadata{}, err
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return serverMetadata{}, fmt.Errorf("issuer %q has a query or a fragment", place(u))
	}
	root, path := u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")
	places := []string{root + "/.well-known/oauth-authorization-server" + path, root + "/.well-known/openid-configuration" + path}
	if path != "" {
		places = append(places, root+path+"/.well-known/openid-configuration")
	}
	for _, at := range places {
		var m serverMetadata
		err := getJSON(ctx, c, at, &m)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return m, err
		}
		return m, m.check(issuer)
	}
	return serverMetadata{}, errAbsent
}

// check refuses metadata of another issuer (RFC 8414, section 3.3), endpoints that
// are not to be asked, and servers without PKCE.
func (m *serverMetadata) check(issuer string) error {
	if m.Issuer != issuer {
		return fmt.Errorf("the issuer is %q, but the metadata of %q was asked for", m.Issuer, issuer)
	}
	if m.TokenEndpoint == "" {
		return errors.New("it has no token_endpoint")
	}
	for what, at := range map[string]string{
		"authorization_endpoint": m.AuthorizationEndpoint, "token_endpoint": m.TokenEndpoint,
		"registration_endpoint": m.RegistrationEndpoint, "revocation_endpoint": m.RevocationEndpoint,
		"device_authorization_endpoint": m.DeviceEndpoint,
	} {
		if at == "" {
			continue
		}
		if _, err := parseURL(what, at); err != nil {
			return err
		}
	}
	return nil
}

// checkPKCE refuses a server that does not say that it checks PKCE with S256
// (2026-07-28, basic/authorization/security-considerations).
func (m *serverMetadata) checkPKCE() error {
	if !slices.Contains(m.ChallengeMethods, "S256") {
		return fmt.Errorf("the authorization server %s does not say that it supports PKCE with S256: refused", m.Issuer)
	}
	return nil
}

// discoverOld is for servers that are their own authorization server, as in
// 2025-03-26: with metadata at the root, or with none and endpoints of fixed
// names.
func discoverOld(ctx context.Context, c *http.Client, server, wanted string) (site, error) {
	u, err := parseURL("server URL", server)
	if err != nil {
		return site{}, err
	}
	issuer := u.Scheme + "://" + u.Host
	s := site{resource: strings.TrimSuffix(issuer+u.EscapedPath(), "/")}
	if wanted != "" {
		issuer = wanted
	}
	s.meta, err = findIssuer(ctx, c, issuer)
	switch {
	case errors.Is(err, errAbsent) && wanted == "":
		s.meta = serverMetadata{
			Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token",
			RegistrationEndpoint: issuer + "/register", ChallengeMethods: []string{"S256"}, // 2025-03-26 requires it
		}
	case errors.Is(err, errAbsent):
		return site{}, fmt.Errorf("the authorization server %s has no metadata", wanted)
	case err != nil:
		return site{}, fmt.Errorf("metadata of the authorization server: %w", err)
	}
	return s, nil
}
