package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

func TestC185_UpdatesGoToSubscribers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &watched{Memory: newMemory(), may: map[string]bool{"mem:///u1": true, "mem:///u2": true, "MEM:///u1": true}}
		srv := server.New(src, server.Options{})
		var clients []*rawClient
		for range 4 {
			c := connect(t, srv)
			c.initialize("2025-06-18")
			synctest.Wait()
			c.take()
			clients = append(clients, c)
		}
		clients[0].ask(`1`, "resources/subscribe", `"uri":"mem:///u1"`)
		clients[0].ask(`2`, "resources/subscribe", `"uri":"mem:///u1"`)
		clients[1].ask(`1`, "resources/subscribe", `"uri":"mem:///u2"`)
		clients[3].ask(`1`, "resources/subscribe", `"uri":"mem:///nobody"`)
		wantLines(t, clients[3], `1 error -32602`)
		synctest.Wait()
		clients[0].take()
		clients[1].take()
		if src.count() != 2 {
			t.Errorf("%d subscriptions", src.count())
		}
		src.update("mem:///u1", `{"uri":"mem:///u1","_meta":{"x":1}}`)
		src.update("mem:///nobody", `{"uri":"mem:///nobody"}`)
		wantLines(t, clients[0], `notifications/resources/updated {"uri":"mem:///u1","_meta":{"x":1}}`)
		wantLines(t, clients[1])
		wantLines(t, clients[2])

		// C-186: each counts for itself.
		clients[2].ask(`1`, "resources/subscribe", `"uri":"mem:///u1"`)
		wantLines(t, clients[2], `1 {}`)
		clients[0].ask(`3`, "resources/unsubscribe", `"uri":"mem:///u1"`)
		clients[0].ask(`4`, "resources/unsubscribe", `"uri":"mem:///u1"`)
		synctest.Wait()
		clients[0].take()
		src.update("mem:///u1", `not an object`)
		wantLines(t, clients[0])
		wantLines(t, clients[2], `notifications/resources/updated {"uri":"mem:///u1"}`)
		_ = clients[2].end.Close()
		_ = clients[1].end.Close()
		synctest.Wait()
		if src.count() != 0 {
			t.Errorf("%d subscriptions after all are gone", src.count())
		}

		clients[0].ask(`5`, "resources/subscribe", `"uri":5`)
		wantLines(t, clients[0], `5 error -32602`)
		clients[0].ask(`6`, "resources/unsubscribe", ``)
		wantLines(t, clients[0], `6 error -32602`)
	})
}

func TestUnsubscribeOvertakesSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &watched{Memory: newMemory(), may: map[string]bool{"mem:///a": true}}
		src.onWatch = func(string) { time.Sleep(time.Second) }
		c := connect(t, server.New(src, server.Options{}))
		c.initialize("2025-06-18")
		c.ask(`1`, "resources/subscribe", `"uri":"mem:///a"`)
		synctest.Wait()
		c.ask(`2`, "resources/unsubscribe", `"uri":"mem:///a"`)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if src.started != 1 || src.count() != 0 {
			t.Errorf("%d begun, %d left", src.started, src.count())
		}
	})
}

func TestSubscriptionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &watched{Memory: newMemory(), may: make(map[string]bool)}
		c := connect(t, server.New(src, server.Options{}))
		c.initialize("2025-06-18")
		synctest.Wait()
		c.take()
		for i := range 1001 {
			uri := fmt.Sprint("mem:///", i)
			src.may[uri] = true
			c.ask(fmt.Sprint(i), "resources/subscribe", `"uri":"`+uri+`"`)
			synctest.Wait()
		}
		got := c.takeLines()
		if n := len(got); n != 1001 || got[1000] != "1000 error -32602" || got[999] != "999 {}" {
			t.Errorf("%d answers, %q", n, got[n-2:])
		}
		long := `{"uri":"mem:///5","x":"` + strings.Repeat("x", 1<<17) + `"}`
		src.update("mem:///5", long)
		wantLines(t, c, `notifications/resources/updated {"uri":"mem:///5"}`)
	})
}

func TestUpdatesWaitForTheirClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &watched{Memory: newMemory(), may: map[string]bool{"mem:///a": true, "mem:///b": true, "mem:///c": true}}
		srv := server.New(src, server.Options{})
		peer := &stuckPeer{gate: make(chan struct{})}
		sess := jsonrpc.NewSession("", peer)
		defer sess.Close()
		ask := func(method, params string) {
			t.Helper()
			if _, err := srv.Handle(t.Context(), &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: method, Params: parse(t, params), Session: sess, Peer: peer}); err != nil {
				t.Fatal(err)
			}
		}
		ask("initialize", `{"protocolVersion":"2025-11-25"}`)
		for _, uri := range []string{"a", "b", "c"} {
			ask("resources/subscribe", `{"uri":"mem:///`+uri+`"}`)
		}
		peer.block()
		src.update("mem:///a", `{"uri":"mem:///a","v":1}`)
		synctest.Wait() // on its way
		src.update("mem:///b", `{"uri":"mem:///b","v":1}`)
		src.update("mem:///a", `{"uri":"mem:///a","v":2}`)
		src.update("mem:///c", `{"uri":"mem:///c","v":1}`)
		src.update("mem:///c", `{"uri":"mem:///c","v":2}`)
		time.Sleep(40 * time.Second) // given up once
		ask("resources/unsubscribe", `{"uri":"mem:///c"}`)
		peer.unblock()
		time.Sleep(time.Minute)
		got := peer.heard()
		slices.Sort(got)
		if want := []string{`notifications/resources/updated {"uri":"mem:///a","v":2}`, `notifications/resources/updated {"uri":"mem:///b","v":1}`}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

func TestUpdatesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &watched{Memory: newMemory(), may: make(map[string]bool)}
		srv := server.New(src, server.Options{})
		peer := &stuckPeer{gate: make(chan struct{})}
		ctx, cancel := context.WithCancelCause(t.Context())
		var uris []string
		for i := range 1000 {
			uris = append(uris, fmt.Sprintf(`"mem:///%d"`, i))
			src.may[fmt.Sprint("mem:///", i)] = true
		}
		done := make(chan struct{})
		params := parse(t, `{"notifications":{"resourceSubscriptions":[`+strings.Join(uris, ",")+`]},`+meta+`}`)
		go func() { // ends with ctx
			defer close(done)
			_, _ = srv.Handle(ctx, &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: mcp.MethodListen, Params: params, Peer: peer})
		}()
		synctest.Wait()
		peer.block()
		for range 10 {
			for i := range 1000 {
				src.update(fmt.Sprint("mem:///", i), fmt.Sprintf(`{"uri":"mem:///%d","_meta":{"%s":"another","k":1}}`, i, subscriptionID))
			}
		}
		peer.unblock()
		time.Sleep(time.Minute)
		got := peer.heard()[1:]
		if len(got) < 1000 || len(got) > 1001 { // one was on its way
			t.Errorf("%d updates, want each once", len(got))
		}
		if want := `{"uri":"mem:///0","_meta":{"` + subscriptionID + `":1,"k":1}}`; !strings.HasSuffix(got[0], want) {
			t.Errorf("%s, want %s", got[0], want)
		}
		cancel(jsonrpc.ErrCanceled)
		<-done
		if n := src.count(); n != 0 {
			t.Errorf("%d resources are still watched", n)
		}
	})
}
