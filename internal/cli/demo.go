package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/demo"
)

// demoOptions are the flags of demo.
type demoOptions struct {
	listen string
	once   bool
}

func (p *program) demoCommand() *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "See Roster at work; needs nothing but this program",
		Long: `Starts four servers that are difficult to list, serves them at one URL, shows
what a client sees, and goes on telling what changes until it is interrupted.
It leaves nothing behind.

` + exitCodes,
		Example: `  roster demo
  roster demo --once`,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return p.demo(cmd.Context(), o) },
	}
	p.logFlag(cmd, "debug, info, warn or error (default: no log)")
	cmd.Flags().StringVar(&o.listen, "listen", "", "`HOST:PORT` to serve on (default: 127.0.0.1:7678 if it is free, else any port)")
	cmd.Flags().BoolVar(&o.once, "once", false, "end after the show")
	return cmd
}

func (p *program) demoServerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "demo-server NAME",
		Hidden: true,
		Args:   exactArgs("the name of a demo server"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return demo.Serve(cmd.Context(), args[0], p.Stdin, p.Stdout)
		},
	}
}

func (p *program) demo(ctx context.Context, o demoOptions) (err error) {
	if err := checkListen(o.listen, false, false); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "roster-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	g, err := p.startDemo(ctx, dir, o.listen)
	if err != nil {
		return err
	}
	defer func() {
		if end := g.close(); err == nil {
			err = end
		}
	}()
	s := &show{gateway: g}
	if err := s.play(ctx); err != nil {
		return err
	}
	if o.once {
		return nil
	}
	return s.watch(ctx)
}

// startDemo starts the gateway with the demo servers, and its client.
func (p *program) startDemo(ctx context.Context, dir, listen string) (*gateway, error) {
	exe, err := p.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program, to start it as the demo servers: %w", err)
	}
	log, err := p.logger("")
	if err != nil {
		return nil, err
	}
	conf := &config.Config{Roster: config.DefaultSettings()}
	conf.Roster.StateDir = dir
	for _, s := range demo.Servers() {
		conf.Servers = append(conf.Servers, config.Server{
			Name: s.Name, Transport: config.Stdio, Scope: config.Shared,
			Command: exe, Args: []string{"demo-server", s.Name}, InheritEnv: true,
			Timeout: conf.Roster.RequestTimeout, ConnectTimeout: conf.Roster.ConnectTimeout,
		})
	}
	a, err := app.Start(context.WithoutCancel(ctx), app.Options{
		Config: conf, Files: []string{filepath.Join(dir, "demo.json")}, Version: version(), Logger: log,
	})
	if err != nil {
		return nil, err
	}
	g := &gateway{prog: p, app: a}
	if listen != "" {
		err = a.Listen(ctx, listen)
	} else if a.Listen(ctx, conf.Roster.Listen) != nil { // taken, most likely
		err = a.Listen(ctx, "127.0.0.1:0")
	}
	if err == nil {
		g.own(a.URL())
		err = g.connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// titlef prints a heading of the show.
func (s *show) titlef(format string, args ...any) {
	writef(s.prog.out, "\n%s\n\n", s.prog.paint(s.prog.out, bold, fmt.Sprintf(format, args...)))
}

// linef prints an indented line of the show.
func (s *show) linef(format string, args ...any) {
	writef(s.prog.out, "  %s\n", strings.TrimRight(fmt.Sprintf(format, args...), " \n"))
}

// seconds is a duration for people.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
