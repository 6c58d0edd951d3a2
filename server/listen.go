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
	req    *Request // whose client is told
	kinds  []mcp.Kind
	signal chan struct{} // one slot
	stop   func()

	ready <-chan struct{} // closed when the source's lists are complete; nil: they were

	mu   sync.Mutex             // guards told
	told [len(mcp.Kinds)]uint64 // fingerprints of what the client knows of; 0: not known yet

	// updates are those of watched resources, told by updated as they come; nil
	// if none are watched.
	updates *updates
	updated func(ctx context.Context, params jsontext.Value) error
}

// newListener starts to watch, until stop: changes from now on are told.
func (s *Server) newListener(r *Request, kinds []mcp.Kind, notify func(context.Context, mcp.Kind) error) *listener {
	l := &listener{server: s, notify: notify, req: r, kinds: kinds, signal: make(chan struct{}, 1)}
	l.stop = s.source.Watch(func() {
		select {
		case l.signal <- struct{}{}:
		default:
		}
	})
	l.ready = l.start()
	return l
}

// start notes what the client knows from the beginning. With a source whose lists
// are not complete yet, that is what they are when they become so: ready is closed
// then, and caughtUp is to be called.
func (l *listener) start() (ready <-chan struct{}) {
	if starting, ok := l.server.source.(StartingSource); ok {
		ready := starting.Ready(l.req)
		select {
		case <-ready:
		default:
			return ready
		}
	}
	for _, k := range l.kinds {
		l.told[k] = l.server.source.Fingerprint(l.req, k)
	}
	return nil
}

// caughtUp notes what the client knows from the time at which the source's lists
// became complete, but for what it has read since, and looks for later changes.
func (l *listener) caughtUp() {
	source := l.server.source.(StartingSource)
	for _, k := range l.kinds {
		l.replace(k, 0, source.FirstFingerprint(l.req, k))
	}
	select {
	case l.signal <- struct{}{}:
	default:
	}
}

// run tells until ctx or the session ends, or the server closes.
func (l *listener) run(ctx context.Context, ended <-chan struct{}) {
	signal, ready := l.signal, l.ready
	if ready != nil {
		signal = nil // there is nothing to tell before
	}
	for {
		select {
		case <-ready:
			l.caughtUp()
			signal, ready = l.signal, nil
			continue
		case <-signal:
		case <-l.updates.ready():
			l.tellUpdate(ctx)
			continue
		case <-ctx.Done():
			return
		case <-ended:
			return
		case <-l.server.closing:
			return
		}
		l.settle(ctx, ended)
		if err := l.tell(ctx); err != nil {
			l.failed(err, l.signal)
		}
	}
}

// failed notes that the client was not told of something. If that was for want of
// room, again has it told later.
func (l *listener) failed(err error, again chan struct{}) {
	l.server.opts.Logger.Debug("client not told of a change", "err", err)
	if errors.Is(err, context.DeadlineExceeded) {
		select {
		case again <- struct{}{}:
		default:
		}
	}
}

