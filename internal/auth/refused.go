package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// fresh is how long a token that came in the place of a refused one is not
// replaced in its turn: a server that refuses it wants something else.
const fresh = 10 * time.Second

// replaceRefused renews a token that was refused, if that can help.
func (o *OAuth) replaceRefused(ctx context.Context, r *record, used string) error {
	o.mu.Lock()
	vain := used == o.replacement && time.Since(o.replacedAt) < fresh
	o.mu.Unlock()
	if used == "" || vain || !o.renewable(r) {
		return &LoginError{Server: o.opts.Name}
	}
	if err := o.renew(ctx, used); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replacement, o.replacedAt = o.record.Access, time.Now()
	return nil
}

// Refused hears that a server refused a request that had a value from
// Authorization. It returns true when there is another token for it now: another
// process's, a refreshed one, or that of a login, if Open can bring the user to
// one. Otherwise the error of a 401 is a *LoginError, and of a 403 for a lack of
// scopes, too.
func (o *OAuth) Refused(ctx context.Context, status int, authorization string, challenges []string) (again bool, err error) {
	ch := readChallenge(challenges)
	used := strings.TrimPrefix(authorization, "Bearer ")
	if used == "" {
		o.mu.Lock()
		o.anonymous = max(o.anonymous-1, 0)
		o.mu.Unlock()
	}
	if status == http.StatusForbidden {
		if ch.failure != "insufficient_scope" {
			return false, nil
		}
		return o.stepUp(ctx, used, ch, challenges)
	}
	r, err := o.reload(ctx)
	if err != nil {
		return false, err
	}
	if r.valid(time.Now()) && r.Access != used {
		return true, nil
	}
	err = o.replaceRefused(ctx, r, used)
	if _, login := errors.AsType[*LoginError](err); !login {
		return err == nil, err
	}
	return o.enter(ctx, used, ch, challenges)
}

// enter gets a first token, or one in place of one that cannot be refreshed.
func (o *OAuth) enter(ctx context.Context, used string, ch challenge, challenges []string) (bool, error) {
	if o.opts.ClientCredentials {
		return o.once(ctx, used, func(ctx context.Context) error { return o.introduce(ctx, ch) })
	}
	if o.opts.Open == nil {
		return false, &LoginError{Server: o.opts.Name}
	}
	return o.once(ctx, used, func(ctx context.Context) error {
		login, err := o.Begin(ctx, append([]string{}, challenges...))
		if err != nil {
			return err
		}
		defer login.Close()
		if err := o.opts.Open(ctx, login.URL); err != nil {
			return err
		}
		return login.Wait(ctx)
	})
}

// stepUp gets a token with the scopes that a server misses beside those that
// there are (2026-07-28, basic/authorization, Step-Up Authorization Flow). What was
// asked for already is not asked for again.
func (o *OAuth) stepUp(ctx context.Context, used string, ch challenge, challenges []string) (bool, error) {
	r, err := o.reload(ctx)
	if err != nil {
		return false, err
	}
	if r.Access != used && r.valid(time.Now()) {
		return true, nil
	}
	if len(ch.scopes) == 0 || covers(r.Scopes, ch.scopes) {
		return false, nil
	}
	if err := o.update(ctx, func(r *record) error {
		r.Wanted = union(r.Wanted, ch.scopes)
		return nil
	}); err != nil {
		return false, err
	}
	again, err := o.enter(ctx, used, ch, challenges)
	if e, ok := errors.AsType[*LoginError](err); ok {
		e.Scopes = slices.DeleteFunc(slices.Clone(ch.scopes), func(s string) bool { return slices.Contains(r.Scopes, s) })
	}
	return again, err
}

