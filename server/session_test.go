package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

func TestSessionBeginsWithInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, server.New(newMemory(), server.Options{}))
		c.ask(`1`, "ping", ``)
		wantLines(t, c, `1 {}`)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"ping"}`) // params are absent
		wantLines(t, c, `2 {}`)
		c.ask(`3`, "tools/list", ``)
		c.ask(`4`, "tools/list", `"_meta":{"progressToken":1}`)
		c.send(`{"jsonrpc":"2.0","id":5,"method":"tools/list"}`)
		synctest.Wait()
		for _, m := range c.take() {
			if m.Error == nil || m.Error.Code != jsonrpc.CodeInvalidParams || !strings.Contains(m.Error.Message, "initialize") {
				t.Errorf("before initialize: %s", line(m))
			}
		}
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","method":"notifications/unheard","params":{"_meta":5}}`)
		wantLines(t, c)
	})
}

func TestInitializeReadsTypes(t *testing.T) {
	for _, tt := range []struct {
		name, params, want string // want is a version, or a code
	}{
		{"known", `"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{}`, "2025-03-26"},
		{"newer than sessions", `"protocolVersion":"2026-07-28"`, "2025-11-25"},
		{"unheard", `"protocolVersion":"1999-01-01"`, "2025-11-25"},
		{"empty", `"protocolVersion":""`, "2025-11-25"},
		{"absent", `"capabilities":{}`, "-32602"},
		{"number", `"protocolVersion":20250326`, "-32602"},
		{"null", `"protocolVersion":null`, "-32602"},
		{"capabilities are an array", `"protocolVersion":"2025-06-18","capabilities":[]`, "2025-06-18"},
		{"info is null", `"protocolVersion":"2025-06-18","clientInfo":null`, "2025-06-18"},
		{"_meta is a number", `"protocolVersion":"2025-06-18","_meta":5`, "-32602"},
		{"stateless", `"protocolVersion":"2026-07-28",` + meta, "-32601"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := &recorder{Memory: newMemory()}
				add(t, src.Tools, emptyTool(t, "a"))
				c := connect(t, server.New(src, server.Options{}))
				c.ask(`1`, "initialize", tt.params)
				synctest.Wait()
				m := c.take()[0]
				got, _ := m.Result.Text("protocolVersion")
				if m.Error != nil {
					got = fmt.Sprint(m.Error.Code)
				}
				if got != tt.want {
					t.Fatalf("%s, want %s", line(m), tt.want)
				}
				if m.Error != nil {
					return
				}
				c.ask(`2`, "tools/call", `"name":"a"`)
				synctest.Wait()
				if r := src.last; string(r.Caller.Version) != tt.want || notObject(r.Caller.Info) || notObject(r.Caller.Capabilities) {
					t.Errorf("caller %+v", r.Caller)
				}
			})
		})
	}
}

func notObject(v jsontext.Value) bool { return v != nil && v.Kind() != '{' }

// recorder keeps the last request.
type recorder struct {
	*server.Memory
	last *server.Request
}

func (s *recorder) Do(ctx context.Context, r *server.Request) (jsonrpc.Object, error) {
	s.last = r
	return s.Memory.Do(ctx, r)
}

