package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// item is what all listed things have.
type item struct{ definition mcp.Definition }

// Definition returns what clients see.
func (i *item) Definition() jsontext.Value { return i.definition.Object.Raw }

// Name returns what identifies it: a name, a URI or a URI template.
func (i *item) Name() string { return i.definition.Key }

func newItem(kind mcp.Kind, definition jsontext.Value) (item, error) {
	d, err := mcp.ParseDefinition(kind, definition)
	if err != nil {
		return item{}, fmt.Errorf("definition of %q: %w", d.Key, err)
	}
	return item{d}, nil
}

// Tool is a tool of a Memory. It does not change.
type Tool struct {
	item
	params []mcp.ParamHeader
	call   func(ctx context.Context, call *ToolCall) (jsontext.Value, error)
}

// ToolCall is one call of a tool.
type ToolCall struct {
	*Request
	// Arguments is the raw object; nil if the caller gave none.
	Arguments jsontext.Value

	ended atomic.Bool
}

// NewTool returns a tool with a definition as it is listed (2026-07-28, schema,
// Tool): at least a name and an inputSchema. call returns a CallToolResult; see
// TextResult. An error that is not a *jsonrpc.Error becomes a result that says
// so to the model. call may run any number of times at once; its context ends
// when the caller gives up.
func NewTool(definition jsontext.Value, call func(ctx context.Context, call *ToolCall) (jsontext.Value, error)) (*Tool, error) {
	i, err := newItem(mcp.Tools, definition)
	if err != nil {
		return nil, err
	}
	params, err := mcp.ParamHeaders(i.definition.Object.Get("inputSchema"))
	if err != nil {
		return nil, fmt.Errorf("definition of %q: %w", i.definition.Key, err)
	}
	if call == nil {
		return nil, fmt.Errorf("definition of %q: %w", i.definition.Key, errNoFunction)
	}
	return &Tool{item: i, params: params, call: call}, nil
}

var errNoFunction = errors.New("it has no function")

func (t *Tool) answer(ctx context.Context, r *Request) (jsontext.Value, error) {
	args := r.Params.Get("arguments")
	switch args.Kind() {
	case '{':
	case 'n':
		args = nil
	default:
		if args != nil {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.arguments must be an object")
		}
	}
	call := &ToolCall{Request: r, Arguments: args}
	result, err := t.call(ctx, call)
	call.ended.Store(true)
	if err == nil {
		return result, nil
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok || ctx.Err() != nil {
		return nil, err
	}
	if _, ok := errors.AsType[*InputRequired](err); ok {
		return nil, err
	}
	return errorResult(err.Error()), nil
}

// Progress tells the caller how far the call is, if it asked to be told
// (2026-07-28, basic/patterns/progress): progress must grow, total 0 means not
// known, message may be empty. Once the call has returned there is nothing more to
// tell, and Progress is an error, as it is for what is not a finite number.
func (c *ToolCall) Progress(ctx context.Context, progress, total float64, message string) error {
	meta, err := c.Params.Meta()
	if err != nil {
		return nil //nolint:nilerr // without _meta nobody asked
	}
	token := meta.Get(mcp.MetaProgressToken)
	switch {
	case token.Kind() != '"' && token.Kind() != '0':
		return nil // no token, or nothing that is one
	case c.ended.Load():
		return errors.New("progress of a call that has ended")
	case !finite(progress) || !finite(total):
		return fmt.Errorf("progress %v of %v: not a number that JSON has", progress, total)
	}
	params := append([]byte(`{"progressToken":`), token...)
	params = strconv.AppendFloat(append(params, `,"progress":`...), progress, 'g', -1, 64)
	if total != 0 {
		params = strconv.AppendFloat(append(params, `,"total":`...), total, 'g', -1, 64)
	}
	if message != "" {
		params = append(append(params, `,"message":`...), mcp.String(message)...)
	}
	return c.Peer.Notify(ctx, mcp.MethodProgress, append(params, '}'))
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// TextResult returns a tool's result that is a text.
func TextResult(text string) jsontext.Value {
	out := append([]byte(`{"content":[{"type":"text","text":`), mcp.String(text)...)
	return append(out, `}]}`...)
}

func errorResult(text string) jsontext.Value {
	out := append([]byte(`{"content":[{"type":"text","text":`), mcp.String(text)...)
	return append(out, `}],"isError":true}`...)
}

// Prompt is a prompt of a Memory. It does not change.
type Prompt struct {
	item
	get func(ctx context.Context, r *Request) (jsontext.Value, error)
}

// NewPrompt returns a prompt with a definition as it is listed: at least a name.
// get returns a GetPromptResult.
func NewPrompt(definition jsontext.Value, get func(ctx context.Context, r *Request) (jsontext.Value, error)) (*Prompt, error) {
	i, err := newItem(mcp.Prompts, definition)
	if err != nil {
		return nil, err
	}
	if get == nil {
		return nil, fmt.Errorf("definition of %q: %w", i.definition.Key, errNoFunction)
	}
	return &Prompt{item: i, get: get}, nil
}

// Resource is a resource of a Memory. It does not change.
type Resource struct {
	item
	read func(ctx context.Context, r *Request, uri string) (jsontext.Value, error)
}

// NewResource returns a resource with a definition as it is listed: at least a
// uri and a name. read returns a ReadResourceResult.
func NewResource(definition jsontext.Value, read func(ctx context.Context, r *Request, uri string) (jsontext.Value, error)) (*Resource, error) {
	i, err := newItem(mcp.Resources, definition)
	if err != nil {
		return nil, err
	}
	if read == nil {
		return nil, fmt.Errorf("definition of %q: %w", i.definition.Key, errNoFunction)
	}
	return &Resource{item: i, read: read}, nil
}

// Template is a resource template of a Memory. It does not change.
type Template struct {
	item
	template *uritemplate.Template
	read     func(ctx context.Context, r *Request, uri string, values uritemplate.Values) (jsontext.Value, error)
}

// NewTemplate returns a template with a definition as it is listed: at least a
// uriTemplate and a name. read returns a ReadResourceResult for a URI that the
// template can make, from these values.
func NewTemplate(definition jsontext.Value, read func(ctx context.Context, r *Request, uri string, values uritemplate.Values) (jsontext.Value, error)) (*Template, error) {
	i, err := newItem(mcp.Templates, definition)
	if err != nil {
		return nil, err
	}
	t, err := uritemplate.New(i.definition.Key)
	if err != nil {
		return nil, fmt.Errorf("definition of %q: %w", i.definition.Key, err)
	}
	if read == nil {
		return nil, fmt.Errorf("definition of %q: %w", i.definition.Key, errNoFunction)
	}
	return &Template{item: i, template: t, read: read}, nil
}

// TextContents returns the result of reading a resource that is a text.
func TextContents(uri, mimeType, text string) jsontext.Value {
	out := append([]byte(`{"contents":[{"uri":`), mcp.String(uri)...)
	out = append(append(out, `,"mimeType":`...), mcp.String(mimeType)...)
	out = append(append(out, `,"text":`...), mcp.String(text)...)
	return append(out, `}]}`...)
}