// once does something for all requests that wait for it, unless a token was
// got since the one that was refused.
func (o *OAuth) once(ctx context.Context, used string, do func(context.Context) error) (bool, error) {
	o.mu.Lock()
	if r := o.record; r != nil && r.valid(time.Now()) && r.Access != used {
		o.mu.Unlock()
		return true, nil
	}
	a := o.entry
	if a == nil && !o.closed {
		a = &attempt{done: make(chan struct{})}
		o.entry = a
		o.tasks.Go(func() { // ends within loginTime
			ctx, cancel := o.detached(ctx, loginTime)
			defer cancel()
			a.err = do(ctx)
			o.mu.Lock()
			o.entry = nil
			o.mu.Unlock()
			close(a.done)
		})
	}
	o.mu.Unlock()
	if a == nil {
		return false, errClosed
	}
	err := a.wait(ctx)
	return err == nil, err
}

// introduce gets the first token of a client that acts on its own behalf (RFC
// 6749, section 4.4). One that was refused just after it was issued is not
// replaced: the same would come back.
func (o *OAuth) introduce(ctx context.Context, ch challenge) error {
	s, err := discover(ctx, o.http, o.opts.Server, ch, o.opts.Issuer)
	if err != nil {
		return fmt.Errorf("server %q wants a token: %w", o.opts.Name, err)
	}
	return o.update(ctx, func(r *record) error {
		scopes := o.scopes(r, s, ch)
		if r.Access != "" && time.Since(r.Issued) < fresh && r.Issuer == s.meta.Issuer && covers(r.Scopes, scopes) {
			return fmt.Errorf("server %q refuses the token that %s gave for it", o.opts.Name, r.Issuer)
		}
		client, err := o.identify(ctx, r, s, "")
		if err != nil {
			return err
		}
		key, err := o.key(client, s.meta.Issuer, s.meta.SigningAlgorithms)
		if err != nil {
			return err
		}
		params, err := o.ownGrant(ctx, s.resource, scopes)
		if err != nil {
			return err
		}
		token, err := grant(ctx, o.http, s.meta.TokenEndpoint, client, key, params)
		if err != nil {
			return fmt.Errorf("server %q: %w", o.opts.Name, err)
		}
		r.settle(s, client, scopes)
		r.take(token)
		return nil
	})
}

// ownGrant is what a client asks with that acts on its own behalf.
func (o *OAuth) ownGrant(ctx context.Context, resource string, scopes []string) (url.Values, error) {
	params := url.Values{"grant_type": {"client_credentials"}, "resource": {resource}}
	if len(scopes) > 0 {
		params.Set("scope", strings.Join(scopes, " "))
	}
	if o.opts.Assertion != nil {
		assertion, _, err := o.opts.Assertion(ctx)
		if err != nil {
			return nil, fmt.Errorf("the assertion for server %q: %w", o.opts.Name, err)
		}
		params.Set("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
		params.Set("assertion", assertion)
	}
	return params, nil
}

// scopes are what to ask for (2026-07-28, basic/authorization, Scope Selection
// Strategy): those of the configuration; else of the challenge; else those that the
// resource names. What was granted before stays in.
func (o *OAuth) scopes(r *record, s site, ch challenge) []string {
	out := o.opts.Scopes
	switch {
	case out != nil:
	case ch.scopes != nil:
		out = ch.scopes
	default:
		out = s.scopes
	}
	if r.Issuer == s.meta.Issuer {
		out = union(union(r.Scopes, out), r.Wanted)
	}
	if len(out) > 0 && !o.opts.ClientCredentials && slices.Contains(s.meta.ScopesSupported, "offline_access") {
		out = union(out, []string{"offline_access"})
	}
	return out
}

// settle notes where tokens come from. Those of another issuer go.
func (r *record) settle(s site, client registration, scopes []string) {
	r.forget()
	r.Issuer, r.Resource, r.Client = s.meta.Issuer, s.resource, client
	r.TokenEndpoint, r.RevocationEndpoint = s.meta.TokenEndpoint, s.meta.RevocationEndpoint
	r.Scopes, r.Wanted = scopes, nil
}
