package upstream_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// childKind makes this program a server on its pipes.
const childKind = "UPSTREAM_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childKind) != "" {
		source, err := memory("work")
		if err == nil {
			err = stdio.Serve(context.Background(), os.Stdin, os.Stdout, server.New(source, server.Options{}), nil)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// memory returns a source with tools of these names. A tool named "wait" answers
// when its caller gives up.
func memory(names ...string) (*server.Memory, error) {
	source := server.NewMemory(server.MemoryOptions{Name: "real", Version: "1"})
	for _, name := range names {
		tool, err := newTool(name)
		if err != nil {
			return nil, err
		}
		if err := source.Tools.Add(tool); err != nil {
			return nil, err
		}
	}
	wait, err := server.NewTool(jsontext.Value(`{"name":"wait","inputSchema":{"type":"object"}}`),
		func(ctx context.Context, _ *server.ToolCall) (jsontext.Value, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
	if err != nil {
		return nil, err
	}
	return source, source.Tools.Add(wait)
}

func newTool(name string) (*server.Tool, error) {
	return server.NewTool(jsontext.Value(`{"name":"`+name+`","inputSchema":{"type":"object"}}`),
		func(context.Context, *server.ToolCall) (jsontext.Value, error) { return server.TextResult(name), nil })
}
