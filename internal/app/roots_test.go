package app_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/stdio"
)

// asking is a server that asks for roots at the beginning and in each call.
type asking struct {
	*mcptest.Backend
	declared, early chan string
	both            sync.WaitGroup // calls that wait for each other before they ask
}

func newAsking(t *testing.T) (*asking, *mcptest.Socket) {
	a := &asking{declared: make(chan string, 8), early: make(chan string, 8)}
	a.Backend = &mcptest.Backend{Version: mcp.V20251125, Do: func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
		a.both.Done()
		a.both.Wait()
		return text("%s", rootsFrom(ctx, r)), nil
	}}
	a.Set(mcp.Tools, tool("ask"))
	return a, mcptest.NewSocket(t, func(ctx context.Context, conn net.Conn, _ int) {
		_ = stdio.Serve(ctx, conn, conn, a, nil) // it ends as the test wants
	})
}

func rootsFrom(ctx context.Context, r *jsonrpc.Request) string {
	answer, err := r.Peer.Call(ctx, mcp.MethodRootsList, nil)
	if err != nil {
		return err.Error()
	}
	return string(answer.Raw)
}

func (a *asking) Handle(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	switch r.Method {
	case mcp.MethodInitialize:
		a.declared <- string(r.Params.Get("capabilities"))
	case mcp.MethodInitialized:
		a.early <- rootsFrom(ctx, r)
	}
	return a.Backend.Handle(ctx, r)
}

// next takes a value off a channel.
func next(t *testing.T, ch <-chan string) string {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-bounded(t).Done():
		t.Fatal("waited in vain")
		return ""
	}
}

// TestRoots: a server that clients share is told of the configured roots and of no
// client's, whether it asks at the beginning or in calls of two clients at once.
func TestRoots(t *testing.T) {
	const global, own = `{"roots":[{"uri":"file:///all"}]}`, `{"roots":[{"uri":"file:///one"},{"uri":"file:///t%20wo"}]}`
	tests := []struct{ name, settings, entry, want, declared string }{
		{"none", "", `"disabled":false`, "", `{"elicitation":{"form":{},"url":{}},"sampling":{}}`},
		{"for all", `"roots":["/all"]`, `"disabled":false`, global, `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`},
		{"its own", `"roots":["/all"]`, `"roots":["file:///one","/t wo"]`, own, `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`},
		{"an empty list", `"roots":["/all"]`, `"roots":[]`, `{"roots":[]}`, `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, socket := newAsking(t)
			g := newGateway(t, strings.TrimSuffix(patient+","+tt.settings, ","), piped("s", socket, tt.entry))
			if got := next(t, a.declared); got != tt.declared {
				t.Errorf("declared %s, want %s", got, tt.declared)
			}
			if got := next(t, a.early); tt.want != "" && got != tt.want || tt.want == "" && !strings.Contains(got, "nobody can be asked") {
				t.Errorf("roots at the beginning: %s", got)
			}
			a.both.Add(2)
			var calls sync.WaitGroup
			for _, c := range []*mcptest.Caller{g.pipes(mcp.V20251125), g.http(mcp.V20260728)} {
				calls.Go(func() {
					got, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"s__ask","arguments":{}}`)
					if err != nil || tt.want != "" && !strings.Contains(got.Result, string(mcp.String(tt.want))) {
						t.Errorf("roots in a call: %s, %v", got.Result, err)
					}
				})
			}
			calls.Wait()
		})
	}
}
