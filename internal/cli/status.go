package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/admin"
)

func (p *program) statusCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the running gateway and its servers are",
		Long: `Asks the running gateway how it is: which servers are up, what each offers,
what failed last and when it is tried again, what was left out or renamed.
It starts nothing: without a gateway that runs it fails.

` + exitCodes,
		Example: `  roster status
  roster status --url http://127.0.0.1:7678/mcp
  roster status -o json | jq .health`,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return p.status(cmd.Context()) },
	}
	p.gatewayFlags(cmd)
	return cmd
}

func (p *program) status(ctx context.Context) error {
	target, _, err := p.find(ctx)
	if err != nil {
		return err
	}
	if target == "" {
		return errNoGateway
	}
	var st admin.Status
	if err := p.get(ctx, target, "status", &st); err != nil {
		return err
	}
	if p.json() {
		return p.printJSON(st)
	}
	color := map[admin.Health]style{admin.Healthy: green, admin.Starting: yellow, admin.Degraded: yellow}[st.Health]
	at := cmp.Or(p.url, st.URL, "no URL, for one client on pipes")
	writef(p.out, "roster %s is %s at %s, up %v\n", st.Version, p.paint(p.out, color, string(st.Health)), at, age(st.Since))
	writef(p.out, "%s, %s, %s, %s from %s\n", plural(st.Items.Tools, "tool"), plural(st.Items.Prompts, "prompt"),
		plural(st.Items.Resources, "resource"), plural(st.Items.Templates, "template"), plural(len(st.Servers), "server"))
	if len(st.Waiting) > 0 {
		writef(p.out, "waiting for %s\n", strings.Join(st.Waiting, ", "))
	}
	writeln(p.out)
	p.printServers(st.Servers)
	if notes := statusNotes(st); len(notes) > 0 {
		writef(p.out, "\n%s\n", strings.Join(notes, "\n"))
	}
	return nil
}

// printServers prints one line for each server.
func (p *program) printServers(servers []admin.Server) {
	t := table{
		header: []string{"SERVER", "STATE", "TOOLS", "PROMPTS", "RESOURCES", "TEMPLATES", "PROTOCOL", "ERROR"},
		style: func(column int, cell string) style {
			switch {
			case column != 1:
				return ""
			case cell == "ready", cell == "idle":
				return green
			case cell == "down":
				return red
			}
			return yellow
		},
	}
	count := strconv.Itoa
	for _, s := range servers {
		failure := s.Error
		if s.NextTry != nil && failure != "" {
			failure = fmt.Sprintf("tried again in %v: %s", max(time.Until(*s.NextTry), 0).Round(time.Second/10), failure)
		}
		t.rows = append(t.rows, []string{
			s.Name, stateOf(s), count(s.Items.Tools), count(s.Items.Prompts), count(s.Items.Resources), count(s.Items.Templates),
			s.Protocol, failure,
		})
	}
	p.printTable(p.out, t)
}

// stateOf is a server's state, and for how many clients it runs if these do not
// share it.
func stateOf(s admin.Server) string {
	if len(s.Clients) == 0 {
		return string(s.State)
	}
	return fmt.Sprintf("%s (%s)", s.State, plural(len(s.Clients), "client"))
}

// statusNotes are the lines below the table: all that is not as somebody who
// wrote the configuration would expect.
func statusNotes(st admin.Status) []string {
	notes := slices.Clone(st.Problems)
	if r := st.Config.Refused; r != nil {
		notes = append(notes, fmt.Sprintf("the configuration that was read at %s is not used, because of what is wrong with it:", r.At.Format(time.TimeOnly)))
		for _, problem := range r.Problems {
			notes = append(notes, clean(problem.String()))
		}
	}
	if len(st.Config.NeedRestart) > 0 {
		notes = append(notes, "changed in the configuration, and counts from the next start: "+strings.Join(st.Config.NeedRestart, ", "))
	}
	for _, s := range st.Servers {
		for _, r := range s.Renamed {
			notes = append(notes, clean(fmt.Sprintf("%s: %s %q is listed as %q", s.Name, singular(r.Kind), r.Name, r.Exposed)))
		}
		for _, l := range s.LeftOut {
			notes = append(notes, clean(fmt.Sprintf("%s: %s %q is left out: %s", s.Name, singular(l.Kind), l.Name, l.Reason)))
		}
		for _, w := range s.Warnings {
			notes = append(notes, clean(s.Name+": "+w))
		}
	}
	return notes
}

func singular(kind string) string { return strings.TrimSuffix(kind, "s") }

// age is how long ago something was, in whole seconds.
func age(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }
