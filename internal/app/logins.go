package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-roster/roster/internal/auth"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcphttp"
)

// logins are those of the servers that run, by name.
type logins struct {
	mu    sync.Mutex // guards the fields below
	by    map[string]*login
	tasks sync.WaitGroup
}

// login is that of one server, which is watched until it is closed.
type login struct {
	oauth *auth.OAuth
	stop  context.CancelFunc
}

// close ends a login. It does not wait.
func (l *logins) close(old *login) {
	if old == nil {
		return
	}
	old.stop()
	l.tasks.Go(old.oauth.Close) // soon, see there
}

// put takes a login in the place of another one.
func (l *logins) put(name string, next *login) {
	l.mu.Lock()
	if l.by == nil {
		l.by = make(map[string]*login)
	}
	old := l.by[name]
	l.by[name] = next
	l.mu.Unlock()
	l.close(old)
}

func (l *logins) get(name string) *auth.OAuth {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.by[name]; at != nil {
		return at.oauth
	}
	return nil
}

// keep ends all logins but those of some servers.
func (l *logins) keep(names []string) {
	l.mu.Lock()
	var old []*login
	for name, at := range l.by {
		if !slices.Contains(names, name) {
			old = append(old, at)
			delete(l.by, name)
		}
	}
	l.mu.Unlock()
	for _, at := range old {
		l.close(at)
	}
}

// end ends all logins and waits for them.
func (l *logins) end() {
	l.keep(nil)
	l.tasks.Wait()
}

// authorizer returns what authorizes the requests to a server; nil: its header
// fields do, or nothing.
func (a *App) authorizer(s config.Server, log *slog.Logger) mcphttp.Authorizer {
	if s.Bearer != nil {
		return auth.NewBearer(secretSource(s.Bearer))
	}
	if !mayLogIn(s) {
		return nil
	}
	opts, err := loginOptions(s, a.tokens, a.opts.Version, log)
	if err != nil {
		log.Warn("the login trusts the system's certificates alone", "err", err)
	}
	o := auth.NewOAuth(opts)
	ctx, stop := context.WithCancel(a.base)
	a.logins.put(s.Name, &login{o, stop})
	a.logins.tasks.Go(func() { // ends with stop
		o.Watch(ctx, func() {
			if srv := a.servers.Get(s.Name); srv != nil {
				srv.Restart()
			}
			a.gateway.LoggedIn(ctx, s.Name)
		})
	})
	return o
}

// secretSource returns what reads a secret.
func secretSource(b *config.Bearer) auth.Source {
	switch {
	case b.Token != "":
		return auth.Fixed(b.Token)
	case b.File != "":
		return auth.File(b.File)
	case b.Keyring != "":
		return func(context.Context) (string, time.Time, error) {
			secret, err := state.KeyringSecret(b.Keyring)
			return secret, time.Time{}, err
		}
	}
	return auth.Command(b.Command, os.Environ())
}

// mayLogIn reports whether a server is one that is logged in to when it wants it:
// no other credentials are configured.
func mayLogIn(s config.Server) bool {
	if s.Transport == config.Stdio || s.Bearer != nil || s.OAuth != nil && s.OAuth.Off {
		return false
	}
	if u, err := url.Parse(s.URL); err != nil || u.User != nil {
		return false
	}
	return !slices.ContainsFunc(s.Headers, func(h config.Pair) bool { return strings.EqualFold(h.Name, "Authorization") })
}

func loginOptions(s config.Server, vault auth.Vault, version string, log *slog.Logger) (auth.OAuthOptions, error) {
	opts := auth.OAuthOptions{Name: s.Name, Server: s.URL, Vault: vault, Version: version, Logger: log}
	if c := s.OAuth; c != nil {
		opts.ClientID, opts.ClientSecret, opts.ClientMetadataURL = c.ClientID, c.ClientSecret, c.ClientMetadataURL
		opts.PrivateKey, opts.Algorithm = c.PrivateKey, c.Algorithm
		opts.Issuer, opts.Scopes, opts.Redirect, opts.ClientCredentials = c.Issuer, c.Scopes, c.Redirect, c.ClientCredentials
		if c.Assertion != nil {
			opts.Assertion = secretSource(c.Assertion)
		}
	}
	var err error
	opts.RootCAs, err = rootCAs(s.CAFile)
	return opts, err
}

// tokenStore is the vault of a configuration.
func tokenStore(c *config.Config, files []string, log *slog.Logger) *state.Vault {
	return state.NewVault(stateDir(c, files), state.KeyPlace(c.Roster.TokenStore), log)
}

// OpenLogin returns the login to a server of a configuration, which a gateway
// that runs shares. Close ends it.
func OpenLogin(c *config.Config, files []string, name, version string, log *slog.Logger) (*auth.OAuth, error) {
	i := slices.IndexFunc(c.Servers, func(s config.Server) bool { return s.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no server %q in the configuration", name)
	}
	s := c.Servers[i]
	switch {
	case s.Problem != nil:
		return nil, errors.New(s.Problem.String())
	case s.Transport == config.Stdio:
		return nil, fmt.Errorf("server %q is a program on this machine: it takes credentials from its environment", name)
	case !mayLogIn(s):
		return nil, fmt.Errorf("server %q has credentials in the configuration, or its login is switched off there", name)
	}
	opts, err := loginOptions(s, tokenStore(c, files, log), version, log)
	if err != nil {
		return nil, err
	}
	return auth.NewOAuth(opts), nil
}

// offerTime is how long a call may wait for the URL of a login.
const offerTime = 20 * time.Second

// offerLogin returns a URL that begins a login to a server, for the user of a
// client; "": none is sent there, since it may be another user, or on another
// machine, than that of this gateway.
func (a *App) offerLogin(ctx context.Context, name string) (string, error) {
	o := a.logins.get(name)
	if o == nil || a.keys() != nil || !a.isLocal() {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, offerTime)
	defer cancel()
	return o.Offer(ctx)
}

// isLocal reports whether only this machine can reach the gateway.
func (a *App) isLocal() bool {
	at := a.URL()
	if at == "" {
		return true
	}
	u, err := url.Parse(at)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.IsLoopback()
}