func TestC213_StatelessRequestsSayWhoAsks(t *testing.T) {
	const version = `"io.modelcontextprotocol/protocolVersion"`
	const capabilities = `"io.modelcontextprotocol/clientCapabilities"`
	for _, tt := range []struct {
		name, method, params string
		code                 int
	}{
		{"no capabilities", "tools/list", `"_meta":{` + version + `:"2026-07-28"}`, -32602},
		{"capabilities null", "tools/list", `"_meta":{` + version + `:"2026-07-28",` + capabilities + `:null}`, -32602},
		{"capabilities array", "tools/list", `"_meta":{` + version + `:"2026-07-28",` + capabilities + `:[]}`, -32602},
		{"no capabilities, unknown method", "no/such", `"_meta":{` + version + `:"2026-07-28"}`, -32602},
		{"version number", "tools/list", `"_meta":{` + version + `:2026}`, -32602},
		{"version unheard", "tools/list", `"_meta":{` + version + `:"2099-01-01",` + capabilities + `:{}}`, mcp.CodeUnsupportedVersion},
		{"version empty", "tools/list", `"_meta":{` + version + `:"",` + capabilities + `:{}}`, -32602},
		{"_meta array", "tools/list", `"_meta":[]`, -32602},
		{"_meta twice", "tools/list", `"_meta":{` + version + `:"2026-07-28",` + version + `:"2025-11-25"}`, -32602},
		{"log level unheard", "tools/list", `"_meta":{"io.modelcontextprotocol/logLevel":"loud",` + meta[len(`"_meta":{`):], -32602},
		{"log level", "tools/list", `"_meta":{"io.modelcontextprotocol/logLevel":"error",` + meta[len(`"_meta":{`):], 0},
		{"unknown method", "no/such", meta, -32601},
		{"initialize", "initialize", meta, -32601},
		{"ping", "ping", meta, -32601},
		{"setLevel", "logging/setLevel", `"level":"info",` + meta, -32601},
		{"subscribe", "resources/subscribe", `"uri":"mem:///a",` + meta, -32601},
		{"unsubscribe", "resources/unsubscribe", `"uri":"mem:///a",` + meta, -32601},
		{"notification as request", "notifications/initialized", meta, -32601},
		{"fine", "tools/list", meta, 0},
	} {
		for _, session := range []bool{false, true} { // the connection's session changes nothing
			t.Run(fmt.Sprintf("%s/session=%v", tt.name, session), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := connect(t, server.New(newMemory(), server.Options{}))
					if session {
						c.initialize("2025-11-25")
						synctest.Wait()
						c.take()
					}
					c.ask(`"x"`, tt.method, tt.params)
					synctest.Wait()
					m := c.take()[0]
					if session && tt.name == "version empty" && m.Error == nil {
						return // as good as none: the session's
					}
					if code := codeOf(m); code != tt.code || m.ID.String() != `"x"` {
						t.Errorf("%s, want code %d", line(m), tt.code)
					}
					if tt.code == mcp.CodeUnsupportedVersion && !strings.Contains(string(m.Error.Data), `"supported":["2026-07-28","2025-11-25"`) {
						t.Errorf("data %s", m.Error.Data)
					}
				})
			})
		}
	}
}

func codeOf(m jsonrpc.Message) int {
	if m.Error == nil {
		return 0
	}
	return m.Error.Code
}

// A request without a session, as on HTTP, that does not say who asks.
func TestC213_NoSessionAndNoMeta(t *testing.T) {
	srv := server.New(newMemory(), server.Options{})
	for _, method := range []string{"tools/list", "initialize", "ping", "no/such"} {
		_, err := srv.Handle(t.Context(), &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: method, Peer: &stuckPeer{}})
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A client that initializes again on its connection has one session, not two.
func TestInitializeAgainBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		src := &watched{Memory: m, may: map[string]bool{"mem:///a": true}}
		c := connect(t, server.New(src, server.Options{}))
		for range 3 {
			c.initialize("2025-11-25")
			c.ask(`1`, "resources/subscribe", `"uri":"mem:///a"`)
			synctest.Wait()
			c.take()
		}
		if n := src.count(); n != 1 {
			t.Errorf("%d subscriptions, want that of the last", n)
		}
		c.initialize("2024-11-05")
		synctest.Wait()
		c.take()
		add(t, m.Tools, emptyTool(t, "a"))
		src.update("mem:///a", `{"uri":"mem:///a"}`)
		time.Sleep(time.Second)
		wantLines(t, c, `notifications/tools/list_changed`)
		_ = c.end.Close()
		synctest.Wait()
		if n := src.count(); n != 0 {
			t.Errorf("%d subscriptions after the end", n)
		}
	})
}

// What changes between the first list and the handling of notifications/initialized
// is told.
func TestC021_ChangesSinceInitializeAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c := connect(t, server.New(m, server.Options{}))
		c.ask(`1`, "initialize", `"protocolVersion":"2025-11-25"`)
		c.ask(`2`, "tools/list", ``)
		synctest.Wait()
		c.take()
		add(t, m.Tools, emptyTool(t, "a"))
		time.Sleep(time.Second)
		wantLines(t, c)
		c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		time.Sleep(time.Second)
		wantLines(t, c, `notifications/tools/list_changed`)
		// C-217: what is read then is new.
		c.ask(`3`, "tools/list", ``)
		wantLines(t, c, `3 {"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`)
	})
}

// A source that does not say that it tells of changes has none told.
func TestUndeclaredChangesAreNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		src := &declares{Memory: m, capabilities: `{"tools":{"listChanged":true},"prompts":{},"resources":{"listChanged":false}}`}
		c := connect(t, server.New(src, server.Options{}))
		c.initialize("2025-11-25")
		synctest.Wait()
		c.take()
		c.listen(`1`, `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["mem:///a"]}`)
		wantLines(t, c, acknowledged(`1`, `{"toolsListChanged":true}`))
		fill(t, m, "a")
		time.Sleep(time.Second)
		synctest.Wait()
		got := c.takeLines()
		slices.Sort(got)
		if want := []string{"notifications/tools/list_changed", "notifications/tools/list_changed " + tagged(`1`)}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

