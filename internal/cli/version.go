package cli

import (
	"runtime"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/mcp"
)

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Prints the version of Roster and the protocol versions that it speaks.\n\n" + exitCodes,
		Example: `  roster version
  roster version -o json`,
		Args:              exactArgs(),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version   string        `json:"version"`
				Go        string        `json:"go"`
				System    string        `json:"system"`
				Protocols []mcp.Version `json:"protocolVersions"`
			}{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, mcp.Versions()}
			if p.json() {
				return p.printJSON(v)
			}
			writef(p.out, "roster %s (%s, %s)\nMCP", v.Version, v.Go, v.System)
			for _, protocol := range v.Protocols {
				writef(p.out, " %s", protocol)
			}
			writeln(p.out)
			return nil
		},
	}
}
