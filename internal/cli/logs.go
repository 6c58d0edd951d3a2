package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/admin"
)

func (p *program) logsCommand() *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs [SERVER]",
		Short: "Show what servers wrote to standard error and what happened to them",
		Long: `Prints what the servers of the running gateway, or one of them, wrote to
standard error, and when they came up, went down or were started anew: the last
64 KiB of each, without the values of their env, headers and the like.

` + exitCodes,
		Example: `  roster logs
  roster logs files -f
  roster logs files -o json | jq -r .text`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("there is an argument too many: %q", args[1])
			}
			return nil
		},
		ValidArgsFunction: p.completeServer(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			server := ""
			if len(args) == 1 {
				server = args[0]
			}
			return p.logs(cmd.Context(), server, follow)
		},
	}
	p.configFlag(cmd)
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes, until SIGINT or the end of the gateway")
	return cmd
}

func (p *program) logs(ctx context.Context, server string, follow bool) error {
	endpoint, err := p.local(ctx)
	if err != nil {
		return err
	}
	query := url.Values{}
	if server != "" {
		query.Set("server", server)
	}
	if follow {
		query.Set("follow", "1")
	}
	body, err := p.fetch(ctx, http.MethodGet, endpoint, "logs?"+query.Encode())
	if err != nil {
		return err
	}
	defer body.Close()
	lines := json.NewDecoder(body)
	for {
		var l admin.Line
		switch err := lines.Decode(&l); {
		case errors.Is(err, io.EOF), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("the gateway has ended: %w", err)
		}
		if err := p.printLog(l); err != nil {
			return err
		}
	}
}

func (p *program) printLog(l admin.Line) error {
	if p.json() {
		return json.NewEncoder(p.out).Encode(l)
	}
	text := clean(l.Text)
	if l.From == admin.FromEvent {
		text = p.paint(p.out, dim, "* "+text)
	}
	writef(p.out, "%s %s %s\n", l.Time.Local().Format(time.TimeOnly), clean(l.Server), text)
	return p.out.err
}
