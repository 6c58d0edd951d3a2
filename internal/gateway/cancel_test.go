package gateway_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// TestCancelOfAnother is C-122: what one client cancels is its own. Another's call
// with the same id goes on, and nobody is answered.
func TestCancelOfAnother(t *testing.T) {
	begun := make(chan jsonrpc.ID, 1)
	host := &mcptest.Host{}
	host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		switch m.Method {
		case mcp.MethodToolsCall:
			if name, _ := m.Params.Text("name"); name == "slow" {
				begun <- m.ID
				return
			}
			p.Reply(m, `{"content":[]}`)
		case mcp.MethodToolsList:
			p.Reply(m, `{"tools":[{"name":"slow","inputSchema":{"type":"object"}},{"name":"fast","inputSchema":{"type":"object"}}]}`)
		default:
			answerLists(p, m, mcp.V20250618)
		}
	}
	f := newGateway(t, behind{name: "a", dial: host.Dial})
	for _, dial := range []struct {
		name string
		wire wireKind
	}{{"pipes", pipe}, {"HTTP", http}} {
		t.Run(dial.name, func(t *testing.T) {
			reach := dial.wire.reach(t, f.server)
			one := join(t, reach, dial.wire == http, mcp.V20250618, `{}`)
			other := join(t, reach, dial.wire == http, mcp.V20250618, `{}`)
			var wait sync.WaitGroup
			var failed error
			wait.Go(func() { _, failed = one.send(t.Context(), mcp.MethodToolsCall, `{"name":"slow"}`) })
			id := receive(t, "the slow call", begun)
			for n := range 20 { // the id of the slow call is among them, and so is that which its server knows
				_ = other.wire.Notify(t.Context(), mcp.MethodCanceled, jsontext.Value(fmt.Sprintf(`{"requestId":%d}`, n)))
			}
			// What came before this call has been read.
			if _, err := other.send(t.Context(), mcp.MethodToolsCall, `{"name":"fast"}`); err != nil {
				t.Error(err)
			}
			if n := host.Count(mcp.MethodCanceled); n != 0 {
				t.Errorf("the server was told of %d cancellations", n)
			}
			host.Peer().Reply(&jsonrpc.Message{ID: id}, `{"content":[]}`)
			wait.Wait()
			if failed != nil {
				t.Errorf("the slow call: %v", failed)
			}
		})
	}
}
