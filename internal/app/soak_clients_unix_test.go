//go:build unix

package app_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// soakClient is one client of a soak. It belongs to one goroutine.
type soakClient struct {
	*mcptest.Caller
	name     string
	subjects []*subject
	good     []*subject
	last     []string        // the names of its last list of tools
	gone     map[string]bool // names that it has seen come and go
	n        int
	figures
}

// figures are what a soak has to show.
type figures struct {
	calls, fine, refused, odd, lists int
	good                             []time.Duration // calls to good servers
	walks                            []time.Duration
}

func (f *figures) add(g *figures) {
	f.calls, f.fine, f.refused, f.odd, f.lists = f.calls+g.calls, f.fine+g.fine, f.refused+g.refused, f.odd+g.odd, f.lists+g.lists
	f.good, f.walks = append(f.good, g.good...), append(f.walks, g.walks...)
}

// run makes requests until ctx ends, and returns what is wrong.
func (c *soakClient) run(ctx context.Context) error {
	for ; ctx.Err() == nil; c.n++ {
		var err error
		switch dice := rand.IntN(100); {
		case dice < 45:
			err = c.call(c.good[rand.IntN(len(c.good))])
		case dice < 85:
			err = c.call(c.subjects[rand.IntN(len(c.subjects))])
		case dice < 95:
			err = c.tools()
		default:
			err = c.prompts()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		pause(ctx, rand.N(30*time.Millisecond))
	}
	return nil
}

// request makes a request, which must have an answer in time.
func (c *soakClient) request(method, params string) (mcptest.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.Call(ctx, method, params)
}

// call calls a tool. One of a good server answers what it was asked; that of
// another may fail, and the failure names it.
func (c *soakClient) call(s *subject) error {
	c.calls++
	token := fmt.Sprintf("%s %d", c.name, c.n)
	params := fmt.Sprintf(`{"name":"%s__keep%d","arguments":{"say":"%s"}}`, s.name, c.n%kept, token)
	began := time.Now()
	a, err := c.request(mcp.MethodToolsCall, params)
	took := time.Since(began)
	switch want := fmt.Sprintf(`"text":"%s says %s"`, s.name, token); {
	case err != nil:
		return fmt.Errorf("call to %s, after %v: %w", s.name, took, err)
	case strings.Contains(a.Result, want):
		c.fine++
		if s.good {
			c.figures.good = append(c.figures.good, took)
		}
	case s.good:
		return fmt.Errorf("call to %s, after %v: %+v", s.name, took, a)
	case strings.Contains(a.Result, " says "):
		return fmt.Errorf("call to %s has the answer of another: %+v", s.name, a)
	case strings.Contains(a.Error+a.Result, s.name):
		c.refused++
	default:
		c.odd++
		if a.Error != "" {
			return fmt.Errorf("call to %s, after %v: the error does not name it: %+v", s.name, took, a)
		}
	}
	return nil
}

// tools reads the list of tools and holds it against the laws: all tools that are
// there all along are, in their order; what was there before is in its place, and
// what was gone stays so; nothing is there twice; every byte is the server's.
func (c *soakClient) tools() error {
	c.lists++
	began := time.Now()
	items, err := c.all(mcp.Tools)
	if err != nil {
		return err
	}
	c.walks = append(c.walks, time.Since(began))
	var names, keeps []string
	for _, item := range items {
		name := strings.TrimPrefix(item, `{"name":"`)
		name = name[:max(strings.IndexByte(name, '"'), 0)]
		server, own, _ := strings.Cut(name, "__")
		if item != soakTool(server, own) {
			return fmt.Errorf("a definition is not as its server wrote it: %s", item)
		}
		names = append(names, name)
		if strings.HasPrefix(own, "keep") {
			keeps = append(keeps, name)
		}
	}
	var want []string
	for _, s := range c.subjects {
		for i := range kept {
			want = append(want, fmt.Sprintf("%s__keep%d", s.name, i))
		}
	}
	if !slices.Equal(keeps, want) {
		return fmt.Errorf("of the tools that stay, the list has %d of %d, or another order: %q", len(keeps), len(want), keeps)
	}
	return c.compare(names)
}

// compare holds a list against the one before it.
func (c *soakClient) compare(names []string) error {
	now := make(map[string]bool, len(names))
	for _, name := range names {
		if now[name] {
			return fmt.Errorf("%s is listed twice", name)
		}
		if now[name] = true; c.gone[name] {
			return fmt.Errorf("%s is listed again after it was gone", name)
		}
	}
	before := make(map[string]int, len(c.last))
	for i, name := range c.last {
		if before[name] = i; !now[name] {
			c.gone[name] = true
		}
	}
	highest, previous := -1, ""
	for _, name := range names {
		at, was := before[name]
		if was && at < highest {
			return fmt.Errorf("%s stood before %s and stands behind it now", name, previous)
		}
		if was {
			highest, previous = at, name
		}
	}
	c.last = names
	return nil
}

// prompts reads the list of prompts, which never changes.
func (c *soakClient) prompts() error {
	c.lists++
	items, err := c.all(mcp.Prompts)
	if err != nil {
		return err
	}
	for i, item := range items {
		if want := exposed(c.subjects[i].name, []string{soakPrompt})[0]; item != want {
			return fmt.Errorf("prompt %d is %s, want %s", i, item, want)
		}
	}
	if len(items) != len(c.subjects) {
		return fmt.Errorf("%d prompts are listed", len(items))
	}
	return nil
}

func (c *soakClient) all(k mcp.Kind) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.List(ctx, k)
}

