// Package mcphttp is MCP over HTTP, both ends: a [Handler] that serves a
// jsonrpc.Handler under one path, and Dial, which reaches a server by URL.
//
//	h := mcphttp.NewHandler(server, mcphttp.HandlerOptions{})
//	mux.Handle("/mcp", h)
//	...
//	h.Close(ctx) // before http.Server.Shutdown
//
// One path serves every protocol version. A request of version 2026-07-28 stands
// alone; those of 2025-11-25, 2025-06-18 and 2025-03-26 belong to a session that
// begins with initialize. Which of them a request is, it says itself, in its
// version header and its _meta; nothing that came before matters.
// Clients of 2024-11-05 have endpoints of their own, see [Handler.SSE], and servers
// of it are found by Dial, or dialled with DialSSE.
//
// An answer is one JSON object, or a stream of server-sent events as soon as
// something has to go before it. Handlers run on the goroutine of their HTTP
// request; what they send is queued and written by another one, so that a
// client which does not read makes nobody wait and loses its own stream only.
//
// A Handler may be used from any number of goroutines. It does not authenticate:
// middleware before it does, and HandlerOptions.Principal tells the Handler who
// was found to be calling, so that sessions stay with whom they belong to.
package mcphttp