type declares struct {
	*server.Memory
	capabilities string
}

func (d *declares) Info() server.Info {
	i := d.Memory.Info()
	i.Capabilities = jsontext.Value(d.capabilities)
	return i
}

// Unsubscribing while the subscription is being made ends it.
// One session may watch so many resources, and a client that does not read makes
// nothing grow.
func TestSetLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &recorder{Memory: newMemory()}
		add(t, src.Tools, emptyTool(t, "a"))
		c := connect(t, server.New(src, server.Options{}))
		c.initialize("2025-06-18")
		synctest.Wait()
		c.take()
		c.ask(`1`, "logging/setLevel", `"level":"warning"`)
		wantLines(t, c, `1 {}`)
		c.ask(`2`, "tools/call", `"name":"a"`)
		synctest.Wait()
		if src.last.Caller.LogLevel != "warning" {
			t.Errorf("level %q", src.last.Caller.LogLevel)
		}
		// C-226: a stateless request has its own, or none.
		c.ask(`3`, "tools/call", `"name":"a",`+meta)
		synctest.Wait()
		if src.last.Caller.LogLevel != "" {
			t.Errorf("a stateless request has the session's level %q", src.last.Caller.LogLevel)
		}
		if src.last.Caller.Version != mcp.Latest {
			t.Errorf("version %q", src.last.Caller.Version)
		}
	})
}

// A list that changes while it is made is made again, and what a session then gets
// it is not told of.
func TestListThatChangesMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &slowList{Memory: newMemory(), during: func() {}}
		c := connect(t, server.New(src, server.Options{}))
		c.initialize("2025-11-25")
		synctest.Wait()
		c.take()
		n := 0
		src.during = func() { // behind the page, but before it is answered
			if n++; n == 1 {
				add(t, src.Tools, emptyTool(t, "a"))
			}
		}
		c.ask(`1`, "tools/list", ``)
		wantLines(t, c, `1 {"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`)
		time.Sleep(time.Second)
		wantLines(t, c)
		// One that never comes to rest is answered all the same, and its changes told.
		src.during = func() { n++; add(t, src.Tools, emptyTool(t, fmt.Sprint(n))) }
		c.ask(`2`, "tools/list", ``)
		synctest.Wait()
		if got := c.take(); len(got) != 1 || got[0].Error != nil {
			t.Errorf("%v", got)
		}
		time.Sleep(time.Second)
		wantLines(t, c, `notifications/tools/list_changed`)
	})
}

type slowList struct {
	*server.Memory
	during func()
}

func (s *slowList) List(ctx context.Context, r *server.Request, k mcp.Kind, cursor *string) (jsontext.Value, error) {
	page, err := s.Memory.List(ctx, r, k, cursor)
	s.during()
	return page, err
}

// All that a client may do with its session, at once: nothing is left behind.
func TestSessionUnderStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &watched{Memory: newMemory(), may: map[string]bool{"mem:///a": true, "mem:///b": true}}
		srv := server.New(src, server.Options{})
		peer := &stuckPeer{}
		sess := jsonrpc.NewSession("", peer)
		requests := [][2]string{
			{"initialize", `{"protocolVersion":"2025-11-25"}`},
			{"notifications/initialized", `{}`},
			{"resources/subscribe", `{"uri":"mem:///a"}`},
			{"resources/subscribe", `{"uri":"mem:///b"}`},
			{"resources/unsubscribe", `{"uri":"mem:///a"}`},
			{"tools/list", `{}`},
			{"tools/list", `{` + meta + `}`},
			{"logging/setLevel", `{"level":"info"}`},
		}
		var wg sync.WaitGroup
		for i := range requests {
			wg.Go(func() {
				for n := range 200 {
					req := &jsonrpc.Request{Method: requests[i][0], Params: parse(t, requests[i][1]), Session: sess, Peer: peer}
					if !strings.HasPrefix(req.Method, "notifications/") {
						req.ID = jsonrpc.IntID(int64(n))
					}
					_, _ = srv.Handle(t.Context(), req) // an error: there was no session yet, or it was replaced
				}
			})
		}
		wg.Go(func() {
			for n := range 200 {
				add(t, src.Tools, emptyTool(t, fmt.Sprint(n)))
				src.update("mem:///a", `{"uri":"mem:///a"}`)
			}
		})
		wg.Wait()
		sess.Close()
		synctest.Wait()
		if n := src.count(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
}

// A client that does not read is told the newest of each resource once it reads
// again, and nothing of what it does not watch any more.
// What waits for one client is bounded: of more, the oldest are dropped.
