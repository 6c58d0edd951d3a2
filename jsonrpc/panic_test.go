package jsonrpc_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// TestPanic has a handler panic: over a request, which is answered, over the one
// that others wait for, and over a notification. The connection goes on.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		_, peer := start(t, 4, jsonrpc.ConnOptions{
			First:  "first",
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Handler: handler(func(_ context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
				if r.Method != "echo" {
					panic("internals of " + r.Method)
				}
				return r.Params.Raw, nil
			}),
		})
		for _, step := range []struct{ send, want string }{
			{`{"jsonrpc":"2.0","id":1,"method":"first"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`},
			{`{"jsonrpc":"2.0","method":"note"}`, ""},
			{`{"jsonrpc":"2.0","id":1,"method":"boom"}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}`},
			{`{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		} {
			peer.send(t, step.send)
			synctest.Wait()
			got := ""
			select {
			case frame := <-peer.in:
				got = string(frame)
			default:
			}
			if got != step.want {
				t.Errorf("%s was answered\n%s, want\n%s", step.send, got, step.want)
			}
		}
		for _, method := range []string{"first", "note", "boom"} {
			if !strings.Contains(log.String(), "internals of "+method) {
				t.Errorf("the log does not have the panic of %s", method)
			}
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 3 || !strings.Contains(log.String(), "panic_test.go") {
			t.Errorf("%d errors logged, want 3 with their stacks:\n%s", n, log.String())
		}
	})
}
