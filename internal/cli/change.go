package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/mcp"
)

// completeServer completes an argument that names a configured server.
func (p *program) completeServer(most int) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.completeServers(typed, args), cobra.ShellCompDirectiveNoFileComp
	}
}

// someArgs is one argument or more, which name servers.
func someArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return exactArgs("the name of a server")(cmd, args)
	}
	return nil
}

func (p *program) removeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "remove NAME...",
		Aliases: []string{"rm"},
		Short:   "Take a server out of the configuration",
		Long: `Takes servers out of the configuration file, and a comment that stands behind
one on its last line; all else in the file stays as it is. What is known of their
tools is kept for the day they come back.

` + exitCodes,
		Example:           "  roster remove files\n  roster remove files memory --config team.json",
		Args:              someArgs,
		ValidArgsFunction: p.completeServer(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.each(cmd.Context(), args, "removed", false, func(e *editing, name string) error { return e.Remove(name) })
		},
	}
	p.configFlag(cmd)
	return cmd
}

// switchCommand is enable or disable.
func (p *program) switchCommand(on bool) *cobra.Command {
	name, did, what := "disable", "disabled", "Switch a server off"
	if on {
		name, did, what = "enable", "enabled", "Switch a server on"
	}
	var force bool
	cmd := &cobra.Command{
		Use:   name + " NAME...",
		Short: what + " in the configuration",
		Long: what + ` by the "disabled" of its entry, or the key that
it has for that. The rest of the file stays as it is.

` + exitCodes,
		Example:           "  roster " + name + " files\n  roster " + name + " files memory",
		Args:              someArgs,
		ValidArgsFunction: p.completeServer(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.each(cmd.Context(), args, did, force, func(e *editing, name string) error { return e.turn(name, on) })
		},
	}
	p.configFlag(cmd)
	if on {
		cmd.Flags().BoolVar(&force, "force", false, "write it even if the server would not run here")
	}
	return cmd
}

// each makes the same change to several servers, which may stand in several files,
// one after the other.
func (p *program) each(ctx context.Context, names []string, did string, force bool, change func(e *editing, name string) error) error {
	var outcomes []edited
	one := func(name string) error {
		e, err := p.editExisting(name)
		if err != nil {
			return err
		}
		if err := change(e, name); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
		if err := e.save(force); err != nil {
			return err
		}
		outcomes = append(outcomes, e.outcome(ctx, name, did))
		return nil
	}
	var failed error
	for _, name := range names {
		if failed = one(name); failed != nil {
			break
		}
	}
	if p.json() {
		return errors.Join(p.printJSON(outcomes), failed)
	}
	for _, r := range outcomes {
		p.told(r)
	}
	return failed
}

// turn switches a server on or off, by all the keys that its entry has for it.
func (e *editing) turn(name string, on bool) error {
	value := func(b bool) []byte { return fmt.Append(nil, b) }
	found := false
	for _, key := range [...]struct {
		path []string
		on   bool // the value that means on
	}{{[]string{"enabled"}, true}, {[]string{"disabled"}, false}, {[]string{"options", "disabled"}, false}} {
		path := append([]string{e.Key(), name}, key.path...)
		if _, ok := e.At(path...); !ok {
			continue
		}
		found = true
		if err := e.SetAt(value(on == key.on), path...); err != nil {
			return err
		}
	}
	if on || found {
		return nil
	}
	return e.SetField(name, "disabled", value(true))
}

func (p *program) renameCommand() *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "rename OLD NEW",
		Short: "Give a server another name",
		Long: `Gives a server another name in the configuration file, in the same place. Names
of its tools begin with the new name then, unless --keep-names writes the old one
into the entry as its prefix: clients see no difference.

` + exitCodes,
		Example:           "  roster rename files documents\n  roster rename files documents --keep-names",
		Args:              exactArgs("the name of a server", "its new name"),
		ValidArgsFunction: p.completeServer(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.rename(cmd.Context(), args[0], args[1], keep)
		},
	}
	p.configFlag(cmd)
	cmd.Flags().BoolVar(&keep, "keep-names", false, "leave the names of its tools as they are")
	return cmd
}

func (p *program) rename(ctx context.Context, from, to string, keep bool) error {
	if strings.TrimSpace(to) == "" {
		return usagef("a server needs a name")
	}
	e, err := p.editExisting(from)
	if err != nil {
		return err
	}
	if other, err := p.edit(to); err != nil {
		return err
	} else if _, taken := other.Entry(to); taken {
		return fmt.Errorf("%s has a server %q already", other.path, to)
	}
	if err := e.Rename(from, to); err != nil {
		return fmt.Errorf("%s: %w", e.path, err)
	}
	if _, has := e.At(e.Key(), to, "prefix"); keep && !has {
		if err := e.SetField(to, "prefix", mcp.String(from+"__")); err != nil {
			return fmt.Errorf("%s: %w", e.path, err)
		}
	}
	if err := e.save(true); err != nil {
		return err
	}
	r := e.outcome(ctx, to, "renamed")
	r.From = from
	return p.print(r)
}
