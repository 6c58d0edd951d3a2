package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

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

// announce writes the endpoint file, unless this gateway is private. Of two
// gateways of one configuration the one that listened last is found.
func (a *App) announce() {
	if a.opts.Private {
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

// withdraw takes the endpoint file away, if it is still that of this process.
func (a *App) withdraw() {
	if e, ok := FindEndpoint(a.opts.Config, a.opts.Files); ok && !a.opts.Private && e.PID == os.Getpid() {
		_ = os.Remove(filepath.Join(a.store.Dir(), endpointFile)) // whoever reads it will find nobody there
	}
}
