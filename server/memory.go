package server

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// MemoryOptions configures a Memory. Name and Version are required.
type MemoryOptions struct {
	// Name and Version say what the server is.
	Name, Version string
	// Instructions say how to use it.
	Instructions string
	// Page says where lists are cut into pages.
	Page mcp.PageLimits
	// Hints are given with lists to clients of stateless versions.
	Hints mcp.Hints
	// Complete answers completion/complete; nil: the server does not declare
	// completions.
	Complete func(ctx context.Context, req *Request) (jsontext.Value, error)
	// Logging: things of the server send log messages to clients with
	// Request.Log, and the server declares so.
	Logging bool
}

// Memory is a Source that a program fills: its tools, prompts, resources and
// templates are sets to which things are added and from which they are removed
// at any time, from any goroutine. Lists are in the order in which things were
// added; one that was removed and is added again comes last. Clients are told of
// changes; several made in a scope of Defer, or in one Update, are told as one.
type Memory struct {
	Tools     *registry.Set[*Tool]
	Prompts   *registry.Set[*Prompt]
	Resources *registry.Set[*Resource]
	Templates *registry.Set[*Template]

	opts  MemoryOptions
	info  Info
	lists [len(mcp.Kinds)]lister

	watchers watchers
}

// NewMemory returns an empty Memory.
func NewMemory(opts MemoryOptions) *Memory {
	opts.Page = opts.Page.WithDefaults()
	m := &Memory{
		opts:      opts,
		Tools:     newItems(func(t *Tool) *item { return &t.item }),
		Prompts:   newItems(func(p *Prompt) *item { return &p.item }),
		Resources: newItems(func(r *Resource) *item { return &r.item }),
		Templates: newItems(func(t *Template) *item { return &t.item }),
	}
	name := append([]byte(`{"name":`), mcp.String(opts.Name)...)
	name = append(append(name, `,"version":`...), mcp.String(opts.Version)...)
	m.info = Info{
		Implementation: append(name, '}'), Instructions: opts.Instructions, Hints: opts.Hints,
		Capabilities: capabilities(opts),
	}
	m.lists = [...]lister{
		mcp.Tools:     newList(m, mcp.Tools, m.Tools, func(t *Tool) *item { return &t.item }),
		mcp.Prompts:   newList(m, mcp.Prompts, m.Prompts, func(p *Prompt) *item { return &p.item }),
		mcp.Resources: newList(m, mcp.Resources, m.Resources, func(r *Resource) *item { return &r.item }),
		mcp.Templates: newList(m, mcp.Templates, m.Templates, func(t *Template) *item { return &t.item }),
	}
	return m
}

func capabilities(opts MemoryOptions) jsontext.Value {
	out := []byte{'{'}
	if opts.Complete != nil {
		out = append(out, `"completions":{},`...)
	}
	if opts.Logging {
		out = append(out, `"logging":{},`...)
	}
	return append(out, `"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`...)
}

// newItems returns a set of things with definitions. The URIs of resources and
// templates are compared without regard to how scheme and host are spelled.
func newItems[T comparable](of func(T) *item) *registry.Set[T] {
	return registry.New(registry.Options[T]{
		Name: func(v T) string { return of(v).definition.Key },
		Fold: mcp.FoldURI,
	})
}

// Info describes the server; see Source.
func (m *Memory) Info() Info { return m.info }

