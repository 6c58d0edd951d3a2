package upstream_test

import (
	"context"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// instant is a wire that answers at once.
type instant struct {
	once sync.Once
	done chan struct{}
	list jsonrpc.Object
	ok   jsonrpc.Object
	hi   jsonrpc.Object
	// asked is called when server/discover comes; it may be nil.
	asked func()
}

func (w *instant) Do(_ context.Context, call *jsonrpc.Call) (jsonrpc.Object, error) {
	switch call.Method {
	case mcp.MethodToolsCall:
		return w.ok, nil
	case mcp.MethodDiscover:
		if w.asked != nil {
			w.asked()
		}
		return w.hi, nil
	}
	return w.list, nil
}

func (w *instant) Notify(context.Context, string, jsontext.Value) error { return nil }
func (w *instant) Done() <-chan struct{}                                { return w.done }
func (w *instant) Err() error                                           { return nil }
func (w *instant) Close() error                                         { w.once.Do(func() { close(w.done) }); return nil }

// BenchmarkCall is what a call costs on top of its wire.
func BenchmarkCall(b *testing.B) {
	object := func(raw string) jsonrpc.Object {
		o, err := jsonrpc.ParseObject(jsontext.Value(raw))
		if err != nil {
			b.Fatal(err)
		}
		return o
	}
	for _, v := range []mcp.Version{mcp.V20260728} {
		for _, http := range []bool{false, true} {
			name := string(v)
			if http {
				name += " over HTTP"
			}
			b.Run(name, func(b *testing.B) {
				wire := &instant{
					done: make(chan struct{}),
					list: object(`{"tools":[]}`), ok: object(`{"content":[]}`),
					hi: object(`{"supportedVersions":["` + string(v) + `"],"capabilities":{"tools":{}}}`),
				}
				s := upstream.New(upstream.Options{
					Name: "b", HTTP: http,
					Dial: func(context.Context, client.Incoming) (client.Wire, error) { return wire, nil },
				})
				ctx, cancel := context.WithCancel(b.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); s.Run(ctx) }() // ends with ctx
				defer func() { cancel(); <-ended }()
				req := upstream.Request{
					Method: mcp.MethodToolsCall,
					Params: object(`{"name":"search","arguments":{"q":"x"},"_meta":{"progressToken":7}}`),
					Caller: mcp.Caller{Info: jsontext.Value(`{"name":"c","version":"1"}`), Capabilities: jsontext.Value(`{}`)},
				}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Call(ctx, req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
