package app_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/stdio"
)

// loudVariable makes a process a server on pipes that prints all it was given to
// standard error, and again before it dies.
const loudVariable = "ROSTER_TEST_LOUD"

// serveLoud is that server. Its tools are t, env, which returns its environment,
// hang and die.
func serveLoud() error {
	shout := func() {
		fmt.Fprintln(os.Stderr, "I was given", os.Args, os.Environ())
		fmt.Fprintf(os.Stderr, "%s%q", bytes.Repeat([]byte("x"), 4080), os.Environ()) // over the end of what a log shows
		fmt.Fprintf(os.Stderr, "\n%s%s\n", strings.Repeat("x", 295), os.Getenv("TOKEN"))
	}
	shout()
	b := &mcptest.Backend{Version: mcp.V20251125}
	b.Set(mcp.Tools, tool("t"), tool("env"), tool("hang"), tool("die"))
	b.Do = func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		switch name, _ := req.Params.Text("name"); name {
		case "env":
			return text("%s", strings.Join(os.Environ(), "\n")), nil
		case "hang":
			<-ctx.Done()
		case "die":
			shout()
			time.AfterFunc(0, func() { os.Exit(3) })
			<-ctx.Done()
		}
		return text("done"), nil
	}
	return stdio.Serve(context.Background(), os.Stdin, os.Stdout, b, nil)
}
