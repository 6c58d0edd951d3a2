package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// tagged is the params of a notification of a subscription.
func tagged(id string) string { return `{"_meta":{"` + subscriptionID + `":` + id + `}}` }

func acknowledged(id, filter string) string {
	return `notifications/subscriptions/acknowledged {"_meta":{"` + subscriptionID + `":` + id + `},"notifications":` + filter + `}`
}

func (c *rawClient) listen(id, filter string) {
	c.t.Helper()
	c.ask(id, mcp.MethodListen, `"notifications":`+filter+`,`+meta)
}

func wantLines(t *testing.T, c *rawClient, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := c.takeLines(); !slices.Equal(got, want) {
		t.Errorf("came\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestC221_ListenIsAcknowledgedFirstAndTagged(t *testing.T) {
	for _, id := range []string{`"sub-1"`, `7`, `"7"`, `-1`, `9007199254740993`, `"ü\n"`} { // C-092: ids as they came
		t.Run(id, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory()
				src := &watched{Memory: m, may: map[string]bool{"mem:///a": true}}
				// A change before the acknowledgement is out is told behind it.
				src.onWatch = func(uri string) {
					src.update(uri, `{"uri":"`+uri+`"}`)
					add(t, m.Tools, emptyTool(t, "early"))
				}
				c := connect(t, server.New(src, server.Options{}))
				c.listen(id, `{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["mem:///a","mem:///no","mem:///a"]}`)
				time.Sleep(time.Second)
				wantLines(t, c,
					acknowledged(id, `{"toolsListChanged":true,"resourceSubscriptions":["mem:///a"]}`),
					`notifications/resources/updated {"uri":"mem:///a","_meta":{"`+subscriptionID+`":`+id+`}}`,
					`notifications/tools/list_changed `+tagged(id))
				// What it has not asked for is not told.
				fill(t, m, "x")
				m.Tools.RemoveName("x")
				time.Sleep(time.Second)
				wantLines(t, c)
			})
		})
	}
}

