package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/clientfile"
)

// connectOptions are the flags of connect and disconnect.
type connectOptions struct {
	name    string
	project bool
	list    bool
	url     string
	headers []string
}

func (p *program) connectCommand() *cobra.Command {
	var o connectOptions
	cmd := &cobra.Command{
		Use:   "connect [CLIENT...]",
		Short: "Make MCP clients use Roster",
		Long: `Writes Roster into the files of ` + clientTitles() + `,
as a command that they start, or with --url as the URL of a gateway that runs.
Without an argument it is written for all clients that are found here. All else in
a file stays as it is, and a copy of it is kept beside it, as FILE.before-roster,
until 'roster disconnect'.

` + exitCodes,
		Example: `  roster connect
  roster connect claude-desktop cursor
  roster connect vscode --url http://127.0.0.1:7678/mcp
  roster connect claude-code --project
  roster connect --list`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeClients(args, typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return p.connectClients(args, o) },
	}
	p.configFlag(cmd)
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.list, "list", false, "list the clients and whether they use Roster, and write nothing")
	cmd.Flags().StringVar(&o.url, "url", "", "`URL` of the gateway, for clients that read one")
	cmd.Flags().StringArrayVarP(&o.headers, "header", "H", nil, "`NAME=VALUE` for each request to --url, such as a key; may be repeated")
	return cmd
}

func (o *connectOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.name, "name", "roster", "the `name` of Roster among the client's servers")
	cmd.Flags().BoolVar(&o.project, "project", false, "in the clients' files of the project in this directory")
}

func (p *program) disconnectCommand() *cobra.Command {
	var o connectOptions
	cmd := &cobra.Command{
		Use:   "disconnect [CLIENT...]",
		Short: "Undo 'roster connect'",
		Long: `Takes Roster out of the files of clients; without an argument out of all in which
it is. If nothing else has changed since 'roster connect', a file is as it was
before, to the byte, and its copy is removed.

` + exitCodes,
		Example: "  roster disconnect\n  roster disconnect cursor",
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeClients(args, typed), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error { return p.disconnectClients(args, o) },
	}
	o.flags(cmd)
	return cmd
}

// connection is what was done to the file of a client.
type connection struct {
	Client  string   `json:"client"`
	File    string   `json:"file"`
	Found   bool     `json:"found"` // the client, or its file
	Did     string   `json:"did"`
	Backup  string   `json:"backup,omitempty"`
	Doubled []string `json:"doubled,omitempty"` // servers that the client starts beside Roster

	title, restart string
}

// clients returns the clients that are named, or all.
func clients(args []string) ([]clientfile.Client, error) {
	if len(args) == 0 {
		return clientfile.Clients(), nil
	}
	var named []clientfile.Client
	for _, arg := range args {
		c, ok := clientfile.Find(arg)
		if !ok {
			return nil, usagef("there is no client %q: %s", arg, thereAre(arg))
		}
		named = append(named, c)
	}
	return named, nil
}

// clientFile returns where a client's file is; false if it is not to be touched,
// since nobody named the client and it is not here.
func (p *program) clientFile(c clientfile.Client, o connectOptions, named bool) (connection, bool, error) {
	home, err := p.home()
	if err != nil {
		return connection{}, false, err
	}
	state := connection{Client: c.Name, title: c.Title, restart: c.Restart}
	state.File, state.Found = c.File(home)
	if !o.project {
		return state, named || state.Found, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return connection{}, false, err
	}
	file, ok := c.ProjectFile(here)
	if !ok {
		if named {
			return connection{}, false, usagef("%s has no file for projects", c.Title)
		}
		return connection{}, false, nil
	}
	_, err = os.Stat(file)
	state.File, state.Found = file, err == nil
	return state, named || state.Found, nil
}

func (p *program) connectClients(args []string, o connectOptions) error {
	if o.list {
		return p.listClients(args, o)
	}
	if _, err := clients(args); err != nil {
		return err
	}
	target, conf, err := p.target(o)
	if err != nil {
		return err
	}
	results, err := p.eachClient(args, o, func(c clientfile.Client, s *connection) (bool, error) {
		entry, err := c.Entry(target)
		if err != nil {
			return false, err
		}
		return true, s.connect(c, o.name, entry, conf)
	})
	if len(results) == 0 && err == nil {
		return fmt.Errorf("none of %s was found here: name the one to write for", clientTitles())
	}
	return errors.Join(err, p.printConnections(results))
}

// eachClient does something to the files of the clients that are named, or else
// are here, and returns what was done to those that are to be shown. What fails for
// one does not keep the others from being done.
func (p *program) eachClient(args []string, o connectOptions, do func(clientfile.Client, *connection) (show bool, err error)) ([]connection, error) {
	chosen, err := clients(args)
	if err != nil {
		return nil, err
	}
	results := []connection{}
	var errs []error
	for _, c := range chosen {
		state, wanted, err := p.clientFile(c, o, len(args) > 0)
		if err != nil {
			return results, err
		}
		if !wanted {
			continue
		}
		show, err := do(c, &state)
		if err != nil {
			errs = append(errs, err)
		} else if show {
			results = append(results, state)
		}
	}
	return results, errors.Join(errs...)
}

