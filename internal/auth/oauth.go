package auth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// OAuthOptions says to which server to log in, and how. Server and Vault are
// required.
type OAuthOptions struct {
	// Name is the server's in the configuration, Server its URL.
	Name, Server string
	// ClientID and ClientSecret are who we are at the authorization server. ""
	// with a ClientMetadataURL: that document's URL, where the server reads such;
	// else a client is registered.
	ClientID, ClientSecret string
	ClientMetadataURL      string
	// PrivateKey, in PEM, signs in the place of a secret (private_key_jwt), by
	// Algorithm, which is as in JWS; "": what fits the key.
	PrivateKey, Algorithm string
	// Issuer is the only authorization server that gets the credentials. "": the
	// first that the server names.
	Issuer string
	// Scopes are asked for. nil: those that the server asks for.
	Scopes []string
	// ClientCredentials asks for tokens of the client's own: there is no user
	// and no login. With an Assertion it asks with that, a JWT of somebody whom
	// the authorization server trusts (RFC 7523, section 2.1), which is read anew
	// for each token.
	ClientCredentials bool
	Assertion         Source
	// Redirect is the URL on loopback at which logins end; port 0 is any. "":
	// http://127.0.0.1:0/callback.
	Redirect string
	// Open brings the user to a URL when a request needs a login, and then the
	// request waits for it. nil: it fails with a *LoginError.
	Open func(ctx context.Context, url string) error
	// Vault keeps the tokens.
	Vault Vault
	// RootCAs are the certificates to trust. nil: the system's.
	RootCAs *x509.CertPool
	// Version is this program's.
	Version string
	// Logger gets what happens, without secrets. nil: nothing.
	Logger *slog.Logger
}

// OAuth keeps one login to one server: it is the authorizer of the connections
// to it. Tokens are refreshed ahead of their end, once for all who need them, in
// all processes that share the vault (2026-07-28, basic/authorization).
type OAuth struct {
	opts  OAuthOptions
	name  string // of the record
	guard *Guard
	http  *http.Client
	log   *slog.Logger
	tasks sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	closed bool
	record *record   // as last seen; nil: not yet
	looked time.Time // when it was read
	// shown is the login whose token requests have had since Watch called last;
	// "": none. mixed: some had that of another. anonymous counts those that had
	// none and were not refused.
	shown     string
	mixed     bool
	anonymous int
	renewal   *attempt  // under way
	quiet     time.Time // until then no renewal ahead of need is begun
	// replacement is the token that came last in the place of a refused one.
	replacement string
	replacedAt  time.Time
	entry       *attempt // a login that requests wait for
	pending     *Login   // a login that somebody was sent to

	offering chan struct{} // one slot: Offer runs
	news     chan struct{} // one slot: look at the record
	closing  chan struct{} // closed when what is under way must end
}

var errClosed = errors.New("the gateway is stopping")

// attempt is what several requests wait for.
type attempt struct {
	done chan struct{} // closed when err is set
	err  error
}

