package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/stdio"
)

// capabilities are what a shared server with sessions is told that its clients
// can be asked; whether the client of a call can is seen when it is asked.
const capabilities = `{"elicitation":{"form":{},"url":{}},"sampling":{}}`

// rootsCapability is capabilities for a server that is told of the configured
// roots, which are those of no client and do not change.
const rootsCapability = `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`

// rootsResult is the answer to roots/list with these URIs.
func rootsResult(uris []string) jsontext.Value {
	out := []byte(`{"roots":[`)
	for i, uri := range uris {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, `{"uri":`...), mcp.String(uri)...), '}')
	}
	return append(out, "]}"...)
}

// blocks says what the catalog is to know of each server that is configured and
// not disabled. What is in here and not in upstream may change without a restart
// of the server, see config.Compare.
func blocks(c *config.Config) []catalog.ServerOptions {
	var out []catalog.ServerOptions
	for _, s := range c.Servers {
		if !s.Disabled {
			out = append(out, catalog.ServerOptions{
				Name: s.Name, Key: s.Key(), Prefix: s.Prefix, HTTP: s.Transport != config.Stdio,
				PerClient: s.Scope == config.PerClient,
			})
		}
	}
	return out
}

// upstreams makes a server for each that is configured and not disabled.
func (a *App) upstreams(c *config.Config) []*upstream.Server {
	var out []*upstream.Server
	for _, s := range c.Servers {
		if !s.Disabled {
			out = append(out, a.upstream(s, c.Roster))
		}
	}
	return out
}

func (a *App) upstream(s config.Server, set config.Settings) *upstream.Server {
	secrets := s.Secrets()
	log := slog.New(secrets.Handler(a.log.Handler())).With("server", s.Name)
	key := s.Key()
	odd := oddities{logger: log}
	opts := upstream.Options{
		Name: s.Name, Dial: a.dial(s, secrets, log), HTTP: s.Transport != config.Stdio, Info: implementation(a.opts.Version),
		Capabilities:   jsontext.Value(capabilities),
		ConnectTimeout: s.ConnectTimeout, RequestTimeout: s.Timeout,
		StartWait: set.StartupWait, Forward: s.ForwardHeaders,
		Known:  upstream.Known{Server: a.remembered(s.Name, key)},
		Hide:   secrets.Hide,
		Logger: log,
		Hooks: upstream.Hooks{
			Notification: func(m *jsonrpc.Message) { a.gateway.Notification(a.base, s.Name, m) },
			Lists: func(l upstream.Lists) {
				odd.log(l)
				a.listed(s.Name, key, l)
			},
			State: func(st upstream.Status) {
				a.journal.Add(s.Name, admin.FromEvent, event(st))
				a.stateChanged(log, st, func() { a.catalog.Heard(st.Name) })
			},
		},
	}
	switch {
	case s.Scope == config.PerClient:
		shared := opts
		opts.PerClient = func(c upstream.Client) upstream.Options { return a.apart(shared, key, log, c) }
	case s.Roots != nil:
		opts.Capabilities, opts.Roots = jsontext.Value(rootsCapability), rootsResult(s.Roots)
	}
	return upstream.New(opts)
}

// apart returns the options of a server that runs for one client.
func (a *App) apart(opts upstream.Options, key string, log *slog.Logger, c upstream.Client) upstream.Options {
	log = log.With("client", c.Name)
	odd := oddities{logger: log}
	opts.Capabilities, opts.Logger = c.Capabilities, log
	opts.Ask = func(ctx context.Context, srv *upstream.Server, q *jsonrpc.Request) (jsontext.Value, error) {
		return a.gateway.AskFor(ctx, c, srv, q)
	}
	opts.Hooks = upstream.Hooks{
		Begin:        func(srv *upstream.Server) { a.gateway.Begun(c, srv) },
		Notification: func(m *jsonrpc.Message) { a.gateway.NotificationFor(a.base, c, opts.Name, m) },
		Lists: func(l upstream.Lists) {
			odd.log(l)
			a.savePeer(opts.Name, key, l.Server)
			a.gateway.Listed(c, opts.Name, lists(l))
		},
		State: func(st upstream.Status) {
			a.journal.Add(opts.Name, admin.FromEvent, "for "+c.Name+": "+event(st))
			a.stateChanged(log, st, func() { a.gateway.Heard(c, st.Name) })
		},
	}
	return opts
}

// oddities logs what is odd about the lists of one server, each as long as it
// lasts once. The hook for lists calls it, and never twice at a time.
type oddities struct {
	logger *slog.Logger
	said   map[string]bool
}

func (o *oddities) log(l upstream.Lists) {
	now := make(map[string]bool)
	var fresh []string
	for _, listed := range l.Kinds {
		if listed.List == nil {
			continue
		}
		for _, w := range listed.List.Warnings {
			if !o.said[w] && !now[w] {
				fresh = append(fresh, w)
			}
			now[w] = true
		}
	}
	o.said = now
	const most = 10 // of one list, lest a server fill the log
	for _, w := range fresh[:min(len(fresh), most)] {
		o.logger.Warn("the server's list is odd", "what", w)
	}
}

