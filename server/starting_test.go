package server_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// starting is a source whose lists are complete when ready is closed.
type starting struct {
	*server.Memory
	ready chan struct{}
	first uint64
}

func (s *starting) Ready(*server.Request) <-chan struct{} { return s.ready }

func (s *starting) FirstFingerprint(*server.Request, mcp.Kind) uint64 { return s.first }

func (s *starting) open() {
	s.first = s.Fingerprint(&server.Request{Caller: mcp.Caller{Version: mcp.Latest}}, mcp.Tools)
	close(s.ready)
}

// notePeer keeps the methods of what it is told.
type notePeer struct {
	jsonrpc.Peer
	mu    sync.Mutex
	notes []string
}

func (p *notePeer) Notify(_ context.Context, method string, _ jsontext.Value) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, method)
	return nil
}

func (p *notePeer) count(method string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.notes {
		if m == method {
			n++
		}
	}
	return n
}

// TestListenWhileStarting: who listens before the first lists are complete is not
// told of them, but is told of what changes afterwards, be it at once.
func TestListenWhileStarting(t *testing.T) {
	for name, changesAtOnce := range map[string]bool{"nothing changes": false, "a tool is added at once": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := &starting{
					Memory: server.NewMemory(server.MemoryOptions{Name: "s", Version: "1"}),
					ready:  make(chan struct{}),
				}
				s := server.New(source, server.Options{})
				params, err := jsonrpc.ParseObject(jsontext.Value(`{"notifications":{"toolsListChanged":true},` +
					`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`))
				if err != nil {
					t.Fatal(err)
				}
				peer := &notePeer{}
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				ended := make(chan struct{})
				go func() { // ends with ctx
					defer close(ended)
					_, _ = s.Handle(ctx, &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: mcp.MethodListen, Params: params, Peer: peer})
				}()
				synctest.Wait()
				add(t, source.Tools, emptyTool(t, "one"))
				add(t, source.Tools, emptyTool(t, "two"))
				time.Sleep(time.Second)
				source.open()
				if changesAtOnce {
					add(t, source.Tools, emptyTool(t, "three"))
				}
				time.Sleep(time.Second)
				want := 0
				if changesAtOnce {
					want = 1
				}
				if got := peer.count(mcp.Tools.ChangedMethod()); got != want {
					t.Errorf("told %d times, want %d", got, want)
				}
				add(t, source.Tools, emptyTool(t, "four"))
				time.Sleep(time.Second)
				if got := peer.count(mcp.Tools.ChangedMethod()); got != want+1 {
					t.Errorf("told %d times after another tool, want %d", got, want+1)
				}
				cancel(jsonrpc.ErrCanceled)
				<-ended
			})
		})
	}
}
