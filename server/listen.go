package server

import (
	"context"
	"errors"
	"slices"
	"sync"
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
	signal chan struct{} // one slot
	stop   func()

	mu   sync.Mutex             // guards told
	told [len(mcp.Kinds)]uint64 // fingerprints of what the client knows of

	// updates are those of watched resources, told by updated as they come; nil
	// if none are watched.
	updates *updates
	updated func(ctx context.Context, params jsontext.Value) error
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
		case <-l.updates.ready():
			l.tellUpdates(ctx)
			continue
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

// tellUpdates sends what is known of watched resources.
func (l *listener) tellUpdates(ctx context.Context) {
	for _, params := range l.updates.take() {
		bounded, cancel := context.WithTimeout(ctx, notifyTime)
		err := l.updated(bounded, params)
		cancel()
		if err != nil {
			l.server.opts.Logger.Debug("client not told of a resource", "err", err)
			return
		}
	}
}

// tell sends one notification for each kind whose list has changed, kinds that
// share a notification together.
func (l *listener) tell(ctx context.Context) error {
	sent := ""
	for _, k := range l.kinds {
		if !l.learn(k, l.server.source.Fingerprint(k, l.v)) || k.ChangedMethod() == sent {
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

// learn notes what the client knows of a list, because it is told or because it
// has read it, and reports whether that is news.
func (l *listener) learn(k mcp.Kind, fingerprint uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	news := l.told[k] != fingerprint
	l.told[k] = fingerprint
	return news
}

// listen answers subscriptions/listen: it acknowledges, tells what was asked
// for, and returns when the server or the wire closes (2026-07-28, basic/patterns/
// subscriptions).
func (s *Server) listen(ctx context.Context, r *Request) (jsontext.Value, error) {
	f, err := readFilter(r.Params.Get("notifications"))
	if err != nil {
		return nil, err
	}
	meta := subscriptionMeta(r.ID)
	updates := newUpdates(maxUpdates)
	stop := s.watchAll(ctx, r, &f, updates)
	defer stop()
	l := s.newListener(r.Caller.Version, f.kinds, func(ctx context.Context, k mcp.Kind) error {
		return r.Peer.Notify(ctx, k.ChangedMethod(), append(append([]byte(`{"_meta":`), meta...), '}'))
	})
	ack := append([]byte(`{"_meta":`), meta...)
	ack = append(ack, `,"notifications":`...)
	ack = append(f.append(ack), '}')
	if err := r.Peer.Notify(ctx, mcp.MethodAcknowledged, ack); err != nil {
		l.stop()
		return nil, err
	}
	var ended <-chan struct{}
	if r.Session != nil {
		ended = r.Session.Done()
	}
	l.updates = updates
	l.updated = func(ctx context.Context, params jsontext.Value) error {
		tagged, err := tag(params, r.ID)
		if err != nil {
			return err
		}
		return r.Peer.Notify(ctx, mcp.MethodUpdated, tagged)
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

// filter is what a subscriptions/listen request asks for, and after watchAll what
// is honoured of it.
type filter struct {
	kinds []mcp.Kind
	uris  []string
}

func readFilter(raw jsontext.Value) (filter, error) {
	var f filter
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.notifications: %v", err)
	}
	for _, k := range mcp.Kinds {
		switch v := obj.Get(k.Filter()); {
		case v == nil || v.Kind() == 'f':
		case v.Kind() == 't':
			f.kinds = append(f.kinds, k)
		default:
			return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.notifications.%s must be true or false", k.Filter())
		}
	}
	if v := obj.Get(resourceFilter); v != nil {
		items, err := jsonrpc.Elements(v)
		if err != nil || len(items) > maxWatched {
			return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.notifications.%s must be an array of at most %d URIs", resourceFilter, maxWatched)
		}
		for _, item := range items {
			uri, ok := jsonrpc.Text(item)
			if !ok {
				return f, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.notifications.%s must have strings", resourceFilter)
			}
			if !slices.Contains(f.uris, uri) {
				f.uris = append(f.uris, uri)
			}
		}
	}
	return f, nil
}

// append writes the filter as an object.
func (f *filter) append(dst []byte) []byte {
	dst = append(dst, '{')
	before := ""
	for _, k := range f.kinds {
		if k.Filter() == before { // resources and templates share one
			continue
		}
		if before != "" {
			dst = append(dst, ',')
		}
		before = k.Filter()
		dst = append(append(append(dst, '"'), before...), `":true`...)
	}
	if len(f.uris) > 0 {
		if before != "" {
			dst = append(dst, ',')
		}
		dst = append(dst, `"`+resourceFilter+`":[`...)
		for i, uri := range f.uris {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = jsonrpc.AppendString(dst, uri)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

const resourceFilter = "resourceSubscriptions"
