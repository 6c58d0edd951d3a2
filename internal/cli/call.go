package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

func (p *program) callCommand() *cobra.Command {
	var object string
	cmd := &cobra.Command{
		Use:   "call NAME [key=value... | --json OBJECT]",
		Short: "Call a tool",
		Long: `Calls a tool and prints what it answers. A value becomes a number, a boolean,
a list or an object where the tool's inputSchema takes one, else a string;
'roster inspect NAME' shows the schema. --json gives the arguments as one JSON
object, "-" reads it from standard input.

What a tool says when it fails goes to standard error.

` + exitCodes,
		Example: `  roster call files__read_file path=/tmp/a.txt
  roster call search__query text='two words' limit=5 tags='["a","b"]'
  roster call files__read_file --json '{"path": "/tmp/a.txt"}'
  roster call search__query text=roster -o json | jq .structuredContent`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArgs("the name of a tool")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: p.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			pairs, err := parsePairs(args[1:])
			if err != nil {
				return err
			}
			var given []byte
			if cmd.Flags().Changed("json") {
				if given, err = p.readArguments(object, len(pairs)); err != nil {
					return err
				}
			}
			return p.call(cmd.Context(), args[0], pairs, given)
		},
	}
	p.gatewayFlags(cmd)
	cmd.Flags().StringVar(&object, "json", "", "the arguments as a JSON `object`, or - for standard input")
	return cmd
}

// readArguments returns the object of --json.
func (p *program) readArguments(object string, pairs int) ([]byte, error) {
	const most = 8 << 20
	if pairs > 0 {
		return nil, usagef("give the arguments as key=value or with --json, not both")
	}
	if object == "-" {
		text, err := io.ReadAll(io.LimitReader(p.Stdin, most+1))
		if err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		if len(text) > most {
			return nil, fmt.Errorf("read the arguments: more than %d MiB", most>>20)
		}
		object = string(text)
	}
	object = strings.TrimSpace(object)
	if _, err := jsonrpc.ParseObject([]byte(object)); err != nil {
		return nil, usagef("--json must be a JSON object: %v", err)
	}
	return []byte(object), nil
}

// call calls a tool with the arguments given, or made of the pairs.
func (p *program) call(ctx context.Context, name string, pairs []pair, given []byte) error {
	return p.with(ctx, func(g *gateway) error {
		// The list also says which arguments a request repeats in its header.
		tools, err := g.items(ctx, mcp.Tools)
		if err != nil && len(pairs) > 0 {
			return err
		}
		if given == nil {
			var inputSchema []byte
			for _, t := range tools {
				if t.name == name {
					inputSchema = t.Get("inputSchema")
				}
			}
			given = appendArguments(nil, pairs, inputSchema)
		}
		params := fmt.Appendf(nil, `{"name":%s,"arguments":%s`, mcp.String(name), given)
		if isTerminal(p.Stderr) {
			params = append(params, `,"_meta":{"progressToken":1}`...)
		}
		result, err := g.request(ctx, mcp.MethodToolsCall, append(params, '}'))
		if err != nil {
			return err
		}
		return p.printToolResult(result)
	})
}

// printToolResult prints what a tool answered.
func (p *program) printToolResult(result jsonrpc.Object) error {
	failed := string(result.Get("isError")) == "true"
	if p.json() {
		writeln(p.out, indent(result.Raw))
	}
	blocks, err := jsonrpc.Elements(orEmpty(result.Get("content")))
	if err != nil {
		return fmt.Errorf("the tool answered with content that is no array: %w", err)
	}
	w := io.Writer(p.out)
	if failed {
		w = p.Stderr
	}
	if failed || !p.json() {
		for _, block := range blocks {
			p.printContent(w, block)
		}
		if structured := result.Get("structuredContent"); structured != nil && len(blocks) == 0 {
			writeln(w, indent(structured))
		}
	}
	if failed {
		return errSaid
	}
	return nil
}

func orEmpty(array []byte) []byte {
	if array == nil {
		return []byte("[]")
	}
	return array
}

// printContent prints a content block of a tool's or prompt's result: text as it
// is, of other blocks what they are.
func (p *program) printContent(w io.Writer, raw []byte) {
	block, err := jsonrpc.ParseObject(raw)
	if err != nil {
		writef(w, "(content that is no object: %v)\n", err)
		return
	}
	kind, _ := block.Text("type")
	mime, _ := block.Text("mimeType")
	switch kind {
	case "text":
		text, _ := block.Text("text")
		printLine(w, printable(w, text))
	case "resource_link":
		uri, _ := block.Text("uri")
		writef(w, "(link to %s)\n", clean(uri))
	case "resource":
		res, err := jsonrpc.ParseObject(block.Get("resource"))
		if err != nil {
			return
		}
		if text, ok := res.Text("text"); ok {
			printLine(w, printable(w, text))
			return
		}
		uri, _ := res.Text("uri")
		writef(w, "(binary resource %s; --output json has it)\n", clean(uri))
	default:
		data, _ := block.Text("data")
		writef(w, "(%s %s, %d bytes in base64; --output json has it)\n", clean(kind), clean(mime), len(data))
	}
}
