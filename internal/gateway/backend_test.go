package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// oddState is a requestState that must come back byte for byte (C-218).
var oddState = "<a href=\"x?1&2\">\u2028 \U0001F600 \\u0041" + strings.Repeat("é&<", 64<<10/4)

// backend is a server that has one of everything and speaks one version.
type backend struct {
	version mcp.Version
	started chan string // names of calls that wait
	ended   chan error  // why they ended
	// custom is the tool of that name.
	custom func(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error)

	mu       sync.Mutex // guards the fields below
	log      []string   // what it was sent
	level    string
	sessions []*jsonrpc.Session
	watched  map[string]int // URI: subscriptions
	listens  map[*jsonrpc.Request][]string
}

func newBackend(v mcp.Version) *backend {
	return &backend{
		version: v, started: make(chan string, 64), ended: make(chan error, 64),
		watched: make(map[string]int), listens: make(map[*jsonrpc.Request][]string),
	}
}

const backendCapabilities = `{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}}`

const backendInfo = `{"name":"everything","version":"1"}`

var backendTools = []string{"progress", "wait", "form", "url", "visit", "sample", "rounds", "touch", "log", "link", "stray", "custom"}

// lines returns what the backend was sent since the last time.
func (b *backend) lines() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.log
	b.log = nil
	return out
}

func (b *backend) note(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, fmt.Sprintf(format, args...))
}

// Handle implements jsonrpc.Handler.
func (b *backend) Handle(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	if quiet := r.ID.IsZero() || r.Method == mcp.MethodPing || r.Method == mcp.MethodInitialize || r.Method == mcp.MethodDiscover || strings.HasSuffix(r.Method, "/list"); !quiet {
		b.note("%s %s", r.Method, readable(r.Params))
	}
	result, err := b.answer(ctx, r)
	if err != nil || !b.version.Stateless() || result == nil {
		return result, err
	}
	obj, err := jsonrpc.ParseObject(result)
	if err != nil {
		return nil, err
	}
	edits := []mcp.Edit{{Name: "_meta", Value: jsontext.Value(`{"` + mcp.MetaServerInfo + `":` + backendInfo + `}`)}}
	if obj.Get("resultType") == nil {
		edits = append(edits, mcp.Edit{Name: "resultType", Value: jsontext.Value(`"complete"`)})
	}
	return mcp.Splice(obj, edits...), nil
}

func (b *backend) answer(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	switch r.Method {
	case mcp.MethodInitialize:
		if b.version.Stateless() {
			break
		}
		b.mu.Lock()
		b.sessions = append(b.sessions, r.Session)
		b.mu.Unlock()
		return fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":%s,"serverInfo":%s}`, b.version, backendCapabilities, backendInfo), nil
	case mcp.MethodDiscover:
		if !b.version.Stateless() {
			break
		}
		return fmt.Appendf(nil, `{"supportedVersions":[%q],"capabilities":%s,"ttlMs":0,"cacheScope":"private"}`, b.version, backendCapabilities), nil
	case mcp.MethodPing:
		return jsontext.Value(`{}`), nil
	case mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList:
		return b.list(r.Method), nil
	case mcp.MethodSetLevel:
		b.mu.Lock()
		b.level, _ = r.Params.Text("level")
		b.mu.Unlock()
		return jsontext.Value(`{}`), nil
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return b.subscribe(r)
	case mcp.MethodListen:
		return b.listen(ctx, r)
	case mcp.MethodComplete:
		return jsontext.Value(`{"completion":{"values":["red","rot"],"total":2,"hasMore":false}}`), nil
	case mcp.MethodResourcesRead:
		return b.read(ctx, r)
	case mcp.MethodPromptsGet:
		return b.rounds(ctx, r, `{"messages":[{"role":"user","content":{"type":"text","text":%s}}]}`)
	case mcp.MethodToolsCall:
		return b.call(ctx, r)
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
}

func (b *backend) list(method string) jsontext.Value {
	kind, _ := mcp.KindOf(method)
	var items []string
	switch kind {
	case mcp.Tools:
		for _, name := range backendTools {
			items = append(items, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
		}
	case mcp.Prompts:
		items = []string{`{"name":"rounds"}`}
	case mcp.Resources:
		items = []string{`{"uri":"x:blob","name":"blob"}`, `{"uri":"x:rounds","name":"rounds"}`}
	case mcp.Templates:
		items = []string{`{"uriTemplate":"x:t/{name}","name":"t"}`}
	}
	return fmt.Appendf(nil, `{%q:[%s],"ttlMs":0,"cacheScope":"private"}`, kind.Field(), strings.Join(items, ","))
}

func (b *backend) subscribe(r *jsonrpc.Request) (jsontext.Value, error) {
	uri, _ := r.Params.Text("uri")
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.Method == mcp.MethodSubscribe {
		b.watched[uri]++
	} else if b.watched[uri]--; b.watched[uri] == 0 {
		delete(b.watched, uri)
	}
	return jsontext.Value(`{}`), nil
}

// watches returns how many subscriptions there are for a URI.
func (b *backend) watches(uri string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.watched[uri]
	for _, uris := range b.listens {
		if slices.Contains(uris, uri) {
			n++
		}
	}
	return n
}

func (b *backend) listen(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	filter, _ := jsonrpc.ParseObject(r.Params.Get("notifications"))
	list, _ := jsonrpc.Elements(filter.Get("resourceSubscriptions"))
	var uris []string
	for _, raw := range list {
		uri, _ := jsonrpc.Text(raw)
		uris = append(uris, uri)
	}
	b.mu.Lock()
	b.listens[r] = uris
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.listens, r)
	}()
	ack := fmt.Sprintf(`{"_meta":{%q:%s},"notifications":{"resourceSubscriptions":[%s]}}`, mcp.MetaSubscriptionID, r.ID.Raw(), quoted(uris))
	if err := r.Peer.Notify(ctx, mcp.MethodAcknowledged, jsontext.Value(ack)); err != nil {
		return nil, err
	}
	var gone <-chan struct{}
	if r.Session != nil {
		gone = r.Session.Done()
	}
	select {
	case <-ctx.Done():
	case <-gone:
	}
	return nil, jsonrpc.ErrCanceled
}

