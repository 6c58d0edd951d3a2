package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/demo"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// show is what the demo shows of its gateway.
type show struct {
	*gateway
	tools []item // as listed last
}

// play shows everything once.
func (s *show) play(ctx context.Context) error {
	writef(s.prog.out, "Four servers that are hard to list, behind one endpoint:\n\n")
	for _, d := range demo.Servers() {
		s.linef("%-10s %s", d.Name, d.About)
	}
	for _, part := range []func(context.Context) error{s.list, s.call, s.compare} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	s.titlef("The endpoint, while this runs")
	s.linef("%s", s.url)
	writeln(s.prog.out)
	s.linef("claude mcp add --transport http roster %s", s.url)
	s.linef("roster list --url %s", s.url)
	s.linef("roster status --url %s", s.url)
	return nil
}

// list shows the catalog.
func (s *show) list(ctx context.Context) error {
	start := time.Now()
	var err error
	if s.tools, err = s.items(ctx, mcp.Tools); err != nil {
		return err
	}
	s.titlef("What a client sees: each tool once, in the order of the servers")
	for _, t := range s.tools {
		s.linef("%-22s %s", t.name, t.about())
	}
	writeln(s.prog.out)
	s.linef("The first list waited %s for the slow server, since it never saw it before.", seconds(time.Since(start)))
	s.linef("From the second start on it is served at once, from what was seen last.")
	return nil
}

// call shows a call.
func (s *show) call(ctx context.Context) error {
	s.titlef("A call, passed on to the server whose tool it is")
	start := time.Now()
	answer, err := s.ask(ctx, "paged__reverse", `{"text":"!retsoR morf olleH"}`)
	if err != nil {
		return err
	}
	s.linef("$ roster call paged__reverse text='!retsoR morf olleH'")
	s.linef("%s    (%v)", answer, time.Since(start).Round(10*time.Microsecond))
	return nil
}

// ask calls a tool and returns the text that it answers.
func (s *show) ask(ctx context.Context, tool, arguments string) (string, error) {
	result, err := s.request(ctx, mcp.MethodToolsCall, fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, tool, arguments))
	if err != nil {
		return "", err
	}
	blocks, err := jsonrpc.Elements(orEmpty(result.Get("content")))
	if err != nil || len(blocks) == 0 {
		return "", fmt.Errorf("%s answered without content", tool)
	}
	block, err := jsonrpc.ParseObject(blocks[0])
	if err != nil {
		return "", fmt.Errorf("%s: %w", tool, err)
	}
	text, _ := block.Text("text")
	return text, nil
}

// compare shows that two walks are equal although a server has listed its tools
// in another order between them.
func (s *show) compare(ctx context.Context) error {
	const attempts = 4 // the restless server may change its list in between, as it should
	for range attempts {
		first, err := s.items(ctx, mcp.Tools)
		if err != nil {
			return err
		}
		before, after, err := s.reshuffle(ctx)
		if err != nil {
			return err
		}
		second, err := s.items(ctx, mcp.Tools)
		if err != nil {
			return err
		}
		s.tools = second
		if !slices.EqualFunc(first, second, func(a, b item) bool { return a.name == b.name }) && sameBut(first, second, "restless__") {
			continue
		}
		s.titlef("The same bytes each time, whatever the servers do")
		s.linef("list 1     %s", fingerprint(first))
		s.linef("shuffled   %s", before)
		s.linef("           %s", after)
		s.linef("list 2     %s", fingerprint(second))
		if fingerprint(first) != fingerprint(second) {
			return errors.New("the two lists differ, which must not be")
		}
		writeln(s.prog.out)
		s.linef("The two lists are identical, byte for byte.")
		return nil
	}
	return errors.New("the list of tools never stood still")
}

// reshuffle makes the shuffled server list its tools anew, and returns what it
// says of the list before and of that one.
func (s *show) reshuffle(ctx context.Context) (before, after string, err error) {
	const patience, step = 10 * time.Second, 50 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if before, err = s.ask(ctx, "shuffled__order", `{}`); err != nil {
		return "", "", err
	}
	if _, err = s.ask(ctx, "shuffled__reshuffle", `{}`); err != nil {
		return "", "", err
	}
	for {
		if after, err = s.ask(ctx, "shuffled__order", `{}`); err != nil || after != before {
			return before, after, err
		}
		select {
		case <-time.After(step):
		case <-ctx.Done():
			return "", "", fmt.Errorf("wait for the shuffled server to be listed again: %w", context.Cause(ctx))
		}
	}
}

// sameBut reports whether two lists are equal but for names with a prefix.
func sameBut(a, b []item, prefix string) bool {
	others := func(items []item) []byte {
		return join(slices.DeleteFunc(slices.Clone(items), func(it item) bool { return strings.HasPrefix(it.name, prefix) }))
	}
	return bytes.Equal(others(a), others(b))
}

func join(items []item) []byte {
	var b bytes.Buffer
	for _, it := range items {
		b.Write(it.raw)
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// fingerprint tells lists of different bytes apart.
func fingerprint(items []item) string {
	all := join(items)
	sum := sha256.Sum256(all)
	return fmt.Sprintf("%d tools, %d bytes, SHA-256 %x...", len(items), len(all), sum[:6])
}

// watch prints what changes until ctx ends.
func (s *show) watch(ctx context.Context) error {
	s.titlef("What changes (press Ctrl-C to end)")
	changed := make(chan struct{}, 1)
	signal := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	ended := make(chan error, 1)
	go func() { // ends with ctx, or with the gateway
		ended <- s.client.Listen(ctx, client.Listen{
			Filter:       client.Filter{Kinds: []mcp.Kind{mcp.Tools}},
			Acknowledged: func(client.Filter) { signal() },
			Notification: func(*jsonrpc.Message) { signal() },
		})
	}()
	for {
		select {
		case <-changed:
			if err := s.difference(ctx); err != nil && ctx.Err() == nil {
				return err
			}
		case err := <-ended:
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// difference prints what is new in the list of tools, and what is gone.
func (s *show) difference(ctx context.Context) error {
	tools, err := s.items(ctx, mcp.Tools)
	if err != nil {
		return err
	}
	has := func(items []item, name string) bool {
		return slices.ContainsFunc(items, func(it item) bool { return it.name == name })
	}
	w, now := s.prog.out, time.Now().Format(time.TimeOnly)
	for _, t := range s.tools {
		if !has(tools, t.name) {
			writef(w, "  %s  %s\n", now, s.prog.paint(w, red, "- "+t.name))
		}
	}
	for _, t := range tools {
		if !has(s.tools, t.name) {
			writef(w, "  %s  %s\n", now, s.prog.paint(w, green, "+ "+t.name))
		}
	}
	s.tools = tools
	return nil
}
