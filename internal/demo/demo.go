// Package demo has the servers of "roster demo". Each of them does something
// that lists suffer from: pages of odd sizes, another order at every request,
// tools that come and go, a slow start.
//
// They are made with the public packages, as anybody would make one: a
// server.Memory that is filled, a server.Source around it where the server has to
// misbehave, and stdio.Serve.
package demo

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// Server is one of the demo servers.
type Server struct {
	Name  string
	About string // what is odd about it, in a few words

	delay  time.Duration // before it serves
	source func() (server.Source, error)
	// live goes on while the server serves, until ctx ends; nil: nothing does.
	live func(ctx context.Context, source server.Source)
}

// Servers returns the demo servers, in the order in which they are best shown.
func Servers() []Server {
	return []Server{
		{Name: "paged", About: "lists its tools on pages of 3, 1, 0 and 4", source: newPaged},
		{Name: "shuffled", About: "lists its tools in another order each time", source: newShuffled},
		{Name: "restless", About: "has tools that come and go every few seconds", source: newRestless, live: comeAndGo},
		{Name: "slow", About: "takes 3 seconds to start", source: newSlow, delay: 3 * time.Second},
	}
}

// Serve runs the server with a name for one client on a pair of pipes, until in
// ends or ctx does. Beside those of Servers there is "studio", whose tools ask the
// user, report progress and answer with pictures and sounds.
func Serve(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	for _, s := range append(Servers(), Server{Name: "studio", source: newStudio}) {
		if s.Name == name {
			return s.serve(ctx, in, out)
		}
	}
	return fmt.Errorf("there is no demo server %q", name)
}

func (s *Server) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	source, err := s.source()
	if err != nil {
		return fmt.Errorf("demo server %s: %w", s.Name, err)
	}
	if s.delay > 0 {
		select {
		case <-time.After(s.delay):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	srv := server.New(source, server.Options{Logger: slog.New(slog.DiscardHandler)})
	defer srv.Close()
	if s.live != nil {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { // ends with ctx
			defer close(ended)
			s.live(ctx, source)
		}()
		defer func() { cancel(); <-ended }()
	}
	return stdio.Serve(ctx, in, out, srv, nil)
}
