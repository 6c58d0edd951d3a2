package stdio

import (
	"context"
	"io"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// handlerWait is how long Serve waits for handlers that do not heed the end of their
// context.
const handlerWait = time.Second

// ServeOptions are the options of [Serve]. The zero value is ready for use.
type ServeOptions struct {
	// Reader has the limit for frames and the hook for noise.
	Reader ReaderOptions

	// Conn configures the connection. Its Handler is replaced by Serve's argument; a
	// Cancel without a method and an empty First mean those of MCP.
	Conn jsonrpc.ConnOptions
}

// Serve serves one client that writes its messages to in and reads ours from out,
// such as os.Stdin and os.Stdout; nothing else may use the two meanwhile. It returns
// when in ends, after the requests that came before were answered (nil), when ctx
// does (the cause), or when the pipes or the client's framing fail.
//
// A handler runs on a goroutine per request: a slow one does not hold up others.
//
// Serve returns soon after ctx ends even if a read or a write is blocked. If in or
// out then cannot be interrupted, as a terminal or an inherited pipe cannot, a
// goroutine stays in that read or write until it returns; the frame that a read
// was waiting for is lost. in and out are not closed.
//
// A client that goes away without a word is noticed at the next write. If out is the
// process's standard output, Go then ends the process by SIGPIPE, unless the program
// asked for that signal with package os/signal.
func Serve(ctx context.Context, in io.Reader, out io.Writer, h jsonrpc.Handler, opts *ServeOptions) error {
	if opts == nil {
		opts = &ServeOptions{}
	}
	connOpts := withCancel(opts.Conn)
	connOpts.Handler = h
	if connOpts.First == "" {
		connOpts.First = mcp.MethodInitialize
	}
	reader := opts.Reader
	stream, release := pipeStream(in, out, &reader)
	conn := jsonrpc.NewConn(ctx, stream, connOpts)
	<-conn.Done()
	release()
	closed := make(chan struct{})
	go func() { // ends with the last handler
		defer close(closed)
		_ = conn.Close() // Err has the same
	}()
	waitFor(closed, handlerWait)
	return conn.Err()
}

// withCancel fills in how MCP takes back a request, in every version (2026-07-28,
// "Cancellation").
func withCancel(opts jsonrpc.ConnOptions) jsonrpc.ConnOptions {
	if opts.Cancel.Method == "" {
		opts.Cancel = jsonrpc.CancelNotification{Method: mcp.MethodCanceled, Member: "requestId"}
	}
	return opts
}

// Client is a connection to a server that runs as a child process.
type Client struct {
	*jsonrpc.Conn
	process *Process
}

// Dial starts the process and connects to it. ctx is for the start alone; the
// connection has its values but lives until it fails, the process exits, or it is
// closed. When it ends the process is stopped; when the process exits by itself, Err
// is an [*ExitError].
//
// An opts.Cancel without a method means that of MCP.
func (c *Command) Dial(ctx context.Context, opts jsonrpc.ConnOptions) (*Client, error) {
	p, err := c.Start(ctx)
	if err != nil {
		return nil, err
	}
	opts = withCancel(opts)
	opts.MuteInvalid = true // a server that logs what it is told must not be told of each line that is not a message
	conn := jsonrpc.NewConn(context.WithoutCancel(ctx), childStream(p), opts)
	return &Client{Conn: conn, process: p}, nil
}

// Process is the process at the other end.
func (c *Client) Process() *Process { return c.process }

// Close ends the connection, stops the process, and waits until it and its group are
// gone. See [Process.Close].
func (c *Client) Close() error {
	_ = c.Conn.Close() // why it ended is in Err
	return c.process.Close()
}
