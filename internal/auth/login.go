package auth

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// loginTime is how long somebody may take to log in.
const loginTime = 15 * time.Minute

// Login is a login that a user was, or is to be, sent to. It ends at a listener
// on loopback, or with what the user pastes. Its methods may be called from any
// goroutine.
type Login struct {
	// URL is where the user logs in.
	URL string

	oauth    *OAuth
	site     site
	client   registration
	key      *signingKey
	scopes   []string
	state    string
	verifier string
	listener *listener

	mu   sync.Mutex // guards used
	used bool
	once sync.Once
	attempt
}

// errGivenUp is the end of a login that was closed.
var errGivenUp = errors.New("the login was given up")

// Begin prepares a login with PKCE (S256) and returns where to send the user.
// challenges are the WWW-Authenticate fields of the server's refusal; nil: the
// server is asked for them. Close ends the login if Wait has not.
func (o *OAuth) Begin(ctx context.Context, challenges []string) (*Login, error) {
	if o.opts.ClientCredentials {
		return nil, fmt.Errorf("server %q: there is no user to log in, the client has credentials of its own", o.opts.Name)
	}
	s, ch, err := o.find(ctx, challenges)
	if err != nil {
		return nil, err
	}
	if err := s.meta.checkPKCE(); err != nil {
		return nil, err
	}
	if s.meta.AuthorizationEndpoint == "" {
		return nil, fmt.Errorf("the authorization server %s has no authorization_endpoint", s.meta.Issuer)
	}
	r, err := o.reload(ctx)
	if err != nil {
		r = &record{Server: o.opts.Server} // a login is what repairs it
	}
	l := &Login{oauth: o, site: s, state: rand.Text(), verifier: oauth2.GenerateVerifier(), attempt: attempt{done: make(chan struct{})}}
	if l.listener, err = listen(o.opts.Redirect, r.Clients[s.meta.Issuer].Redirect, l.callback); err != nil {
		return nil, err
	}
	if err := l.prepare(ctx, r, ch); err != nil {
		l.listener.close()
		return nil, err
	}
	return l, nil
}

// find asks the server for its challenge, if it is not at hand, and discovers
// the authorization server.
func (o *OAuth) find(ctx context.Context, challenges []string) (site, challenge, error) {
	ch := readChallenge(challenges)
	if challenges == nil {
		fields, err := o.probe(ctx)
		if err != nil {
			return site{}, ch, fmt.Errorf("server %q: %w", o.opts.Name, err)
		}
		ch = readChallenge(fields)
	}
	s, err := discover(ctx, o.http, o.opts.Server, ch, o.opts.Issuer)
	if err != nil {
		return site{}, ch, fmt.Errorf("server %q: %w", o.opts.Name, err)
	}
	return s, ch, nil
}

// probe makes a request without credentials and returns what the server says
// about it.
func (o *OAuth) probe(ctx context.Context) ([]string, error) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"roster","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.opts.Server, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("server URL is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "server/discover")
	resp, err := o.guard.operator().Do(req)
	if err != nil {
		return nil, plain(err)
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil, fmt.Errorf("it asks for no login: without one it answers %s", resp.Status)
	}
	return resp.Header.Values("Www-Authenticate"), nil
}

// prepare finds out who we are and where the user goes.
func (l *Login) prepare(ctx context.Context, r *record, ch challenge) error {
	o, s := l.oauth, l.site
	var err error
	if l.client, err = o.identify(ctx, r, s, l.listener.redirect); err != nil {
		return fmt.Errorf("server %q: %w", o.opts.Name, err)
	}
	if l.key, err = o.key(l.client, s.meta.Issuer, s.meta.SigningAlgorithms); err != nil {
		return err
	}
	if err := o.remember(ctx, s.meta.Issuer, l.client); err != nil {
		return err
	}
	l.scopes = o.scopes(r, s, ch)
	conf := oauth2.Config{
		ClientID: l.client.ID, RedirectURL: l.listener.redirect, Scopes: l.scopes,
		Endpoint: oauth2.Endpoint{AuthURL: s.meta.AuthorizationEndpoint},
	}
	params := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(l.verifier), oauth2.SetAuthURLParam("resource", s.resource)}
	if covers(l.scopes, []string{"offline_access"}) { // OpenID Connect Core, section 11
		params = append(params, oauth2.SetAuthURLParam("prompt", "consent"))
	}
	l.URL = conf.AuthCodeURL(l.state, params...)
	return nil
}

