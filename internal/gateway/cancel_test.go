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
