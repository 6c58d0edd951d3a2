package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// script is what servers that run per client do with calls: their hosts keep the
// peers by the name of the tool's argument.
type script struct {
	host *mcptest.Host

	mu    sync.Mutex // guards the fields below
	inits []string   // capabilities in initialize, by connection
	peers map[string]*mcptest.Peer
	said  map[string]chan string // answers to what the server asked, by who
}

// newScript returns servers of version 2025-11-25 whose tool "custom" answers at
// once, and takes note of who called.
func newScript() *script {
	s := &script{peers: make(map[string]*mcptest.Peer), said: make(map[string]chan string)}
	by := make(map[*mcptest.Peer]string)
	s.host = &mcptest.Host{}
	s.host.On = func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch {
		case m.Method == mcp.MethodInitialize:
			s.inits = append(s.inits, string(m.Params.Get("capabilities")))
		case m.Method == mcp.MethodToolsCall:
			args, _ := jsonrpc.ParseObject(m.Params.Get("arguments"))
			who, _ := args.Text("who")
			by[p], s.peers[who] = who, p
			if s.said[who] == nil {
				s.said[who] = make(chan string, 64)
			}
			p.Reply(m, `{"content":[]}`)
			return
		case m.Method == mcp.MethodRootsChanged:
			s.said[by[p]] <- m.Method
		case m.IsResponse() && m.Error != nil:
			s.said[by[p]] <- fmt.Sprint("error ", m.Error.Code, " ", m.Error.Message)
		case m.IsResponse():
			s.said[by[p]] <- string(m.Result.Raw)
		}
		answerLists(p, m, mcp.V20251125)
	}
	return s
}

// call calls as somebody and returns the server that got it.
func (s *script) call(t *testing.T, p *party, who string) (*mcptest.Peer, <-chan string) {
	t.Helper()
	if _, err := p.send(t.Context(), mcp.MethodToolsCall, fmt.Sprintf(`{"name":"custom","arguments":{"who":%q}}`, who)); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peers[who], s.said[who]
}

const question = `{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`