// remember keeps a client that was registered.
func (o *OAuth) remember(ctx context.Context, issuer string, client registration) error {
	if client.ID == o.opts.ClientID || client.ID == o.opts.ClientMetadataURL {
		return nil
	}
	return o.update(ctx, func(r *record) error {
		if r.Clients == nil {
			r.Clients = make(map[string]registration)
		}
		r.Clients[issuer] = client
		return nil
	})
}

// Wait waits until the login has ended, well or not.
func (l *Login) Wait(ctx context.Context) error { return l.wait(ctx) }

// Close ends the login, if it has not, and its listener.
func (l *Login) Close() {
	l.end(errGivenUp)
	l.listener.close()
}

func (l *Login) end(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
	})
}

// Paste takes the URL that the browser was sent to at the end, for when the
// browser cannot reach the listener.
func (l *Login) Paste(ctx context.Context, redirected string) error {
	u, err := url.Parse(strings.TrimSpace(redirected))
	if err != nil || u.RawQuery == "" {
		return errors.New("that is not the URL of the page that the login ended at: it begins with " + l.listener.redirect + "?")
	}
	return l.callback(ctx, u.Query())
}

// errState says that a response is to no request of ours.
var errState = errors.New("this answer belongs to another login, or to none: its state is not the one that was sent")

// callback takes the response to the authorization request. One with another
// state is nobody's, and changes nothing; any other ends the login.
func (l *Login) callback(ctx context.Context, q url.Values) error {
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(l.state)) != 1 {
		return errState
	}
	l.mu.Lock()
	used := l.used
	l.used = true
	l.mu.Unlock()
	if used {
		return errors.New("this login has been answered already")
	}
	err := l.accept(ctx, q)
	l.end(err)
	return err
}

// accept checks a response before anything else is done with it (2026-07-28,
// basic/authorization, Authorization Response Validation), and gets the tokens.
func (l *Login) accept(ctx context.Context, q url.Values) error {
	meta := l.site.meta
	iss, present := q.Get("iss"), q.Has("iss")
	switch {
	case present && iss != meta.Issuer:
		return fmt.Errorf("the answer is from the issuer %q, the request went to %q: refused", short(iss), meta.Issuer)
	case !present && meta.IssInResponse:
		return fmt.Errorf("the answer does not say its issuer, though %s says that it always does: refused", meta.Issuer)
	case q.Has("error"):
		return &GrantError{Code: short(q.Get("error")), Description: short(q.Get("error_description"))}
	case q.Get("code") == "":
		return errors.New("the answer has no code")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	token, err := grant(ctx, l.oauth.http, meta.TokenEndpoint, l.client, l.key, url.Values{
		"grant_type": {"authorization_code"}, "code": {q.Get("code")}, "redirect_uri": {l.listener.redirect},
		"code_verifier": {l.verifier}, "resource": {l.site.resource},
	})
	if err != nil {
		return err
	}
	return l.oauth.adopt(ctx, l.site, l.client, l.scopes, token)
}

// adopt keeps the tokens of a login.
func (o *OAuth) adopt(ctx context.Context, s site, client registration, scopes []string, token *oauth2.Token) error {
	err := o.update(ctx, func(r *record) error {
		r.settle(s, client, scopes)
		r.take(token)
		r.Login = rand.Text()
		return nil
	})
	if err == nil {
		o.log.Info("logged in", "issuer", s.meta.Issuer)
		o.changed()
	}
	return err
}

// Offer returns the URL of a login that somebody may be sent to. It ends by itself
// when it was used, or after some minutes; until then the URL is the same for
// all who ask.
func (o *OAuth) Offer(ctx context.Context) (string, error) {
	select { // one at a time
	case o.offering <- struct{}{}:
		defer func() { <-o.offering }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	o.mu.Lock()
	pending := o.pending
	o.mu.Unlock()
	if pending != nil {
		return pending.URL, nil
	}
	l, err := o.Begin(ctx, nil)
	if err != nil {
		return "", err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		o.tasks.Go(l.Close) // at once
		return "", errClosed
	}
	o.pending = l
	o.tasks.Go(func() { // ends with the login, within loginTime, or with Close
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), loginTime)
		defer cancel()
		if err := l.Wait(late); err != nil && !errors.Is(err, errGivenUp) {
			o.log.Warn("nobody has logged in", "err", err)
		}
		o.mu.Lock()
		o.pending = nil
		o.mu.Unlock()
		l.Close()
	})
	return l.URL, nil
}
