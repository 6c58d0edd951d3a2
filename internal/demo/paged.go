package demo

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// pages are where the tools of the paged server are cut: one page is empty and
// yet not the last.
var pages = [...]struct{ from, to int }{{0, 3}, {3, 4}, {4, 4}, {4, 8}}

// paged lists its tools on pages of its own.
type paged struct{ *server.Memory }

func newPaged() (server.Source, error) {
	m := server.NewMemory(server.MemoryOptions{
		Name: "paged", Version: version, Instructions: "Small tools for text, one text at a time.",
	})
	for _, t := range []struct {
		name, description, schema string
		answer                    func(jsonrpc.Object) (string, error)
	}{
		{"reverse", "Write a text backwards", textArgument, onText(reverse)},
		{"upper", "Write a text in capitals", textArgument, onText(strings.ToUpper)},
		{"lower", "Write a text in small letters", textArgument, onText(strings.ToLower)},
		{"length", "Count the characters of a text", textArgument, onText(func(s string) string { return strconv.Itoa(len([]rune(s))) })},
		{"words", "Count the words of a text", textArgument, onText(func(s string) string { return strconv.Itoa(len(strings.Fields(s))) })},
		{"initials", "Take the first letter of each word", textArgument, onText(initials)},
		{"letters", "Leave out all but letters", textArgument, onText(letters)},
		{"repeat", "Write a text several times", repeatSchema, repeat},
	} {
		tool, err := newTool(t.name, t.description, t.schema, t.answer)
		if err != nil {
			return nil, err
		}
		if err := m.Tools.Add(tool); err != nil {
			return nil, err
		}
	}
	if err := addPrompt(m); err != nil {
		return nil, err
	}
	return &paged{m}, addResources(m)
}

func addPrompt(m *server.Memory) error {
	p, err := server.NewPrompt(
		jsontext.Value(`{"name":"rewrite","description":"Ask for a text in another tone","arguments":[{"name":"text","required":true},{"name":"tone"}]}`),
		func(_ context.Context, r *server.Request) (jsontext.Value, error) {
			args, err := jsonrpc.ParseObject(r.Params.Get("arguments"))
			if err != nil {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the prompt needs arguments: %v", err)
			}
			text, ok := args.Text("text")
			if !ok {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "the argument text is missing")
			}
			tone, ok := args.Text("tone")
			if !ok {
				tone = "friendly"
			}
			return fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":%s}}]}`,
				mcp.String("Rewrite this in a "+tone+" tone:\n\n"+text)), nil
		})
	if err != nil {
		return err
	}
	return m.Prompts.Add(p)
}

func addResources(m *server.Memory) error {
	about, err := server.NewResource(
		jsontext.Value(`{"uri":"demo://paged/about","name":"about","description":"What this server is","mimeType":"text/plain"}`),
		func(_ context.Context, _ *server.Request, uri string) (jsontext.Value, error) {
			return server.TextContents(uri, "text/plain", "A demo server whose list of tools has four pages, one of them empty.\n"), nil
		})
	if err != nil {
		return err
	}
	word, err := server.NewTemplate(
		jsontext.Value(`{"uriTemplate":"demo://paged/reversed/{word}","name":"reversed","description":"A word, backwards","mimeType":"text/plain"}`),
		func(_ context.Context, _ *server.Request, uri string, values uritemplate.Values) (jsontext.Value, error) {
			return server.TextContents(uri, "text/plain", reverse(values.Get("word").String())+"\n"), nil
		})
	if err != nil {
		return err
	}
	if err := m.Resources.Add(about); err != nil {
		return err
	}
	return m.Templates.Add(word)
}

// List cuts the tools into pages; see server.Source.
func (p *paged) List(ctx context.Context, r *server.Request, kind mcp.Kind, cursor *string) (jsontext.Value, error) {
	if kind != mcp.Tools {
		return p.Memory.List(ctx, r, kind, cursor)
	}
	n := 0
	if cursor != nil {
		var err error
		if n, err = strconv.Atoi(*cursor); err != nil || n < 1 || n >= len(pages) {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cursor: there is no page %q", *cursor)
		}
	}
	page := mcp.Page{Kind: kind, Server: p.Info().Implementation}
	tools := p.Tools.Snapshot()
	for i := pages[n].from; i < pages[n].to; i++ {
		page.Items = append(page.Items, tools.At(i).Value.Definition())
	}
	if n+1 < len(pages) {
		page.Next = strconv.Itoa(n + 1)
	}
	return page.Append(nil, r.Caller.Version), nil
}

func reverse(s string) string {
	runes := []rune(s)
	slices.Reverse(runes)
	return string(runes)
}

func initials(s string) string {
	var b strings.Builder
	for _, word := range strings.Fields(s) {
		b.WriteString(string([]rune(word)[:1]))
	}
	return b.String()
}

func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return r
		}
		return -1
	}, s)
}

func repeat(args jsonrpc.Object) (string, error) {
	const most = 100
	text, ok := args.Text("text")
	if !ok {
		return "", fmt.Errorf("the argument text must be a string")
	}
	times := 2
	if raw := args.Get("times"); raw != nil {
		var err error
		if times, err = strconv.Atoi(string(raw)); err != nil || times < 1 || times > most {
			return "", fmt.Errorf("the argument times must be an integer from 1 to %d, not %s", most, raw)
		}
	}
	return strings.TrimSuffix(strings.Repeat(text+" ", times), " "), nil
}
