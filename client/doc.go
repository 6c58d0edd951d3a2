// Package client uses an MCP server, whatever protocol version it speaks.
//
//	c, err := client.Connect(ctx, client.Options{Dial: dial, Info: info})
//	if err != nil { ... }
//	defer c.Close()
//	tools, err := c.List(ctx, mcp.Tools, client.Limits{})
//	result, err := c.Call(ctx, client.Request{Method: mcp.MethodToolsCall, Params: params})
//
// Connect finds out whether the server is one of requests that stand alone
// (2026-07-28 and later) or one that begins with initialize, and the Client
// hides the difference: it puts the caller into _meta and the header fields of
// the one, and keeps both away from the other. What the server wrote is handed
// on as its bytes.
//
// A [Client] is one connection. It may be used by any number of goroutines,
// starts none that outlive a call, and does not reconnect: when [Client.Done] is
// closed, connect again.
//
// List walks all pages of a list and never waits or grows without bound, however
// the server behaves; a walk that did not reach the end says so with a
// [WalkError].
package client
