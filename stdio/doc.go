// Package stdio speaks JSON-RPC as JSON lines over pipes, at both ends: one message
// per line, as the stdio transport of the Model Context Protocol has it
// (specification of 2026-07-28, "stdio").
//
// [Reader] and [Writer] are the framing. [Command] starts a server as a child
// process and [Process] is that child.
package stdio
