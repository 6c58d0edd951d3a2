package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// addOptions are the flags of add.
type addOptions struct {
	kind         string // of transport
	env, headers []string
	bearer       string
	clientID     string // of OAuth
	cwd          string
	prefix       string
	object       string // the entry itself
	disabled     bool
	replace      bool
	force        bool
}

func (p *program) addCommand() *cobra.Command {
	var o addOptions
	cmd := &cobra.Command{
		Use:   "add NAME -- COMMAND [ARGUMENT...] | add NAME URL | add NAME --json ENTRY",
		Short: "Add a server to the configuration",
		Long: `Writes a server into the configuration file, behind those that are there; the
rest of the file stays as it is, comments and layout, too. The file is made if
there is none. With several --config it is the last.

What would not run is not written: it is read as serve reads it before, and
${VARIABLE} in it must be set here unless --force is given.

` + exitCodes,
		Example: `  roster add files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  roster add db --env DSN='${DSN}' -- db-mcp --read-only
  roster add team https://mcp.example.com/mcp --header Authorization='Bearer ${TEAM_TOKEN}'
  roster add hosted https://mcp.example.com/mcp --bearer '${HOSTED_TOKEN}'
  roster add old https://mcp.example.com/events --type sse
  roster add notes --json '{"command": "notes-mcp", "scope": "client"}'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("the name of the server is missing\nrun 'roster add --help' for examples")
			}
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			entry, err := o.entry(args[1:], cmd.ArgsLenAtDash() >= 0, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			return p.add(cmd.Context(), args[0], entry, o)
		},
	}
	p.configFlag(cmd)
	f := cmd.Flags()
	f.StringVarP(&o.kind, "type", "t", "", "stdio, http or sse (default: by what is given)")
	f.StringVar(&o.kind, "transport", "", "the same as --type")
	_ = f.MarkHidden("transport") // the flag is there
	f.StringArrayVarP(&o.env, "env", "e", nil, "`NAME=VALUE` for the environment of the command; may be repeated")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "`NAME=VALUE` or 'NAME: VALUE' for each request to the URL; may be repeated")
	f.StringVar(&o.bearer, "bearer", "", "`token` that requests to the URL carry, best as '${VARIABLE}'")
	f.StringVar(&o.clientID, "client-id", "", "`id` that the server's login knows us by, if it registers nobody by itself")
	f.StringVar(&o.cwd, "cwd", "", "`directory` in which the command starts")
	f.StringVar(&o.prefix, "prefix", "", "what names of its tools begin with, instead of the name of the server; '' for nothing")
	f.StringVar(&o.object, "json", "", "the whole `entry` as a JSON object")
	f.BoolVar(&o.disabled, "disabled", false, "write it switched off")
	f.BoolVar(&o.replace, "replace", false, "write it in the place of a server of the same name")
	f.BoolVar(&o.force, "force", false, "write it even if it would not run here")
	_ = cmd.RegisterFlagCompletionFunc("type", cobra.FixedCompletions([]string{"stdio", "http", "sse"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return cmd
}

// member is a key of an entry, with its value as JSON.
type member struct {
	key   string
	value []byte
}

// entry makes the entry of a server.
func (o addOptions) entry(given []string, dashed bool, changed func(string) bool) ([]byte, error) {
	if o.object != "" {
		if len(given) > 0 {
			return nil, usagef("give a command, a URL or --json, not two of them")
		}
		if _, err := jsonrpc.ParseObject([]byte(o.object)); err != nil {
			return nil, usagef("--json must be a JSON object: %v", err)
		}
		return []byte(o.object), nil
	}
	var members []member
	add := func(key string, v any) {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(v) // strings, booleans and lists of them
		members = append(members, member{key, bytes.TrimSpace(b.Bytes())})
	}
	if o.kind != "" {
		add("type", o.kind)
	}
	remote := len(given) == 1 && !dashed && isURL(given[0])
	switch {
	case len(given) == 0:
		return nil, usagef("say what the server is: a command behind --, or a URL\nrun 'roster add --help' for examples")
	case remote:
		add("url", given[0])
	case !dashed && strings.Contains(given[0], "://"):
		return nil, usagef("%q is no http or https URL", given[0])
	default:
		add("command", given[0])
		if len(given) > 1 {
			add("args", given[1:])
		}
	}
	for _, list := range []struct {
		key, flag string
		values    []string
		ours      bool
	}{{"env", "--env", o.env, !remote}, {"headers", "--header", o.headers, remote}} {
		if len(list.values) == 0 {
			continue
		}
		if !list.ours {
			return nil, usagef("%s is for %s", list.flag, map[string]string{"env": "commands", "headers": "URLs"}[list.key])
		}
		object, err := assignments(list.flag, list.values)
		if err != nil {
			return nil, err
		}
		members = append(members, member{list.key, object})
	}
	if (o.bearer != "" || o.clientID != "") && !remote {
		return nil, usagef("--bearer and --client-id are for URLs")
	}
	if o.bearer != "" {
		add("bearer", o.bearer)
	}
	if o.clientID != "" {
		add("oauth", map[string]string{"clientId": o.clientID})
	}
	if o.cwd != "" {
		add("cwd", o.cwd)
	}
	if changed("prefix") {
		add("prefix", o.prefix)
	}
	if o.disabled {
		add("disabled", true)
	}
	return objectOf(members), nil
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// assignments makes an object of NAME=VALUE, or of header lines.
func assignments(flag string, values []string) ([]byte, error) {
	var members []member
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if header, text, isHeader := strings.Cut(v, ":"); flag == "--header" && isHeader && (!ok || len(header) < len(name)) {
			name, value, ok = header, strings.TrimSpace(text), true
		}
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, usagef("%s takes NAME=VALUE", flag)
		}
		if slices.ContainsFunc(members, func(m member) bool { return m.key == name }) {
			return nil, usagef("%s %s is given twice", flag, name)
		}
		members = append(members, member{name, mcp.String(value)})
	}
	return objectOf(members), nil
}

func objectOf(members []member) []byte {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, mcp.String(m.key)...), ':'), m.value...)
	}
	return append(b, '}')
}

// add writes an entry.
func (p *program) add(ctx context.Context, name string, entry []byte, o addOptions) error {
	if strings.TrimSpace(name) == "" {
		return usagef("a server needs a name")
	}
	e, err := p.edit(name)
	if err != nil {
		return err
	}
	did := "added"
	if _, ok := e.Entry(name); ok {
		if !o.replace {
			return fmt.Errorf("%s has a server %q already: choose another name, or write over it with --replace", e.path, name)
		}
		did = "replaced"
	}
	if err := e.Set(name, entry); err != nil {
		return fmt.Errorf("%s: %w", e.path, err)
	}
	if err := e.save(o.force); err != nil {
		return err
	}
	return p.print(e.outcome(ctx, name, did))
}
