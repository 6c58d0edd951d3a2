package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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
	given, err := o.askForCode(ctx, s, client, key, scopes)
	if err != nil {
		return err
	}
	end := time.Now().Add(loginTime)
	if n := given.ExpiresIn; n > 0 && n < int64(loginTime/time.Second) {
		end = time.Now().Add(time.Duration(n) * time.Second)
	}
	show(Code{given.VerificationURI, given.VerificationURIComplete, short(given.UserCode), end})
	token, err := o.poll(ctx, s, client, key, given, end)
	if err != nil {
		return err
	}
	return o.adopt(ctx, s, client, scopes, token)
}

// deviceAnswer is the answer to a device authorization request (RFC 8628, section
// 3.2). x/oauth2 has one too, whose reader leaves the response open.
type deviceAnswer struct {
	DeviceCode              string `json:"device_code"`
	UserCode                string `json:"user_code"`
	VerificationURI         string `json:"verification_uri"`
	VerificationURIComplete string `json:"verification_uri_complete"`
	ExpiresIn               int64  `json:"expires_in"`
	Interval                int64  `json:"interval"`
	Error                   string `json:"error"`
	Description             string `json:"error_description"`
}

func (o *OAuth) askForCode(ctx context.Context, s site, client registration, key *signingKey, scopes []string) (*deviceAnswer, error) {
	form := url.Values{"resource": {s.resource}}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	status, body, err := post(ctx, o.http, s.meta.DeviceEndpoint, client, key, form)
	if err != nil {
		return nil, err
	}
	var given deviceAnswer
	err = json.Unmarshal(body, &given)
	if status != http.StatusOK {
		return nil, &GrantError{Code: short(given.Error), Description: short(given.Description), Status: status}
	}
	if err != nil || given.DeviceCode == "" || given.UserCode == "" {
		return nil, fmt.Errorf("%s gave no code", s.meta.Issuer)
	}
	for what, raw := range map[string]string{
		"verification_uri": given.VerificationURI, "verification_uri_complete": given.VerificationURIComplete,
	} {
		if raw == "" && what != "verification_uri" {
			continue
		}
		if _, err := parseURL(what, raw); err != nil { // a user is sent there
			return nil, err
		}
	}
	return &given, nil
}

// poll asks for the token as often as the server allows.
func (o *OAuth) poll(ctx context.Context, s site, client registration, key *signingKey, given *deviceAnswer, end time.Time) (*oauth2.Token, error) {
	const usual, least, most = 5, 1, 60 // seconds
	pause := min(max(time.Duration(given.Interval), least), most) * time.Second
	if given.Interval == 0 {
		pause = usual * time.Second
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