func TestC222_ListenBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c := connect(t, server.New(m, server.Options{}))
		c.listen(`"sub"`, `{"toolsListChanged":true}`)
		wantLines(t, c, acknowledged(`"sub"`, `{"toolsListChanged":true}`))
		for i := range 100 {
			c.ask(fmt.Sprint(i), "tools/list", meta)
		}
		synctest.Wait() // without any time passing
		if n := len(c.take()); n != 100 {
			t.Errorf("%d of 100 answered", n)
		}
		add(t, m.Tools, emptyTool(t, "a"))
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}}`)
		time.Sleep(time.Second)
		add(t, m.Tools, emptyTool(t, "b"))
		time.Sleep(time.Second)
		wantLines(t, c)
	})
}

// A new subscription may have the id of one that was cancelled just now. Nothing of
// the old one may come behind the acknowledgement of the new one, and nothing before
// that acknowledgement either.
func TestC223_ListenAgainUnderTheSameID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		src := &watched{Memory: m, may: map[string]bool{"mem:///a": true}}
		// The old subscription takes its time to end.
		src.onStop = func() { time.Sleep(3 * time.Second) }
		c := connect(t, server.New(src, server.Options{}))
		c.listen(`1`, `{"toolsListChanged":true,"resourceSubscriptions":["mem:///a"]}`)
		wantLines(t, c, acknowledged(`1`, `{"toolsListChanged":true,"resourceSubscriptions":["mem:///a"]}`))
		c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		c.listen(`1`, `{"promptsListChanged":true}`)
		add(t, m.Tools, emptyTool(t, "a"))
		time.Sleep(2 * time.Second)
		wantLines(t, c) // the new one waits for the old one
		time.Sleep(2 * time.Second)
		wantLines(t, c, acknowledged(`1`, `{"promptsListChanged":true}`))
		add(t, m.Tools, emptyTool(t, "b"))
		fill(t, m, "p")
		time.Sleep(time.Second)
		wantLines(t, c, `notifications/prompts/list_changed `+tagged(`1`))
		if n := src.count(); n != 0 {
			t.Errorf("%d resources still watched", n)
		}
	})
}

func TestC223_CloseEndsSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := server.New(newMemory(), server.Options{})
		var clients []*rawClient
		for range 20 {
			c := connect(t, srv)
			for i := range 5 {
				c.listen(fmt.Sprint(i), `{"toolsListChanged":true}`)
			}
			clients = append(clients, c)
		}
		synctest.Wait()
		srv.Close()
		srv.Close()
		synctest.Wait() // at once
		for _, c := range clients {
			came := c.take()
			for i := range 5 {
				id := fmt.Sprint(i)
				var mine []string
				for _, m := range came {
					if l := line(m); strings.Contains(l, `"`+subscriptionID+`":`+id) {
						mine = append(mine, l)
					}
				}
				want := []string{
					acknowledged(id, `{"toolsListChanged":true}`),
					`notifications/cancelled {"requestId":` + id + `,"reason":"the subscription is closed","_meta":{"` + subscriptionID + `":` + id + `}}`,
					id + ` {"resultType":"complete","_meta":{"` + subscriptionID + `":` + id + `,"io.modelcontextprotocol/serverInfo":{"name":"mem","version":"1"}}}`,
				}
				if !slices.Equal(mine, want) {
					t.Fatalf("came\n%s\nwant\n%s", strings.Join(mine, "\n"), strings.Join(want, "\n"))
				}
			}
		}
		// Who comes late is told the same.
		c := connect(t, srv)
		c.listen(`1`, `{}`)
		synctest.Wait()
		if n := len(c.take()); n != 3 {
			t.Errorf("%d messages for a late subscription", n)
		}
	})
}

// A client that has closed its input gets an answer to its subscription.
func TestListenIsAnsweredAtTheEndOfInput(t *testing.T) {
	srv := server.New(newMemory(), server.Options{})
	in := `{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{},` + meta + "}}\n"
	var out bytes.Buffer
	if err := stdio.Serve(t.Context(), strings.NewReader(in), &out, srv, nil); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(got) != 3 || !strings.HasPrefix(got[2], `{"jsonrpc":"2.0","id":"s","result":{"resultType":"complete"`) {
		t.Errorf("%q", got)
	}
}

func TestC022_NoNewsIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c := connect(t, server.New(m, server.Options{}))
		c.initialize("2025-11-25")
		c.listen(`1`, `{"toolsListChanged":true}`)
		synctest.Wait()
		c.take()
		for range 5 { // added and removed again within the settling time
			add(t, m.Tools, emptyTool(t, "a"))
			m.Tools.RemoveName("a")
			time.Sleep(time.Second)
		}
		a := emptyTool(t, "a")
		replace(t, m, []*server.Tool{a})
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(c.take()); n != 2 {
			t.Fatalf("%d notifications for a change that stays, want one for each listener", n)
		}
		replace(t, m, []*server.Tool{a})
		replace(t, m, []*server.Tool{emptyTool(t, "a")}) // the same bytes
		time.Sleep(time.Second)
		wantLines(t, c)
	})
}

// A storm of changes is told at SettleMax at the latest, and once for that time.
func TestSettleHasABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c := connect(t, server.New(m, server.Options{}))
		c.listen(`1`, `{"toolsListChanged":true}`)
		synctest.Wait()
		c.take()
		for i := range 100 { // two seconds, with no pause of 50 ms
			add(t, m.Tools, emptyTool(t, fmt.Sprint(i)))
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := len(c.take()); n != 4 && n != 5 {
			t.Errorf("%d notifications in two seconds", n)
		}
	})
}

// What a session has read it is not told of; what it has not read it is.
func TestSessionIsNotToldOfWhatItHasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		c := connect(t, server.New(m, server.Options{}))
		c.initialize("2025-11-25")
		synctest.Wait()
		add(t, m.Tools, emptyTool(t, "a"))
		c.ask(`1`, "tools/list", ``)
		synctest.Wait()
		c.take()
		time.Sleep(time.Second)
		wantLines(t, c)
		// A stateless request on the same connection says nothing of the session.
		add(t, m.Tools, emptyTool(t, "b"))
		c.ask(`2`, "tools/list", meta)
		synctest.Wait()
		c.take()
		time.Sleep(time.Second)
		wantLines(t, c, `notifications/tools/list_changed`)
	})
}

// One client that does not read must not keep others from being told, and is told
// itself when it reads again.
func TestSeeds2_08_OneBrokenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		srv := server.New(m, server.Options{})
		stuck := &stuckPeer{gate: make(chan struct{})}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		params := parse(t, `{"notifications":{"toolsListChanged":true},`+meta+`}`)
		go func() { // ends with ctx
			_, err := srv.Handle(ctx, &jsonrpc.Request{ID: jsonrpc.IntID(1), Method: mcp.MethodListen, Params: params, Peer: stuck})
			done <- err
		}()
		broken := connect(t, srv)
		broken.listen(`1`, `{"toolsListChanged":true}`)
		good := connect(t, srv)
		good.listen(`1`, `{"toolsListChanged":true}`)
		session := connect(t, srv)
		session.initialize("2025-06-18")
		deaf := connect(t, srv) // stateless, and has not asked
		deaf.ask(`1`, "tools/list", meta)
		synctest.Wait()
		for _, c := range []*rawClient{good, session, deaf} {
			c.take()
		}
		_ = broken.end.Close()
		stuck.block()
		add(t, m.Tools, emptyTool(t, "a"))
		time.Sleep(100 * time.Millisecond)
		wantLines(t, good, `notifications/tools/list_changed `+tagged(`1`))
		wantLines(t, session, `notifications/tools/list_changed`)
		wantLines(t, deaf)

		time.Sleep(time.Minute) // the stuck client is given up on, once and again
		if n := stuck.told(); n != 1 {
			t.Errorf("the client that does not read got %d messages", n)
		}
		stuck.unblock()
		time.Sleep(time.Minute)
		if n := stuck.told(); n != 2 {
			t.Errorf("the client that reads again got %d messages, want the acknowledgement and one more", n)
		}
		cancel(jsonrpc.ErrCanceled)
		if err := <-done; !errors.Is(err, jsonrpc.ErrCanceled) {
			t.Error(err)
		}
	})
}

func parse(t testing.TB, v string) jsonrpc.Object {
	t.Helper()
	obj, err := jsonrpc.ParseObject(jsontext.Value(v))
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// Listens over HTTP, each with its own stream.
func TestListenOverHTTPIsTagged(t *testing.T) {
	m := newMemory()
	srv := server.New(m, server.Options{Settle: time.Millisecond})
	t.Cleanup(srv.Close)
	notes := make(chan jsonrpc.Message, 100)
	c := &client{t: t, version: mcp.Latest, notes: notes, wire: dialHTTP(t, srv, func(m *jsonrpc.Message) { notes <- *m })}
	c.begin()
	c.begin()
	c.begin()
	add(t, m.Tools, emptyTool(t, "a"))
	seen := make(map[string]int)
	for range 3 {
		n := c.note()
		m, _ := n.Params.Meta()
		seen[n.Method+" "+string(m.Get(subscriptionID))]++
	}
	if len(seen) != 3 {
		t.Errorf("%v, want one for each stream", seen)
	}
}

func replace(t *testing.T, m *server.Memory, tools []*server.Tool) {
	t.Helper()
	if _, err := m.Tools.Replace(tools); err != nil {
		t.Fatal(err)
	}
}
