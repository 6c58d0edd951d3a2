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

// callOptions are the flags of call.
type callOptions struct {
	object string
	save   string
}

func (p *program) callCommand() *cobra.Command {
	var o callOptions
	cmd := &cobra.Command{
		Use:   "call NAME [key=value... | --json OBJECT]",
		Short: "Call a tool",
		Long: `Calls a tool and prints what it answers.

  key=value    a number, a boolean, a list or an object where the tool's
               inputSchema takes one, else a string
  key:=JSON    the JSON as it is
  key=@file    the text of a file; key:=@file for JSON; key=@@text for "@text"
  @file        all arguments, a JSON object in a file

'roster inspect NAME' shows the schema. --json gives the arguments as one JSON
object, "-" reads it from standard input. On a terminal, arguments that the
tool needs and that are missing are asked for, and what its server asks the user
meanwhile, too.

What a tool says when it fails goes to standard error.

` + exitCodes,
		Example: `  roster call files__read_file path=/tmp/a.txt
  roster call search__query text='two words' limit=5 tags:='["a","b"]'
  roster call notes__write text=@draft.md
  roster call files__read_file --json '{"path": "/tmp/a.txt"}'
  roster call chart__draw kind=pie --save pictures
  roster call search__query text=roster -o json | jq .structuredContent`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return exactArgs("the name of a tool")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: p.completeCall,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := call{program: p, name: args[0], save: o.save}
			var err error
			if c.pairs, c.given, err = p.callArguments(args[1:], o.object, cmd.Flags().Changed("json")); err != nil {
				return err
			}
			return c.run(cmd.Context())
		},
	}
	p.gatewayFlags(cmd)
	cmd.Flags().StringVar(&o.object, "json", "", "the arguments as a JSON `object`, or - for standard input")
	cmd.Flags().StringVar(&o.save, "save", "", "write images, audio and other binary content into this `directory`")
	_ = cmd.MarkFlagDirname("save") // the flag is there
	return cmd
}

// callArguments reads the arguments of a tool: pairs, or the object of --json or of
// a file.
func (p *program) callArguments(args []string, object string, withJSON bool) ([]pair, []byte, error) {
	if path, ok := strings.CutPrefix(strings.Join(args, " "), "@"); ok && len(args) == 1 && !withJSON {
		text, err := readText(path)
		if err != nil {
			return nil, nil, fmt.Errorf("read the arguments: %w", err)
		}
		given, err := argumentObject(text, path)
		return nil, given, err
	}
	pairs, err := parsePairs(args)
	if err != nil || !withJSON {
		return pairs, nil, err
	}
	given, err := p.readArguments(object, len(pairs))
	return nil, given, err
}

// readArguments returns the object of --json.
func (p *program) readArguments(object string, pairs int) ([]byte, error) {
	if pairs > 0 {
		return nil, usagef("give the arguments as key=value or with --json, not both")
	}
	if object == "-" {
		text, err := io.ReadAll(io.LimitReader(p.Stdin, maxArguments+1))
		if err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		if len(text) > maxArguments {
			return nil, fmt.Errorf("read the arguments: more than %d MiB", maxArguments>>20)
		}
		object = string(text)
	}
	return argumentObject(object, "--json")
}

// argumentObject checks that a text is a JSON object.
func argumentObject(text, where string) ([]byte, error) {
	text = strings.TrimSpace(text)
	if _, err := jsonrpc.ParseObject([]byte(text)); err != nil {
		return nil, usagef("%s must be a JSON object: %v", where, err)
	}
	return []byte(text), nil
}

// call is a call of a tool.
type call struct {
	*program
	name  string
	pairs []pair
	given []byte // the whole object, in place of pairs
	save  string // the directory for binary content; "": it is not saved
}

func (c *call) run(ctx context.Context) error {
	return c.with(ctx, func(g *gateway) error {
		// The list also says which arguments a request repeats in its header.
		tools, err := g.items(ctx, mcp.Tools)
		if err != nil && len(c.pairs) > 0 {
			return err
		}
		if c.given == nil {
			var inputSchema []byte
			for _, t := range tools {
				if t.name == c.name {
					inputSchema = t.Get("inputSchema")
				}
			}
			if err := c.askMissing(ctx, inputSchema); err != nil {
				return err
			}
			c.given = appendArguments(nil, c.pairs, inputSchema)
		}
		params := fmt.Appendf(nil, `{"name":%s,"arguments":%s`, mcp.String(c.name), c.given)
		if isTerminal(c.Stderr) {
			params = append(params, `,"_meta":{"progressToken":1}`...)
		}
		result, err := g.request(ctx, mcp.MethodToolsCall, append(params, '}'))
		if err != nil {
			return err
		}
		return c.print(result)
	})
}

// print prints what the tool answered.
func (c *call) print(result jsonrpc.Object) error {
	p := c.program
	failed := string(result.Get("isError")) == "true"
	if p.json() {
		writeln(p.out, indent(result.Raw))
	}
	blocks, err := jsonrpc.Elements(orEmpty(result.Get("content")))
	if err != nil {
		return fmt.Errorf("the tool answered with content that is no array: %w", err)
	}
	saved := saver{dir: c.save, name: c.name}
	w := io.Writer(p.out)
	if failed {
		w = p.Stderr
	}
	for _, block := range blocks {
		path, err := saved.save(block)
		switch {
		case err != nil:
			return err
		case path != "" && p.json():
			writef(p.Stderr, "saved %s\n", path)
		case path != "":
			writef(w, "(saved %s)\n", path)
		case failed || !p.json():
			p.printContent(w, block)
		}
	}
	if failed || !p.json() {
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
