// Package stdio speaks JSON-RPC as JSON lines over pipes, at both ends: one message
// per line, as the stdio transport of the Model Context Protocol has it
// (specification of 2026-07-28, "stdio").
//
// A server serves the program that started it:
//
//	err := stdio.Serve(ctx, os.Stdin, os.Stdout, handler, nil)
//
// A client starts the server as a child process and calls it:
//
//	weather := &stdio.Command{Name: "weather-server", Args: []string{"--metric"}}
//	client, err := weather.Dial(ctx, jsonrpc.ConnOptions{})
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//	result, err := client.Call(ctx, "tools/list", nil)
//
// Under these are [Reader] and [Writer], the framing, and [Process], a child with
// its pipes. A child is never left alone: its standard error is always read, closing
// it has an end even if it ignores every hint, and nothing that it started outlives
// it in its process group.
//
// What is exported may be used from any goroutine, but for Reader and Writer, which
// are for one each. Frames and results belong to who gets them.
//
// The package does not know what the messages mean, does not start a server again
// that has died, and hides nothing of what a server prints unless told what (see [Command].Hide).
package stdio
