package auth

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// LoginStatus says how the login to a server is.
type LoginStatus struct {
	// LoggedIn: there are tokens. Whether the server still takes them is seen
	// when it is asked.
	LoggedIn bool
	Issuer   string
	// Expires is when the access token ends; zero: not known. If Renewable, it
	// is replaced without a user.
	Expires   time.Time
	Renewable bool
	Scopes    []string
	// Wanted are scopes that the server asked for since the login.
	Wanted []string
}

// Status says how the login is. It asks no server.
func (o *OAuth) Status(ctx context.Context) (LoginStatus, error) {
	r, err := o.reload(ctx)
	if err != nil {
		return LoginStatus{}, err
	}
	s := LoginStatus{
		Issuer: r.Issuer, Expires: r.Expiry, Scopes: r.Scopes, Wanted: r.Wanted,
		Renewable: r.Refresh != "" || o.opts.ClientCredentials,
	}
	s.LoggedIn = r.valid(time.Now()) || r.Refresh != ""
	return s, nil
}

// Logout forgets the tokens, and has the authorization server revoke them if it
// can (RFC 7009). An error says that this failed: the tokens are forgotten all the
// same. Registrations are kept for the next login.
func (o *OAuth) Logout(ctx context.Context) error {
	var was record
	if err := o.update(ctx, func(r *record) error {
		was = *r
		r.forget()
		r.Wanted, r.Login = nil, rand.Text()
		return nil
	}); err != nil {
		return err
	}
	o.changed()
	token, hint := was.Refresh, "refresh_token"
	if token == "" {
		token, hint = was.Access, "access_token"
	}
	if token == "" || was.RevocationEndpoint == "" {
		return nil
	}
	if err := o.revoke(ctx, &was, token, hint); err != nil {
		return fmt.Errorf("logged out here, but %s has not revoked the tokens: %w", was.Issuer, err)
	}
	return nil
}

func (o *OAuth) revoke(ctx context.Context, r *record, token, hint string) error {
	key, err := o.key(r.Client, r.Issuer, nil)
	if err != nil {
		return err
	}
	status, _, err := post(ctx, o.http, r.RevocationEndpoint, r.Client, key, url.Values{"token": {token}, "token_type_hint": {hint}})
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("it answered with status %d", status)
	}
	return err
}
