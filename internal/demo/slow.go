package demo

import (
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/server"
)

func newSlow() (server.Source, error) {
	m := server.NewMemory(server.MemoryOptions{Name: "slow", Version: version})
	for _, name := range []string{"tortoise", "snail"} {
		tool, err := newTool(name, "Arrives in the end", noArguments, func(jsonrpc.Object) (string, error) {
			return "here is the " + name, nil
		})
		if err != nil {
			return nil, err
		}
		if err := m.Tools.Add(tool); err != nil {
			return nil, err
		}
	}
	return m, nil
}
