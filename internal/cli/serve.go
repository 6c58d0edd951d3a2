package cli

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/app"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	listen       string
	stdio        bool
	insecureBind bool
}

func (p *program) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Starts the configured servers and serves all they offer at one URL, or with
--stdio on standard input and output, until it gets SIGINT or SIGTERM (with
--stdio also until its input ends). A second signal ends it at once.

A server whose entry is wrong is left out and said so; the others run.
Logs go to standard error.

` + exitCodes,
		Example: `  roster serve
  roster serve --config team.json --config mine.json
  roster serve --listen 127.0.0.1:0          a free port, named in the log
  roster serve --stdio                       for a client that starts commands`,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return p.serve(cmd.Context(), o) },
	}
	p.configFlag(cmd)
	p.logFlag(cmd, "debug, info, warn or error (default: info)")
	cmd.Flags().StringVar(&o.listen, "listen", "", "`HOST:PORT` to serve HTTP on (default: that of the configuration, 127.0.0.1:7678)")
	cmd.Flags().BoolVar(&o.stdio, "stdio", false, "serve one client on standard input and output; no port unless --listen is given")
	cmd.Flags().BoolVar(&o.insecureBind, "insecure-bind", false, "allow --listen on an address that other machines reach, although nobody is asked who they are")
	return cmd
}

// serve runs the gateway until ctx ends or, on pipes, the client goes.
func (p *program) serve(ctx context.Context, o serveOptions) error {
	conf, err := p.load()
	if err != nil {
		return err
	}
	listen := o.listen
	if listen == "" && !o.stdio {
		listen = conf.Roster.Listen
	}
	if err := checkListen(listen, o.insecureBind); err != nil {
		return err
	}
	p.report(conf.problems)
	log, err := p.logger("info")
	if err != nil {
		return err
	}
	// The servers outlive ctx by as long as an orderly end takes.
	a, err := app.Start(context.WithoutCancel(ctx), app.Options{
		Config: conf.Config, Problems: conf.problems, Files: conf.files, Hosts: hosts(listen, o.insecureBind),
		Version: version(), Logger: log,
	})
	if err != nil {
		return err
	}
	if len(conf.Servers) == 0 {
		log.Warn("the configuration has no servers")
	}
	if listen != "" {
		err = a.Listen(ctx, listen)
	}
	switch {
	case err != nil:
	case o.stdio:
		err = a.ServeStdio(ctx, p.Stdin, p.Stdout)
		if ctx.Err() != nil {
			err = nil
		}
	default:
		<-ctx.Done()
	}
	if err == nil {
		log.Info("stopping")
	}
	return errors.Join(err, a.Close())
}

// checkListen refuses addresses that other machines reach.
func checkListen(address string, insecure bool) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usagef("--listen must be HOST:PORT, such as 127.0.0.1:7678, not %q", address)
	}
	if insecure || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return usagef("%s can be reached from other machines, and Roster cannot ask yet who is calling: "+
		"whoever reaches it can use every tool.\nListen on 127.0.0.1, or say --insecure-bind if something else protects it", address)
}

// hosts returns what clients may call us beside loopback names: the address that
// is listened on, or anything if that is all of the machine's.
func hosts(address string, insecure bool) []string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !insecure {
		return nil
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return []string{"*"}
	}
	return []string{host}
}