func quoted(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, string(mcp.String(s)))
	}
	return strings.Join(out, ",")
}

// updated tells whoever watches a resource that it has changed.
func (b *backend) updated(ctx context.Context, uri string) {
	b.mu.Lock()
	sessions := slices.Clone(b.sessions)
	if b.watched[uri] == 0 {
		sessions = nil
	}
	var listens []*jsonrpc.Request
	for r, uris := range b.listens {
		if slices.Contains(uris, uri) {
			listens = append(listens, r)
		}
	}
	b.mu.Unlock()
	for _, s := range sessions {
		_ = s.Peer.Notify(ctx, mcp.MethodUpdated, fmt.Appendf(nil, `{"uri":%q}`, uri))
	}
	for _, r := range listens {
		_ = r.Peer.Notify(ctx, mcp.MethodUpdated, fmt.Appendf(nil, `{"uri":%q,"_meta":{%q:%s}}`, uri, mcp.MetaSubscriptionID, r.ID.Raw()))
	}
}

func (b *backend) read(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	uri, _ := r.Params.Text("uri")
	const hints = `,"ttlMs":0,"cacheScope":"private"`
	switch uri {
	case "x:blob", "x:linked", "x:t/a":
		return fmt.Appendf(nil, `{"contents":[{"uri":%q,"blob":"AAEC/w==","mimeType":"a/b"}]%s}`, uri, hints), nil
	case "x:rounds":
		return b.rounds(ctx, r, `{"contents":[{"uri":"x:rounds","text":%s}]`+hints+`}`)
	}
	code := mcp.CodeResourceNotFound
	if b.version.Stateless() {
		code = jsonrpc.CodeInvalidParams
	}
	return nil, jsonrpc.Errorf(code, "no such resource")
}

func text(format string, args ...any) (jsontext.Value, error) {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}]}`, mcp.String(fmt.Sprintf(format, args...))), nil
}

func (b *backend) call(ctx context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
	name, _ := r.Params.Text("name")
	meta, _ := jsonrpc.ParseObject(r.Params.Get("_meta"))
	token := meta.Get(mcp.MetaProgressToken)
	switch name {
	case "progress":
		for _, p := range []string{`0.5,"total":2.50`, `1,"message":"half & <half>"`, `2.5,"_meta":{"x":1.0}`} {
			if token != nil {
				_ = r.Peer.Notify(ctx, mcp.MethodProgress, fmt.Appendf(nil, `{"progressToken":%s,"progress":%s}`, token, p))
			}
		}
		return text("done")
	case "custom":
		return b.custom(ctx, r)
	case "stray": // C-119: a token that nobody gave out
		_ = r.Peer.Notify(ctx, mcp.MethodProgress, jsontext.Value(`{"progressToken":"tool-call-1","progress":1}`))
		return text("done")
	case "wait":
		b.started <- name
		<-ctx.Done()
		b.ended <- context.Cause(ctx)
		return nil, jsonrpc.ErrCanceled
	case "form":
		return b.ask(ctx, r, mcp.MethodElicit, `{"mode":"form","message":"Colour?","requestedSchema":{"type":"object","properties":{"colour":{"type":"string"}}}}`)
	case "url":
		if b.version.Stateless() {
			return b.ask(ctx, r, mcp.MethodElicit, `{"mode":"url","message":"Log in","url":"https://x.test/?a=1&b=2"}`)
		}
		return b.ask(ctx, r, mcp.MethodElicit, `{"mode":"url","message":"Log in","url":"https://x.test/?a=1&b=2","elicitationId":"e-1"}`)
	case "visit":
		return b.visit(r)
	case "sample":
		return b.ask(ctx, r, mcp.MethodSampling, `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10}`)
	case "rounds":
		return b.rounds(ctx, r, `{"content":[{"type":"text","text":%s}]}`)
	case "touch":
		b.updated(ctx, "x:blob")
		return text("touched")
	case "log":
		b.logAll(ctx, r, meta)
		return text("logged")
	case "link":
		return jsontext.Value(`{"content":[{"type":"resource_link","uri":"x:linked","name":"l"}]}`), nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown tool")
}

func (b *backend) logAll(ctx context.Context, r *jsonrpc.Request, meta jsonrpc.Object) {
	levels := []string{"debug", "info", "warning", "error"}
	b.mu.Lock()
	least := b.level
	b.mu.Unlock()
	if b.version.Stateless() {
		if least, _ = meta.Text(mcp.MetaLogLevel); least == "" {
			return
		}
	}
	for _, level := range levels[max(slices.Index(levels, least), 0):] {
		_ = r.Peer.Notify(ctx, mcp.MethodMessage, fmt.Appendf(nil, `{"level":%q,"data":{"n":1.50},"logger":"l"}`, level))
	}
}

// ask asks in the way of the backend's version, and tells what it was answered.
func (b *backend) ask(ctx context.Context, r *jsonrpc.Request, method, params string) (jsontext.Value, error) {
	if !b.version.Stateless() {
		answer, err := r.Peer.Call(ctx, method, jsontext.Value(params))
		if e, ok := errors.AsType[*jsonrpc.Error](err); ok {
			return text("refused: %d", e.Code)
		}
		if err != nil {
			return nil, err
		}
		return text("answer: %s", answer.Raw)
	}
	if state := r.Params.Get("requestState"); state != nil {
		got, _ := jsonrpc.Text(state)
		answers, _ := jsonrpc.ParseObject(r.Params.Get("inputResponses"))
		return text("answer: %s (state %t)", answers.Get("q"), got == oddState)
	}
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{"q":{"method":%q,"params":%s}},"requestState":%s}`,
		method, params, mcp.String(oddState)), nil
}