// Watch tells of changes; see Source.
func (m *Memory) Watch(signal func()) (stop func()) {
	told := func(registry.Change) { signal() }
	stops := [...]func(){
		m.Tools.OnChange(told), m.Prompts.OnChange(told), m.Resources.OnChange(told), m.Templates.OnChange(told),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// Fingerprint identifies a list's content; see Source.
func (m *Memory) Fingerprint(r *Request, kind mcp.Kind) uint64 {
	return m.lists[kind].fingerprint(r.Caller.Version)
}

// List returns a page; see Source.
func (m *Memory) List(_ context.Context, r *Request, kind mcp.Kind, cursor *string) (jsontext.Value, error) {
	if cursor == nil {
		return m.lists[kind].first(r.Caller.Version), nil
	}
	at, err := mcp.DecodeCursor(*cursor)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cursor: %v", err)
	}
	if at.Kind != kind || at.View != "" || at.Epoch != 0 || at.Place != 0 || at.Ordinal > at.High {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.cursor: belongs to another list")
	}
	return m.lists[kind].behind(r.Caller.Version, at), nil
}

// ParamHeaders returns a tool's arguments that are repeated in headers; see
// ParamSource.
func (m *Memory) ParamHeaders(_ *Request, tool string) []mcp.ParamHeader {
	if t, ok := m.Tools.Get(tool); ok {
		return t.params
	}
	return nil
}

// Do calls, gets, reads or completes; see Source.
func (m *Memory) Do(ctx context.Context, r *Request) (jsonrpc.Object, error) {
	result, err := m.answer(ctx, r)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	obj, err := jsonrpc.ParseObject(result)
	if err != nil {
		return obj, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s: the result is %v", r.Method, err)
	}
	return complete(r.Method, obj)
}

// complete puts an empty array where a result must have one and has none, or null:
// strict clients fail on both.
func complete(method string, result jsonrpc.Object) (jsonrpc.Object, error) {
	name := ""
	switch method {
	case mcp.MethodToolsCall:
		name = "content"
	case mcp.MethodPromptsGet:
		name = "messages"
	case mcp.MethodResourcesRead:
		name = "contents"
	default:
		return result, nil
	}
	if kind, _ := result.Text("resultType"); kind == "input_required" {
		return result, nil
	}
	if v := result.Get(name); v != nil && v.Kind() != 'n' {
		return result, nil
	}
	return jsonrpc.ParseObject(mcp.Splice(result, mcp.Edit{Name: name, Value: jsontext.Value("[]")}))
}

func (m *Memory) answer(ctx context.Context, r *Request) (jsontext.Value, error) {
	member := mcp.NameMember(r.Method)
	name, ok := r.Params.Text(member)
	if member != "" && !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.%s must be a string", member)
	}
	switch r.Method {
	case mcp.MethodToolsCall:
		if t, ok := m.Tools.Get(name); ok {
			return t.answer(ctx, r)
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown tool %q", name)
	case mcp.MethodPromptsGet:
		if p, ok := m.Prompts.Get(name); ok {
			return p.get(ctx, r)
		}
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown prompt %q", name)
	case mcp.MethodResourcesRead:
		return m.read(ctx, r, name)
	case mcp.MethodComplete:
		if m.opts.Complete != nil {
			return m.opts.Complete(ctx, r)
		}
	}
	return nil, methodNotFound(r.Method)
}

func (m *Memory) read(ctx context.Context, r *Request, uri string) (jsontext.Value, error) {
	if res, ok := m.Resources.Get(uri); ok {
		return res.read(ctx, r, uri)
	}
	for _, e := range m.Templates.Snapshot().All() {
		if values := e.Value.template.Match(uri); values != nil {
			return e.Value.read(ctx, r, uri, values)
		}
	}
	return nil, unknownResource(r, uri)
}

// has reports whether there is something to read under a URI.
func (m *Memory) has(uri string) bool {
	if _, ok := m.Resources.Get(uri); ok {
		return true
	}
	for _, e := range m.Templates.Snapshot().All() {
		if e.Value.template.Match(uri) != nil {
			return true
		}
	}
	return false
}

func unknownResource(r *Request, uri string) error {
	err := jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "unknown resource %q", uri)
	if !r.Caller.Version.Stateless() {
		err.Code = mcp.CodeResourceNotFound
	}
	err.Data = append(append([]byte(`{"uri":`), mcp.String(uri)...), '}')
	return err
}
