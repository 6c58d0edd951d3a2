package app

import (
	"context"
	"encoding/json"
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
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
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
	data, err := json.Marshal(Endpoint{a.URL(), os.Getpid()})
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
