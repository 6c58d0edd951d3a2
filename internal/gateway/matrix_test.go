package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/mcphttp"
	"github.com/rogpeppe/go-internal/txtar"
)

// feature is something that a client and a server can say to each other. What it
// returns says how it went, for the table of docs/compatibility.md.
type feature struct {
	name string
	what string // for the reader of the transcripts
	run  func(t *testing.T, p *party, b *backend) string
	// indirect: it is not the same without a gateway, for a reason.
	indirect bool
}

const (
	works   = "yes"
	refused = "refused" // the server, or the call, is told at once that it cannot be
	absent  = "-"       // one of the two versions has no such thing
)

var features = []feature{
	{name: "progress", what: "A call with a token gets the server's progress under that token, untouched.", run: runProgress},
	{name: "stray", what: "Progress under a token that nobody gave out reaches nobody (C-119).", run: func(t *testing.T, p *party, _ *backend) string {
		return tool(t, p, "stray", "")
	}, indirect: true},
	{name: "cancel", what: "A call that is cancelled is cancelled at its server, whose answer is not waited for.", run: runCancel},
	{name: "elicitation", what: "A question with a form, asked during a call (C-190, C-194, C-195, C-218).", run: func(t *testing.T, p *party, _ *backend) string {
		return tool(t, p, "form", "answer: ")
	}},
	{name: "url", what: "A question that is a URL to open.", run: func(t *testing.T, p *party, b *backend) string {
		if !b.version.HasURLElicitation() {
			return absent
		}
		return tool(t, p, "url", "answer: ")
	}},
	{name: "visit", what: "A call that is refused until a URL was visited: error -32042 of 2025-11-25.", run: runVisit},
	{name: "sampling", what: "A question to the client's model, asked during a call.", run: func(t *testing.T, p *party, _ *backend) string {
		return tool(t, p, "sample", "answer: ")
	}},
	{name: "rounds", what: "A tool, a prompt and a resource that each ask twice.", run: runRounds},
	{name: "subscription", what: "A resource that is watched changes (C-185).", run: runSubscription},
	{name: "logging", what: "Log messages of a call, from the level on that the client named (C-226).", run: runLogging},
	{name: "completion", what: "Completion for the argument of a prompt and of a template.", run: runCompletion},
	{name: "resources", what: "Binary contents, a template, a resource that there is not (C-225), and one that only a result linked to.", run: runResources},
}

func tool(t *testing.T, p *party, name, want string) string {
	result, err := p.converse(t.Context(), mcp.MethodToolsCall, `{"name":"`+name+`","arguments":{}}`)
	switch {
	case err != nil, bytes.Contains(result.Raw, []byte("refused: ")), bytes.Contains(result.Raw, []byte(`"isError":true`)):
		return refused
	case !bytes.Contains(result.Raw, []byte(want)):
		t.Errorf("%s: result %s, want %q in it", name, result.Raw, want)
	}
	return works
}

func runProgress(t *testing.T, p *party, _ *backend) string {
	_, err := p.send(t.Context(), mcp.MethodToolsCall, `{"name":"progress","_meta":{"progressToken":"abc123","own":1e2}}`)
	if err != nil {
		t.Error(err)
	}
	return works
}

func runCancel(t *testing.T, p *party, b *backend) string {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var call sync.WaitGroup
	call.Go(func() { _, _ = p.send(ctx, mcp.MethodToolsCall, `{"name":"wait"}`) })
	receive(t, "the call is with the server", b.started)
	cancel()
	call.Wait()
	_ = receive(t, "the server hears of it", b.ended)
	b.note("cancelled")
	return works
}

func runVisit(t *testing.T, p *party, b *backend) string {
	if !b.version.HasURLElicitation() || b.version.Stateless() {
		return absent
	}
	_, err := p.converse(t.Context(), mcp.MethodToolsCall, `{"name":"visit"}`)
	if err != nil { // the client visits and calls again
		_, err = p.send(t.Context(), mcp.MethodToolsCall, `{"name":"visit"}`)
	}
	if err != nil {
		t.Error(err)
	}
	return works
}

func runRounds(t *testing.T, p *party, _ *backend) string {
	for _, call := range [][2]string{
		{mcp.MethodToolsCall, `{"name":"rounds"}`},
		{mcp.MethodPromptsGet, `{"name":"rounds"}`},
		{mcp.MethodResourcesRead, `{"uri":"x:rounds"}`},
	} {
		result, err := p.converse(t.Context(), call[0], call[1])
		if err != nil || !bytes.Contains(result.Raw, []byte("colour")) {
			t.Errorf("%s: %s %v", call[0], result.Raw, err)
		}
	}
	return works
}