// settle waits until no change has come for a while, within bounds.
func (l *listener) settle(ctx context.Context, ended <-chan struct{}) {
	quiet := time.NewTimer(l.server.opts.Settle)
	defer quiet.Stop()
	most := time.NewTimer(l.server.opts.SettleMax)
	defer most.Stop()
	for {
		select {
		case <-l.signal:
			quiet.Reset(l.server.opts.Settle)
		case <-l.updates.ready(): // which have nothing to wait for
			l.tellUpdate(ctx)
		case <-quiet.C:
			return
		case <-most.C:
			return
		case <-l.server.closing:
			return
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tellUpdate sends what has waited longest of watched resources.
func (l *listener) tellUpdate(ctx context.Context) {
	uri, params, ok := l.updates.next()
	if !ok {
		return
	}
	err := bounded(ctx, func(ctx context.Context) error { return l.updated(ctx, params) })
	if errors.Is(err, context.DeadlineExceeded) {
		l.updates.putBack(uri, params)
	}
	if err != nil {
		l.failed(err, l.updates.signal)
	}
}

// bounded sends something, unless ctx has ended, within the time there is for it.
func bounded(ctx context.Context, send func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	return send(ctx)
}

// tell sends one notification for each kind whose list has changed, kinds that
// share a notification together.
func (l *listener) tell(ctx context.Context) error {
	sent := ""
	for _, k := range l.kinds {
		before, now := l.knows(k), l.server.source.Fingerprint(l.req, k)
		if !l.replace(k, before, now) || k.ChangedMethod() == sent {
			continue
		}
		sent = k.ChangedMethod()
		if err := bounded(ctx, func(ctx context.Context) error { return l.notify(ctx, k) }); err != nil {
			l.replace(k, now, before)
			return err
		}
	}
	return nil
}

// knows returns the fingerprint of what the client knows of a list.
func (l *listener) knows(k mcp.Kind) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.told[k]
}

// replace notes what the client knows of a list, because it is told or because it
// has read it, unless it has learned something else meanwhile; it reports whether
// that is news.
func (l *listener) replace(k mcp.Kind, before, now uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.told[k] != before || before == now {
		return false
	}
	l.told[k] = now
	return true
}

// announced returns the kinds among some of which the source declares that it
// tells of changes.
func (s *Server) announced(kinds []mcp.Kind) []mcp.Kind {
	capabilities, _ := jsonrpc.ParseObject(s.source.Info().Capabilities) // unreadable: declares nothing
	var out []mcp.Kind
	for _, k := range kinds {
		declared, _ := jsonrpc.ParseObject(capabilities.Get(k.Capability()))
		if declared.Get("listChanged").Kind() == 't' {
			out = append(out, k)
		}
	}
	return out
}

// listenKey is a subscription's name on a wire that carries several.
type listenKey struct {
	session *jsonrpc.Session
	id      string
}

// enter waits until a cancelled subscription under the same id has said its last on
// the same wire, so that what it says is not taken for the new one's. leave is to
// be called at the end.
func (s *Server) enter(ctx context.Context, r *Request) (leave func(), err error) {
	if r.Session == nil {
		return func() {}, nil
	}
	key, done := listenKey{r.Session, r.ID.Key()}, make(chan struct{})
	for {
		s.mu.Lock()
		before := s.listens[key]
		if before == nil {
			s.listens[key] = done
		}
		s.mu.Unlock()
		if before == nil {
			break
		}
		select {
		case <-before:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return func() {
		s.mu.Lock()
		delete(s.listens, key)
		s.mu.Unlock()
		close(done)
	}, nil
}

// listen answers subscriptions/listen: it acknowledges, tells what was asked
// for, and returns when the server or the wire closes (2026-07-28, basic/patterns/
// subscriptions).
func (s *Server) listen(ctx context.Context, r *Request) (jsontext.Value, error) {
	f, err := readFilter(r.Params.Get("notifications"))
	if err != nil {
		return nil, err
	}
	leave, err := s.enter(ctx, r)
	if err != nil {
		return nil, err
	}
	defer leave()
	meta := subscriptionMeta(r.ID)
	f.kinds = s.announced(f.kinds)
	l := s.newListener(r, f.kinds, func(ctx context.Context, k mcp.Kind) error {
		return r.Peer.Notify(ctx, k.ChangedMethod(), append(append([]byte(`{"_meta":`), meta...), '}'))
	})
	defer l.stop()
	updates := newUpdates(maxUpdates)
	stop := s.watchAll(ctx, r, &f, updates)
	defer stop()
	ack := append([]byte(`{"_meta":`), meta...)
	ack = append(ack, `,"notifications":`...)
	ack = append(f.append(ack), '}')
	if err := bounded(ctx, func(ctx context.Context) error { return r.Peer.Notify(ctx, mcp.MethodAcknowledged, ack) }); err != nil {
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
	l.run(ctx, ended)
	if errors.Is(context.Cause(ctx), jsonrpc.ErrCanceled) {
		return nil, jsonrpc.ErrCanceled // the client has ended it, or is gone
	}
	return s.closeListen(ctx, r, meta)
}

// closeListen ends a subscription that its client has not ended: it is told, and
// gets its answer.
func (s *Server) closeListen(ctx context.Context, r *Request, meta jsontext.Value) (jsontext.Value, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTime)
	defer cancel()
	gone := append([]byte(`{"requestId":`), r.ID.Raw()...)
	gone = append(gone, `,"reason":"the subscription is closed","_meta":`...)
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
