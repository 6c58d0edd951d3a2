// Package server serves the Model Context Protocol from a [Source], to clients
// of every version.
//
// A [Server] is a jsonrpc.Handler: give it to a wire, and the wire's requests
// are answered.
//
//	srv := server.New(source, server.Options{})
//	err := stdio.Serve(ctx, os.Stdin, os.Stdout, srv, nil)
//
// What a request says decides how it is answered: one that names a stateless
// version in params._meta stands alone, every other belongs to a session that
// began with initialize. Both may come on one connection.
//
// The Source has what is listed and called. The server adds what a version
// requires of a result, tells clients of changed lists (one notification for a
// batch of changes, none if a client would read what it knows), and compares
// headers that repeat arguments with the arguments. It does not validate
// arguments, cut pages or time requests out.
//
// A [Memory] is a Source that a program fills. What its tools, prompts and
// resources do may ask the client for input with [Request.Ask], log to it with
// [Request.Log], and report progress, whatever the client's version:
//
//	func greet(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
//		answers, err := call.Ask(ctx, "", server.Question{Key: "name", Method: mcp.MethodElicit, Params: form})
//		if err != nil {
//			return nil, err
//		}
//		...
//	}
package server
