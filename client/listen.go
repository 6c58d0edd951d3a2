package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// AckTimeout is how long a server may take to acknowledge a subscription.
const AckTimeout = 30 * time.Second

// ErrListenEnded says that a server ended a subscription without the answer
// that marks an orderly end.
var ErrListenEnded = errors.New("the server ended the subscription")

var (
	errNoAck     = fmt.Errorf("subscriptions/listen was not acknowledged within %v", AckTimeout)
	errNoStreams = errors.New("the server's protocol version has no subscriptions/listen")
)

// Filter says what a subscription is about.
type Filter struct {
	Kinds     []mcp.Kind // lists; resources and templates are one to a server
	Resources []string   // URIs
}

// Listen is a subscription to what a stateless server has to say.
type Listen struct {
	Filter Filter
	// Acknowledged gets the part of Filter that the server agreed to, once,
	// before any Notification. nil: nobody is told.
	Acknowledged func(Filter)
	// Notification gets the notifications of the subscription. Both run on the
	// goroutine that reads and must not block.
	Notification func(m *jsonrpc.Message)
}

// subscription is a Listen that is under way. Its functions run on the reader.
type subscription struct {
	listen Listen
	ack    sync.Once
	acked  chan struct{}
	end    context.CancelCauseFunc
}

// Listen opens a subscription and waits until it ends: with nil if the server
// ended it in an orderly way, else with an error (2026-07-28,
// basic/patterns/subscriptions). It has no deadline but AckTimeout for the
// beginning. To open another is left to the caller, who may have missed
// something meanwhile.
func (c *Client) Listen(ctx context.Context, l Listen) error {
	if !c.info.Version.Stateless() {
		return errNoStreams
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sub := &subscription{listen: l, acked: make(chan struct{}), end: cancel}
	late := time.AfterFunc(AckTimeout, func() {
		select {
		case <-sub.acked:
		default:
			cancel(errNoAck)
		}
	})
	defer late.Stop()
	key := ""
	params, _ := jsonrpc.ParseObject(l.Filter.params())
	_, err := c.do(ctx, Request{
		Method: mcp.MethodListen, Params: params, Message: sub.deliver,
		Sent: func(id jsonrpc.ID) {
			c.forget(key) // a wire that sends it again, under another id
			key = id.Key()
			c.register(key, sub)
		},
	})
	c.forget(key)
	if err != nil {
		return fmt.Errorf("subscriptions/listen: %w", err)
	}
	return nil
}

func (c *Client) register(key string, sub *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.subs == nil {
		c.subs = make(map[string]*subscription)
	}
	c.subs[key] = sub
}

func (c *Client) forget(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.subs, key)
}

// subscribed hands a notification to the subscription whose id it carries. The
// server may also end one by cancelling the request that opened it.
func (c *Client) subscribed(m *jsonrpc.Message) bool {
	c.mu.Lock()
	none := len(c.subs) == 0
	c.mu.Unlock()
	if none {
		return false
	}
	var raw jsontext.Value
	if m.Method == mcp.MethodCanceled {
		raw = m.Params.Get("requestId")
	} else if meta := m.Params.Get("_meta"); meta != nil {
		raw = object(meta).Get(mcp.MetaSubscriptionID)
	}
	if raw == nil {
		return false
	}
	id, err := jsonrpc.ParseID(raw)
	if err != nil {
		return false
	}
	c.mu.Lock()
	sub := c.subs[id.Key()]
	c.mu.Unlock()
	if sub == nil {
		return false
	}
	sub.deliver(m)
	return true
}

func (s *subscription) deliver(m *jsonrpc.Message) {
	switch m.Method {
	case mcp.MethodAcknowledged:
		s.ack.Do(func() {
			close(s.acked)
			if s.listen.Acknowledged != nil {
				s.listen.Acknowledged(readFilter(object(m.Params.Get("notifications"))))
			}
		})
	case mcp.MethodCanceled:
		s.end(ErrListenEnded)
	default:
		if m.IsNotification() && s.listen.Notification != nil {
			s.listen.Notification(m)
		}
	}
}

// params returns the params of a subscriptions/listen request.
func (f Filter) params() jsontext.Value {
	dst := []byte(`{"notifications":{`)
	var names []string
	for _, k := range f.Kinds {
		if name := k.Filter(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonrpc.AppendString(dst, name)
		dst = append(dst, ":true"...)
	}
	if len(f.Resources) > 0 {
		if len(names) > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `"resourceSubscriptions":[`...)
		for i, uri := range f.Resources {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonrpc.AppendString(dst, uri)
		}
		dst = append(dst, ']')
	}
	return append(dst, "}}"...)
}

func readFilter(o jsonrpc.Object) Filter {
	var f Filter
	for _, k := range mcp.Kinds {
		if string(o.Get(k.Filter())) == "true" {
			f.Kinds = append(f.Kinds, k)
		}
	}
	if uris := o.Get("resourceSubscriptions"); uris.Kind() == '[' {
		list, _ := jsonrpc.Elements(uris)
		for _, v := range list {
			if s, ok := jsonrpc.Text(v); ok {
				f.Resources = append(f.Resources, s)
			}
		}
	}
	return f
}
