package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/admin"
)

// controlTime is how long a gateway may take to do what it is told.
const controlTime = 2 * time.Minute

var errNoGateway = errors.New("no gateway of this configuration is running: start one with 'roster serve', or name one with --url")

// errNoLocal is for commands that only a gateway on this machine is asked.
var errNoLocal = errors.New("no gateway of this configuration is running: start one with 'roster serve'")

func (p *program) reloadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Have the running gateway read its configuration again",
		Long: `Has the running gateway read its configuration again, and prints what that has
changed. Only servers that are new or have changed are started. With mistakes in
the files nothing changes; they are printed. The gateway also does this by itself
when the files change.

` + exitCodes,
		Example:           "  roster reload\n  roster reload -o json",
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.outcome(cmd.Context(), http.MethodPost, "reload")
		},
	}
	p.configFlag(cmd)
	return cmd
}

func (p *program) planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what a reload would change",
		Long: `Has the running gateway read and check its configuration, and prints what a
reload would change, without doing it:

  + NAME   would be started
  - NAME   would be stopped
  ! NAME   would be started anew, since it is reached or run in another way
  ~ NAME   would change without a restart

` + exitCodes,
		Example:           "  roster plan\n  roster plan -o json",
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.outcome(cmd.Context(), http.MethodGet, "plan")
		},
	}
	p.configFlag(cmd)
	return cmd
}

// local finds the gateway of the configuration on this machine.
func (p *program) local(ctx context.Context) (endpoint string, err error) {
	endpoint, _, err = p.find(ctx)
	if err == nil && endpoint == "" {
		err = errNoLocal
	}
	return endpoint, err
}

// outcome asks for the outcome of a reload and prints it.
func (p *program) outcome(ctx context.Context, method, route string) error {
	endpoint, err := p.local(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	var out admin.Outcome
	if err := p.ask(ctx, method, endpoint, route, &out); err != nil {
		return err
	}
	if p.json() {
		err = p.printJSON(out)
	} else {
		p.printOutcome(out)
	}
	if err == nil && len(out.Problems) > 0 {
		err = errSaid
	}
	return err
}

func (p *program) printOutcome(out admin.Outcome) {
	if len(out.Problems) > 0 {
		for _, problem := range out.Problems {
			writeln(p.Stderr, clean(problem.String()))
		}
		writeln(p.Stderr, "roster: nothing changes: what ran before runs on")
		return
	}
	lines := 0
	for _, change := range []struct {
		sign    string
		color   style
		servers []string
	}{{"+", green, out.Added}, {"-", red, out.Removed}, {"!", yellow, out.Restarted}, {"~", "", out.Adjusted}} {
		for _, name := range change.servers {
			writeln(p.out, p.paint(p.out, change.color, change.sign+" "+clean(name)))
			lines++
		}
	}
	if out.Reordered {
		writeln(p.out, "servers are in another order")
	}
	if len(out.NeedRestart) > 0 {
		writeln(p.out, "counts from the next start: "+strings.Join(out.NeedRestart, ", "))
	}
	if lines == 0 && !out.Reordered && len(out.NeedRestart) == 0 {
		writeln(p.out, "no changes")
	}
}

func (p *program) restartCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "restart SERVER",
		Short: "Start one server of the running gateway anew",
		Long: `Ends the process of a server or the connection to it, starts anew, and waits
until it is up again or has failed. Its calls that are under way fail. What it lists
stays listed meanwhile.

` + exitCodes,
		Example:           "  roster restart files",
		Args:              exactArgs("the name of a server"),
		ValidArgsFunction: p.completeServer(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return p.restart(cmd.Context(), args[0]) },
	}
	p.configFlag(cmd)
	return cmd
}

func (p *program) restart(ctx context.Context, name string) error {
	endpoint, err := p.local(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTime)
	defer cancel()
	var before admin.Server
	if err := p.ask(ctx, http.MethodPost, endpoint, "servers/"+url.PathEscape(name)+"/restart", &before); err != nil {
		return err
	}
	defer p.progress(ctx, func() string { return "restarting " + name })()
	var now admin.Server
	err = p.poll(ctx, endpoint, func(st admin.Status) bool {
		var found bool
		now, found = serverIn(st, name)
		return !found || now.TriedSince(before)
	})
	switch {
	case err != nil:
		return fmt.Errorf("%s was not up again in time: %w", name, err)
	case !now.Up():
		return fmt.Errorf("server %q is %s: %s", name, now.State, cmp.Or(clean(now.Error), "no reason is known"))
	}
	if p.json() {
		return p.printJSON(now)
	}
	writeln(p.out, clean(name)+" is "+string(now.State))
	return nil
}

func serverIn(st admin.Status, name string) (admin.Server, bool) {
	for _, s := range st.Servers {
		if s.Name == name {
			return s, true
		}
	}
	return admin.Server{}, false
}

// poll asks for the status until it is as it should be.
func (p *program) poll(ctx context.Context, endpoint string, is func(admin.Status) bool) error {
	const step = 50 * time.Millisecond
	for {
		var st admin.Status
		if err := p.get(ctx, endpoint, "status", &st); err != nil {
			return err
		}
		if is(st) {
			return nil
		}
		select {
		case <-time.After(step):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
