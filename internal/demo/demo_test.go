package demo_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/internal/demo"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/stdio"
)

// peer is a client of a demo server over pipes in memory.
type peer struct {
	t    *testing.T
	in   io.Writer
	out  *stdio.Reader
	last int
}

// serve starts a demo server, inside a bubble, for the time of the test.
func serve(t *testing.T, name string) *peer {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ended := make(chan error, 1)
	go func() { // ends when inW is closed
		err := demo.Serve(context.WithoutCancel(t.Context()), name, inR, outW)
		outW.Close()
		ended <- err
	}()
	t.Cleanup(func() {
		inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }() // ends with outW
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return &peer{t: t, in: inW, out: stdio.NewReader(outR, nil)}
}

// ask sends a request, and returns its result without what comes before it.
func (p *peer) ask(method, params string) jsonrpc.Object {
	p.t.Helper()
	p.last++
	meta := `"_meta":{"` + mcp.MetaVersion + `":"2026-07-28","` + mcp.MetaClientInfo + `":{"name":"t","version":"1"},"` + mcp.MetaCapabilities + `":{}}`
	if params != "" {
		params += ","
	}
	frame := jsonrpc.AppendRequest(nil, jsonrpc.IntID(int64(p.last)), method, jsontext.Value("{"+params+meta+"}"))
	if _, err := p.in.Write(append(frame, '\n')); err != nil {
		p.t.Fatal(err)
	}
	for {
		frame, err := p.out.ReadFrame()
		if err != nil {
			p.t.Fatal(err)
		}
		m, err := jsonrpc.Parse(frame)
		if err != nil {
			p.t.Fatal(err)
		}
		if m.IsResponse() && m.ID == jsonrpc.IntID(int64(p.last)) {
			if m.Error != nil {
				p.t.Fatalf("%s: %v", method, m.Error)
			}
			return m.Result
		}
	}
}

// names returns the names of the tools on one page, and the cursor of the next.
func (p *peer) names(cursor string) (names []string, next string) {
	p.t.Helper()
	params := ""
	if cursor != "" {
		params = `"cursor":` + string(mcp.String(cursor))
	}
	result := p.ask(mcp.MethodToolsList, params)
	tools, err := jsonrpc.Elements(result.Get("tools"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, raw := range tools {
		tool, err := jsonrpc.ParseObject(raw)
		if err != nil {
			p.t.Fatal(err)
		}
		name, _ := tool.Text("name")
		names = append(names, name)
	}
	next, _ = result.Text("nextCursor")
	return names, next
}

func TestPagedHasPagesOfOddSizes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, "paged")
		var sizes []int
		for cursor, more := "", true; more; more = cursor != "" {
			var names []string
			names, cursor = p.names(cursor)
			sizes = append(sizes, len(names))
		}
		if !slices.Equal(sizes, []int{3, 1, 0, 4}) {
			t.Errorf("pages of %v tools, want 3, 1, 0 and 4", sizes)
		}
	})
}

func TestShuffledNeverListsTheSameOrderTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, "shuffled")
		last, _ := p.names("")
		for range 20 {
			next, _ := p.names("")
			if slices.Equal(next, last) {
				t.Errorf("%v twice", next)
			}
			last = next
			sorted := slices.Sorted(slices.Values(next))
			if want := "blue green orange order red reshuffle violet yellow"; strings.Join(sorted, " ") != want {
				t.Errorf("got the tools %v, want %v", sorted, want)
			}
		}
	})
}

func TestRestlessComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, "restless")
		for _, want := range []string{
			"host guest_1", "host guest_1 guest_2", "host guest_2", "host guest_2 guest_3", "host guest_3",
		} {
			synctest.Wait()
			if names, _ := p.names(""); strings.Join(names, " ") != want {
				t.Errorf("got %v, want %v", names, want)
			}
			time.Sleep(3 * time.Second)
		}
	})
}

func TestSlowTakesThreeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := serve(t, "slow")
		if names, _ := p.names(""); len(names) != 2 {
			t.Errorf("got %v, want two tools", names)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestCalls(t *testing.T) {
	tests := []struct{ server, tool, arguments, want string }{
		{"paged", "reverse", `{"text":"äbc"}`, "cbä"},
		{"paged", "length", `{"text":"äbc"}`, "3"},
		{"paged", "words", `{"text":" two  words "}`, "2"},
		{"paged", "initials", `{"text":"Äpfel und Birnen"}`, "ÄuB"},
		{"paged", "letters", `{"text":"a1 b2"}`, "ab"},
		{"paged", "repeat", `{"text":"a","times":3}`, "a a a"},
		{"paged", "repeat", `{"text":"a","times":3.5}`, "the argument times must be an integer from 1 to 100, not 3.5"},
		{"paged", "upper", `{}`, "the argument text must be a string"},
		{"shuffled", "red", `{}`, "#d33"},
		{"restless", "host", `{}`, "Welcome! The others come and go."},
		{"slow", "snail", `{}`, "here is the snail"},
	}
	for _, tt := range tests {
		t.Run(tt.tool+tt.arguments, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				result := serve(t, tt.server).ask(mcp.MethodToolsCall, `"name":"`+tt.tool+`","arguments":`+tt.arguments)
				content, err := jsonrpc.Elements(result.Get("content"))
				if err != nil || len(content) != 1 {
					t.Fatalf("content %s: %v", result.Raw, err)
				}
				block, err := jsonrpc.ParseObject(content[0])
				if err != nil {
					t.Fatal(err)
				}
				if text, _ := block.Text("text"); text != tt.want {
					t.Errorf("got %q, want %q", text, tt.want)
				}
			})
		})
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, s := range demo.Servers() {
			in, inW := io.Pipe()
			defer inW.Close()
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- demo.Serve(ctx, s.Name, in, io.Discard) }() // ends with ctx
			synctest.Wait()
			cancel(context.Canceled)
			if err := <-ended; err == nil {
				t.Errorf("%s: no error", s.Name)
			}
		}
	})
}
