package gateway_test

import (
	"fmt"
	"testing"

	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// TestCancelLeavesNoReply is C-115 as the client writes and reads it: it takes back
// its call 101, of which the server hears under its own id, another server hears
// nothing, and what the first answers all the same is not passed on.
func TestCancelLeavesNoReply(t *testing.T) {
	hosts := [2]*mcptest.Host{{}, {}}
	begun, told, late := make(chan jsonrpc.ID, 1), make(chan string, 2), make(chan struct{}, 1)
	var call *jsonrpc.Message // of the first server's goroutine
	for i, host := range hosts {
		host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
			switch {
			case m.Method == mcp.MethodToolsCall && i == 0:
				call = m
				begun <- m.ID
			case m.Method == mcp.MethodToolsCall:
				p.Reply(m, `{"content":[]}`)
			case m.Method == mcp.MethodCanceled:
				told <- fmt.Sprint(i, " ", m.Params.Get("requestId"))
				if i == 0 {
					p.Reply(call, `{"content":[]}`)
					late <- struct{}{}
				}
			case m.Method == mcp.MethodToolsList:
				p.Reply(m, fmt.Sprintf(`{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}`, i))
			default:
				answerLists(p, m, mcp.V20250618)
			}
		}
	}
	f := newGateway(t, behind{name: "a", dial: hosts[0].Dial}, behind{name: "b", dial: hosts[1].Dial})
	c := rawClient(t, f)
	c.Raw(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
	c.wants("result 1")
	c.Raw(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.Raw(`{"jsonrpc":"2.0","id":101,"method":"tools/call","params":{"name":"t0"}}`)
	id := receive(t, "the slow call", begun)
	answered := func(id int) {
		t.Helper()
		c.Raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t1"}}`, id))
		c.wants(fmt.Sprint("result ", id))
	}
	answered(102)
	c.Raw(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":101}}`)
	if got, want := receive(t, "the cancellation", told), fmt.Sprint(0, " ", string(id.Raw())); got != want {
		t.Errorf("cancelled: %s, want %s", got, want)
	}
	receive(t, "the late answer", late)
	for id := range 20 { // whatever is sent because of it would be among these
		answered(103 + id)
	}
	if n := hosts[1].Count(mcp.MethodCanceled); n != 0 {
		t.Errorf("the other server was told %d times", n)
	}
}
