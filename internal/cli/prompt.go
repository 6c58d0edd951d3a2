package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

func (p *program) promptCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "prompt NAME [key=value...]",
		Short: "Get a prompt",
		Long: `Gets a prompt and prints its messages, each under the role that says it.
The arguments of prompts are strings; key=@file is the text of a file.

` + exitCodes,
		Example: `  roster prompt paged__rewrite text='See me.' tone=kind
  roster prompt paged__rewrite text=Hello -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArgs("the name of a prompt")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: p.completeNames(mcp.Prompts),
		RunE: func(cmd *cobra.Command, args []string) error {
			pairs, err := parsePairs(args[1:])
			if err != nil {
				return err
			}
			for _, pair := range pairs {
				if pair.raw {
					return usagef("the arguments of prompts are strings: write %s=, not :=", pair.key)
				}
			}
			return p.prompt(cmd.Context(), args[0], pairs)
		},
	}
	p.gatewayFlags(cmd)
	return cmd
}

func (p *program) prompt(ctx context.Context, name string, pairs []pair) error {
	return p.with(ctx, func(g *gateway) error {
		params := fmt.Appendf(nil, `{"name":%s,"arguments":`, mcp.String(name))
		params = append(appendArguments(params, pairs, nil), '}')
		result, err := g.request(ctx, mcp.MethodPromptsGet, params)
		if err != nil {
			return err
		}
		if p.json() {
			writeln(p.out, indent(result.Raw))
			return nil
		}
		messages, err := jsonrpc.Elements(orEmpty(result.Get("messages")))
		if err != nil {
			return fmt.Errorf("the server answered with messages that are no array: %w", err)
		}
		for i, raw := range messages {
			m, err := jsonrpc.ParseObject(raw)
			if err != nil {
				return fmt.Errorf("message %d: %w", i+1, err)
			}
			role, _ := m.Text("role")
			writeln(p.out, p.paint(p.out, bold, clean(role)+":"))
			p.printContent(p.out, m.Get("content"))
		}
		return nil
	})
}
