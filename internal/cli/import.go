package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/clientfile"
	"github.com/mcp-roster/roster/internal/config"
)

// importOptions are the flags of import.
type importOptions struct {
	project, replace, dryRun bool
}

func (p *program) importCommand() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use:   "import [CLIENT|FILE...]",
		Short: "Take servers over from the files of MCP clients",
		Long: `Copies servers from the files of ` + clientTitles() + `
into the configuration, behind those that are there. Without an argument it looks
for all of these; what stands in a FILE is taken from there. The clients' files
stay as they are: 'roster connect' makes a client use Roster.

A server whose name is taken is left out, unless --replace is given; so is Roster
itself. Files of the project you are in count only with --project, since
whoever wrote the project wrote them.

` + exitCodes,
		Example: `  roster import
  roster import claude-desktop cursor
  roster import vscode --project
  roster import ./mcp.json --dry-run`,
		ValidArgsFunction: func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return completeClients(args, typed), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.importServers(cmd.Context(), args, o) },
	}
	p.configFlag(cmd)
	cmd.Flags().BoolVar(&o.project, "project", false, "take the clients' files of the project in this directory, too")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "write over servers of the same name")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be done, and write nothing")
	return cmd
}

// clientTitles names all clients in a sentence.
func clientTitles() string {
	var titles []string
	for _, c := range clientfile.Clients() {
		titles = append(titles, c.Title)
	}
	return strings.Join(titles[:len(titles)-1], ", ") + " and " + titles[len(titles)-1]
}

func clientNames() []string {
	var names []string
	for _, c := range clientfile.Clients() {
		names = append(names, c.Name)
	}
	return names
}

// thereAre is what is said of a name that is no client's.
func thereAre(name string) string {
	hint := ""
	if near, ok := config.Nearest(name, clientNames()); ok {
		hint = fmt.Sprintf("did you mean %q? ", near)
	}
	return hint + "there are " + strings.Join(clientNames(), ", ")
}

func completeClients(args []string, typed string) []string {
	return slices.DeleteFunc(clientNames(), func(name string) bool {
		return !strings.HasPrefix(name, typed) || slices.Contains(args, name)
	})
}

// home is whose files are meant.
func (p *program) home() (clientfile.Home, error) {
	dir, err := os.UserHomeDir()
	if err != nil {
		return clientfile.Home{}, fmt.Errorf("find the files of clients: %w", err)
	}
	return clientfile.Home{Dir: dir, System: runtime.GOOS, LookupEnv: p.LookupEnv}, nil
}

// origin is a file from which servers are taken.
type origin struct {
	client  clientfile.Client // its name is "" for a file that was named
	path    string
	project string // the directory of the project, if it is the project's
	must    bool   // it was asked for
}

