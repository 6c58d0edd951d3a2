package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
)

// turns has calls meet by twos: each goes on when there is another, and the first of
// the two ends last.
type turns struct {
	mu    sync.Mutex // guards first
	first *turn      // waits for another; nil: none does
}

type turn struct {
	met   chan struct{}
	other *turn // the second of the two; nil for that
	over  chan struct{}
}

func (ts *turns) begin(ctx context.Context) *turn {
	mine := &turn{met: make(chan struct{}), over: make(chan struct{})}
	ts.mu.Lock()
	if first := ts.first; first != nil {
		ts.first, first.other = nil, mine
		close(first.met)
		ts.mu.Unlock()
		return mine
	}
	ts.first = mine
	ts.mu.Unlock()
	select {
	case <-mine.met:
	case <-ctx.Done():
	}
	return mine
}

func (t *turn) end(ctx context.Context) {
	if t.other != nil {
		select {
		case <-t.other.over:
		case <-ctx.Done():
		}
	}
	close(t.over)
}

// TestTwoClientsTalkOverHTTP is the same where each call has a stream of its own, so
// that it is clear what questions and messages are about: each client is told and
// asked what its own call is about, and its answer comes to that call.
func TestTwoClientsTalkOverHTTP(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			b := newBackend(mcp.V20251125)
			var calls turns
			b.custom = func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
				args := r.Params.Get("arguments")
				meta, _ := r.Params.Meta()
				mine := calls.begin(ctx)
				defer mine.end(ctx)
				said := string(mcp.String(string(args)))
				_ = r.Peer.Notify(ctx, mcp.MethodMessage, jsontext.Value(`{"level":"error","data":`+said+`}`))
				_ = r.Peer.Notify(ctx, mcp.MethodProgress, fmt.Appendf(nil, `{"progressToken":%s,"progress":1,"message":%s}`, meta.Get("progressToken"), said))
				answer, err := r.Peer.Call(ctx, mcp.MethodElicit, jsontext.Value(`{"message":`+said+`,"requestedSchema":{"type":"object","properties":{}}}`))
				if err != nil {
					return nil, err
				}
				return fmt.Appendf(nil, `{"content":[],"structuredContent":{"args":%s,"answer":%s}}`, args, answer.Raw), nil
			}
			f := newGateway(t, behind{name: "s", dial: overHTTP(t, b, mcphttp.HandlerOptions{}), http: true})
			var both sync.WaitGroup
			for _, who := range []string{"one", "two"} {
				p := join(t, overPipe(t, f.server), false, v, everyCapability)
				p.level = "debug"
				p.answer = func(_ context.Context, _ string, params jsonrpc.Object) (string, error) {
					asked, _ := params.Text("message")
					return fmt.Sprintf(`{"action":"accept","content":{"by":%q,"asked":%s}}`, who, mcp.String(asked)), nil
				}
				both.Go(func() { talk(t, p, who) })
			}
			both.Wait()
		})
	}
}

func talk(t *testing.T, p *party, who string) {
	ctx, cancel := context.WithTimeout(t.Context(), 12*patience)
	defer cancel()
	for i := range rounds / 4 {
		args := fmt.Sprintf(`{"who":%q,"round":%d}`, who, i)
		result, err := p.converse(ctx, mcp.MethodToolsCall, `{"name":"custom","arguments":`+args+`,"_meta":{"progressToken":"same"}}`)
		if err != nil {
			t.Errorf("%s in round %d: %v", who, i, err)
			return
		}
		want := fmt.Sprintf(`{"args":%s,"answer":{"action":"accept","content":{"by":%q,"asked":%s}}}`, args, who, mcp.String(args))
		if got := string(result.Get("structuredContent")); got != want {
			t.Errorf("%s got %s, want %s", who, got, want)
		}
		heard := 0
		for _, line := range p.take() {
			if !strings.HasPrefix(line, "<- notifications/") {
				continue
			}
			heard++
			if !strings.Contains(line, string(mcp.String(args))) {
				t.Fatalf("%s in round %d heard %s", who, i, line)
			}
		}
		if heard != 2 {
			t.Fatalf("%s in round %d heard %d notifications, want 2", who, i, heard)
		}
	}
}
