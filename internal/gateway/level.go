package gateway

import (
	"slices"
	"sync"

	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// defaultLevel is what a client with a session is taken to want until it says
// otherwise; servers of stateless versions must be told something.
const defaultLevel = "info"

// level is the least severe log level that anyone has asked for. Servers with
// sessions are shared: they send what the most curious client wants, and each
// client gets its part.
type level struct {
	mu   sync.Mutex // guards least
	name string     // "": nobody asked
}

// ask notes what a caller wants, completes it for a server that must be told, and
// reports whether the least level has changed.
func (l *level) ask(c *mcp.Caller) (changed bool) {
	asked := c.LogLevel
	if asked == "" && !c.Version.Stateless() {
		c.LogLevel = defaultLevel
	}
	if asked == "" || !slices.Contains(mcp.LogLevels[:], asked) {
		return false
	}
	if slices.Index(mcp.LogLevels[:], asked) > slices.Index(mcp.LogLevels[:], defaultLevel) {
		asked = defaultLevel // which those want who did not say
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.name != "" && slices.Index(mcp.LogLevels[:], asked) >= slices.Index(mcp.LogLevels[:], l.name) {
		return false
	}
	l.name = asked
	return true
}

func (l *level) least() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name
}

// tellLevel tells the servers of a new least level.
func (s *Source) tellLevel() {
	name := s.level.least()
	for _, srv := range s.servers.All() {
		srv.SetLevel(name)
	}
}

// Renew tells servers that have come into the set what clients want of those of
// their names.
func (s *Source) Renew(servers []*upstream.Server) {
	for _, srv := range servers {
		srv.SetLevel(s.level.least())
		s.watches.renewAll(srv)
	}
}

// SetLevel takes note of the level that a session asks for; see server.LogSource.
func (s *Source) SetLevel(r *server.Request, name string) {
	if s.catalog.PerClient() {
		c := s.client(r)
		c.mu.Lock()
		c.level = name
		c.mu.Unlock()
	}
	if s.level.ask(&mcp.Caller{LogLevel: name, Version: mcp.LatestSession}) {
		s.tellLevel()
	}
}

// filter returns which log messages the client of a request gets: those of the
// level that it named and above. A client with a session that named none gets what
// the server sends, but for what the server only sends because somebody else
// named a level: then it gets defaultLevel and above.
func (s *Source) filter(r *server.Request) func(params jsonrpc.Object) bool {
	return func(params jsonrpc.Object) bool {
		wanted := r.Caller.LogLevel
		if wanted == "" {
			if r.Caller.Version.Stateless() {
				return false
			}
			if s.level.least() == "" {
				return true
			}
			wanted = defaultLevel
		}
		return severe(params, wanted)
	}
}

// severe reports whether a log message is of a level or above.
func severe(params jsonrpc.Object, least string) bool {
	level, _ := params.Text("level")
	return slices.Index(mcp.LogLevels[:], level) >= slices.Index(mcp.LogLevels[:], least)
}

// checkLevel returns the error for a level that there is not (2026-07-28, server/
// utilities/logging, Error Handling).
func checkLevel(c mcp.Caller) error {
	if c.LogLevel == "" || slices.Contains(mcp.LogLevels[:], c.LogLevel) {
		return nil
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta: %q must be one of %q", mcp.MetaLogLevel, mcp.LogLevels[:])
}
