package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// tagged returns params of a notification for a subscription.
func tagged(id jsonrpc.ID, rest string) string {
	return fmt.Sprintf(`{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}`, id, rest)
}

// listening is a subscription of a test.
type listening struct {
	host  *mcptest.Host
	open  *jsonrpc.Message // the request that opened it
	acked []client.Filter
	got   []string
	rest  []string // notifications outside
	ended chan error
	stop  context.CancelFunc
}

// listen opens a subscription in a bubble.
func listen(t *testing.T, f client.Filter) *listening {
	t.Helper()
	l := &listening{ended: make(chan error, 1)}
	l.host = host(mcp.V20260728, allLists, func(p *mcptest.Peer, m *jsonrpc.Message) bool {
		if m.Method == mcp.MethodListen {
			l.open = m
		}
		return m.Method == mcp.MethodListen
	})
	c := connect(t, client.Options{Dial: l.host.Dial, Notification: func(m *jsonrpc.Message) { l.rest = append(l.rest, m.Method) }})
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	t.Cleanup(stop)
	go func() {
		l.ended <- c.Listen(ctx, client.Listen{
			Filter:       f,
			Acknowledged: func(f client.Filter) { l.acked = append(l.acked, f) },
			Notification: func(m *jsonrpc.Message) { l.got = append(l.got, m.Method) },
		})
	}()
	synctest.Wait()
	return l
}

func (l *listening) ack(filter string) {
	l.host.Peer().Notify(mcp.MethodAcknowledged, tagged(l.open.ID, `,"notifications":`+filter))
	synctest.Wait()
}

func TestListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listen(t, client.Filter{Kinds: mcp.Kinds[:], Resources: []string{"file:///é"}})
		want := `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///é"]}`
		if got := string(l.open.Params.Get("notifications")); got != want {
			t.Errorf("asked for %s", got)
		}
		l.ack(`{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["file:///é"]}`)
		l.ack(`{}`) // once
		if len(l.acked) != 1 || !slices.Equal(l.acked[0].Kinds, []mcp.Kind{mcp.Tools, mcp.Resources, mcp.Templates}) || len(l.acked[0].Resources) != 1 {
			t.Errorf("acknowledged %+v", l.acked)
		}
		p := l.host.Peer()
		p.Notify(mcp.Tools.ChangedMethod(), tagged(l.open.ID, ""))
		p.Notify(mcp.MethodUpdated, tagged(l.open.ID, `,"uri":"file:///é"`))
		p.Notify(mcp.Prompts.ChangedMethod(), tagged(jsonrpc.StringID("another"), ""))
		p.Notify(mcp.MethodMessage, "")
		synctest.Wait()
		if !slices.Equal(l.got, []string{"notifications/tools/list_changed", "notifications/resources/updated"}) || len(l.rest) != 2 {
			t.Errorf("got %q, and outside %q", l.got, l.rest)
		}
		p.Reply(l.open, `{"resultType":"complete"}`)
		if err := <-l.ended; err != nil {
			t.Error(err)
		}
		p.Notify(mcp.Tools.ChangedMethod(), tagged(l.open.ID, ""))
		synctest.Wait()
		if len(l.got) != 2 {
			t.Error("told after the end")
		}
	})
}

func TestListenEnds(t *testing.T) {
	tests := []struct {
		name string
		end  func(l *listening)
		want error
	}{
		{"cancelled by the server", func(l *listening) {
			l.host.Peer().Notify(mcp.MethodCanceled, `{"requestId":`+l.open.ID.String()+`}`)
		}, client.ErrListenEnded},
		{"connection lost", func(l *listening) { l.host.Peer().Close() }, jsonrpc.ErrClosed},
		{"given up", func(l *listening) { l.stop() }, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := listen(t, client.Filter{Kinds: mcp.Kinds[:]})
				l.ack("{}")
				time.Sleep(time.Hour) // a subscription has no deadline
				tt.end(l)
				if err := <-l.ended; !errors.Is(err, tt.want) {
					t.Error(err)
				}
			})
		})
	}
	t.Run("never acknowledged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			l := listen(t, client.Filter{Kinds: mcp.Kinds[:]})
			if err := <-l.ended; err == nil || time.Since(began) != client.AckTimeout {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			synctest.Wait()
			if l.host.Peer().Count(mcp.MethodCanceled) != 1 {
				t.Error("the server was not told")
			}
		})
	})
	t.Run("older version", func(t *testing.T) {
		c := connect(t, client.Options{Dial: host(mcp.V20251125, "{}", nil).Dial})
		if err := c.Listen(t.Context(), client.Listen{}); err == nil {
			t.Error("no error")
		}
	})
}