// wait waits for the outcome.
func (a *attempt) wait(ctx context.Context) error {
	select {
	case <-a.done:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// renewTime is how long a renewal may take: waiting for other processes, and one
// request. It goes on when those who wait for it have gone, since a
// token that the server has replaced is lost if nobody takes the new one.
const renewTime = 2 * time.Minute

// LoginError says that a server wants a login that only its user can do.
type LoginError struct {
	Server string   // its name in the configuration
	Scopes []string // that are missing, if there was a login before
}

func (e *LoginError) Error() string {
	text := fmt.Sprintf("server %q needs a login", e.Server)
	if len(e.Scopes) > 0 {
		text += " with more permissions (" + short(strings.Join(e.Scopes, " ")) + ")"
	}
	return text + ": run 'roster auth login " + e.Server + "'"
}

// NeedsLogin returns the name of the server.
func (e *LoginError) NeedsLogin() string { return e.Server }

// NewOAuth returns the login to a server. It does nothing before it is asked.
func NewOAuth(opts OAuthOptions) *OAuth {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	guard := NewGuard(GuardOptions{Named: []string{opts.Server, opts.Issuer}, RootCAs: opts.RootCAs})
	return &OAuth{
		opts: opts, name: RecordName(opts.Name, opts.Server, opts.ClientID),
		guard: guard, http: guard.Client(), log: opts.Logger,
		offering: make(chan struct{}, 1), news: make(chan struct{}, 1), closing: make(chan struct{}),
	}
}

// closeTime is how long a refresh that is under way may take to end by itself.
const closeTime = 2 * time.Second

// Close waits for what is under way, but not for long.
func (o *OAuth) Close() {
	o.mu.Lock()
	closed := o.closed
	o.closed = true
	o.mu.Unlock()
	if closed {
		o.tasks.Wait()
		return
	}
	o.dropOffer()
	late := time.AfterFunc(closeTime, func() { close(o.closing) })
	o.tasks.Wait()
	late.Stop()
	o.guard.CloseIdle()
}

// detached returns a context with the values of ctx that does not end with it,
// but after a time, or when Close has waited long enough.
func (o *OAuth) detached(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	go func() { // ends with ctx
		select {
		case <-o.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// dropOffer ends the login that somebody was sent to, if another one was used.
func (o *OAuth) dropOffer() {
	o.mu.Lock()
	pending := o.pending
	o.mu.Unlock()
	if pending != nil {
		pending.end(errGivenUp)
	}
}

// changed has Watch look at once.
func (o *OAuth) changed() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}

// watchPause is how long a login or logout in another process may go unnoticed.
const watchPause = time.Second

// Watch calls changed whenever somebody has logged in or out, in this process or in
// another, until ctx ends. Connections that were made before should be made anew:
// they may be somebody else's. It does not if requests had the new login alone
// since the last change.
func (o *OAuth) Watch(ctx context.Context, changed func()) {
	last, known := "", false
	tick := time.NewTicker(watchPause)
	defer tick.Stop()
	for {
		if r, err := o.reload(ctx); err == nil {
			if known && r.Login != last {
				o.dropOffer()
				if o.stale(r.Login) {
					changed()
				}
			}
			last, known = r.Login, true
		}
		select {
		case <-tick.C:
		case <-o.news:
		case <-ctx.Done():
			return
		}
	}
}

// stale reports whether a request may have had another login than this one, or
// none has been made yet.
func (o *OAuth) stale(login string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	stale := o.shown != login || o.mixed || o.anonymous > 0
	o.shown, o.mixed, o.anonymous = "", false, 0
	return stale
}

// show notes that a request has the token of a record, and returns the value of
// its field.
func (o *OAuth) show(r *record) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mixed = o.mixed || o.shown != "" && o.shown != r.Login
	o.shown = r.Login
	return "Bearer " + r.Access
}

// nothing notes that a request has no token.
func (o *OAuth) nothing() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.anonymous++
	return ""
}

// Authorization returns the value of the Authorization field for a request now;
// "" if there is no token. It waits for a token if there can be one without a
// user.
func (o *OAuth) Authorization(ctx context.Context) (string, error) {
	r, err := o.current(ctx)
	if err != nil {
		return "", err
	}
	now := time.Now()
	if r.valid(now) {
		o.ahead(ctx, r, now)
		return o.show(r), nil
	}
	if !o.renewable(r) {
		return o.nothing(), nil
	}
	if err := o.renew(ctx, r.Access); err != nil {
		if _, final := errors.AsType[*LoginError](err); final {
			return o.nothing(), nil // the server will say what it wants
		}
		return "", err
	}
	if r, err = o.current(ctx); err != nil || !r.valid(time.Now()) {
		return o.nothing(), err
	}
	return o.show(r), nil
}

// current returns the record as it was last seen.
func (o *OAuth) current(ctx context.Context) (*record, error) {
	o.mu.Lock()
	r := o.record
	looked := o.looked
	o.mu.Unlock()
	if r != nil && (r.Access != "" || time.Since(looked) < watchPause) {
		return r, nil
	}
	return o.reload(ctx) // another process may have logged in
}

// reload reads the record anew.
func (o *OAuth) reload(ctx context.Context) (*record, error) {
	data, err := o.opts.Vault.Load(ctx, o.name)
	if err != nil {
		return nil, fmt.Errorf("tokens of server %q: %w", o.opts.Name, err)
	}
	r, err := readRecord(data, o.opts.Server)
	if err != nil {
		return nil, err
	}
	o.see(r)
	o.mu.Lock()
	o.looked = time.Now()
	o.mu.Unlock()
	return r, nil
}

// see takes a record for the newest, unless a newer one was seen.
func (o *OAuth) see(r *record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.record == nil || r.Born != o.record.Born || r.Generation >= o.record.Generation {
		o.record = r
	}
}

// renewable reports whether a token can be had without a user.
func (o *OAuth) renewable(r *record) bool {
	return r.TokenEndpoint != "" && (r.Refresh != "" || o.opts.ClientCredentials)
}

// ahead begins a renewal when a token's end is near, at a time that differs
// between processes.
func (o *OAuth) ahead(ctx context.Context, r *record, now time.Time) {
	if r.Expiry.IsZero() || !o.renewable(r) {
		return
	}
	margin := min(r.life()/5, 5*time.Minute)
	if left := r.Expiry.Sub(now); left > margin || left > margin/2 && rand.IntN(20) > 0 {
		return
	}
	o.mu.Lock()
	early := o.renewal == nil && now.After(o.quiet)
	if early {
		o.quiet = now.Add(max(margin/10, time.Second)) // lest each request tries when it fails
	}
	o.mu.Unlock()
	if early {
		o.begin(ctx, r.Access)
	}
}

// renew gets a token in place of one that is no longer good; used is that one.
func (o *OAuth) renew(ctx context.Context, used string) error {
	a := o.begin(ctx, used)
	if a == nil {
		return errClosed
	}
	return a.wait(ctx)
}

// begin begins a renewal, or joins the one under way.
func (o *OAuth) begin(ctx context.Context, used string) *attempt {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.renewal != nil {
		return o.renewal
	}
	if o.closed {
		return nil
	}
	a := &attempt{done: make(chan struct{})}
	o.renewal = a
	o.tasks.Go(func() { // ends within renewTime
		ctx, cancel := o.detached(ctx, renewTime)
		defer cancel()
		a.err = o.replace(ctx, used)
		o.mu.Lock()
		o.renewal = nil
		o.mu.Unlock()
		close(a.done)
	})
	return a
}

// update changes the record while nobody else does.
func (o *OAuth) update(ctx context.Context, change func(*record) error) error {
	var now *record
	err := o.opts.Vault.Update(ctx, o.name, func(old []byte) ([]byte, error) {
		r, err := readRecord(old, o.opts.Server)
		if err != nil {
			r = &record{Server: o.opts.Server}
		}
		if err := change(r); err != nil {
			return nil, err
		}
		now = r
		return r.encode()
	})
	if err == nil {
		o.see(now)
	}
	return err
}

// errOvertaken ends an update that another process made unnecessary.
var errOvertaken = errors.New("somebody else was faster")

// replace asks for a new token, unless another process has got one meanwhile. A
// refusal that is final makes a login necessary.
func (o *OAuth) replace(ctx context.Context, used string) error {
	var refused *GrantError
	err := o.update(ctx, func(r *record) error {
		if r.Access != used && r.valid(time.Now()) {
			o.see(r)
			return errOvertaken
		}
		if !o.renewable(r) {
			return &LoginError{Server: o.opts.Name}
		}
		token, err := o.ask(ctx, r)
		if e, ok := errors.AsType[*GrantError](err); ok && e.final() {
			refused = e
			r.forget()
			return nil
		}
		if err != nil {
			return err
		}
		r.take(token)
		return nil
	})
	switch {
	case errors.Is(err, errOvertaken):
		return nil
	case err != nil:
		if _, login := errors.AsType[*LoginError](err); login {
			return err
		}
		o.log.Warn("token not refreshed", "err", err)
		return fmt.Errorf("server %q: the token is not good any more and cannot be refreshed now: %w", o.opts.Name, err)
	case refused != nil && o.opts.ClientCredentials:
		return fmt.Errorf("server %q: %w", o.opts.Name, refused)
	case refused != nil:
		o.log.Warn("login is no longer good", "err", refused)
		return &LoginError{Server: o.opts.Name}
	}
	o.log.Debug("token refreshed")
	return nil
}

// ask makes the request for a new token that needs no user.
func (o *OAuth) ask(ctx context.Context, r *record) (*oauth2.Token, error) {
	params := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Refresh}, "resource": {r.Resource}}
	if o.opts.ClientCredentials {
		var err error
		if params, err = o.ownGrant(ctx, r.Resource, r.Scopes); err != nil {
			return nil, err
		}
	}
	client := r.Client
	if o.opts.ClientID != "" { // the secret may have been changed since
		client.Secret = o.opts.ClientSecret
	}
	key, err := o.key(client, r.Issuer, nil)
	if err != nil {
		return nil, err
	}
	return grant(ctx, o.http, r.TokenEndpoint, client, key, params)
}

// key returns what signs for a client; nil if it does not sign.
func (o *OAuth) key(client registration, issuer string, supported []string) (*signingKey, error) {
	if client.Method != methodJWT {
		return nil, nil
	}
	return readKey(o.opts.PrivateKey, o.opts.Algorithm, issuer, supported)
}

// take puts a new token in place. A server that gives no new refresh token
// means the old one to stay.
func (r *record) take(t *oauth2.Token) {
	r.Access, r.Issued, r.Expiry = t.AccessToken, time.Now(), t.Expiry
	if t.RefreshToken != "" {
		r.Refresh = t.RefreshToken
	}
}
