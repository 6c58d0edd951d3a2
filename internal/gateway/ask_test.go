package gateway_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// TestNobodyToAsk is C-192 and the errors of C-225: what a client has not declared
// it is not asked, and whoever asked hears so at once.
func TestNobodyToAsk(t *testing.T) {
	ended := jsonrpc.CodeInternal
	tests := []struct {
		name           string
		client, server mcp.Version
		caps           string
		tool           string
		want           string // in the result; "": an error
		code           int
	}{
		{"sessions", mcp.V20251125, mcp.V20251125, `{}`, "form", "refused: -32601", 0},
		{"sessions, a URL", mcp.V20251125, mcp.V20251125, `{"elicitation":{}}`, "url", "refused: -32602", 0},
		{"sessions, only URLs", mcp.V20251125, mcp.V20251125, `{"elicitation":{"url":{}}}`, "form", "refused: -32602", 0},
		{"sessions, a version without URLs", mcp.V20250618, mcp.V20251125, everyCapability, "url", "refused: -32602", 0},
		{"stateless client", mcp.V20260728, mcp.V20251125, `{}`, "form", "refused: -32601", 0},
		{"stateless client, declares another", mcp.V20260728, mcp.V20251125, `{"sampling":{}}`, "form", "refused: -32601", 0},
		{"stateless", mcp.V20260728, mcp.V20260728, `{}`, "form", "", mcp.CodeMissingCapability},
		{"stateless, a URL", mcp.V20260728, mcp.V20260728, `{"elicitation":{}}`, "url", "", mcp.CodeMissingCapability},
		{"stateless server", mcp.V20251125, mcp.V20260728, `{}`, "form", `"isError":true`, 0},
		{"-32042 and no URLs", mcp.V20260728, mcp.V20251125, `{"elicitation":{}}`, "visit", "", ended},
		{"-32042 in a session", mcp.V20251125, mcp.V20251125, `{}`, "visit", "", mcp.CodeURLElicitation},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newGateway(t, behind{name: "s", dial: overPipe(t, newBackend(tt.server))})
			p := join(t, overPipe(t, f.server), false, tt.client, tt.caps)
			result, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"`+tt.tool+`"}`)
			if codeOf(err) != tt.code || !strings.Contains(string(result.Raw), tt.want) {
				t.Errorf("%s %v, want %q or code %d", result.Raw, err, tt.want, tt.code)
			}
		})
	}
}

// TestDeclined: who does not want to visit a URL does not have the call made again.
func TestDeclined(t *testing.T) {
	b := newBackend(mcp.V20251125)
	f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
	p := join(t, overPipe(t, f.server), false, mcp.V20260728, everyCapability)
	p.answer = func(context.Context, string, jsonrpc.Object) (string, error) { return `{"action":"decline"}`, nil }
	if _, err := p.converse(t.Context(), mcp.MethodToolsCall, `{"name":"visit"}`); codeOf(err) != jsonrpc.CodeInternal {
		t.Errorf("%v", err)
	}
	if n := len(b.lines()); n != 1 {
		t.Errorf("called %d times", n)
	}
}

// TestCancelWithQuestionOpen: a client that cancels a call hears that the question
// asked for it is taken back.
func TestCancelWithQuestionOpen(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20251125, mcp.V20260728} {
		t.Run("server "+string(v), func(t *testing.T) {
			b := newBackend(v)
			f := newGateway(t, behind{name: "s", dial: overPipe(t, b)})
			p := join(t, overPipe(t, f.server), false, mcp.V20251125, everyCapability)
			asked, taken := make(chan struct{}), make(chan error, 1)
			p.answer = func(ctx context.Context, _ string, _ jsonrpc.Object) (string, error) {
				close(asked)
				<-ctx.Done()
				taken <- context.Cause(ctx)
				return "", ctx.Err()
			}
			ctx, cancel := context.WithCancel(t.Context())
			var call sync.WaitGroup
			call.Go(func() { _, _ = p.send(ctx, mcp.MethodToolsCall, `{"name":"form"}`) })
			receive(t, "the question", asked)
			cancel()
			if err := receive(t, "it is taken back", taken); !errors.Is(err, jsonrpc.ErrCanceled) {
				t.Errorf("it ended with %v", err)
			}
			call.Wait()
		})
	}
}

// TestAboutAQuestion: progress of a client with a question reaches the server
// under its own token, that of another client reaches nobody; what a server says of
// a visit reaches the client that was asked for it.
func TestAboutAQuestion(t *testing.T) {
	b := newBackend(mcp.V20251125)
	heard := make(chan string, 8)
	b.custom = func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
		_, err := r.Peer.Call(ctx, mcp.MethodElicit,
			jsontext.Value(`{"mode":"url","url":"https://x.test","message":"m","elicitationId":"e9","_meta":{"progressToken":"own","x":1}}`))
		if err != nil {
			return nil, err
		}
		_ = r.Peer.Notify(ctx, mcp.MethodElicitComplete, jsontext.Value(`{"elicitationId":"e9"}`))
		_ = r.Peer.Notify(ctx, mcp.MethodElicitComplete, jsontext.Value(`{"elicitationId":"e9"}`))
		return text("done")
	}
	spy := jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
		if r.Method == mcp.MethodProgress {
			heard <- string(r.Params.Raw)
		}
		return b.Handle(ctx, r)
	})
	f := newGateway(t, behind{name: "s", dial: overPipe(t, spy)})
	p := join(t, overPipe(t, f.server), false, mcp.V20251125, everyCapability)
	other := join(t, overPipe(t, f.server), false, mcp.V20251125, everyCapability)
	p.answer = func(ctx context.Context, _ string, params jsonrpc.Object) (string, error) {
		meta, _ := jsonrpc.ParseObject(params.Get("_meta"))
		note := func(p *party, progress string) {
			_ = p.wire.Notify(ctx, mcp.MethodProgress, jsontext.Value(`{"progressToken":`+string(meta.Get(mcp.MetaProgressToken))+`,"progress":`+progress+`}`))
		}
		note(other, "13")
		if _, err := other.send(ctx, "ping", `{}`); err != nil {
			return "", err
		}
		note(p, "0.50")
		if got, want := <-heard, `{"progressToken":"own","progress":0.50}`; got != want {
			t.Errorf("the server heard %s, want %s", got, want)
		}
		return `{"action":"accept"}`, nil
	}
	if _, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"custom"}`); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, "the visit is complete", p.heard); got != mcp.MethodElicitComplete {
		t.Errorf("heard %s", got)
	}
	if len(p.heard)+len(other.heard)+len(heard) > 0 {
		t.Error("somebody heard more")
	}
}

