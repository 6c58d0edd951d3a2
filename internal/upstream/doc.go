// Package upstream keeps configured MCP servers connected, knows what they
// list, and sends them requests.
//
// A [Server] is one of them. Its Run connects, lists all four kinds, and goes on
// for as long as it may: it lists again when the server says so, when what it
// knows has grown old and somebody asks, and after each reconnect; it connects
// again, ever more slowly, when the connection is lost. What it learns goes to
// [Hooks]. Requests go through Call on the caller's goroutine, and fail at once
// with an [UnavailableError] when the server is known to be away.
//
// A [Set] is all servers of a configuration, in its order.
package upstream
