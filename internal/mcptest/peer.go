package mcptest

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Peer is the far end of one connection, which says what a script wants it to.
// It answers nothing by itself.
type Peer struct {
	end *End

	mu  sync.Mutex // guards log
	log []jsonrpc.Message
}

// Serve starts a peer over one end of a pipe; on gets each message, in order, on
// the goroutine that reads, and is told of everything from one goroutine.
func Serve(end *End, on func(p *Peer, m *jsonrpc.Message)) *Peer {
	p := &Peer{end: end}
	go func() { // ends with the pipe
		for {
			frame, err := end.ReadFrame()
			if err != nil {
				return
			}
			m, err := jsonrpc.Parse(frame)
			if err != nil {
				panic("mcptest: we sent " + string(frame) + ": " + err.Error())
			}
			p.mu.Lock()
			p.log = append(p.log, m)
			p.mu.Unlock()
			on(p, &m)
		}
	}()
	return p
}

// Log returns what came so far.
func (p *Peer) Log() []jsonrpc.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]jsonrpc.Message(nil), p.log...)
}

// Count returns how many messages with a method came.
func (p *Peer) Count(method string) int {
	n := 0
	for _, m := range p.Log() {
		if m.Method == method {
			n++
		}
	}
	return n
}

// Raw writes one frame as it is.
func (p *Peer) Raw(frame string) { _ = p.end.WriteFrames([][]byte{[]byte(frame)}) }

// Reply answers a request.
func (p *Peer) Reply(m *jsonrpc.Message, result string) {
	p.Raw(string(jsonrpc.AppendResult(nil, m.ID, jsontext.Value(result))))
}

// Refuse answers a request with an error. data may be empty.
func (p *Peer) Refuse(m *jsonrpc.Message, code int, message, data string) {
	e := jsonrpc.Errorf(code, "%s", message)
	if data != "" {
		e.Data = jsontext.Value(data)
	}
	p.Raw(string(jsonrpc.AppendError(nil, m.ID, e)))
}

// Notify sends a notification; params may be empty.
func (p *Peer) Notify(method, params string) {
	var v jsontext.Value
	if params != "" {
		v = jsontext.Value(params)
	}
	p.Raw(string(jsonrpc.AppendNotification(nil, method, v)))
}

// Close ends the connection, as a process that exits does.
func (p *Peer) Close() { _ = p.end.Close() }

// Host runs a new Peer for each connection that is dialled.
type Host struct {
	// On is the script of the n-th peer, counted from 1.
	On func(n int, p *Peer, m *jsonrpc.Message)
	// Refuse, if set, may fail the n-th attempt to dial.
	Refuse func(n int) error

	mu    sync.Mutex // guards the fields below
	peers []*Peer
	dials int
}

// Dial is a client.Dial.
func (h *Host) Dial(ctx context.Context, in client.Incoming) (client.Wire, error) {
	h.mu.Lock()
	h.dials++
	n := h.dials
	h.mu.Unlock()
	if h.Refuse != nil {
		if err := h.Refuse(n); err != nil {
			return nil, err
		}
	}
	near, far := Pipe()
	p := Serve(far, func(p *Peer, m *jsonrpc.Message) { h.On(n, p, m) })
	h.mu.Lock()
	h.peers = append(h.peers, p)
	h.mu.Unlock()
	return jsonrpc.NewConn(context.WithoutCancel(ctx), near, jsonrpc.ConnOptions{
		Handler: in.Handler, Route: in.Route, Notification: in.Notification,
		Cancel: jsonrpc.CancelNotification{Method: mcp.MethodCanceled, Member: "requestId"},
	}), nil
}

// Dials returns how often Dial was called.
func (h *Host) Dials() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dials
}

// Peer returns the peer of the newest connection, nil if there was none.
func (h *Host) Peer() *Peer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.peers) == 0 {
		return nil
	}
	return h.peers[len(h.peers)-1]
}

// Count returns how many messages with a method all peers together got.
func (h *Host) Count(method string) int {
	h.mu.Lock()
	peers := append([]*Peer(nil), h.peers...)
	h.mu.Unlock()
	n := 0
	for _, p := range peers {
		n += p.Count(method)
	}
	return n
}

// Discovered returns a DiscoverResult.
func Discovered(capabilities string, versions ...string) string {
	out := []byte(`{"resultType":"complete","supportedVersions":[`)
	for i, v := range versions {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonrpc.AppendString(out, v)
	}
	return string(out) + `],"capabilities":` + capabilities +
		`,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}},"instructions":"be brief","ttlMs":0,"cacheScope":"private"}`
}

// Initialized returns an InitializeResult.
func Initialized(version, capabilities string) string {
	return `{"protocolVersion":"` + version + `","capabilities":` + capabilities +
		`,"serverInfo":{"name":"fake","version":"1"},"instructions":"be brief"}`
}
