// Package server serves the Model Context Protocol from a [Source], to clients
// of every version.
//
// A [Server] is a jsonrpc.Handler: give it to a wire, and the wire's requests
// are answered.
//
//	memory := server.NewMemory(server.MemoryOptions{Name: "clock", Version: "1.0.0"})
//	now, err := server.NewFuncTool(server.FuncTool{Name: "now", Description: "Tells the time."},
//		func(context.Context, *server.ToolCall, struct{}) (string, error) { return time.Now().String(), nil })
//	...
//	err = memory.Tools.Add(now) // at any time, from any goroutine
//	...
//	srv := server.New(memory, server.Options{})
//	err = stdio.Serve(ctx, os.Stdin, os.Stdout, srv, nil)
//
// A [Memory] is a Source that a program fills. A Source of one's own serves what is
// kept elsewhere.
//
// What a request says decides how it is answered: one that names a stateless
// version in params._meta stands alone, every other belongs to a session that
// began with initialize. Both may come on one connection.
//
// The Source has what is listed and called. The server adds what a version
// requires of a result, tells clients of changed lists (one notification for a
// batch of changes, none if a client would read what it knows), and compares
// headers that repeat arguments with the arguments. It does not cut pages or time
// requests out, and checks arguments against their schema only for tools made by
// [NewFuncTool]. A panic of a tool is the wire's.
//
// What the tools, prompts and resources of a Memory do may ask the client for input
// with [Request.Ask], log to it with [Request.Log], and report progress, whatever
// the client's version:
//
//	func greet(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
//		answers, err := call.Ask(ctx, "", server.Question{Key: "name", Method: mcp.MethodElicit, Params: form})
//		if err != nil {
//			return nil, err
//		}
//		...
//	}
//
// Everything may be used from any number of goroutines.
package server
