package auth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// Code is what a user enters on another device to log in.
type Code struct {
	URL string
	// Complete is URL with the code in it; "": there is none.
	Complete string
	Code     string
	Expires  time.Time
}

// Device logs in with a code that the user enters on another device (RFC 8628).
// show gets it; then Device waits until that is done, refused or too late.
func (o *OAuth) Device(ctx context.Context, show func(Code)) error {
	s, ch, err := o.find(ctx, nil)
	if err != nil {
		return err
	}
	if s.meta.DeviceEndpoint == "" {
		return fmt.Errorf("the authorization server %s knows no logins by code", s.meta.Issuer)
	}
	r, err := o.reload(ctx)
	if err != nil {
		r = &record{Server: o.opts.Server}
	}
	redirect := r.Clients[s.meta.Issuer].Redirect
	if redirect == "" {
		redirect = "http://127.0.0.1/callback" // registered, and not used
	}
	client, err := o.identify(ctx, r, s, redirect)
	if err != nil {
		return fmt.Errorf("server %q: %w", o.opts.Name, err)
	}
	if err := o.remember(ctx, s.meta.Issuer, client); err != nil {
		return err
	}
	key, err := o.key(client, s.meta.Issuer, s.meta.SigningAlgorithms)
	if err != nil {
		return err
	}
	scopes := o.scopes(r, s, ch)
	conf := oauth2.Config{ClientID: client.ID, Scopes: scopes, Endpoint: oauth2.Endpoint{DeviceAuthURL: s.meta.DeviceEndpoint}}
	params := []oauth2.AuthCodeOption{oauth2.SetAuthURLParam("resource", s.resource)}
	if client.Secret != "" {
		params = append(params, oauth2.SetAuthURLParam("client_secret", client.Secret))
	}
	given, err := conf.DeviceAuth(context.WithValue(ctx, oauth2.HTTPClient, o.http), params...)
	if err != nil {
		return grantError(err)
	}
	if err := checkDevice(given); err != nil {
		return err
	}
	show(Code{given.VerificationURI, given.VerificationURIComplete, short(given.UserCode), given.Expiry})
	token, err := o.poll(ctx, s, client, key, given)
	if err != nil {
		return err
	}
	return o.adopt(ctx, s, client, scopes, token)
}

// checkDevice refuses URLs that a user should not be shown.
func checkDevice(given *oauth2.DeviceAuthResponse) error {
	for _, raw := range []string{given.VerificationURI, given.VerificationURIComplete} {
		if raw == "" && raw != given.VerificationURI {
			continue
		}
		if _, err := parseURL("verification_uri", raw); err != nil {
			return err
		}
	}
	return nil
}

// poll asks for the token as often as the server allows.
func (o *OAuth) poll(ctx context.Context, s site, client registration, key *signingKey, given *oauth2.DeviceAuthResponse) (*oauth2.Token, error) {
	pause := time.Duration(max(given.Interval, 1)) * time.Second
	end := given.Expiry
	if most := time.Now().Add(loginTime); end.IsZero() || end.After(most) {
		end = most
	}
	ctx, cancel := context.WithDeadlineCause(ctx, end, errors.New("the code was not entered in time"))
	defer cancel()
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, context.Cause(ctx)
		}
		token, err := grant(ctx, o.http, s.meta.TokenEndpoint, client, key, url.Values{
			"grant_type": {deviceGrant}, "device_code": {given.DeviceCode}, "resource": {s.resource},
		})
		e, refused := errors.AsType[*GrantError](err)
		switch {
		case err == nil:
			return token, nil
		case refused && e.Code == "authorization_pending":
		case refused && e.Code == "slow_down":
			pause += 5 * time.Second
		case refused && e.Code == "expired_token":
			return nil, errors.New("the code was not entered in time")
		case refused || ctx.Err() != nil || strings.Contains(err.Error(), "cannot be read"):
			return nil, err
		}
	}
}