// connect writes the entry.
func (s *connection) connect(c clientfile.Client, name string, entry []byte, conf *configuration) error {
	done, err := c.Connect(s.File, name, entry)
	if err != nil {
		return err
	}
	s.Did, s.Backup, s.Found = "connected", done.Backup, true
	if !done.Changed {
		s.Did = "connected already"
	}
	raw, err := clientfile.Read(s.File)
	if err != nil || conf == nil {
		return err
	}
	f, err := clientfile.Parse(c.Format, c.Servers, raw)
	if err != nil {
		return err
	}
	for _, server := range conf.Servers {
		if slices.Contains(f.Names(), server.Name) && !server.Disabled && server.Name != name {
			s.Doubled = append(s.Doubled, server.Name)
		}
	}
	return nil
}

// target is how clients are to reach Roster: this program with the configuration
// of this command, or the URL.
func (p *program) target(o connectOptions) (clientfile.Target, *configuration, error) {
	if o.url != "" {
		endpoint, err := endpointURL(o.url)
		if err != nil {
			return clientfile.Target{}, nil, err
		}
		t := clientfile.Target{URL: endpoint}
		for _, h := range o.headers {
			name, value, ok := strings.Cut(h, "=")
			if !ok || name == "" {
				return clientfile.Target{}, nil, usagef("--header takes NAME=VALUE")
			}
			if t.Headers == nil {
				t.Headers = make(map[string]string)
			}
			t.Headers[name] = value
		}
		return t, nil, nil
	}
	if len(o.headers) > 0 {
		return clientfile.Target{}, nil, usagef("--header is for --url")
	}
	conf, err := p.load()
	if err != nil {
		return clientfile.Target{}, nil, err
	}
	exe, err := p.Executable()
	if err != nil {
		return clientfile.Target{}, nil, fmt.Errorf("find this program: %w", err)
	}
	if strings.Contains(filepath.ToSlash(exe), "/go-build") {
		return clientfile.Target{}, nil, errors.New("this program is gone when the command ends, as 'go run' made it: install it with 'go install ./cmd/roster' and use that")
	}
	t := clientfile.Target{Command: exe, Args: []string{"serve", "--stdio"}}
	for _, file := range conf.files {
		t.Args = append(t.Args, "--config", file)
	}
	return t, conf, nil
}

func (p *program) printConnections(results []connection) error {
	if p.json() {
		return p.printJSON(results)
	}
	for _, r := range results {
		writef(p.out, "%s: %s in %s\n", r.title, r.Did, r.File)
		if r.Backup != "" {
			writef(p.out, "  as it was before: %s\n", r.Backup)
		}
		if len(r.Doubled) > 0 {
			writef(p.out, "  it starts these itself, too, and lists them twice until you take them out of that file: %s\n", clean(strings.Join(r.Doubled, ", ")))
		}
		if r.Did == "connected" || r.Did == "disconnected" {
			writef(p.out, "  to take effect: %s\n", r.restart)
		}
	}
	return nil
}

// listClients prints which clients are here and use Roster.
func (p *program) listClients(args []string, o connectOptions) error {
	chosen, err := clients(args)
	if err != nil {
		return err
	}
	results := []connection{}
	t := table{header: []string{"CLIENT", "STATE", "FILE"}}
	for _, c := range chosen {
		state, _, err := p.clientFile(c, o, false)
		if err != nil {
			return err
		}
		if state.File == "" {
			continue
		}
		state.Did = "not found"
		if state.Found {
			state.Did = "not connected"
		}
		if raw, err := clientfile.Read(state.File); err == nil {
			f, err := clientfile.Parse(c.Format, c.Servers, raw)
			if err != nil {
				state.Did = "damaged"
			} else if _, ok := f.Entry(o.name); ok {
				state.Did = "connected"
			}
		}
		results = append(results, state)
		t.rows = append(t.rows, []string{state.Client, state.Did, state.File})
	}
	if p.json() {
		return p.printJSON(results)
	}
	p.printTable(p.out, t)
	return nil
}

func (p *program) disconnectClients(args []string, o connectOptions) error {
	results, err := p.eachClient(args, o, func(c clientfile.Client, s *connection) (bool, error) {
		done, err := c.Disconnect(s.File, o.name)
		s.Did, s.Backup = "disconnected", done.Backup
		if !done.Changed {
			s.Did = "not connected"
		}
		return done.Changed || len(args) > 0, err
	})
	if len(results) == 0 && err == nil {
		return errors.New("no client that was found here is connected")
	}
	return errors.Join(err, p.printConnections(results))
}
