package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mcp-roster/roster/internal/config"
)

// root builds the command tree.
func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "roster",
		Short: "One MCP endpoint in front of many MCP servers",
		Long: `Roster is one MCP endpoint in front of many MCP servers. It reads the
"mcpServers" that you already have, and lists each tool, prompt and resource
exactly once, in the same order every time.

` + exitCodes,
		Example: `  roster demo                        see it work; needs nothing
  roster serve                       serve what is in the configuration
  roster serve --stdio               the same, for clients that start a command
  roster list                        what there is
  roster call files__read path=a.txt`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usagef("there is no command %q%s\nrun 'roster --help' for those there are", args[0], p.suggestCommand(cmd, args[0]))
		},
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return p.checkFlags() },
	}
	root.SetArgs(p.Args)
	root.SetIn(p.Stdin)
	root.SetOut(p.out)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(flagError)
	root.PersistentFlags().StringVarP(&p.output, "output", "o", "table", "how to print results: table or json")
	_ = root.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	root.AddCommand(
		p.serveCommand(), p.demoCommand(), p.demoServerCommand(),
		p.listCommand(), p.callCommand(), p.readCommand(), p.promptCommand(), p.inspectCommand(),
		p.statusCommand(), p.waitCommand(), p.logsCommand(), p.planCommand(), p.reloadCommand(), p.restartCommand(),
		p.checkCommand(), p.keyCommand(), p.authCommand(), p.versionCommand(),
		p.addCommand(), p.removeCommand(), p.switchCommand(true), p.switchCommand(false), p.renameCommand(),
		p.importCommand(), p.connectCommand(), p.disconnectCommand(), p.docsCommand(),
	)
	return root
}

func (p *program) suggestCommand(root *cobra.Command, typed string) string {
	var names []string
	for _, c := range root.Commands() {
		if !c.Hidden {
			names = append(names, c.Name())
		}
	}
	if near, ok := config.Nearest(typed, names); ok {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
}

// flagError makes an error about flags into one about the command line.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near, ok := config.Nearest(e.GetSpecifiedName(), names); ok {
			return usagef("%v: did you mean --%s?", err, near)
		}
	}
	return usagef("%v\nrun '%s --help' for its flags", err, cmd.CommandPath())
}

// checkFlags checks the values of flags that cobra takes as any string.
func (p *program) checkFlags() error {
	if !slices.Contains([]string{"table", "json"}, p.output) {
		return usagef("--output must be table or json, not %q", p.output)
	}
	if p.logLevel != "" {
		if _, err := parseLevel(p.logLevel); err != nil {
			return err
		}
	}
	return nil
}

// json reports whether results are printed as JSON.
func (p *program) json() bool { return p.output == "json" }

func (p *program) configFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&p.configs, "config", "c", nil, "configuration `file`; may be repeated, later ones win (default "+p.defaultConfigText()+")")
	_ = cmd.MarkFlagFilename("config", "json", "jsonc") // the flag is there
}

func (p *program) logFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&p.logLevel, "log-level", "", usage)
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(levelNames, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

// gatewayFlags are those of a command that asks a gateway.
func (p *program) gatewayFlags(cmd *cobra.Command) {
	p.configFlag(cmd)
	p.logFlag(cmd, "what to log if servers are started: debug, info, warn or error (default: nothing)")
	cmd.Flags().StringVar(&p.url, "url", "", "`URL` of the gateway, or of any MCP server (default: the gateway of the configuration, if it runs). Its key, if it needs one, is that in $"+keyVariable)
}

// exactArgs is a number of arguments with a message that names them.
func exactArgs(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usagef("%s is missing\nrun '%s --help' for examples", strings.Join(names[len(args):], " and "), cmd.CommandPath())
		case len(args) > len(names):
			return usagef("there is an argument too many: %q", args[len(names)])
		}
		return nil
	}
}
