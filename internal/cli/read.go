package cli

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

func (p *program) readCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Read a resource",
		Long: `Reads a resource and prints its contents: text as it is, binary contents
decoded, but those not to a terminal.

` + exitCodes,
		Example: `  roster read demo://paged/about
  roster read file:///tmp/picture.png > picture.png
  roster read demo://paged/about -o json`,
		Args:              exactArgs("the URI of a resource"),
		ValidArgsFunction: p.completeNames(mcp.Resources),
		RunE:              func(cmd *cobra.Command, args []string) error { return p.read(cmd.Context(), args[0]) },
	}
	p.gatewayFlags(cmd)
	return cmd
}

func (p *program) read(ctx context.Context, uri string) error {
	return p.with(ctx, func(g *gateway) error {
		result, err := g.request(ctx, mcp.MethodResourcesRead, fmt.Appendf(nil, `{"uri":%s}`, mcp.String(uri)))
		if err != nil {
			return err
		}
		if p.json() {
			writeln(p.out, indent(result.Raw))
			return nil
		}
		contents, err := jsonrpc.Elements(orEmpty(result.Get("contents")))
		if err != nil {
			return fmt.Errorf("the server answered with contents that are no array: %w", err)
		}
		for _, raw := range contents {
			if err := p.printContents(raw); err != nil {
				return err
			}
		}
		return nil
	})
}

// printContents prints one piece of a resource.
func (p *program) printContents(raw []byte) error {
	c, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return fmt.Errorf("contents: %w", err)
	}
	if text, ok := c.Text("text"); ok {
		if isTerminal(p.out) {
			printLine(p.out, printable(p.out, text))
			return nil
		}
		write(p.out, text)
		return nil
	}
	blob, _ := c.Text("blob")
	data, err := base64.StdEncoding.DecodeString(blob)
	if err != nil {
		return fmt.Errorf("contents: %w", err)
	}
	if isTerminal(p.out) {
		mime, _ := c.Text("mimeType")
		return fmt.Errorf("the resource is binary (%d bytes of %q): send it to a file, as in roster read URI > FILE", len(data), mime)
	}
	_, err = p.out.Write(data)
	return err
}
