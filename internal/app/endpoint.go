package app

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/state"
)

// Endpoint says where a running gateway is reached. It stands in a file of its
// state directory while the gateway listens.
type Endpoint struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
	// Key is good for this gateway while it runs; "": it asks for none. Who may
	// read the file may use the gateway.
	Key string `json:"key,omitempty"`
	// Cert is the certificate that the gateway shows, in DER; nil: it serves
	// plain HTTP.
	Cert []byte `json:"cert,omitempty"`
}

// Endpoint says where this gateway is reached.
func (a *App) Endpoint() Endpoint {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.endpoint
}

const endpointFile = "endpoint.json"

// FindEndpoint returns where the gateway of a configuration said it would be;
// false if none did. It may have died since: ask it before believing it.
func FindEndpoint(cfg *config.Config, files []string) (Endpoint, bool) {
	data, err := os.ReadFile(filepath.Join(stateDir(cfg, files), endpointFile))
	if err != nil {
		return Endpoint{}, false
	}
	var e Endpoint
	if json.Unmarshal(data, &e) != nil || e.URL == "" {
		return Endpoint{}, false
	}
	return e, true
}

func stateDir(cfg *config.Config, files []string) string {
	return filepath.Join(cfg.Roster.StateDir, state.DirFor(files))
}

// Alive asks whether a gateway answers there. It takes a second at most.
func (e Endpoint) Alive(ctx context.Context) bool {
	const within = time.Second
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(e.URL, "mcp")+"livez", nil)
	if err != nil {
		return false
	}
	asker := http.Client{Transport: e.Transport()}
	resp, err := asker.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Transport returns what makes requests to the gateway; nil: what does by
// default. One whose certificate is known has to show that, whatever name is in it.
func (e Endpoint) Transport() http.RoundTripper {
	if e.Cert == nil {
		return nil
	}
	const idle = 5 * time.Second
	return &http.Transport{
		DisableCompression: true,
		IdleConnTimeout:    idle,
		TLSClientConfig: &tls.Config{
			InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does it
			MinVersion:         tls.VersionTLS12,
			VerifyConnection:   e.verify,
		},
	}
}

func (e Endpoint) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 || !bytes.Equal(state.PeerCertificates[0].Raw, e.Cert) {
		return errors.New("another gateway answers here: its certificate is not that of the one that was started")
	}
	return nil
}

// announce writes the endpoint file, unless this gateway is private or another
// one of its configuration is announced and answers.
func (a *App) announce(ctx context.Context) {
	if a.opts.Private {
		return
	}
	if other, ok := FindEndpoint(a.opts.Config, a.opts.Files); ok && other.Alive(ctx) {
		a.log.Info("other commands go on using the gateway that ran before", "url", other.URL)
		return
	}
	data, err := json.Marshal(a.Endpoint())
	if err != nil {
		a.log.Warn("other commands will not find this gateway", "err", err)
		return
	}
	file := filepath.Join(a.store.Dir(), endpointFile)
	temporary := fmt.Sprintf("%s.%d.tmp", file, os.Getpid())
	err = os.WriteFile(temporary, data, 0o600)
	if err == nil {
		err = os.Rename(temporary, file)
	}
	if err != nil {
		_ = os.Remove(temporary) // it may never have been written
		a.log.Warn("other commands will not find this gateway", "err", err)
	}
}

// withdraw takes the endpoint file away, if it is that of this gateway.
func (a *App) withdraw() {
	if e, ok := FindEndpoint(a.opts.Config, a.opts.Files); ok && e.URL == a.URL() {
		_ = os.Remove(filepath.Join(a.store.Dir(), endpointFile)) // whoever reads it will find nobody there
	}
}
