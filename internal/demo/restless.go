package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/server"
)

// restlessPause is the time between two changes of the restless server.
const restlessPause = 3 * time.Second

func newRestless() (server.Source, error) {
	m := server.NewMemory(server.MemoryOptions{Name: "restless", Version: version})
	host, err := newTool("host", "Greet; the one tool that stays", noArguments, func(jsonrpc.Object) (string, error) {
		return "Welcome! The others come and go.", nil
	})
	if err != nil {
		return nil, err
	}
	return m, m.Tools.Add(host)
}

// comeAndGo adds a guest and takes the one away who has been there for longest,
// by turns, so that there is always a guest or two.
func comeAndGo(ctx context.Context, source server.Source) {
	m, ok := source.(*server.Memory)
	if !ok {
		return
	}
	tick := time.NewTicker(restlessPause)
	defer tick.Stop()
	for come, gone := 0, 0; ; {
		if come-gone < 2 {
			come++
			if tool, err := guest(come); err != nil || m.Tools.Add(tool) != nil {
				return
			}
		} else {
			gone++
			m.Tools.RemoveName(guestName(gone))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func guestName(n int) string { return fmt.Sprintf("guest_%d", n) }

func guest(n int) (*server.Tool, error) {
	return newTool(guestName(n), "A guest who will leave soon", noArguments, func(jsonrpc.Object) (string, error) {
		return fmt.Sprintf("I am guest %d. Goodbye!", n), nil
	})
}
