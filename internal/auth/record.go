package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Vault keeps secrets by name, for all processes that share it. Its methods may
// be called from any goroutine.
type Vault interface {
	// Load returns what is kept under a name; nil: nothing.
	Load(ctx context.Context, name string) ([]byte, error)
	// Update replaces what is kept under a name by what change returns; nil
	// removes it. No other Update of the name, in any process, runs meanwhile.
	// If change fails nothing is replaced, and its error is returned.
	Update(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error
}

// Memory is a Vault that lasts as long as the process. Its zero value is empty.
type Memory struct {
	gate chan struct{} // one slot: the right to update
	once sync.Once

	mu   sync.Mutex // guards kept
	kept map[string][]byte
}

// Load returns what is kept under a name; nil: nothing.
func (m *Memory) Load(_ context.Context, name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept[name], nil
}

// Update replaces what is kept under a name; see Vault.
func (m *Memory) Update(ctx context.Context, name string, change func(old []byte) ([]byte, error)) error {
	m.once.Do(func() { m.gate = make(chan struct{}, 1) })
	select {
	case m.gate <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.gate }()
	old, _ := m.Load(ctx, name)
	value, err := change(old)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = make(map[string][]byte)
	}
	m.kept[name] = value
	return nil
}

// registration is a client at one authorization server, and good for no other.
type registration struct {
	ID       string `json:"id"`
	Secret   string `json:"secret,omitempty"`
	Method   string `json:"method"` // at the token endpoint
	Redirect string `json:"redirect,omitempty"`
	Expires  int64  `json:"expires,omitempty"` // Unix time; 0: never
}

// record is what is kept of the login to one server.
type record struct {
	// Generation grows with each change of what was Born then, so that who lost
	// a race can see it.
	Generation uint64 `json:"generation"`
	Born       string `json:"born"`
	Server     string `json:"server"` // its URL: a token is shown to no other
	// Login is another text after each login and logout, not after a refresh.
	Login    string `json:"login,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
	Resource string `json:"resource,omitempty"`
	// TokenEndpoint and RevocationEndpoint are those of Issuer's metadata.
	TokenEndpoint      string `json:"tokenEndpoint,omitempty"`
	RevocationEndpoint string `json:"revocationEndpoint,omitempty"`
	// Client got the tokens. Clients are those that were registered, by issuer.
	Client  registration            `json:"client,omitzero"`
	Clients map[string]registration `json:"clients,omitempty"`

	Access  string    `json:"access,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Issued  time.Time `json:"issued,omitzero"`
	Expiry  time.Time `json:"expiry,omitzero"` // zero: not known
	// Scopes were asked for with the tokens, Wanted is what the server asked for
	// since then.
	Scopes []string `json:"scopes,omitempty"`
	Wanted []string `json:"wanted,omitempty"`
}

// readRecord decodes what a vault keeps. What is of another server counts as
// nothing.
func readRecord(data []byte, server string) (*record, error) {
	r := &record{Server: server}
	if data == nil {
		return r, nil
	}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("what is kept of the login to %q cannot be read: log in anew", server)
	}
	if r.Server != server {
		return &record{Server: server}, nil
	}
	return r, nil
}

func (r *record) encode() ([]byte, error) {
	if r.Born == "" {
		r.Born = rand.Text()
	}
	r.Generation++
	return json.Marshal(r)
}

// valid reports whether there is an access token that is good for a moment yet.
func (r *record) valid(now time.Time) bool {
	return r.Access != "" && (r.Expiry.IsZero() || now.Before(r.Expiry.Add(-min(10*time.Second, r.life()/10))))
}

// life is how long the access token was good for when it was issued; 0: not
// known.
func (r *record) life() time.Duration {
	if r.Expiry.IsZero() {
		return 0
	}
	return r.Expiry.Sub(r.Issued)
}

// forget drops the tokens. Registrations stay: they are not what was revoked.
func (r *record) forget() { r.Access, r.Refresh, r.Issued, r.Expiry = "", "", time.Time{}, time.Time{} }

// RecordName is under which name a login is kept: one for each server of a
// configuration, the URL it is at, and who we are there.
func RecordName(server, url, clientID string) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %s %d %s %d %s", len(server), server, len(url), url, len(clientID), clientID) // never fails
	return hex.EncodeToString(h.Sum(nil)[:16])
}