func runSubscription(t *testing.T, p *party, b *backend) string {
	ctx, cancel := context.WithCancel(t.Context())
	var listen sync.WaitGroup
	defer func() {
		cancel()
		listen.Wait()
	}()
	for len(p.heard) > 0 {
		<-p.heard
	}
	if p.version.Stateless() {
		listen.Go(func() {
			_, _ = p.send(ctx, mcp.MethodListen, `{"notifications":{"resourceSubscriptions":["x:blob"]}}`)
		})
		if got := receive(t, "the acknowledgement", p.heard); got != mcp.MethodAcknowledged {
			t.Errorf("%s came first", got)
		}
	} else if _, err := p.send(ctx, mcp.MethodSubscribe, `{"uri":"x:blob"}`); err != nil {
		t.Error(err)
	}
	if n := b.watches("x:blob"); n != 1 {
		t.Errorf("%d subscriptions at the server, want 1", n)
	}
	b.updated(ctx, "x:blob")
	if got := receive(t, "the update", p.updates); got != "x:blob" {
		t.Errorf("update of %s", got)
	}
	if !p.version.Stateless() {
		_, _ = p.send(ctx, mcp.MethodUnsubscribe, `{"uri":"x:blob"}`)
	}
	cancel()
	listen.Wait()
	until(t, "the server is no longer asked", func() bool { return b.watches("x:blob") == 0 })
	b.lines() // which requests that takes is another matter
	return works
}

func runLogging(t *testing.T, p *party, b *backend) string {
	p.level = "warning"
	defer func() { p.level = "" }()
	if !p.version.Stateless() {
		if _, err := p.send(t.Context(), mcp.MethodSetLevel, `{"level":"warning"}`); err != nil {
			t.Error(err)
		}
	}
	mark := tool(t, p, "log", "logged")
	b.mu.Lock() // a server is asked for a level once, whoever wants it
	b.log = slices.DeleteFunc(b.log, func(line string) bool { return strings.HasPrefix(line, mcp.MethodSetLevel) })
	b.mu.Unlock()
	return mark
}

func runCompletion(t *testing.T, p *party, _ *backend) string {
	for _, ref := range []string{`{"type":"ref/prompt","name":"rounds"}`, `{"type":"ref/resource","uri":"x:t/{name}"}`} {
		if _, err := p.send(t.Context(), mcp.MethodComplete, `{"ref":`+ref+`,"argument":{"name":"a","value":"r"}}`); err != nil {
			t.Error(err)
		}
	}
	return works
}

