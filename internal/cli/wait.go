package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/admin"
)

func (p *program) waitCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "wait [SERVER...]",
		Short: "Wait until the gateway is ready",
		Long: `Waits until the gateway of the configuration runs and its lists are complete, or
were waited for long enough; with names, until these servers are up, too. The
gateway need not run yet. For scripts.

` + exitCodes,
		Example: `  roster serve & roster wait && roster list
  roster wait files github --timeout 30s`,
		ValidArgsFunction: p.completeServer(0),
		RunE:              func(cmd *cobra.Command, args []string) error { return p.wait(cmd.Context(), timeout, args) },
	}
	p.gatewayFlags(cmd)
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait, such as 30s; then the command fails")
	return cmd
}

// wait waits for a gateway and servers of it.
func (p *program) wait(ctx context.Context, timeout time.Duration, servers []string) error {
	if timeout <= 0 {
		return usagef("--timeout must be more than 0, such as 30s")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer p.progress(ctx, func() string { return "waiting for the gateway" })()
	lacks := errNoGateway
	for {
		target, _, err := p.find(ctx)
		if err != nil {
			return err // in the configuration or on the command line
		}
		if target != "" {
			err = p.readiness(ctx, target, servers)
			if err == nil {
				return nil
			}
		}
		if err != nil && ctx.Err() == nil { // else it may be that alone
			lacks = err
		}
		const step = 50 * time.Millisecond
		select {
		case <-time.After(step):
			continue
		case <-ctx.Done():
		}
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			return fmt.Errorf("waited %v in vain: %w", timeout, lacks)
		}
		return context.Cause(ctx)
	}
}

// readiness returns what is missing.
func (p *program) readiness(ctx context.Context, target string, servers []string) error {
	var st admin.Status
	if err := p.get(ctx, target, "status", &st); err != nil {
		return err
	}
	if len(st.Waiting) > 0 {
		return fmt.Errorf("the gateway waits for %s", strings.Join(st.Waiting, ", "))
	}
	for _, name := range servers {
		s, ok := serverIn(st, name)
		if !ok {
			return fmt.Errorf("there is no server %q", name)
		}
		if !s.Up() {
			if s.Error != "" {
				return fmt.Errorf("server %q is %s: %s", name, s.State, clean(s.Error))
			}
			return fmt.Errorf("server %q is %s", name, s.State)
		}
	}
	return nil
}