// TestPrivateCapabilities: a server that runs for one client is told what this
// client can be asked, and nothing else that the client declares.
func TestPrivateCapabilities(t *testing.T) {
	tests := []struct {
		name string
		v    mcp.Version
		caps string
		want string
	}{
		{"none", mcp.V20251125, `{}`, `{}`},
		{"all", mcp.V20251125, everyCapability, everyCapability},
		{"roots", mcp.V20250618, `{"roots":{"listChanged":true},"experimental":{"x":{}},"tasks":{}}`, `{"roots":{"listChanged":true}}`},
		{"stateless", mcp.V20260728, `{"elicitation":{}}`, `{"elicitation":{}}`},
		{"unreadable", mcp.V20250618, `{"roots":true,"sampling":{}}`, `{"sampling":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScript()
			f := newGateway(t, behind{name: "s", dial: s.host.Dial, apart: true})
			s.call(t, join(t, overPipe(t, f.server), false, tt.v, tt.caps), "one")
			if len(s.inits) != 1 || s.inits[0] != tt.want {
				t.Errorf("told %s, want %s", s.inits, tt.want)
			}
		})
	}
}

// TestPrivateQuestions: what a server of one client asks outside of any call is
// asked of that client's session, and answered by nobody else.
func TestPrivateQuestions(t *testing.T) {
	s := newScript()
	f := newGateway(t, behind{name: "s", dial: s.host.Dial, apart: true})
	clients := make(map[string]*party)
	for _, who := range []string{"one", "two"} {
		p := join(t, overPipe(t, f.server), false, mcp.V20251125, everyCapability)
		p.answer = func(_ context.Context, method string, _ jsonrpc.Object) (string, error) {
			if method == mcp.MethodRootsList {
				return fmt.Sprintf(`{"roots":[{"uri":"file:///%s"}]}`, who), nil
			}
			return "", errors.New("no")
		}
		clients[who] = p
		s.call(t, p, who)
		p.take()
	}
	for who, p := range clients {
		peer, said := s.call(t, p, who)
		peer.Raw(fmt.Sprintf(question, mcp.MethodRootsList, `{}`))
		if got, want := receive(t, "roots", said), fmt.Sprintf(`{"roots":[{"uri":"file:///%s"}]}`, who); got != want {
			t.Errorf("%s: %s, want %s", who, got, want)
		}
		if err := p.wire.Notify(t.Context(), mcp.MethodRootsChanged, nil); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, "the change of roots", said); got != mcp.MethodRootsChanged {
			t.Error(got)
		}
		peer.Raw(fmt.Sprintf(question, "tasks/list", `{}`))
		if got := receive(t, "a refusal", said); !strings.HasPrefix(got, "error -32601") {
			t.Error(got)
		}
	}
	for who, p := range clients {
		roots := 0
		for _, line := range p.take() {
			if strings.Contains(line, mcp.MethodRootsList) {
				roots++
			}
		}
		if roots != 1 {
			t.Errorf("%s was asked for roots %d times", who, roots)
		}
	}
	modern := join(t, overPipe(t, f.server), false, mcp.V20260728, everyCapability)
	peer, said := s.call(t, modern, "modern")
	peer.Raw(fmt.Sprintf(question, mcp.MethodRootsList, `{}`))
	if got := receive(t, "a refusal", said); !strings.Contains(got, "cannot be asked anything but during its calls") {
		t.Error(got)
	}
}

// TestPrivateLogs: log messages that belong to no call go to the session that the
// server runs for, from the level on that it wants.
func TestPrivateLogs(t *testing.T) {
	s := newScript()
	f := newGateway(t, behind{name: "s", dial: s.host.Dial, apart: true})
	one := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
	two := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
	peer, _ := s.call(t, one, "one")
	s.call(t, two, "two")
	one.take()
	two.take()
	peer.Notify(mcp.MethodMessage, `{"level":"debug","data":0}`)
	peer.Notify(mcp.MethodMessage, `{"level":"info","data":1}`)
	receive(t, "a message", one.heard)
	if _, err := one.send(t.Context(), mcp.MethodSetLevel, `{"level":"error"}`); err != nil {
		t.Fatal(err)
	}
	peer.Notify(mcp.MethodMessage, `{"level":"info","data":2}`)
	peer.Notify(mcp.MethodMessage, `{"level":"error","data":3}`)
	receive(t, "a message", one.heard)
	var got []string
	for _, line := range one.take() {
		if strings.Contains(line, mcp.MethodMessage) {
			got = append(got, line)
		}
	}
	if want := `[<- notifications/message {"level":"info","data":1} <- notifications/message {"level":"error","data":3}]`; fmt.Sprint(got) != want {
		t.Errorf("heard %s, want %s", got, want)
	}
	if lines := two.take(); len(lines) > 0 {
		t.Errorf("the other heard %q", lines)
	}
}

// TestPrivateResources: a resource is watched on the client's own server; one that a
// shared server has, too, is the shared one's.
func TestPrivateResources(t *testing.T) {
	var backends []*backend
	var mu sync.Mutex
	at := func(n int) *backend {
		mu.Lock()
		defer mu.Unlock()
		return backends[n]
	}
	own := func(ctx context.Context, in client.Incoming) (client.Wire, error) {
		b := newBackend(mcp.V20251125)
		mu.Lock()
		backends = append(backends, b)
		mu.Unlock()
		return overPipe(t, b)(ctx, in)
	}
	f := newGateway(t, behind{name: "s", dial: own, apart: true})
	one := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
	two := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
	for i, p := range []*party{one, two} {
		if _, err := p.send(t.Context(), mcp.MethodSubscribe, `{"uri":"x:blob"}`); err != nil {
			t.Fatal(err)
		}
		until(t, "a subscription at its server", func() bool {
			mu.Lock()
			there := len(backends) > i
			mu.Unlock()
			return there && at(i).watches("x:blob") == 1
		})
	}
	at(0).updated(t.Context(), "x:blob")
	receive(t, "an update", one.updates)
	if _, err := two.send(t.Context(), mcp.MethodUnsubscribe, `{"uri":"x:blob"}`); err != nil {
		t.Fatal(err)
	}
	until(t, "the second server is no longer asked", func() bool { return at(1).watches("x:blob") == 0 })
	if len(two.updates) > 0 || at(0).watches("x:blob") != 1 {
		t.Error("one client's subscription is the other's")
	}
}

// TestPrivateLimit: a principal cannot have servers started without end. Who gets
// none is told so, and the lists of the others are there all the same.
func TestPrivateLimit(t *testing.T) {
	s := newScript()
	shared := newBackend(mcp.V20251125)
	f := newGateway(t, behind{name: "s", dial: s.host.Dial, apart: true}, behind{name: "x", dial: overPipe(t, renamed{shared})})
	var all []*party
	for i := range 32 {
		p := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
		s.call(t, p, fmt.Sprint(i))
		all = append(all, p)
	}
	late := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
	result, err := late.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom"}`)
	if err != nil || !strings.Contains(result.Raw.String(), "32 times already") || string(result.Get("isError")) != "true" {
		t.Fatalf("%s, %v", result.Raw, err)
	}
	list, err := late.send(t.Context(), mcp.MethodToolsList, `{}`)
	if err != nil || !strings.Contains(list.Raw.String(), "of-the-other") {
		t.Errorf("%s, %v", list.Raw, err)
	}
	if n := s.host.Dials(); n != 32 {
		t.Errorf("%d servers run", n)
	}
	_ = all[7].wire.Close()
	until(t, "there is room again", func() bool {
		result, err := late.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom","arguments":{"who":"late"}}`)
		return err == nil && result.Get("isError") == nil
	})
}

// renamed is a backend with one tool.
type renamed struct{ *backend }

func (r renamed) Handle(ctx context.Context, q *jsonrpc.Request) (jsontext.Value, error) {
	if q.Method == mcp.MethodToolsList {
		return jsontext.Value(`{"tools":[{"name":"of-the-other","inputSchema":{"type":"object"}}]}`), nil
	}
	return r.backend.Handle(ctx, q)
}

// TestPrivateStartFails: a client whose server cannot be started gets the lists of
// the others, and an error that says why for what it knows of the server.
func TestPrivateStartFails(t *testing.T) {
	broken := errors.New("no such program")
	s := newScript()
	var mu sync.Mutex
	fails := false
	s.host.Refuse = func(int) error {
		mu.Lock()
		defer mu.Unlock()
		if fails {
			return broken
		}
		return nil
	}
	f := newGateway(t, behind{name: "s", dial: s.host.Dial, apart: true, opts: upstream.Options{StartWait: time.Minute}})
	s.call(t, join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`), "one")
	mu.Lock()
	fails = true
	mu.Unlock()
	p := join(t, overPipe(t, f.server), false, mcp.V20251125, `{}`)
	list, err := p.send(t.Context(), mcp.MethodToolsList, `{}`)
	if err != nil || !strings.Contains(list.Raw.String(), "custom") {
		t.Errorf("%s, %v", list.Raw, err)
	}
	result, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom"}`)
	if err != nil || !strings.Contains(result.Raw.String(), broken.Error()) {
		t.Errorf("%s, %v", result.Raw, err)
	}
}
