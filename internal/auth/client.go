package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// identify finds who we are at an authorization server (2026-07-28,
// basic/authorization/client-registration): whom the configuration names; else the
// client metadata document, if the server reads such; else who was registered there
// before with the same redirect; else who is registered now.
func (o *OAuth) identify(ctx context.Context, r *record, s site, redirect string) (registration, error) {
	if o.opts.ClientID != "" {
		// It belongs to the issuer that it was used with first.
		if o.opts.Issuer == "" && r.Client.ID == o.opts.ClientID && r.Issuer != "" && r.Issuer != s.meta.Issuer {
			return registration{}, fmt.Errorf("the server names the authorization server %s now; the client ID was used with %s and goes to no other: "+
				"if the change is right, set oauth.issuer", s.meta.Issuer, r.Issuer)
		}
		return registration{ID: o.opts.ClientID, Secret: o.opts.ClientSecret, Method: o.method(s.meta.AuthMethods), Redirect: redirect}, nil
	}
	if o.opts.Assertion != nil { // which says who we are
		return registration{Method: methodNone}, nil
	}
	if o.opts.ClientMetadataURL != "" && s.meta.ClientIDDocuments {
		return registration{ID: o.opts.ClientMetadataURL, Method: methodNone, Redirect: redirect}, nil
	}
	if known, ok := r.Clients[s.meta.Issuer]; ok && known.Redirect == redirect && (known.Expires == 0 || time.Now().Unix() < known.Expires) {
		return known, nil
	}
	if s.meta.RegistrationEndpoint == "" {
		return registration{}, fmt.Errorf("the authorization server %s registers no clients: get a client ID from its operator and set oauth.clientId", s.meta.Issuer)
	}
	made, err := o.register(ctx, s, redirect)
	if err != nil {
		return registration{}, fmt.Errorf("registering at %s: %w", s.meta.Issuer, err)
	}
	return made, nil
}

// method is how the client that the configuration names says who it is.
func (o *OAuth) method(supported []string) string {
	switch {
	case o.opts.PrivateKey != "":
		return methodJWT
	case o.opts.ClientSecret == "":
		return methodNone
	case len(supported) == 0, slices.Contains(supported, methodBasic): // the default of RFC 8414
		return methodBasic
	}
	return methodPost
}

// register registers a native client (RFC 7591; OpenID Connect Dynamic Client
// Registration 1.0, application_type). Without a reason to have a secret it
// is a public one.
func (o *OAuth) register(ctx context.Context, s site, redirect string) (registration, error) {
	method := methodNone
	for _, m := range []string{methodNone, methodBasic, methodPost} {
		if slices.Contains(s.meta.AuthMethods, m) {
			method = m
			break
		}
	}
	grants := []string{"authorization_code", "refresh_token"}
	if s.meta.DeviceEndpoint != "" {
		grants = append(grants, deviceGrant)
	}
	answer, err := oauthex.RegisterClient(ctx, s.meta.RegistrationEndpoint, &oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: method, GrantTypes: grants, ResponseTypes: []string{"code"},
		ClientName: "Roster", ApplicationType: "native", SoftwareVersion: o.opts.Version,
	}, o.http)
	if e, ok := errors.AsType[*oauthex.ClientRegistrationError](err); ok {
		return registration{}, &GrantError{Code: short(e.ErrorCode), Description: short(e.ErrorDescription)}
	}
	if err != nil {
		if plainer := plain(err); plainer != err { //nolint:errorlint // whether it is another one
			return registration{}, plainer
		}
		return registration{}, errors.New("the answer is not one to a registration") // its text quotes the body, which may have a secret
	}
	out := registration{ID: answer.ClientID, Secret: answer.ClientSecret, Method: answer.TokenEndpointAuthMethod, Redirect: redirect}
	if out.Method == "" {
		out.Method = method
	}
	switch {
	case out.Method != methodNone && out.Method != methodBasic && out.Method != methodPost:
		return registration{}, fmt.Errorf("it wants the client to authenticate by %q, which is not known here", short(out.Method))
	case out.Method != methodNone && out.Secret == "":
		out.Method = methodNone
	}
	if !answer.ClientSecretExpiresAt.IsZero() && out.Secret != "" {
		out.Expires = answer.ClientSecretExpiresAt.Unix()
	}
	return out, nil
}
