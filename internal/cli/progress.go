package cli

import (
	"sync"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// progressText is what a server said last of how far a request is.
type progressText struct {
	mu   sync.Mutex // guards text
	text string
}

// hear takes a notification on the request's own stream.
func (t *progressText) hear(m *jsonrpc.Message) {
	if m.Method != mcp.MethodProgress {
		return
	}
	text := ": " + string(m.Params.Get("progress"))
	if total := m.Params.Get("total"); total != nil {
		text += " of " + string(total)
	}
	if message, ok := m.Params.Text("message"); ok {
		text += ", " + message
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = text
}

func (t *progressText) get() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text
}
