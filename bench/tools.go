package main

import (
	"fmt"
	"strconv"
)

// echoTool is the first tool of every echo server, the only one that is called.
const echoTool = "echo"

var (
	verbs = []string{"create", "search", "update", "delete", "list", "archive", "merge"}
	nouns = []string{"issue", "document", "calendar_event", "pull_request", "invoice", "customer", "dashboard", "deployment"}
)

// toolName returns the name of tool n of a server.
func toolName(n int) string {
	if n == 0 {
		return echoTool
	}
	name := verbs[n%len(verbs)] + "_" + nouns[n%len(nouns)]
	if n >= len(verbs)*len(nouns) {
		name += "_" + strconv.Itoa(n)
	}
	return name
}

// appendTool appends the definition of a tool: about 600 bytes, with the parts
// that the tools of public servers usually have.
func appendTool(b []byte, prefix string, n int) []byte {
	name := toolName(n)
	b = fmt.Appendf(b, `{"name":"%s%s","title":"Tool %d: %s",`, prefix, name, n, name)
	b = fmt.Appendf(b, `"description":"Runs %s in the workspace and returns its result as text. Use it when the user asks for it by name; prefer a search first if the identifier is not known.",`, name)
	b = append(b, `"inputSchema":{"type":"object","properties":{`...)
	b = append(b, `"size":{"type":"integer","minimum":0,"description":"Length of the result, in bytes"},`...)
	b = append(b, `"query":{"type":"string","description":"What to look for, in the usual syntax"},`...)
	b = append(b, `"limit":{"type":"integer","minimum":1,"maximum":100,"default":20}},`...)
	return append(b, `"required":["size"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}`...)
}

// appendTools appends the definitions of n tools, without brackets.
func appendTools(b []byte, prefix string, n int) []byte {
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendTool(b, prefix, i)
	}
	return b
}