// rounds asks twice.
func (b *backend) rounds(ctx context.Context, r *jsonrpc.Request, result string) (jsontext.Value, error) {
	const params = `{"mode":"form","message":%q,"requestedSchema":{"type":"object","properties":{}}}`
	var answers [2]string
	if !b.version.Stateless() {
		for i := range answers {
			answer, err := r.Peer.Call(ctx, mcp.MethodElicit, fmt.Appendf(nil, params, fmt.Sprint("round ", i+1)))
			if err != nil {
				return nil, err
			}
			answers[i] = string(answer.Raw)
		}
		return fmt.Appendf(nil, result, mcp.String(answers[0]+answers[1])), nil
	}
	given, _ := jsonrpc.ParseObject(r.Params.Get("inputResponses"))
	if given.Get("two") != nil {
		return fmt.Appendf(nil, result, mcp.String(string(given.Get("two")))), nil
	}
	key, state := "one", `,"requestState":"first"`
	if given.Get("one") != nil {
		key, state = "two", `,"requestState":"second"`
	}
	return fmt.Appendf(nil, `{"resultType":"input_required","inputRequests":{%q:{"method":"elicitation/create","params":%s}}%s}`,
		key, fmt.Sprintf(params, "round "+key), state), nil
}

// visit wants a URL visited before it acts, by the error of versions with
// sessions that have that.
func (b *backend) visit(r *jsonrpc.Request) (jsontext.Value, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.level == "visited" || !b.version.HasURLElicitation() || b.version.Stateless() {
		b.level = ""
		return text("visited: %s", r.Params.Get("inputResponses"))
	}
	b.level = "visited"
	e := jsonrpc.Errorf(mcp.CodeURLElicitation, "visit first")
	e.Data = jsontext.Value(`{"elicitations":[{"mode":"url","elicitationId":"e-2","url":"https://x.test/2","message":"Visit"}]}`)
	return nil, e
}

// readable returns params as a reader of a transcript wants them: without what
// each request of a stateless version says of its client and of who serves it, without
// the token of a request, and with STATE for a requestState.
func readable(params jsonrpc.Object) string {
	if params.IsZero() {
		return "{}"
	}
	if meta, err := jsonrpc.ParseObject(params.Get("_meta")); err == nil {
		edits := []mcp.Edit{{Name: mcp.MetaVersion}, {Name: mcp.MetaClientInfo}, {Name: mcp.MetaCapabilities}, {Name: mcp.MetaSubscriptionID}}
		edits = append(edits, mcp.Edit{Name: mcp.MetaProgressToken}, mcp.Edit{Name: mcp.MetaServerInfo})
		rest := mcp.Splice(meta, edits...)
		if string(rest) == "{}" {
			rest = nil
		}
		if out, err := jsonrpc.ParseObject(mcp.Splice(params, mcp.Edit{Name: "_meta", Value: rest})); err == nil {
			params = out
		}
	}
	out := params.Raw.String()
	if params.Get("requestState") != nil {
		out = strings.Replace(out, string(params.Get("requestState")), `"STATE"`, 1)
	}
	return out
}
