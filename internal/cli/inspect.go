package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/mcp"
)

func (p *program) inspectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect NAME",
		Short: "Show the definition of a tool, prompt, resource or template",
		Long: `Shows everything about one item that is listed: its server, the name that its
server gave it, and its definition as it came, laid out for reading. A resource
is named by its URI, a template by its URI template.

` + exitCodes,
		Example: `  roster inspect files__read_file
  roster inspect files__read_file -o json | jq '.[0].definition.inputSchema'`,
		Args:              exactArgs("the name of a tool, prompt, resource or template"),
		ValidArgsFunction: p.completeNames(mcp.Kinds[:]...),
		RunE:              func(cmd *cobra.Command, args []string) error { return p.inspect(cmd.Context(), args[0]) },
	}
	p.gatewayFlags(cmd)
	return cmd
}

// inspected is one item as inspect prints it in JSON.
type inspected struct {
	Kind       string          `json:"kind"`
	Name       string          `json:"name"`
	Server     string          `json:"server,omitempty"`
	Own        string          `json:"own,omitempty"`
	Definition json.RawMessage `json:"definition"`
}

func (p *program) inspect(ctx context.Context, name string) error {
	return p.with(ctx, func(g *gateway) error {
		found, names, err := g.lookUp(ctx, name)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("nothing is listed as %q%s", name, nearestNames(name, names))
		}
		if p.json() {
			return p.printJSON(found)
		}
		for i, it := range found {
			if i > 0 {
				writeln(p.out)
			}
			p.printField("kind", singular(it.Kind))
			p.printField("name", it.Name)
			if it.Server != "" {
				p.printField("server", it.Server)
				p.printField("own name", it.Own)
			}
			writeln(p.out, indent(it.Definition))
		}
		return nil
	})
}

func (p *program) printField(name, value string) {
	if isTerminal(p.out) {
		name += strings.Repeat(" ", max(0, 9-len(name)))
	}
	sep := "\t"
	if isTerminal(p.out) {
		sep = " "
	}
	writeln(p.out, p.paint(p.out, dim, name)+sep+clean(value))
}

// lookUp returns all items that are listed under a name, and all names there are.
func (g *gateway) lookUp(ctx context.Context, name string) (found []inspected, names []string, err error) {
	for _, kind := range mcp.Kinds {
		items, err := g.items(ctx, kind)
		if err != nil {
			return nil, nil, err
		}
		for _, it := range items {
			names = append(names, it.name)
			if it.name == name {
				found = append(found, inspected{Kind: kind.String(), Name: name, Definition: it.raw})
			}
		}
	}
	var owners admin.Items
	if len(found) > 0 && g.prog.get(ctx, g.url, "items?name="+url.QueryEscape(name), &owners) == nil {
		for i := range found {
			for _, o := range owners.Items {
				if o.Kind == found[i].Kind && o.Name == name {
					found[i].Server, found[i].Own = o.Server, o.Own
				}
			}
		}
	}
	return found, names, nil
}

// nearestNames returns a hint for a name that is not listed: those that end with
// it behind their server's name, else the nearest.
func nearestNames(name string, names []string) string {
	const most = 3
	var near []string
	for _, n := range names {
		if strings.HasSuffix(n, "__"+name) && len(near) < most {
			near = append(near, n)
		}
	}
	if best, ok := config.Nearest(name, names); ok && len(near) == 0 {
		near = []string{best}
	}
	if len(near) == 0 {
		return ": 'roster list' shows what is"
	}
	return ": did you mean " + strings.Join(near, " or ") + "?"
}
