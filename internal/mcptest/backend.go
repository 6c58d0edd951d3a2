package mcptest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Backend is a server of one protocol version that lists and answers the very
// bytes that it was given. It is a jsonrpc.Handler for any wire. Its exported
// fields must not change once it serves.
type Backend struct {
	Version mcp.Version
	// Page is how many items a page of its lists has. 0: all.
	Page int
	// Instructions are what it says of its use.
	Instructions string
	// Do answers what is not a list or part of the beginning. nil: -32601.
	Do func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error)
	// List may answer a list request; without a result and an error it is
	// answered as usual.
	List func(ctx context.Context, k mcp.Kind, req *jsonrpc.Request) (jsontext.Value, error)

	mu        sync.Mutex                 // guards the fields below
	lists     [len(mcp.Kinds)][][]string // all that there were, the current one last
	counts    map[string]int
	sessions  map[*jsonrpc.Session]struct{}
	listeners map[*jsonrpc.Request]struct{}
	seen      chan struct{} // closed and replaced when a request comes
}

// Set makes a list consist of definitions. Nobody is told.
func (b *Backend) Set(k mcp.Kind, definitions ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists[k] = append(b.lists[k], slices.Clone(definitions))
}

// Add adds definitions to a list. Nobody is told.
func (b *Backend) Add(k mcp.Kind, definitions ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lists[k] = append(b.lists[k], slices.Concat(b.currentLocked(k), definitions))
}

func (b *Backend) currentLocked(k mcp.Kind) []string {
	if n := len(b.lists[k]); n > 0 {
		return b.lists[k][n-1]
	}
	return nil
}

// Count returns how often a method was called.
func (b *Backend) Count(method string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts[method]
}

// WaitCount waits until a method was called n times.
func (b *Backend) WaitCount(ctx context.Context, method string, n int) error {
	for {
		b.mu.Lock()
		there := b.counts[method] >= n
		if b.seen == nil {
			b.seen = make(chan struct{})
		}
		seen := b.seen
		b.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-seen:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Listeners returns how many clients would be told of a change.
func (b *Backend) Listeners() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sessions) + len(b.listeners)
}

// Changed tells all clients that a list has changed.
func (b *Backend) Changed(ctx context.Context, k mcp.Kind) {
	b.mu.Lock()
	var sessions []*jsonrpc.Session
	for s := range b.sessions {
		sessions = append(sessions, s)
	}
	var listeners []*jsonrpc.Request
	for r := range b.listeners {
		listeners = append(listeners, r)
	}
	b.mu.Unlock()
	for _, s := range sessions {
		_ = s.Peer.Notify(ctx, k.ChangedMethod(), nil) // it may be gone
	}
	for _, r := range listeners {
		_ = r.Peer.Notify(ctx, k.ChangedMethod(), subscription(r.ID, ""))
	}
}

// subscription returns the params of a notification on a subscription.
func subscription(id jsonrpc.ID, more string) jsontext.Value {
	return jsontext.Value(`{"_meta":{"` + mcp.MetaSubscriptionID + `":` + string(id.Raw()) + `}` + more + `}`)
}

func (b *Backend) count(method string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.counts == nil {
		b.counts = make(map[string]int)
	}
	b.counts[method]++
	if b.seen != nil {
		close(b.seen)
		b.seen = nil
	}
}

