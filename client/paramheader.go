package client

import (
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// learnHeaders keeps what the tools say of header fields and leaves out those
// whose annotations break the rules, as a client over HTTP must (2026-07-28,
// basic/transports/streamable-http, Custom Headers from Tool Parameters).
func (c *Client) learnHeaders(list *List) {
	if list.Kind != mcp.Tools || !c.opts.HTTP || !c.info.Version.Stateless() {
		return
	}
	table := make(map[string][]mcp.ParamHeader)
	list.Items = slices.DeleteFunc(list.Items, func(item jsontext.Value) bool {
		tool, err := jsonrpc.ParseObject(item)
		if err != nil {
			return false
		}
		name, _ := tool.Text("name")
		headers, err := mcp.ParamHeaders(tool.Get("inputSchema"))
		if err != nil {
			list.Warnings = append(list.Warnings, fmt.Sprintf("tool %q is left out: %v", name, err))
			return true
		}
		if len(headers) > 0 {
			table[name] = headers
		}
		return false
	})
	c.headers.Store(&table)
}
