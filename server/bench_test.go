package server_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/server"
)

func benchmarkHandle(b *testing.B, srv *server.Server, method, params string) {
	b.Helper()
	req := &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: method, Params: parse(b, params), Peer: &stuckPeer{}}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		result, err := srv.Handle(ctx, req)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(result)))
	}
}

func BenchmarkToolsList420(b *testing.B) {
	m := newMemory()
	for i := range 420 {
		add(b, m.Tools, emptyTool(b, fmt.Sprint("tool", i)))
	}
	benchmarkHandle(b, server.New(m, server.Options{}), "tools/list", `{`+meta+`}`)
}

func BenchmarkToolsCall(b *testing.B) {
	m := newMemory()
	add(b, m.Tools, emptyTool(b, "t"))
	benchmarkHandle(b, server.New(m, server.Options{}), "tools/call", `{"name":"t","arguments":{"a":1},`+meta+`}`)
}

func BenchmarkFuncToolCall(b *testing.B) {
	m := newMemory()
	tool, err := server.NewFuncTool(server.FuncTool{Name: "t"}, func(_ context.Context, _ *server.ToolCall, in order) (order, error) { return in, nil })
	if err != nil {
		b.Fatal(err)
	}
	add(b, m.Tools, tool)
	benchmarkHandle(b, server.New(m, server.Options{}), "tools/call", `{"name":"t","arguments":{"id":5,"parts":[1,2]},`+meta+`}`)
}

// Listing what has not changed costs a lookup: few allocations, whatever the length.
func TestListOfAnUnchangedMemoryIsCheap(t *testing.T) {
	m := newMemory()
	for i := range 420 {
		add(t, m.Tools, emptyTool(t, fmt.Sprint("tool", i)))
	}
	srv := server.New(m, server.Options{})
	req := &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: "tools/list", Params: parse(t, `{`+meta+`}`), Peer: &stuckPeer{}}
	ctx := t.Context()
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := srv.Handle(ctx, req); err != nil {
			t.Error(err)
		}
	})
	if allocs > 8 {
		t.Errorf("%v allocations", allocs)
	}
}