// Handle answers a request.
func (b *Backend) Handle(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	b.count(req.Method)
	if req.ID.IsZero() {
		b.notification(req)
		return nil, nil
	}
	k, lists := mcp.KindOf(req.Method)
	switch {
	case lists:
		return b.list(ctx, k, req)
	case req.Method == mcp.MethodInitialize && !b.Version.Stateless():
		return b.initialize(), nil
	case req.Method == mcp.MethodDiscover && b.Version.Stateless():
		return b.discover(), nil
	case req.Method == mcp.MethodListen && b.Version.Stateless():
		return b.listen(ctx, req)
	case req.Method == mcp.MethodPing && !b.Version.Stateless():
		return jsontext.Value("{}"), nil
	case b.Do != nil && req.Method != mcp.MethodDiscover:
		return b.Do(ctx, req)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", req.Method)
}

// Everything is a capabilities object that promises all that is listed.
const Everything = `{"completions":{},"prompts":{"listChanged":true},"resources":{"listChanged":true},"tools":{"listChanged":true}}`

func (b *Backend) instructions() string {
	if b.Instructions == "" {
		return ""
	}
	return `,"instructions":` + string(mcp.String(b.Instructions))
}

func (b *Backend) initialize() jsontext.Value {
	return jsontext.Value(`{"protocolVersion":"` + string(b.Version) + `","capabilities":` + Everything +
		`,"serverInfo":{"name":"backend","version":"1"}` + b.instructions() + `}`)
}

func (b *Backend) discover() jsontext.Value {
	return jsontext.Value(`{"resultType":"complete","supportedVersions":["` + string(b.Version) + `"],"capabilities":` + Everything +
		`,"_meta":{"` + mcp.MetaServerInfo + `":{"name":"backend","version":"1"}}` + b.instructions() + `,"ttlMs":0,"cacheScope":"private"}`)
}

func (b *Backend) list(ctx context.Context, k mcp.Kind, req *jsonrpc.Request) (jsontext.Value, error) {
	if b.List != nil {
		if result, err := b.List(ctx, k, req); result != nil || err != nil {
			return result, err
		}
	}
	items, next, more, err := b.page(k, req.Params)
	if err != nil {
		return nil, err
	}
	return b.ListResult(k, items, more, next), nil
}

// page returns the items of the page that params ask for, and the cursor of the
// next. A walk goes through the list that it began with.
func (b *Backend) page(k mcp.Kind, params jsonrpc.Object) (items []string, next string, more bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	items = b.currentLocked(k)
	list, from := len(b.lists[k])-1, 0
	if cursor, ok := params.Text("cursor"); ok {
		if _, err := fmt.Sscanf(cursor, "behind %d of list %d", &from, &list); err != nil || list >= len(b.lists[k]) || from > len(b.lists[k][list]) {
			return nil, "", false, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "no such cursor: %q", cursor)
		}
		items = b.lists[k][list]
	}
	to := len(items)
	if b.Page > 0 {
		to = min(to, from+b.Page)
	}
	return items[from:to], fmt.Sprintf("behind %d of list %d", to, list), to < len(items), nil
}

// ListResult returns a list result in the form of the backend's version.
func (b *Backend) ListResult(k mcp.Kind, definitions []string, more bool, cursor string) jsontext.Value {
	out := `{"` + k.Field() + `":[` + strings.Join(definitions, ",") + `]`
	if more {
		out += `,"nextCursor":` + string(mcp.String(cursor))
	}
	if b.Version.Stateless() {
		out += `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`
	}
	return jsontext.Value(out + `}`)
}

func (b *Backend) notification(req *jsonrpc.Request) {
	if req.Method != mcp.MethodInitialized || req.Session == nil {
		return
	}
	s := req.Session
	b.mu.Lock()
	if b.sessions == nil {
		b.sessions = make(map[*jsonrpc.Session]struct{})
	}
	b.sessions[s] = struct{}{}
	b.mu.Unlock()
	go func() { // ends with the session
		<-s.Done()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.sessions, s)
	}()
}

func (b *Backend) listen(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	ack := subscription(req.ID, `,"notifications":`+string(req.Params.Get("notifications")))
	if err := req.Peer.Notify(ctx, mcp.MethodAcknowledged, ack); err != nil {
		return nil, err
	}
	b.mu.Lock()
	if b.listeners == nil {
		b.listeners = make(map[*jsonrpc.Request]struct{})
	}
	b.listeners[req] = struct{}{}
	b.mu.Unlock()
	var ended <-chan struct{}
	if req.Session != nil {
		ended = req.Session.Done()
	}
	select {
	case <-ctx.Done():
	case <-ended:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.listeners, req)
	return nil, jsonrpc.ErrCanceled
}
