package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (p *program) docsCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "docs markdown|man DIR",
		Short:  "Write the description of all commands into a directory",
		Hidden: true,
		Args:   exactArgs("the format, markdown or man,", "a directory"),
		RunE: func(_ *cobra.Command, args []string) error {
			var files map[string][]byte
			switch args[0] {
			case "markdown":
				files = p.manual().markdown()
			case "man":
				files = p.manual().man()
			default:
				return usagef("the format is markdown or man, not %q", args[0])
			}
			if err := os.MkdirAll(args[1], 0o755); err != nil {
				return err
			}
			for name, content := range files {
				if err := os.WriteFile(filepath.Join(args[1], name), content, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// manual is all commands, as they are described.
type manual struct{ commands []*cobra.Command }

// manual returns the commands with nothing in their descriptions of the machine
// that this runs on.
func (p *program) manual() manual {
	anywhere := *p
	anywhere.anywhere = true
	var m manual
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" {
			return
		}
		m.commands = append(m.commands, cmd)
		for _, sub := range cmd.Commands() {
			add(sub)
		}
	}
	root := anywhere.root()
	root.InitDefaultCompletionCmd()
	add(root)
	return m
}

// pageName is what the page of a command is called, without what follows the dot.
func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// flagsOf returns the flags of a command, those of all commands behind the others.
func flagsOf(cmd *cobra.Command) []*pflag.Flag {
	var flags []*pflag.Flag
	add := func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			flags = append(flags, f)
		}
	}
	cmd.NonInheritedFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	return flags
}

// flagText returns a flag as it is typed, and what it does.
func flagText(f *pflag.Flag) (typed, about string) {
	value, about := pflag.UnquoteUsage(f)
	typed = "--" + f.Name
	if f.Shorthand != "" {
		typed = "-" + f.Shorthand + ", " + typed
	}
	if value != "" {
		typed += " " + value
	}
	if d := f.DefValue; d != "" && d != "[]" && d != "false" && !strings.Contains(about, "(default") {
		about += " (default " + d + ")"
	}
	return typed, about
}

// usageOf returns how a command is typed, one way on each line.
func usageOf(cmd *cobra.Command) []string {
	parent := ""
	if cmd.HasParent() {
		parent = cmd.Parent().CommandPath() + " "
	}
	var lines []string
	for _, way := range strings.Split(cmd.Use, " | "+cmd.Name()+" ") {
		if len(lines) > 0 {
			way = cmd.Name() + " " + way
		}
		lines = append(lines, parent+way)
	}
	return lines
}

// prose returns the long description without the exit codes, which are on the page
// of the program.
func prose(cmd *cobra.Command) string {
	long := cmd.Long
	if cmd.HasParent() {
		long = strings.TrimSuffix(long, exitCodes)
	}
	return strings.TrimSpace(long)
}

// markdown returns a page for each command, and an index.
func (m manual) markdown() map[string][]byte {
	const made = "<!-- Made by make docs: change the command instead. -->\n\n"
	pages := make(map[string][]byte)
	index := bytes.NewBufferString(made + "# Commands\n\n")
	for _, cmd := range m.commands {
		fmt.Fprintf(index, "- [`%s`](%s.md): %s\n", cmd.CommandPath(), pageName(cmd), cmd.Short)
		var b bytes.Buffer
		fmt.Fprintf(&b, "%s# %s\n\n%s\n\n```\n%s\n```\n", made, cmd.CommandPath(), cmd.Short, strings.Join(usageOf(cmd), "\n"))
		fmt.Fprintf(&b, "\n```text\n%s\n```\n", prose(cmd))
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n## Examples\n\n```\n%s\n```\n", outdent(cmd.Example))
		}
		if flags := flagsOf(cmd); len(flags) > 0 {
			b.WriteString("\n## Flags\n\n")
			for _, f := range flags {
				typed, about := flagText(f)
				fmt.Fprintf(&b, "- `%s`: %s\n", typed, about)
			}
		}
		pages[pageName(cmd)+".md"] = b.Bytes()
	}
	pages["README.md"] = index.Bytes()
	return pages
}

// outdent takes the indentation off that all lines have.
func outdent(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// man returns a page of section 1 for each command.
func (m manual) man() map[string][]byte {
	pages := make(map[string][]byte)
	for _, cmd := range m.commands {
		var b bytes.Buffer
		fmt.Fprintf(&b, ".TH %s 1 \"\" \"roster\" \"Roster\"\n", strings.ToUpper(roff(pageName(cmd))))
		fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.nf\n%s\n.fi\n", roff(pageName(cmd)), roff(cmd.Short), roff(strings.Join(usageOf(cmd), "\n")))
		fmt.Fprintf(&b, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", roff(prose(cmd)))
		if flags := flagsOf(cmd); len(flags) > 0 {
			b.WriteString(".SH OPTIONS\n")
			for _, f := range flags {
				typed, about := flagText(f)
				fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(typed), roff(about))
			}
		}
		if cmd.Example != "" {
			fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(outdent(cmd.Example)))
		}
		var others []string
		for _, other := range m.commands {
			if other != cmd && (other.Parent() == cmd || cmd.Parent() == other) {
				others = append(others, fmt.Sprintf(".BR %s (1)", roff(pageName(other))))
			}
		}
		slices.Sort(others)
		if len(others) > 0 {
			fmt.Fprintf(&b, ".SH SEE ALSO\n%s\n", strings.Join(others, ",\n"))
		}
		pages[pageName(cmd)+".1"] = b.Bytes()
	}
	return pages
}

// roff writes a text so that it is printed as it is.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "`", "\\`", "'", `\(aq`, "~", `\(ti`, "^", `\(ha`, "\t", "        ").Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