// soakClients returns clients of all eras on both wires. Some listen to changes.
func (g *gateway) soakClients(n int, subjects, good []*subject) []*soakClient {
	sessions := []mcp.Version{mcp.V20251125, mcp.V20250618, mcp.V20250326, mcp.V20241105}
	var out []*soakClient
	for i := range n {
		v := mcp.Latest
		if i%2 == 0 {
			v = sessions[i/4%len(sessions)]
		}
		c := &soakClient{name: fmt.Sprintf("client%d", i), subjects: subjects, good: good, gone: make(map[string]bool)}
		if i%4 < 2 {
			c.Caller = mcptest.CallPipes(g.t, v, func(ctx context.Context, in io.Reader, out io.Writer) error {
				l := &ledger{t: g.t, open: make(map[string]bool)}
				return g.ServeStdio(ctx, io.TeeReader(in, &lines{on: l.asked}), io.MultiWriter(&lines{on: l.answered}, out))
			})
		} else {
			c.Caller = g.http(v)
		}
		if i%8 < 4 {
			ctx, cancel := context.WithCancel(context.Background())
			g.t.Cleanup(cancel)
			if _, err := c.Listen(ctx); err != nil {
				g.t.Fatal(err)
			}
		}
		out = append(out, c)
	}
	return out
}

// ledger fails the test if something is answered that is not open.
type ledger struct {
	t    testing.TB
	mu   sync.Mutex // guards open
	open map[string]bool
}

func (l *ledger) asked(line []byte) {
	if m, err := jsonrpc.Parse(line); err == nil && m.IsRequest() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.open[m.ID.Key()] = true
	}
}

func (l *ledger) answered(line []byte) {
	m, err := jsonrpc.Parse(line)
	if err != nil {
		l.t.Errorf("the gateway says %s: %v", line, err)
		return
	}
	if !m.IsResponse() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open[m.ID.Key()] {
		l.t.Errorf("an answer to nothing that is open: %s", line)
	}
	delete(l.open, m.ID.Key())
}

// lines is a writer that hands each line to a function.
type lines struct {
	on   func(line []byte)
	part []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.part = append(l.part, p...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		l.on(line)
		l.part = append([]byte(nil), rest...)
	}
}
