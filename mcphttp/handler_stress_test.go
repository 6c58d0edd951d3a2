package mcphttp_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcphttp"
)

func TestStreamSurvivesDisconnects(t *testing.T) {
	// A client that is cut off again and again, and resumes behind the last event
	// it has read, gets every message once and in order.
	const total, window = 1500, 200
	b := &backend{}
	e := serveHTTP(t, b, mcphttp.HandlerOptions{})
	session := e.initialize("2025-11-25")
	peer := b.session(0).Peer
	room := make(chan struct{}, window)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range total {
			room <- struct{}{}
			if err := peer.Notify(context.Background(), "notifications/progress", jsontext.Value(fmt.Sprintf(`{"progress":%d}`, i))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	last, seen := "", 0
	for round := 0; seen < total; round++ {
		h := hdr{"Last-Event-Id": last}
		for k, v := range session {
			h[k] = v
		}
		ctx, leave := context.WithCancel(testContext(t))
		s := e.stream(ctx, "GET", "", h)
		last = s.must().id
		for n := 0; n < 1+round%60 && seen < total; n++ {
			ev := s.must()
			if ev.data != note(seen) {
				t.Fatalf("event %d: %+v", seen, ev)
			}
			last, seen = ev.id, seen+1
			<-room
		}
		leave()
	}
	wg.Wait()
}

func TestStreamManySenders(t *testing.T) {
	// Notifications, calls and the answer from many goroutines, over HTTP/1 and
	// HTTP/2: nothing is lost that was taken, and the answer is last.
	const senders, each = 8, 25
	flood := func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		var wg sync.WaitGroup
		for range senders {
			wg.Go(func() {
				for range each {
					if err := req.Peer.Notify(ctx, "n", nil); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		return nil, nil
	}
	for name, serve := range map[string]func(testing.TB, jsonrpc.Handler, mcphttp.HandlerOptions) *endpoint{
		"HTTP/1": serveHTTP, "HTTP/2": serveHTTP2,
	} {
		t.Run(name, func(t *testing.T) {
			e := serve(t, &backend{tools: map[string]jsonrpc.HandlerFunc{"flood": flood}}, mcphttp.HandlerOptions{})
			body, h := modernCall("1", "flood")
			for range 10 {
				s := e.stream(testContext(t), "POST", body, h)
				for range senders * each {
					if ev := s.must(); !strings.Contains(ev.data, `"n"`) {
						t.Fatalf("%+v", ev)
					}
				}
				if ev := s.must(); !strings.Contains(ev.data, `"result"`) {
					t.Fatalf("%+v", ev)
				}
				s.atEnd()
			}
		})
	}
}

func TestHTTP2Disconnect(t *testing.T) {
	hang := newHanging()
	b := &backend{tools: map[string]jsonrpc.HandlerFunc{"t": func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		if err := req.Peer.Notify(ctx, "n", nil); err != nil {
			return nil, err
		}
		return hang.Handle(ctx, req)
	}}}
	e := serveHTTP2(t, b, mcphttp.HandlerOptions{})
	body, h := modernCall("1", "t")
	ctx, leave := context.WithCancel(testContext(t))
	e.stream(ctx, "POST", body, h).must()
	within(t, "the call", wait(hang.running))
	leave()
	if err := hang.cause(t); err != jsonrpc.ErrCanceled {
		t.Errorf("cause %v", err)
	}
	session := e.initialize("2025-11-25")
	if a := e.post(list, session); a.status != 200 {
		t.Errorf("the connection afterwards: %d", a.status)
	}
}
