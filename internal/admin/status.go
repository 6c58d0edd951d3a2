// Package admin says how a gateway is: to its operator, to probes, and to the
// command line.
package admin

import (
	"time"

	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/mcp"
)

// Health is the state of the whole.
type Health string

// The states of the whole.
const (
	Starting Health = "starting" // some servers were never heard of yet
	Healthy  Health = "healthy"
	Degraded Health = "degraded" // some servers are not what they should be
)

// Status is what /status answers.
type Status struct {
	Version string `json:"version"`
	Health  Health `json:"health"`
	// URL is where clients connect; "" if only over pipes.
	URL   string    `json:"url,omitempty"`
	Since time.Time `json:"since"`
	State string    `json:"stateDirectory,omitempty"`
	// Waiting are the servers that a first list waits for.
	Waiting []string `json:"waiting,omitempty"`
	Items   Counts   `json:"items"`
	// Problems are those of the configuration that runs.
	Problems []string      `json:"problems,omitempty"`
	Config   Configuration `json:"configuration"`
	Servers  []Server      `json:"servers"`
}

// Counts has how many items of each kind are listed.
type Counts struct {
	Tools     int `json:"tools"`
	Prompts   int `json:"prompts"`
	Resources int `json:"resources"`
	Templates int `json:"templates"`
}

func counts(n [len(mcp.Kinds)]int) Counts {
	return Counts{n[mcp.Tools], n[mcp.Prompts], n[mcp.Resources], n[mcp.Templates]}
}

// Server is one configured server.
type Server struct {
	Name      string         `json:"name"`
	Transport string         `json:"transport"`
	State     upstream.State `json:"state"`
	Since     *time.Time     `json:"since,omitempty"`
	// Protocol is the version spoken, or spoken last.
	Protocol string `json:"protocolVersion,omitempty"`
	// Error is the last failure, while it lasts; NextTry is when it is tried
	// again.
	Error    string     `json:"error,omitempty"`
	NextTry  *time.Time `json:"nextTry,omitempty"`
	Restarts int        `json:"restarts,omitempty"`
	Items    Counts     `json:"items"`
	// Renamed has the items whose exposed name had to be another than prefix
	// and name.
	Renamed []Rename `json:"renamed,omitempty"`
	// LeftOut has what the server lists and clients do not see, and why.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
	// Warnings are about its lists.
	Warnings []string `json:"warnings,omitempty"`
	// PerClient: it runs for each client apart. Then State is the worst of those in
	// Clients, and Items are those of the one that has listed last.
	PerClient bool     `json:"perClient,omitempty"`
	Clients   []Client `json:"clients,omitempty"`
}

// Client is a server that runs for one client.
type Client struct {
	Name      string         `json:"name"`
	Principal string         `json:"principal,omitempty"`
	State     upstream.State `json:"state"`
	Since     *time.Time     `json:"since,omitempty"`
	Error     string         `json:"error,omitempty"`
	NextTry   *time.Time     `json:"nextTry,omitempty"`
	Restarts  int            `json:"restarts,omitempty"`
	InFlight  int            `json:"inFlight,omitempty"`
	Items     Counts         `json:"items"`
}

// Rename is an item under another name than expected.
type Rename struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Exposed string `json:"exposed"`
}

// LeftOut is an item that clients do not see.
type LeftOut struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Configured is what the configuration says of a server.
type Configured struct {
	Name      string
	Transport string
	Disabled  bool
	Problem   string // why it cannot be run; "": nothing
}

// Source is where a Reporter reads.
type Source struct {
	Version  string
	URL      func() string
	Since    time.Time
	StateDir string
	Catalog  *catalog.Catalog
	Servers  *upstream.Set
	// Running returns what runs. What it points to does not change.
	Running func() *Running
}

// Running is the configuration that runs.
type Running struct {
	Configuration
	Problems []string
	Servers  []Configured
}