// remembered is what an earlier process learned of a server.
func (a *App) remembered(name, key string) client.ServerInfo {
	p, ok := a.store.Peer(name, key)
	if !ok {
		return client.ServerInfo{}
	}
	info := client.ServerInfo{Version: mcp.Version(p.Version), Instructions: p.Instructions}
	if p.Info != "" {
		info.Info = jsontext.Value(p.Info)
	}
	if caps, err := jsonrpc.ParseObject(jsontext.Value(p.Capabilities)); err == nil {
		info.Capabilities = caps
	}
	return info
}

// listed takes over a server's lists.
func (a *App) listed(name, key string, l upstream.Lists) {
	a.savePeer(name, key, l.Server)
	a.catalog.Replace(name, lists(l))
}

func (a *App) savePeer(name, key string, info client.ServerInfo) {
	a.store.SavePeer(state.Peer{
		Name: name, Key: key, Version: string(info.Version), Info: string(info.Info),
		Capabilities: string(info.Capabilities.Raw), Instructions: info.Instructions,
	})
}

// lists are what the catalog takes.
func lists(l upstream.Lists) catalog.Lists {
	var out catalog.Lists
	for k, listed := range l.Kinds {
		if listed.List == nil {
			continue
		}
		list := &catalog.List{Items: listed.List.Items, Degraded: listed.List.Tripped != ""}
		if listed.List.HasTTL {
			list.TTL = listed.List.Hints.TTL
		}
		out[k] = list
	}
	return out
}

// event says how a server is, for the journal.
func event(st upstream.Status) string {
	switch st.State {
	case upstream.Ready:
		return "ready, protocol " + string(st.Version)
	case upstream.Degraded:
		return "ready, but its lists are not known to be whole: " + text(firstErr(st))
	case upstream.Down:
		return fmt.Sprintf("down: %s; tried again in %v", text(st.LastErr), time.Until(st.NextTry).Round(time.Second/10))
	case upstream.Disabled:
		return "stopped"
	}
	return string(st.State)
}

func text(err error) string {
	if err == nil {
		return "no reason is known"
	}
	return err.Error()
}

// stateChanged logs how a server is, and lets nobody wait for one that is down.
func (a *App) stateChanged(log interface {
	Info(string, ...any)
	Warn(string, ...any)
}, st upstream.Status, down func(),
) {
	switch st.State {
	case upstream.Down:
		log.Warn("server is down", "err", st.LastErr, "next try", time.Until(st.NextTry).Round(time.Millisecond))
		down()
	case upstream.NeedsLogin:
		log.Warn("server needs a login", "err", st.LastErr)
		down()
	case upstream.Ready:
		log.Info("server is ready", "protocol", string(st.Version))
	case upstream.Degraded:
		log.Warn("server's lists are not known to be whole", "err", firstErr(st))
	}
}

func firstErr(st upstream.Status) error {
	for _, k := range st.Kinds {
		if k.Err != nil {
			return k.Err
		}
	}
	return nil
}

// wire keeps a nil connection from becoming a wire that is not nil.
func wire(conn *mcphttp.Conn, err error) (client.Wire, error) {
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// dial returns how a server is reached.
func (a *App) dial(s config.Server, secrets *config.Secrets, log *slog.Logger) client.Dial {
	if s.Transport != config.Stdio {
		header := make(http.Header)
		for _, h := range s.Headers {
			header.Set(h.Name, h.Value)
		}
		header.Set(loopHeader, a.id)
		authorizer := a.authorizer(s, log)
		return func(ctx context.Context, in client.Incoming) (client.Wire, error) {
			roots, err := rootCAs(s.CAFile)
			if err != nil {
				return nil, err
			}
			opts := mcphttp.DialOptions{
				Header: header, Authorizer: authorizer, RootCAs: roots, Notification: in.Notification, Handler: in.Handler, Route: in.Route, Gap: in.Gap,
				Hide: secrets.Hide, Logger: log,
			}
			if s.Transport == config.SSE {
				return wire(mcphttp.DialSSE(ctx, s.URL, opts))
			}
			return wire(mcphttp.Dial(ctx, s.URL, opts))
		}
	}
	env := make([]string, len(s.Env))
	for i, e := range s.Env {
		env[i] = e.Name + "=" + e.Value
	}
	env = append(env, inside(a.store.Dir()))
	cmd := &stdio.Command{
		Name: s.Command, Args: s.Args, Dir: s.Dir, Env: env, InheritEnv: s.InheritEnv, Hide: secrets.Hide,
		Noise: func(line []byte) {
			a.journal.Add(s.Name, admin.FromEvent, "it wrote a line to stdout that is not a message")
			log.Warn("the server wrote a line to stdout that is not a message", "bytes", len(line))
		},
		Stderr: func(line []byte, dropped int) {
			if dropped > 0 {
				a.journal.Add(s.Name, admin.FromEvent, fmt.Sprintf("%d lines were too many at once and are left out", dropped))
			}
			if line != nil {
				a.journal.Add(s.Name, admin.FromStderr, string(line))
			}
			log.Debug("the server wrote to stderr", "line", string(line), "dropped", dropped)
		},
	}
	return func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		return cmd.Dial(ctx, jsonrpc.ConnOptions{Handler: in.Handler, Route: in.Route, Notification: in.Notification, Logger: log})
	}
}
