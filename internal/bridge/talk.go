package bridge

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// talk knows what a client and its gateway have said to each other, as far as it
// matters to another gateway.
type talk struct {
	mu      sync.Mutex // guards the fields below
	count   int
	pending map[string]*pending   // requests of the client that are not answered, by id
	asked   map[string]jsonrpc.ID // those of the gateway, likewise
	stale   map[string]bool       // ids of questions whose gateway is gone, which the client may still answer
	quiet   map[string]bool       // ids of requests that were said again: the client has their answer

	opening *said // initialize, and what tells of its success
	opened  []byte
	level   *said
	watched map[string]*said // by URI
}

// pending is a request that is not answered.
type pending struct {
	at     int // to tell what came first
	id     jsonrpc.ID
	method string
	frame  []byte // nil: it must not be sent again
	once   bool   // frame may be sent once
	begun  bool   // of a subscription: the client has the acknowledgement
}

// said is a request that holds for the whole session.
type said struct {
	at       int
	id       jsonrpc.ID
	frame    []byte
	answered bool
}

func newTalk() *talk {
	return &talk{
		pending: make(map[string]*pending), asked: make(map[string]jsonrpc.ID),
		stale: make(map[string]bool), quiet: make(map[string]bool),
		watched: make(map[string]*said),
	}
}

// repeatable reports whether a request may be sent twice: it changes nothing, and its
// answer does not depend on when it is made.
func repeatable(method string) bool {
	if _, list := mcp.KindOf(method); list {
		return true
	}
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover, mcp.MethodPing, mcp.MethodListen, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return true
	}
	return false
}

// messages returns the messages of a frame; several if it is a batch.
func messages(frame []byte) []jsonrpc.Message {
	m, err := jsonrpc.Parse(frame)
	if !errors.Is(err, jsonrpc.ErrBatch) {
		return []jsonrpc.Message{m}
	}
	parts, _ := jsonrpc.Elements(frame) // what cannot be read is the gateway's to refuse
	out := make([]jsonrpc.Message, 0, len(parts))
	for _, part := range parts {
		m, _ := jsonrpc.Parse(part)
		out = append(out, m)
	}
	return out
}

// fromClient takes note of a message of the client. It reports whether it is for the
// gateway.
func (t *talk) fromClient(frame []byte) (pass bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := messages(frame)
	for i := range all {
		m := &all[i]
		switch {
		case m.IsRequest():
			t.requestLocked(m, frame, len(all) == 1)
			pass = true
		case m.IsNotification():
			t.notificationLocked(m, frame)
			pass = true
		case t.stale[m.ID.Key()]:
			delete(t.stale, m.ID.Key())
		default:
			delete(t.asked, m.ID.Key())
			pass = true
		}
	}
	return pass || len(all) == 0
}

func (t *talk) requestLocked(m *jsonrpc.Message, frame []byte, alone bool) {
	t.count++
	p := &pending{at: t.count, id: m.ID, method: m.Method}
	if alone && repeatable(m.Method) {
		p.frame = frame
	}
	t.pending[m.ID.Key()] = p
	if !alone {
		return
	}
	s := &said{at: t.count, id: m.ID, frame: frame}
	switch m.Method {
	case mcp.MethodInitialize:
		t.opening = s
	case mcp.MethodSetLevel:
		t.level = s
	case mcp.MethodSubscribe:
		if uri, ok := m.Params.Text("uri"); ok {
			t.watched[uri] = s
		}
	case mcp.MethodUnsubscribe:
		if uri, ok := m.Params.Text("uri"); ok {
			delete(t.watched, uri)
		}
	}
}

// unsent says that nothing of a message of the client has reached the gateway: if it
// is a request, another one gets it, whatever it is.
func (t *talk) unsent(frame []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := messages(frame)
	if len(all) != 1 {
		return
	}
	if p := t.pending[all[0].ID.Key()]; p != nil && all[0].IsRequest() {
		p.frame, p.once = frame, !repeatable(p.method)
	}
}

