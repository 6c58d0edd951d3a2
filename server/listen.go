package server

import (
	"context"
	"errors"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// notifyTime is how long a listener waits for its client's queue to take one
// notification.
const notifyTime = 30 * time.Second

// listener tells one client of changed lists: once for a batch of changes, and
// only if what the client would read has changed since it was told last.
type listener struct {
	server *Server
	notify func(context.Context, mcp.Kind) error
	v      mcp.Version
	kinds  []mcp.Kind
	told   [len(mcp.Kinds)]uint64 // fingerprints of what the client knows of
	signal chan struct{}          // one slot
	stop   func()
}

// newListener starts to watch: changes from now on are told.
func (s *Server) newListener(v mcp.Version, kinds []mcp.Kind, notify func(context.Context, mcp.Kind) error) *listener {
	l := &listener{server: s, notify: notify, v: v, kinds: kinds, signal: make(chan struct{}, 1)}
	l.stop = s.source.Watch(func() {
		select {
		case l.signal <- struct{}{}:
		default:
		}
	})
	for _, k := range kinds {
		l.told[k] = s.source.Fingerprint(k, v)
	}
	return l
}

// run tells until ctx or the session ends, or the server closes; true means that
// the server closes.
func (l *listener) run(ctx context.Context, ended <-chan struct{}) (closing bool) {
	defer l.stop()
	for {
		select {
		case <-l.signal:
		case <-ctx.Done():
			return false
		case <-ended:
			return false
		case <-l.server.closing:
			return true
		}
		l.settle(ctx)
		if err := l.tell(ctx); err != nil {
			l.server.opts.Logger.Debug("client not told of a change", "err", err)
			if ctx.Err() != nil {
				return false
			}
		}
	}
}

// settle waits until no change has come for a while, within bounds.
func (l *listener) settle(ctx context.Context) {
	quiet := time.NewTimer(l.server.opts.Settle)
	defer quiet.Stop()
	most := time.NewTimer(l.server.opts.SettleMax)
	defer most.Stop()
	for {
		select {
		case <-l.signal:
			quiet.Reset(l.server.opts.Settle)
		case <-quiet.C:
			return
		case <-most.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tell sends one notification for each kind whose list has changed, kinds that
// share a notification together.
func (l *listener) tell(ctx context.Context) error {
	sent := ""
	for _, k := range l.kinds {
		now := l.server.source.Fingerprint(k, l.v)
		if now == l.told[k] {
			continue
		}
		l.told[k] = now
		if k.ChangedMethod() == sent {
			continue
		}
		sent = k.ChangedMethod()
		bounded, cancel := context.WithTimeout(ctx, notifyTime)
		err := l.notify(bounded, k)
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// listen answers subscriptions/listen: it acknowledges, tells what was asked
// for, and returns when the server or the wire closes (2026-07-28, basic/patterns/
// subscriptions).
func (s *Server) listen(ctx context.Context, r *Request) (jsontext.Value, error) {
	kinds, honoured, err := readFilter(r.Params.Get("notifications"))
	if err != nil {
		return nil, err
	}
	meta := subscriptionMeta(r.ID)
	l := s.newListener(r.Caller.Version, kinds, func(ctx context.Context, k mcp.Kind) error {
		return r.Peer.Notify(ctx, k.ChangedMethod(), append(append([]byte(`{"_meta":`), meta...), '}'))
	})
	ack := append([]byte(`{"_meta":`), meta...)
	ack = append(ack, `,"notifications":`...)
	ack = append(append(ack, honoured...), '}')
	if err := r.Peer.Notify(ctx, mcp.MethodAcknowledged, ack); err != nil {
		l.stop()
		return nil, err
	}
	var ended <-chan struct{}
	if r.Session != nil {
		ended = r.Session.Done()
	}
	if !l.run(ctx, ended) && (ctx.Err() == nil || errors.Is(context.Cause(ctx), jsonrpc.ErrCanceled)) {
		return nil, jsonrpc.ErrCanceled // the client has ended it, or is gone
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTime)
	defer cancel()
	gone := append([]byte(`{"requestId":`), r.ID.Raw()...)
	gone = append(gone, `,"reason":"the server is closing","_meta":`...)
	gone = append(append(gone, meta...), '}')
	if err := r.Peer.Notify(ctx, mcp.MethodCanceled, gone); err != nil {
		return nil, err
	}
	end, err := jsonrpc.ParseObject(append(append([]byte(`{"resultType":"complete","_meta":`), meta...), '}'))
	if err != nil {
		return nil, err
	}
	return s.finish(r, end)
}

func subscriptionMeta(id jsonrpc.ID) jsontext.Value {
	return append(append([]byte(`{"`+mcp.MetaSubscriptionID+`":`), id.Raw()...), '}')
}

// readFilter returns the kinds that a filter asks for, and the part of it that
// is honoured here.
func readFilter(raw jsontext.Value) ([]mcp.Kind, jsontext.Value, error) {
	filter, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.notifications: %v", err)
	}
	var kinds []mcp.Kind
	honoured := []byte{'{'}
	seen := ""
	for _, k := range mcp.Kinds {
		v := filter.Get(k.Filter())
		switch {
		case v == nil || v.Kind() == 'f':
			continue
		case v.Kind() != 't':
			return nil, nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.notifications.%s must be true or false", k.Filter())
		}
		kinds = append(kinds, k)
		if k.Filter() == seen {
			continue
		}
		if seen != "" {
			honoured = append(honoured, ',')
		}
		seen = k.Filter()
		honoured = append(honoured, '"')
		honoured = append(honoured, seen...)
		honoured = append(honoured, `":true`...)
	}
	return kinds, append(honoured, '}'), nil
}
