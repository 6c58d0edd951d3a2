//go:build unix

package jsonrpc_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// BenchmarkCall measures round trips, with both ends in this process. cpu/op is
// the processor time of both.
func BenchmarkCall(b *testing.B) {
	pipes := map[string]func(testing.TB) (jsonrpc.Stream, jsonrpc.Stream){
		"memory": func(testing.TB) (jsonrpc.Stream, jsonrpc.Stream) {
			x, y := memPipe(64)
			return x, y
		},
		"pipe": osPipe,
	}
	for _, kind := range []string{"memory", "pipe"} {
		for _, size := range []int{100, 10 << 10} {
			for _, callers := range []int{1, 8, 64} {
				b.Run(fmt.Sprintf("%s/%dB/%dcallers", kind, size, callers), func(b *testing.B) {
					near, far := pipes[kind](b)
					benchmarkCall(b, near, far, size, callers)
				})
			}
		}
	}
}

func benchmarkCall(b *testing.B, near, far jsonrpc.Stream, size, callers int) {
	echo := jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
		return r.Params.Raw, nil
	})
	server := jsonrpc.NewConn(b.Context(), far, jsonrpc.ConnOptions{Handler: echo})
	client := jsonrpc.NewConn(b.Context(), near, jsonrpc.ConnOptions{})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	params := jsontext.Value(`{"name":"echo","arguments":{"x":"` + strings.Repeat("x", size) + `"}}`)
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	runtime.GC()
	start := cpuTime()
	b.ResetTimer()
	var work sync.WaitGroup
	for range callers {
		work.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := client.Call(ctx, "tools/call", params); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	work.Wait()
	b.StopTimer()
	b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
	if err := client.Close(); err != nil {
		b.Error(err)
	}
	_ = server.Close()
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
