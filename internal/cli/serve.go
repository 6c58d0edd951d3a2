package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/config"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	listen          string
	stdio           bool
	insecureBind    bool
	noSSE           bool
	tlsCert, tlsKey string
	noWatch         bool
	noBridge        bool
	pprof           bool
	alone           bool // see app.Options
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

With --stdio, the servers of a gateway of the same configuration are used if one runs.

When the configuration changes, or on SIGHUP, it is read again: servers that are
new or have changed are started, others do not notice. A file with mistakes
changes nothing; 'roster status' shows them.

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
	cmd.Flags().BoolVar(&o.insecureBind, "insecure-bind", false, "allow --listen on an address that other machines reach, although nobody is asked who they are; keys in the configuration ask (see 'roster key new')")
	cmd.Flags().BoolVar(&o.noSSE, "no-sse", false, "do not serve the older wire of 2024-11-05, /sse and /messages")
	cmd.Flags().BoolVar(&o.noBridge, "no-bridge", false, "with --stdio, start servers of its own even if a gateway of the configuration runs already")
	cmd.Flags().BoolVar(&o.noWatch, "no-watch", false, "do not look for changes of the configuration; SIGHUP and 'roster reload' have it read again")
	cmd.Flags().BoolVar(&o.pprof, "pprof", false, "serve profiles of the gateway at /debug/pprof/ on the control socket, for 'go tool pprof'")
	cmd.Flags().StringVar(&o.tlsCert, "tls-cert", "", "serve HTTPS with the certificates in this PEM `file`; it is read once")
	cmd.Flags().StringVar(&o.tlsKey, "tls-key", "", "PEM `file` with the key of --tls-cert")
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
	if err := checkListen(listen, o.insecureBind, conf.Roster.Keys != nil); err != nil {
		return err
	}
	log, err := p.logger("info")
	if err != nil {
		return err
	}
	if o.stdio && listen == "" && !o.noBridge {
		return p.serveBridged(ctx, o, log)
	}
	a, err := p.startServing(ctx, o, conf, log, listen)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer p.hangups(ctx, a, stop)()
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

// startServing starts the gateway. Its servers outlive ctx by as long as an orderly
// end takes.
func (p *program) startServing(ctx context.Context, o serveOptions, conf *configuration, log *slog.Logger, listen string) (*app.App, error) {
	keys := conf.Roster.Keys != nil
	o.apply(&conf.Roster)
	a, err := app.Start(context.WithoutCancel(ctx), app.Options{
		Config: conf.Config, Problems: conf.problems, Files: conf.files, Hosts: hosts(listen, o.insecureBind || keys),
		Load: func() (*config.Config, []config.Problem, error) { return p.reload(o) }, Watch: !o.noWatch,
		Brief: o.stdio, Alone: o.alone, Profile: o.pprof,
		Version: version(), Logger: log,
	})
	if err != nil {
		return nil, err
	}
	p.report(conf.problems)
	if len(conf.Servers) == 0 {
		log.Warn("the configuration has no servers")
	}
	return a, nil
}

// reload reads the configuration again for a gateway with these flags.
func (p *program) reload(o serveOptions) (*config.Config, []config.Problem, error) {
	conf, err := p.load()
	if err != nil {
		return nil, nil, err
	}
	o.apply(&conf.Roster)
	return conf.Config, conf.problems, nil
}

// hangups has the configuration read again on SIGHUP, until stop is called. If the
// signal came because the terminal is gone in which the gateway was started, it is
// to end, as any program there.
func (p *program) hangups(ctx context.Context, a *app.App, end func()) (stop func()) {
	attended := isTerminal(p.Stdin)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with stop
		defer close(done)
		for {
			select {
			case <-signals:
				if attended && !isTerminal(p.Stdin) {
					end()
					return
				}
				_, _ = a.Reload(ctx) // it logs what is wrong
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		cancel()
		<-done
	}
}

// apply puts flags in the place of settings.
func (o serveOptions) apply(set *config.Settings) {
	if o.listen != "" {
		set.Listen = o.listen
	}
	if o.noSSE {
		set.SSE = false
	}
	if o.tlsCert != "" {
		set.TLSCert = o.tlsCert
	}
	if o.tlsKey != "" {
		set.TLSKey = o.tlsKey
	}
}

// checkListen refuses addresses that other machines reach, unless callers are
// asked for keys or somebody insists.
func checkListen(address string, insecure, keys bool) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return usagef("--listen must be HOST:PORT, such as 127.0.0.1:7678, not %q", address)
	}
	if insecure || keys || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Unmap().IsLoopback() {
		return nil
	}
	return usagef("%s can be reached from other machines, and the configuration has no keys by which to ask who is calling: "+
		"whoever reaches it can use every tool.\nListen on 127.0.0.1, make a key with 'roster key new', "+
		"or say --insecure-bind if something else protects it", address)
}

// hosts returns what clients may call us beside loopback names: the address that
// is listened on, or anything if that is all of the machine's.
func hosts(address string, open bool) []string {
	host, _, err := net.SplitHostPort(address)
	if err != nil || !open {
		return nil
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		return []string{"*"}
	}
	return []string{host}
}
