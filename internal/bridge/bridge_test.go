package bridge_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/bridge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

// end is one side of a pair of pipes that carry lines.
type end struct {
	t     *testing.T
	lines *bufio.Reader
	out   *io.PipeWriter
	in    *io.PipeReader
}

// Read and the others make it a bridge.Conn.
func (e *end) Read(p []byte) (int, error)  { return e.in.Read(p) }
func (e *end) Write(p []byte) (int, error) { return e.out.Write(p) }
func (e *end) CloseWrite() error           { return e.out.Close() }
func (e *end) Close() error                { return errors.Join(e.out.Close(), e.in.Close()) }

func pair(t *testing.T) (a, b *end) {
	ra, wb := io.Pipe()
	rb, wa := io.Pipe()
	return &end{t, bufio.NewReader(ra), wa, ra}, &end{t, bufio.NewReader(rb), wb, rb}
}

func (e *end) say(line string) {
	e.t.Helper()
	if _, err := io.WriteString(e.out, line+"\n"); err != nil {
		e.t.Fatalf("say %.100s: %v", line, err)
	}
}

// soon says a line as soon as the other side listens.
func (e *end) soon(line string) {
	go func() { // ends when it is heard, or with the pipe
		_, _ = io.WriteString(e.out, line+"\n") // what is not heard is missed
	}()
}

func (e *end) hear() string {
	e.t.Helper()
	heard := make(chan string, 1)
	go func() { // ends with a line, or with the pipe
		line, err := e.lines.ReadString('\n')
		if err != nil {
			line = err.Error()
		}
		heard <- strings.TrimSuffix(line, "\n")
	}()
	select {
	case line := <-heard:
		return line
	case <-time.After(patience):
		e.t.Fatal("nothing was said")
		return ""
	}
}

func (e *end) hears(want ...string) {
	e.t.Helper()
	for _, w := range want {
		if got := e.hear(); got != w {
			e.t.Fatalf("heard %.300s\nwant  %.300s", got, w)
		}
	}
}

// stage is a client, and the gateways that serve it one after the other.
type stage struct {
	client   *end
	gateways chan *end // for each Connect, our side
	ended    chan error
	cancel   context.CancelFunc
}

func begin(t *testing.T, most int) *stage {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ours, theirs := pair(t)
	s := &stage{ours, make(chan *end, 10), make(chan error, 1), cancel}
	go func() { // ends with the client
		n := 0
		s.ended <- bridge.Run(ctx, theirs, theirs, bridge.Options{Connect: func(context.Context) (bridge.Conn, error) {
			if n++; n > most {
				return nil, errors.New("there is none")
			}
			a, b := pair(t)
			s.gateways <- a
			return b, nil
		}})
		_ = theirs.Close() // a pipe in memory
	}()
	t.Cleanup(func() {
		cancel()
		_ = ours.Close()
		select {
		case err := <-s.ended:
			t.Log("ended with", err)
		case <-time.After(patience):
			t.Error("the bridge does not end")
		}
	})
	return s
}

func (s *stage) gateway() *end {
	s.client.t.Helper()
	select {
	case g := <-s.gateways:
		return g
	case <-time.After(patience):
		s.client.t.Fatal("no gateway was asked for")
		return nil
	}
}

// TestPass has messages pass as they are, both ways, in order.
func TestPass(t *testing.T) {
	s := begin(t, 1)
	g := s.gateway()
	odd := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{ "a" : 1.0e5 }}`,
		`{"id":"1","jsonrpc":"2.0","method":"x","params":{"big":12345678901234567890,"u":"\u00e9é"}}`,
		`{"jsonrpc":"2.0","method":"n"}`,
		`[{"jsonrpc":"2.0","id":7,"method":"ping"},{"jsonrpc":"2.0","method":"n"}]`,
		`{"jsonrpc":"2.0","id":9007199254740993,"result":{"x":null}}`,
		`{"not":"a message"}`, `{broken`, `[]`,
		`{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`,
	}
	for range 2 {
		for _, line := range odd {
			s.client.soon(line)
			g.hears(line)
			g.soon(line)
			s.client.hears(line)
		}
	}
	// Both directions are busy at once.
	const many = 60
	long := strings.Repeat("y", 16<<10)
	line := func(i int) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"n","params":{"i":%d,"long":%q}}`, i, long)
	}
	done := make(chan struct{}, 2)
	for _, e := range []*end{s.client, g} {
		go func() { // ends when all is said
			for i := range many {
				_, _ = io.WriteString(e.out, line(i)+"\n") // the other end misses it
			}
			done <- struct{}{}
		}()
	}
	heard := make(chan error, 2)
	for _, e := range []*end{s.client, g} {
		go func() { // ends when all is heard
			for i := range many {
				got, err := e.lines.ReadString('\n')
				if err != nil || got != line(i)+"\n" {
					heard <- fmt.Errorf("message %d: %.100s, %w", i, got, err)
					return
				}
			}
			heard <- nil
		}()
	}
	for range 2 {
		if err := <-heard; err != nil {
			t.Fatal(err)
		}
		<-done
	}
	// The end of the client's messages is that of the gateway's, which may still answer.
	if err := s.client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got := g.hear(); got != io.EOF.Error() {
		t.Errorf("heard %s, want the end", got)
	}
	g.soon(`{"jsonrpc":"2.0","id":8,"result":{}}`)
	s.client.hears(`{"jsonrpc":"2.0","id":8,"result":{}}`)
	_ = g.Close() // a pipe in memory
	if err := <-s.ended; err != nil {
		t.Error(err)
	}
	s.ended <- nil
}

