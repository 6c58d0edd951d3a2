package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// shuffled lists its tools in another order at each request.
type shuffled struct {
	*server.Memory

	mu      sync.Mutex // guards the fields below
	lists   int        // how often the tools were listed
	last    []string   // the names, in the order of the last list
	changes uint64     // how often the list was said to have changed
	signals map[int]func()
	next    int // key of the next signal
}

func newShuffled() (server.Source, error) {
	s := &shuffled{
		Memory:  server.NewMemory(server.MemoryOptions{Name: "shuffled", Version: version}),
		signals: make(map[int]func()),
	}
	for _, t := range []struct {
		name, description string
		answer            func(jsonrpc.Object) (string, error)
	}{
		{"order", "Tell how often the tools were listed, and in which order the last time", s.order},
		{"reshuffle", "Say that the list of tools has changed", s.reshuffle},
		{"red", "A color", color("#d33")},
		{"orange", "A color", color("#e82")},
		{"yellow", "A color", color("#ed3")},
		{"green", "A color", color("#3a5")},
		{"blue", "A color", color("#36c")},
		{"violet", "A color", color("#83c")},
	} {
		tool, err := newTool(t.name, t.description, noArguments, t.answer)
		if err != nil {
			return nil, err
		}
		if err := s.Tools.Add(tool); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func color(value string) func(jsonrpc.Object) (string, error) {
	return func(jsonrpc.Object) (string, error) { return value, nil }
}

// List returns the tools in any order but that of the last time; see
// server.Source.
func (s *shuffled) List(ctx context.Context, r *server.Request, kind mcp.Kind, cursor *string) (jsontext.Value, error) {
	if kind != mcp.Tools {
		return s.Memory.List(ctx, r, kind, cursor)
	}
	page := mcp.Page{Kind: kind, Server: s.Info().Implementation}
	for _, t := range s.shuffle() {
		page.Items = append(page.Items, t.Definition())
	}
	return page.Append(nil, r.Caller.Version), nil
}

func (s *shuffled) shuffle() []*server.Tool {
	var tools []*server.Tool
	for _, e := range s.Tools.Snapshot().All() {
		tools = append(tools, e.Value)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	before := strings.Join(s.last, " ")
	for {
		rand.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
		s.last = s.last[:0]
		for _, t := range tools {
			s.last = append(s.last, t.Name())
		}
		if strings.Join(s.last, " ") != before {
			return tools
		}
	}
}

func (s *shuffled) order(jsonrpc.Object) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprintf("list no. %d: %s", s.lists, strings.Join(s.last, " ")), nil
}

func (s *shuffled) reshuffle(jsonrpc.Object) (string, error) {
	s.mu.Lock()
	s.changes++
	var signals []func()
	for _, signal := range s.signals {
		signals = append(signals, signal)
	}
	s.mu.Unlock()
	for _, signal := range signals {
		signal()
	}
	return "clients are told that the list has changed", nil
}

// Fingerprint differs after each reshuffle; see server.Source.
func (s *shuffled) Fingerprint(r *server.Request, kind mcp.Kind) uint64 {
	if kind != mcp.Tools {
		return s.Memory.Fingerprint(r, kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes
}

// Watch tells of each reshuffle; see server.Source.
func (s *shuffled) Watch(signal func()) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.next
	s.next++
	s.signals[key] = signal
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.signals, key)
	}
}
