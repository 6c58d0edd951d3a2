package app

import (
	"net/http"

	"github.com/mcp-roster/roster/internal/auth"
)

// Paths of the HTTP server.
const (
	mcpPath      = "/mcp"
	ssePath      = "/sse"
	messagesPath = "/messages"
)

// keys returns the keys that callers need one of; nil if they need none.
func (a *App) keys() auth.Keys {
	set := a.opts.Config.Roster.Keys
	if set == nil {
		return nil
	}
	keys := auth.Keys{}
	for _, k := range set {
		keys = append(keys, auth.Key{Name: k.Name, Hash: k.SHA256})
	}
	return keys
}

// routes makes the handler of MCP and what serves it, HTTP+SSE and admin. Who
// asks for anything but whether the gateway is there needs a key, if there are
// keys.
func (a *App) routes(keys auth.Keys) http.Handler {
	set := a.opts.Config.Roster
	locked := func(h http.Handler) http.Handler {
		if keys == nil {
			return h
		}
		return keys.Require(h)
	}
	admin := http.NewServeMux()
	a.status.Register(admin)
	mux := http.NewServeMux()
	mux.Handle("/", locked(admin))
	for _, path := range []string{"/livez", "/readyz", "/healthz", "/health"} {
		mux.Handle(path, admin)
	}
	mux.Handle(mcpPath, a.refuseLoop(locked(a.handler)))
	if set.SSE {
		stream, messages := a.handler.SSE(messagesPath)
		mux.Handle(ssePath, a.refuseLoop(locked(stream)))
		mux.Handle(messagesPath, locked(messages))
	}
	return a.handler.Guard().Wrap(mux)
}