const (
	opening  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`
	welcome  = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`
	opened   = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	level    = `{"jsonrpc":"2.0","id":"l","method":"logging/setLevel","params":{"level":"debug"}}`
	watch    = `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}}`
	watch2   = `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:c"}}`
	unwatch2 = `{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:c"}}`
	call     = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"t"}}`
	listing  = `{"jsonrpc":"2.0","id":6,"method":"tools/list"}`
	question = `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}`
)

func result(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }

// exchange has the client say something that the gateway answers.
func exchange(c, g *end, line, answer string) {
	c.t.Helper()
	c.soon(line)
	g.hears(line)
	g.soon(answer)
	c.hears(answer)
}

// TestLost_Session has a gateway end in the middle of a session: the next one is told
// what holds for it, and the client only what it must know.
func TestLost_Session(t *testing.T) {
	s := begin(t, 3)
	c, g := s.client, s.gateway()
	exchange(c, g, opening, welcome)
	c.soon(opened)
	g.hears(opened)
	exchange(c, g, level, result(`"l"`))
	exchange(c, g, watch, result("2"))
	exchange(c, g, watch2, result("3"))
	exchange(c, g, unwatch2, result("4"))
	for _, line := range []string{call, listing} {
		c.soon(line)
		g.hears(line)
	}
	g.soon(question)
	c.hears(question)
	_ = g.Close() // it ends
	if got := c.hear(); !strings.Contains(got, `"id":5,"error":{"code":-32603,`) || !strings.Contains(got, "may have been acted on") {
		t.Errorf("the call was answered %s", got)
	}
	if got := c.hear(); !strings.Contains(got, `"method":"notifications/cancelled"`) || !strings.Contains(got, `"requestId":1,`) {
		t.Errorf("the question was not taken back: %s", got)
	}
	g = s.gateway()
	g.hears(opening, opened, level, watch, listing)
	// An answer to the former gateway is not for this one, nor a question under its id
	// for the client.
	g.soon(question)
	if got := g.hear(); !strings.Contains(got, `"id":1,"error"`) {
		t.Errorf("the second question was answered %s", got)
	}
	c.soon(`{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}`)
	for _, answer := range []string{welcome, result(`"l"`), result("2")} {
		g.say(answer)
	}
	g.soon(result("6"))
	c.hears(result("6"))
	exchange(c, g, `{"jsonrpc":"2.0","id":7,"method":"ping"}`, result("7"))
	g.soon(question)
	c.hears(question)
	c.soon(result("1"))
	g.hears(result("1"))
	// It ends as well, between two messages.
	_ = g.Close()
	s.gateway().hears(opening, opened, level, watch)
}

// TestLost_Opening has a gateway end before it has answered the first request.
func TestLost_Opening(t *testing.T) {
	s := begin(t, 2)
	c, g := s.client, s.gateway()
	c.soon(opening)
	g.hears(opening)
	_ = g.Close()
	g = s.gateway()
	g.hears(opening)
	g.soon(welcome)
	c.hears(welcome)
}

// TestLost_Stateless has a gateway end that serves a client without a session: its
// subscription goes on, and is acknowledged once.
func TestLost_Stateless(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":"listen:0","method":"subscriptions/listen","params":{}}`
	const ack = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen:0"}}}`
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"listen:0"}}}`
	s := begin(t, 3)
	c, g := s.client, s.gateway()
	c.soon(listen)
	g.hears(listen)
	_ = g.Close() // before it has acknowledged
	g = s.gateway()
	g.hears(listen)
	g.soon(ack)
	c.hears(ack)
	_ = g.Close() // and after
	g = s.gateway()
	g.hears(listen)
	g.say(ack)
	g.soon(changed)
	c.hears(changed)
	c.soon(call)
	g.hears(call)
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`
	c.soon(cancelled)
	g.hears(cancelled)
	_ = g.Close() // there is no other: only the subscription has to be answered
	if got := c.hear(); !strings.Contains(got, `"id":"listen:0","error"`) {
		t.Errorf("heard %s", got)
	}
	if got := c.hear(); got != io.EOF.Error() {
		t.Errorf("heard %s, want the end", got)
	}
	if err := <-s.ended; err == nil || err.Error() != "there is none" {
		t.Errorf("ended with %v", err)
	}
	s.ended <- nil
}

// TestLost_Unsent has a gateway end before it has read a call: the next one gets it.
func TestLost_Unsent(t *testing.T) {
	s := begin(t, 3)
	c, g := s.client, s.gateway()
	exchange(c, g, opening, welcome)
	_ = g.in.Close() // it reads no more, and has not ended yet
	c.say(call)
	_ = g.Close()
	g = s.gateway()
	g.hears(opening, call)
	_ = g.Close() // which has read it: there is no third time
	if got := c.hear(); !strings.Contains(got, `"id":5,"error"`) {
		t.Errorf("heard %s", got)
	}
	s.gateway().hears(opening)
}

// TestOver has the client end while there is no gateway.
func TestOver(t *testing.T) {
	ours, theirs := pair(t)
	looking := make(chan struct{})
	ended := make(chan error, 1)
	go func() { // ends with the client
		ended <- bridge.Run(t.Context(), theirs, theirs, bridge.Options{Connect: func(ctx context.Context) (bridge.Conn, error) {
			close(looking)
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}})
	}()
	<-looking
	if err := ours.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("the bridge does not end")
	}
}

// TestStop ends the bridge while both pipes are idle.
func TestStop(t *testing.T) {
	s := begin(t, 1)
	g := s.gateway()
	s.cancel()
	if err := <-s.ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if got := g.hear(); got != io.EOF.Error() {
		t.Errorf("the gateway heard %s", got)
	}
	s.ended <- nil
}
