package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// item is a listed item.
type item struct {
	kind mcp.Kind
	name string // a name, a URI or a URI template
	raw  []byte // as it came
	jsonrpc.Object
}

var listed = []string{"tools", "prompts", "resources", "templates", "servers"}

func (p *program) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [tools|prompts|resources|templates|servers]",
		Short: "List what the servers offer",
		Long: `Lists what clients see, in the order in which they see it; tools if nothing
else is asked for. With --output json the definitions are printed as they came,
each on a line of its own.

` + exitCodes,
		Example: `  roster list
  roster list resources
  roster list tools --output json | jq -r '.[].name'
  roster list --url http://127.0.0.1:7678/mcp`,
		ValidArgs: listed,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("there is an argument too many: %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			what := "tools"
			if len(args) == 1 {
				what = args[0]
			}
			return p.list(cmd.Context(), what)
		},
	}
	p.gatewayFlags(cmd)
	return cmd
}

func (p *program) list(ctx context.Context, what string) error {
	if what == "servers" {
		return p.with(ctx, func(g *gateway) error { return g.listServers(ctx) })
	}
	for _, kind := range mcp.Kinds {
		if kind.String() == what {
			return p.with(ctx, func(g *gateway) error { return g.list(ctx, kind) })
		}
	}
	hint := ""
	if near, ok := config.Nearest(what, listed); ok {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	return usagef("%q cannot be listed: %sthere are %s", what, hint, strings.Join(listed, ", "))
}

// list prints all of a kind.
func (g *gateway) list(ctx context.Context, kind mcp.Kind) error {
	if err := g.settle(ctx); err != nil {
		return err
	}
	items, err := g.items(ctx, kind)
	if err != nil {
		return err
	}
	g.complain(ctx)
	if g.prog.json() {
		return g.prog.printArray(items)
	}
	t := table{header: []string{"NAME", "DESCRIPTION"}}
	if kind == mcp.Resources || kind == mcp.Templates {
		t.header = []string{"URI", "NAME", "DESCRIPTION"}
	}
	for _, it := range items {
		row := []string{it.name, it.about()}
		if len(t.header) == 3 {
			name, _ := it.Text("name")
			row = []string{it.name, name, it.about()}
		}
		t.rows = append(t.rows, row)
	}
	g.prog.printTable(g.prog.out, t)
	return nil
}

// about says in a line what an item is.
func (it item) about() string {
	for _, member := range []string{"description", "title"} {
		if text, ok := it.Text(member); ok && text != "" {
			return text
		}
	}
	return ""
}

// items walks all pages of a list.
func (g *gateway) items(ctx context.Context, kind mcp.Kind) ([]item, error) {
	defer g.prog.progress(ctx, func() string { return "listing " + kind.String() })()
	list, err := g.client.List(ctx, kind, client.Limits{})
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(list.Items))
	for _, raw := range list.Items {
		obj, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, fmt.Errorf("list %v: %w", kind, err)
		}
		name, _ := obj.Text(kind.Key())
		items = append(items, item{kind, name, raw, obj})
	}
	return items, nil
}

// listServers prints how the servers are.
func (g *gateway) listServers(ctx context.Context) error {
	if err := g.settle(ctx); err != nil {
		return err
	}
	var st admin.Status
	if err := g.prog.get(ctx, g.url, "status", &st); err != nil {
		return err
	}
	if g.prog.json() {
		return g.prog.printJSON(st.Servers)
	}
	g.prog.printServers(st.Servers)
	return nil
}