// origins returns the files that are meant by arguments; by none those that are
// found.
func (p *program) origins(args []string, project bool) ([]origin, error) {
	home, err := p.home()
	if err != nil {
		return nil, err
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var found []origin
	take := func(c clientfile.Client, must bool) {
		path, _ := c.File(home)
		if file, ok := c.ProjectFile(here); ok && project {
			found = append(found, origin{c, path, "", false}, origin{c, file, here, must})
			return
		}
		found = append(found, origin{c, path, "", must})
	}
	for _, arg := range args {
		if c, ok := clientfile.Find(arg); ok {
			take(c, true)
			continue
		}
		if _, err := os.Stat(arg); err != nil {
			return nil, usagef("%q is neither a file nor a client: %s", arg, thereAre(arg))
		}
		found = append(found, fileOrigin(arg))
	}
	if len(args) == 0 {
		for _, c := range clientfile.Clients() {
			take(c, false)
		}
	}
	return found, nil
}

// fileOrigin is a file that was named. One that stands where a client has that of a
// project is read as that client does.
func fileOrigin(path string) origin {
	if abs, err := filepath.Abs(path); err == nil {
		for _, c := range clientfile.Clients() {
			if dir, ok := c.ProjectOf(abs); ok {
				return origin{c, path, dir, true}
			}
		}
	}
	c := clientfile.Client{Title: path, Format: clientfile.FormatOf(path)}
	if c.Format == clientfile.TOML {
		c, _ = clientfile.Find("codex")
	}
	return origin{c, path, "", true}
}

// imported is what was done with a server.
type imported struct {
	Server string `json:"server"`
	Client string `json:"client,omitempty"`
	From   string `json:"from"`
	Did    string `json:"did"` // added, replaced, there already, left out
	Why    string `json:"why,omitempty"`
}

func (p *program) importServers(ctx context.Context, args []string, o importOptions) error {
	origins, err := p.origins(args, o.project)
	if err != nil {
		return err
	}
	e, err := p.edit("")
	if err != nil {
		return err
	}
	results := []imported{}
	for _, from := range origins {
		some, err := e.take(from, o.replace)
		if err != nil && from.must {
			return err
		}
		if err != nil {
			writef(p.Stderr, "roster: %v\n", err)
		}
		results = append(results, some...)
	}
	if len(results) == 0 {
		return fmt.Errorf("no servers were found%s", lookedAt(origins))
	}
	if !o.dryRun {
		if err := e.save(true); err != nil {
			return err
		}
	}
	if p.json() {
		return p.printJSON(results)
	}
	return p.printImported(ctx, e, results, o.dryRun)
}

func lookedAt(origins []origin) string {
	var b strings.Builder
	b.WriteString("; looked at")
	for _, from := range origins {
		b.WriteString("\n  " + from.path)
	}
	return b.String()
}

// printImported prints what was done, and what is wrong with it.
func (p *program) printImported(ctx context.Context, e *editing, results []imported, dryRun bool) error {
	t := table{header: []string{"SERVER", "FROM", "RESULT"}}
	wrote := false
	for _, r := range results {
		did := r.Did
		if r.Why != "" {
			did += ": " + r.Why
		}
		wrote = wrote || r.Did == didAdd || r.Did == didReplace
		from := r.Client
		if from == "" {
			from = r.From
		}
		t.rows = append(t.rows, []string{r.Server, from, did})
	}
	p.printTable(p.out, t)
	switch {
	case dryRun:
		writeln(p.Stderr, "nothing was written")
		return nil
	case !wrote:
		return nil
	}
	writef(p.Stderr, "written to %s\n", e.path)
	_, problems, err := config.Load(e.existing(), p.LookupEnv)
	if err != nil {
		return err
	}
	p.report(problems)
	p.tell(p.gatewayNews(ctx))
	return nil
}

const (
	didAdd     = "added"
	didReplace = "replaced"
	didNothing = "there already"
	didLeave   = "left out"
)

// take copies the servers of a file.
func (e *editing) take(from origin, replace bool) ([]imported, error) {
	raw, err := clientfile.Read(from.path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from.path, err)
	}
	if raw == nil {
		if from.must {
			return nil, fmt.Errorf("%s has no servers: %s does not exist", from.client.Title, from.path)
		}
		return nil, nil
	}
	f, err := clientfile.Parse(from.client.Format, from.client.Servers, raw)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from.path, err)
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	servers, err := from.client.Import(f, here)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", from.path, err)
	}
	var results []imported
	for _, s := range servers {
		r := imported{Server: s.Name, Client: from.client.Name, From: from.path}
		if from.project != "" {
			if s.Entry, err = clientfile.InProject(s.Entry, from.project); err != nil {
				return nil, fmt.Errorf("read %s: server %q: %w", from.path, s.Name, err)
			}
		}
		if r.Did, r.Why, err = e.takeOne(s, replace); err != nil {
			return nil, fmt.Errorf("take over %q of %s: %w", s.Name, from.path, err)
		}
		results = append(results, r)
	}
	return results, e.takeInputs(f)
}

// takeOne copies one server, unless there is a reason not to.
func (e *editing) takeOne(s clientfile.Server, replace bool) (did, why string, err error) {
	if isRoster(s.Entry) {
		return didLeave, "it is Roster", nil
	}
	old, taken := e.Entry(s.Name)
	if !taken {
		return didAdd, "", e.Set(s.Name, s.Entry)
	}
	if clientfile.Same(old, s.Entry) {
		return didNothing, "", nil
	}
	if !replace {
		return didLeave, "another server has that name (--replace takes this one)", nil
	}
	return didReplace, "", e.Set(s.Name, s.Entry)
}

// takeInputs copies the questions that entries of VS Code refer to.
func (e *editing) takeInputs(f *clientfile.File) error {
	for _, input := range f.Inputs() {
		if _, ok := e.At("inputs", input.Name); ok {
			continue
		}
		if _, ok := e.At("inputs"); !ok {
			if err := e.SetAt([]byte("[]"), "inputs"); err != nil {
				return err
			}
		}
		if err := e.SetAt(input.Entry, "inputs", input.Name); err != nil {
			return err
		}
	}
	return nil
}

// isRoster reports whether an entry of a client is this program.
func isRoster(entry []byte) bool {
	var v struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	plain, err := clientfile.Plain(entry)
	if err != nil || json.Unmarshal(plain, &v) != nil {
		return false
	}
	base := strings.TrimSuffix(filepath.Base(filepath.ToSlash(v.Command)), ".exe")
	return base == "roster" && slices.Contains(v.Args, "serve") || bytes.Contains(entry, []byte("http://"+config.DefaultSettings().Listen))
}