func runResources(t *testing.T, p *party, _ *backend) string {
	tool(t, p, "link", "resource_link")
	for _, uri := range []string{"x:blob", "x:t/a", "x:t/none", "x:linked"} {
		_, err := p.send(t.Context(), mcp.MethodResourcesRead, `{"uri":"`+uri+`"}`)
		if (err != nil) != (uri == "x:t/none") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	return works
}

// wireKind is a way to reach a peer.
type wireKind string

const (
	pipe wireKind = "stdio"
	http wireKind = "HTTP"
)

// wiresOf returns the wires that a version has here: the one of 2024-11-05 with
// two streams is another.
func wiresOf(v mcp.Version) []wireKind {
	if v == mcp.V20241105 {
		return []wireKind{pipe}
	}
	return []wireKind{pipe, http}
}

// outcomes are what came of one pair of versions.
type outcomes struct {
	mu          sync.Mutex
	transcripts map[string]map[string]string // by feature and pair
	marks       map[string]map[string]string // likewise
}

// put keeps a transcript, and reports whether it is the same as that of the pair
// over other wires.
func (o *outcomes) put(feature, pair, mark, transcript string) (diff string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.transcripts[feature] == nil {
		o.transcripts[feature], o.marks[feature] = make(map[string]string), make(map[string]string)
	}
	if before, ok := o.transcripts[feature][pair]; ok {
		return cmp.Diff(before, transcript)
	}
	o.transcripts[feature][pair], o.marks[feature][pair] = transcript, mark
	return ""
}

// TestMatrix has clients of every version talk to servers of every version
// through a gateway, over both wires. What each end saw must be the transcript in
// testdata, for a pair of the same version also what they see without a gateway.
// It is C-091 and C-116, C-119, C-185, C-190, C-194, C-195, C-218, C-220, C-225, C-226.
func TestMatrix(t *testing.T) {
	o := &outcomes{transcripts: make(map[string]map[string]string), marks: make(map[string]map[string]string)}
	t.Run("pairs", func(t *testing.T) {
		for _, v := range mcp.Versions() {
			for _, w := range wiresOf(v) {
				t.Run(fmt.Sprintf("server %s %s", v, w), func(t *testing.T) {
					t.Parallel()
					serverRow(t, o, v, w)
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	checkTranscripts(t, o)
	checkTable(t, o)
}

// serverRow runs all clients against one server, one after the other.
func serverRow(t *testing.T, o *outcomes, v mcp.Version, w wireKind) {
	b := newBackend(v)
	f := newGateway(t, behind{name: "s", dial: w.reach(t, b, v), http: w == http})
	for _, cv := range mcp.Versions() {
		for _, cw := range wiresOf(cv) {
			t.Run(fmt.Sprintf("client %s %s", cv, cw), func(t *testing.T) {
				if cv == v && cw == w {
					direct := newBackend(v)
					runAll(t, o, join(t, w.reach(t, direct, v), cw == http, cv, everyCapability), direct, true)
				}
				runAll(t, o, join(t, cw.reach(t, f.server), cw == http, cv, everyCapability), b, false)
			})
		}
	}
}

// reach returns how a handler is reached: over the pipes of a child process, or over
// HTTP, in some versions or all.
func (w wireKind) reach(t *testing.T, h jsonrpc.Handler, versions ...mcp.Version) client.Dial {
	if w == http {
		return overHTTP(t, h, mcphttp.HandlerOptions{Versions: versions})
	}
	return overChild(t, h)
}

func runAll(t *testing.T, o *outcomes, p *party, b *backend, direct bool) {
	b.mu.Lock()
	b.level = ""
	b.mu.Unlock()
	for _, f := range features {
		p.take()
		b.lines()
		mark := f.run(t, p, b)
		transcript := "client:\n" + strings.Join(p.take(), "\n") + "\nserver:\n" + strings.Join(b.lines(), "\n") + "\n"
		transcript = scrub(transcript)
		if mark == absent {
			transcript = "(there is no such thing)\n"
		}
		pair := string(p.version) + " > " + string(b.version)
		if direct && f.indirect {
			continue
		}
		if diff := o.put(f.name, pair, mark, transcript); diff != "" {
			t.Errorf("%s differs from what was seen elsewhere:\n%s", f.name, diff)
		}
	}
}

// scrub takes out what is made anew each time.
func scrub(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		for _, member := range []string{`"requestState":"`, `"elicitationId":"roster-`} {
			if i := strings.Index(line, member); i >= 0 {
				at := i + len(member)
				if end := strings.IndexByte(line[at:], '"'); end > 10 {
					line = line[:at] + "..." + line[at+end:]
				}
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "")
}

func pairs() []string {
	var out []string
	for _, c := range slices.Backward(mcp.Versions()) {
		for _, s := range slices.Backward(mcp.Versions()) {
			out = append(out, string(c)+" > "+string(s))
		}
	}
	return out
}

// checkTranscripts compares with testdata, where pairs that saw the same share
// one transcript.
func checkTranscripts(t *testing.T, o *outcomes) {
	for _, f := range features {
		archive := &txtar.Archive{Comment: []byte(f.what + "\nEach part is named by version of client > version of server; those in its first lines saw the same.\n")}
		var seen []string
		by := make(map[string][]string)
		for _, pair := range pairs() {
			transcript := o.transcripts[f.name][pair]
			if by[transcript] == nil {
				seen = append(seen, transcript)
			}
			by[transcript] = append(by[transcript], pair)
		}
		for _, transcript := range seen {
			group := by[transcript]
			data := transcript
			for _, other := range slices.Backward(group[1:]) {
				data = "also " + other + "\n" + data
			}
			archive.Files = append(archive.Files, txtar.File{Name: group[0], Data: []byte(data)})
		}
		golden(t, filepath.Join("testdata", f.name+".txtar"), txtar.Format(archive))
	}
}

// checkTable compares with docs/compatibility.md.
func checkTable(t *testing.T, o *outcomes) {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, c := range slices.Backward(mcp.Versions()) {
		fmt.Fprintf(&b, "\n## Client %s\n\n| feature |", c)
		for _, s := range slices.Backward(mcp.Versions()) {
			fmt.Fprintf(&b, " server %s |", s)
		}
		b.WriteString("\n| --- |" + strings.Repeat(" --- |", len(mcp.Versions())) + "\n")
		for _, f := range features {
			fmt.Fprintf(&b, "| %s |", f.name)
			for _, s := range slices.Backward(mcp.Versions()) {
				fmt.Fprintf(&b, " %s |", o.marks[f.name][string(c)+" > "+string(s)])
			}
			b.WriteString("\n")
		}
	}
	b.WriteString("\n## Features\n\n")
	for _, f := range features {
		fmt.Fprintf(&b, "- %s: %s\n", f.name, strings.TrimSpace(f.what))
	}
	golden(t, filepath.Join("..", "..", "docs", "compatibility.md"), []byte(b.String()))
}

const tableHead = `# Compatibility

What a client of one protocol version and a server of another can say to each other
through Roster, when the client has declared every capability. This file is made by
a test from what it saw: ` + "`go test ./internal/gateway -run TestMatrix -update`" + `.

Each pair was run over every combination of wires: the server on stdio, a process that
the gateway starts and talks to over its pipes, or on HTTP over loopback, with and
without sessions as its version has it; the client likewise, on the pipes of a process or
on HTTP. 2024-11-05 was run on stdio alone. What both ends saw was the same over all wires and is
what is written in ` + "`internal/gateway/testdata`" + `, pair by pair; for a client and a server of the
same version it is also what they see when they are connected directly (but for the feature
stray, which is about what the gateway holds back).

Elicitation is part of 2025-06-18 and later: a client of an earlier version that
declares it all the same is asked. "yes" is that it works, "refused" that whoever asked is told at once that it cannot
be, "-" that one of the two versions has no such thing. The test fails when this file or a transcript
is not what it saw.
`

// golden compares with a file, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is stale (run with -update if this is right):\n%s", name, diff)
	}
}
