package upstream

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Options describes one server. Name and Dial are required; a zero number has
// the default.
type Options struct {
	Name string
	Dial client.Dial
	HTTP bool // the wire is over HTTP
	// Disabled: the server is not connected until Enable(true).
	Disabled bool

	Info         jsontext.Value // our Implementation object
	Capabilities jsontext.Value // what a server with sessions is told; nil: {}

	ProbeTimeout   time.Duration // see client.Options; 0: 2 s
	ConnectTimeout time.Duration // of dialling and the handshake; 0: 60 s
	// RequestTimeout is how long a request may take without a sign of
	// progress, MaxTimeout how long with. 0: 5 min and 30 min.
	RequestTimeout time.Duration
	MaxTimeout     time.Duration
	// StartWait is how long after New a call waits for the first connection.
	// 0: 10 s.
	StartWait time.Duration
	// MaxInFlight requests run at once, MaxQueue more wait. 0: 256 and 1,024.
	MaxInFlight int
	MaxQueue    int
	// BackoffMin and BackoffMax bound the pause before the next attempt to
	// connect. It grows with each failure and starts anew when a connection
	// has held for BackoffMax. 0: 1 s and 60 s.
	BackoffMin time.Duration
	BackoffMax time.Duration
	// Forward names, in their canonical form, the header fields of clients'
	// requests that the server gets with their calls.
	Forward []string
	// Limits bound the walks of lists.
	Limits client.Limits
	// Known is what is remembered of the server.
	Known Known
	Hooks Hooks
	// PerClient: the server runs for each client apart, with the options that
	// this returns: see Server.For. It is called under a lock and does no more than
	// that. nil: clients share it.
	PerClient func(Client) Options
	// Roots answers roots/list of a server with sessions, whoever's call it is
	// about: a ListRootsResult. nil: clients are asked.
	Roots jsontext.Value
	// Ask answers the requests of the server that no call of ours has provably
	// caused. nil: they are refused.
	Ask func(ctx context.Context, srv *Server, req *jsonrpc.Request) (jsontext.Value, error)
	// Hide returns what may be shown of text that tells of a failure, which may
	// quote the server: of errors and warnings in Status and Lists, and of errors
	// from Call that are not the server's answer. nil: everything.
	Hide func(text string) string
	// Logger gets what happens off the request path. nil: nothing.
	Logger *slog.Logger
}

// Known is what an earlier process learned of a server.
type Known struct {
	// Server is what it said of itself; its Version is tried first.
	Server client.ServerInfo
	// Lists are the last published lists; nil: none.
	Lists [len(mcp.Kinds)]*client.List
}

// Hooks are told what happens to a server. Any may be nil. None is called under
// a lock.
type Hooks struct {
	// Lists gets lists that changed: all kinds of a connection at once when it
	// is new, later those that differ. It is called on a goroutine that does
	// nothing else, once at a time; the next walk waits until it returns.
	Lists func(Lists)
	// State gets each change of Status.State, of Status.LastErr or of a list's
	// error, in order, on the goroutine that found out. It must return soon.
	State func(Status)
	// Begin is called by Run before anything else.
	Begin func(*Server)
	// Notification gets what the server says on its own, but for list changes,
	// on the goroutine that reads. It must not block.
	Notification func(m *jsonrpc.Message)
}

// Lists is news of what a server lists.
type Lists struct {
	Server client.ServerInfo
	Kinds  [len(mcp.Kinds)]Listed
}

// Listed is the news of one kind.
type Listed struct {
	// List replaces what was known of the kind; nil: that stays. It must not be
	// written to. One with Tripped set may be incomplete.
	List *client.List
	// Err is why the last walk gave no list to take; nil if it did.
	Err error
}

func (o Options) withDefaults() Options {
	duration := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	duration(&o.ConnectTimeout, client.DefaultConnectTimeout)
	duration(&o.RequestTimeout, client.DefaultCallTimeout)
	duration(&o.MaxTimeout, max(30*time.Minute, o.RequestTimeout))
	duration(&o.StartWait, 10*time.Second)
	duration(&o.BackoffMin, time.Second)
	duration(&o.BackoffMax, time.Minute)
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 256
	}
	if o.MaxQueue == 0 {
		o.MaxQueue = 1024
	}
	if o.Hide == nil {
		o.Hide = func(text string) string { return text }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
