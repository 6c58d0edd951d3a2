package cli

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/mcp-roster/roster/internal/auth"
)

func (p *program) keyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Make keys for callers",
		Args:  exactArgs(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.keyNewCommand())
	return cmd
}

func (p *program) keyNewCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "new NAME",
		Short: "Make a key for a caller",
		Long: `Prints a random key, which is not kept anywhere, and the entry for "keys" in
the "roster" object of the configuration, which has only its hash. NAME says
whose key it is. The caller sends the key as

  Authorization: Bearer KEY

As soon as there is a list of keys, nobody is served without one. A gateway
takes new keys when it is started again.

` + exitCodes,
		Example: `  roster key new laptop
  roster key new laptop -o json`,
		Args:              exactArgs("the name of whose key it is"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(_ *cobra.Command, args []string) error { return p.newKey(args[0]) },
	}
}

// keyEntry is an element of the configuration's "keys".
type keyEntry struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

func (p *program) newKey(name string) error {
	if name == "" {
		return usagef("a key needs the name of whose it is")
	}
	key := auth.NewKey()
	entry := keyEntry{name, auth.HashKey(key).String()}
	if p.json() {
		return p.printJSON(struct {
			Key   string   `json:"key"`
			Entry keyEntry `json:"entry"`
		}{key, entry})
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	writef(p.out, "Key of %s, shown only now:\n  %s\n\nFor \"keys\" in the \"roster\" object of the configuration:\n  %s\n", clean(name), key, line)
	return nil
}