func (t *talk) notificationLocked(m *jsonrpc.Message, frame []byte) {
	switch m.Method {
	case mcp.MethodInitialized:
		t.opened = frame
	case mcp.MethodCanceled:
		if id, err := jsonrpc.ParseID(m.Params.Get("requestId")); err == nil {
			delete(t.pending, id.Key())
		}
	}
}

// fromGateway takes note of a message of the gateway. It reports whether it is for
// the client, or else what to answer.
func (t *talk) fromGateway(frame []byte) (pass bool, refusal []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := messages(frame)
	for i := range all {
		m := &all[i]
		key := m.ID.Key()
		switch {
		case m.IsRequest() && t.stale[key]: // the client could not tell it from another one
			refusal = jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(jsonrpc.CodeInternal, "the client is busy with a question of another gateway"))
		case m.IsRequest():
			t.asked[key] = m.ID
			pass = true
		case m.IsNotification():
			pass = pass || !t.knownLocked(m)
		case t.quiet[key]:
			delete(t.quiet, key)
		default:
			t.answeredLocked(m)
			pass = true
		}
	}
	return pass || len(all) == 0, refusal
}

// knownLocked reports whether a notification acknowledges a subscription of which
// the client knows that it has begun.
func (t *talk) knownLocked(m *jsonrpc.Message) bool {
	if m.Method != mcp.MethodAcknowledged {
		return false
	}
	meta, err := jsonrpc.ParseObject(m.Params.Get("_meta"))
	if err != nil {
		return false
	}
	id, err := jsonrpc.ParseID(meta.Get(mcp.MetaSubscriptionID))
	if err != nil || t.pending[id.Key()] == nil {
		return false
	}
	known := t.pending[id.Key()].begun
	t.pending[id.Key()].begun = true
	return known
}

func (t *talk) answeredLocked(m *jsonrpc.Message) {
	key := m.ID.Key()
	delete(t.pending, key)
	held := slices.Collect(maps.Values(t.watched))
	for _, s := range append(held, t.opening, t.level) {
		if s != nil && s.id.Key() == key {
			s.answered = m.Error == nil
		}
	}
}

// lose forgets a gateway that has ended, and returns what the client is to be told:
// errors for requests that must not be sent again, and that questions are taken
// back.
func (t *talk) lose() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.failLocked(func(p *pending) bool { return p.frame == nil })
	for key, id := range t.asked {
		out = append(out, jsonrpc.AppendNotification(nil, mcp.MethodCanceled,
			fmt.Appendf(nil, `{"requestId":%s,"reason":"the gateway has ended"}`, id.Raw())))
		t.stale[key] = true
	}
	clear(t.asked)
	clear(t.quiet)
	return out
}

// end returns errors for all requests.
func (t *talk) end() [][]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failLocked(func(*pending) bool { return true })
}

func (t *talk) failLocked(which func(*pending) bool) (out [][]byte) {
	for _, p := range t.inOrderLocked() {
		if which(p) {
			delete(t.pending, p.id.Key())
			out = append(out, jsonrpc.AppendError(nil, p.id, jsonrpc.Errorf(jsonrpc.CodeInternal,
				"the gateway has ended while this request was under way; it may have been acted on")))
		}
	}
	return out
}

func (t *talk) inOrderLocked() []*pending {
	return slices.SortedFunc(maps.Values(t.pending), func(a, b *pending) int { return a.at - b.at })
}

// resume returns what another gateway is to be told: that there is a session, what
// holds for it, and the requests that wait for an answer.
func (t *talk) resume() (out [][]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	again := func(s *said) {
		if s != nil && s.answered {
			t.quiet[s.id.Key()] = true
			out = append(out, s.frame)
		}
	}
	again(t.opening)
	if t.opened != nil {
		out = append(out, t.opened)
	}
	again(t.level)
	for _, s := range slices.SortedFunc(maps.Values(t.watched), func(a, b *said) int { return a.at - b.at }) {
		again(s)
	}
	for _, p := range t.inOrderLocked() {
		out = append(out, p.frame)
		if p.once {
			p.frame, p.once = nil, false
		}
	}
	return out
}