// Status reads how everything is now.
func (s *Source) Status() Status {
	running := s.Running()
	st := Status{
		Version: s.Version, Health: Healthy, URL: s.URL(), Since: s.Since, State: s.StateDir,
		Waiting: s.Catalog.Waiting(), Problems: running.Problems, Config: running.Configuration, Servers: []Server{},
	}
	for _, c := range running.Servers {
		srv := s.server(c)
		st.Servers = append(st.Servers, srv)
		st.Items.Tools += srv.Items.Tools
		st.Items.Prompts += srv.Items.Prompts
		st.Items.Resources += srv.Items.Resources
		st.Items.Templates += srv.Items.Templates
		if !srv.well() && !(c.Disabled && c.Problem == "") {
			st.Health = Degraded
		}
	}
	if len(st.Waiting) > 0 {
		st.Health = Starting
	}
	return st
}

// well reports whether a server is as it should be. One that runs per client
// starts when a client comes.
func (s *Server) well() bool {
	return s.State == upstream.Ready || s.PerClient && (s.State == upstream.Idle || s.State == upstream.Starting)
}

func (s *Source) server(c Configured) Server {
	out := Server{Name: c.Name, Transport: c.Transport, State: upstream.Disabled, Error: c.Problem}
	if report, ok := s.Catalog.Report(c.Name); ok {
		out.Items = counts(report.Counts)
		for _, r := range report.Renamed {
			out.Renamed = append(out.Renamed, Rename{r.Kind.String(), r.Own, r.Exposed})
		}
		for _, k := range mcp.Kinds {
			for _, n := range report.LeftOut[k] {
				out.LeftOut = append(out.LeftOut, LeftOut{k.String(), n.Name, n.Reason})
			}
		}
	}
	if srv := s.Servers.Get(c.Name); srv != nil {
		st := srv.Status()
		out.fill(st)
		if out.PerClient = srv.PerClient(); out.PerClient {
			out.Items = counted(st)
			out.addClients(st)
		}
	}
	return out
}

// counted counts what a server has listed.
func counted(st upstream.Status) Counts {
	var n [len(mcp.Kinds)]int
	for k := range n {
		n[k] = st.Kinds[k].Count
	}
	return counts(n)
}

func (s *Server) addClients(all upstream.Status) {
	for _, st := range all.Clients {
		c := Client{
			Name: st.Client, Principal: st.Principal, State: st.State, Since: &st.Since,
			Restarts: st.Restarts, InFlight: st.InFlight, Items: counted(st.Status),
		}
		if !st.NextTry.IsZero() {
			c.NextTry = &st.NextTry
		}
		if st.LastErr != nil {
			c.Error = st.LastErr.Error()
		}
		s.Clients = append(s.Clients, c)
	}
}

// Up reports whether the server is connected, or will be when a client needs it.
func (s Server) Up() bool {
	return s.State == upstream.Ready || s.State == upstream.Degraded || s.State == upstream.Idle
}

// TriedSince reports whether an attempt to connect has ended since the server was
// as before says.
func (s Server) TriedSince(before Server) bool {
	switch {
	case s.State == upstream.Starting:
		return false
	case s.State == upstream.Down, s.State == upstream.NeedsLogin:
		return s.NextTry != nil && (before.NextTry == nil || !s.NextTry.Equal(*before.NextTry))
	}
	return s.Since != nil && (before.Since == nil || s.Since.After(*before.Since))
}

func (s *Server) fill(st upstream.Status) {
	s.State, s.Protocol, s.Restarts = st.State, string(st.Version), st.Restarts
	if !st.Since.IsZero() {
		s.Since = &st.Since
	}
	if !st.NextTry.IsZero() {
		s.NextTry = &st.NextTry
	}
	if st.LastErr != nil {
		s.Error = st.LastErr.Error()
	}
	for _, k := range mcp.Kinds {
		if err := st.Kinds[k].Err; err != nil {
			s.Warnings = append(s.Warnings, err.Error())
		}
		s.Warnings = append(s.Warnings, st.Kinds[k].Warnings...)
	}
}
