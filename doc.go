// Package roster is the root of the Roster module: one Model Context Protocol
// endpoint in front of many servers, and the Go library it is made of.
//
// The package itself has no code. Import what you need from below it:
//
//   - registry: an ordered set of tools, prompts or resources that tells listeners when it changed
//   - server: serve such a set to MCP clients
//   - client: use an MCP server
//   - stdio and mcphttp: the two wires, for servers and for clients
//   - mcp and jsonrpc: the vocabulary of the protocol and the envelope it travels in
//
// The tests beside this file hold the rules that no single package can check:
// who may import whom (layers_test.go) and how tests wait (waits_test.go).
package roster
