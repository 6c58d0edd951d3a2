package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/config"
)

func (p *program) checkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration",
		Long: `Reads the configuration as serve does and prints what is wrong with it, one
line each with file, line and column. It starts nothing. Warnings are no errors.

` + exitCodes,
		Example: `  roster check
  roster check --config team.json --config mine.json -o json`,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(*cobra.Command, []string) error { return p.check() },
	}
	p.configFlag(cmd)
	return cmd
}

// checked is what check prints in JSON.
type checked struct {
	OK       bool            `json:"ok"`
	Files    []string        `json:"files"`
	Servers  []string        `json:"servers"` // that would run, in order
	Problems []admin.Problem `json:"problems"`
}

func (p *program) check() error {
	conf, err := p.load()
	if err != nil {
		return err
	}
	result := checked{OK: true, Files: conf.files, Servers: []string{}, Problems: []admin.Problem{}}
	errorCount := 0
	for _, problem := range conf.problems {
		if problem.Severity == config.SeverityError {
			result.OK = false
			errorCount++
		}
		result.Problems = append(result.Problems, admin.ProblemOf(problem))
	}
	for _, s := range conf.Servers {
		if !s.Disabled {
			result.Servers = append(result.Servers, s.Name)
		}
	}
	if p.json() {
		err = p.printJSON(result)
	} else {
		p.report(conf.problems)
		writef(p.out, "%s, %s, %s\n", plural(len(result.Servers), "server"), plural(errorCount, "error"),
			plural(len(conf.problems)-errorCount, "warning"))
	}
	if err == nil && !result.OK {
		err = errSaid
	}
	return err
}

// plural is a count with its noun.
func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