// TestLogLevels is C-226, and that a level which there is not is refused.
func TestLogLevels(t *testing.T) {
	f := newGateway(t, behind{name: "s", dial: overPipe(t, newBackend(mcp.V20251125))})
	modern := join(t, overPipe(t, f.server), false, mcp.V20260728, `{}`)
	quiet := join(t, overPipe(t, f.server), false, mcp.V20250618, `{}`)
	count := func(p *party, level string) int {
		t.Helper()
		p.level = level
		p.take()
		if _, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"log"}`); err != nil {
			t.Errorf("level %q: %v", level, err)
		}
		return strings.Count(strings.Join(p.take(), "\n"), mcp.MethodMessage)
	}
	if n := count(quiet, ""); n != 4 {
		t.Errorf("a session gets %d of the 4 that the server sends by itself", n)
	}
	for _, c := range []struct {
		level string
		want  int
	}{{"", 0}, {"error", 1}, {"debug", 4}, {"warning", 2}} {
		if n := count(modern, c.level); n != c.want {
			t.Errorf("level %q: %d messages, want %d", c.level, n, c.want)
		}
	}
	if n := count(quiet, ""); n != 3 {
		t.Errorf("a session gets %d messages although only another client wants debug", n)
	}
	modern.level = "loud"
	if _, err := modern.send(t.Context(), mcp.MethodToolsCall, `{"name":"log"}`); codeOf(err) != jsonrpc.CodeInvalidParams {
		t.Errorf("level loud: %v", err)
	}
}
