package client

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// answerError is a failure that is about what the server answered to
// initialize, not about the way to it.
type answerError struct{ err error }

func (e *answerError) Error() string { return e.err.Error() }
func (e *answerError) Unwrap() error { return e.err }

func (c *Client) initializeLatest(ctx context.Context) error {
	return c.initialize(ctx, mcp.LatestSession)
}

// initialize begins a session (2025-11-25, basic/lifecycle). A server that
// refuses the version and names others is asked once more.
func (c *Client) initialize(ctx context.Context, v mcp.Version) error {
	result, err := c.sendInitialize(ctx, v)
	if err != nil {
		return c.retryInitialize(ctx, v, err)
	}
	return c.greeted(ctx, result, v)
}

func (c *Client) sendInitialize(ctx context.Context, v mcp.Version) (jsonrpc.Object, error) {
	params := []byte(`{"protocolVersion":"`)
	params = append(params, v...)
	params = append(params, `","capabilities":`...)
	params = append(params, c.opts.Capabilities...)
	params = append(params, `,"clientInfo":`...)
	params = append(params, c.opts.Info...)
	params = append(params, '}')
	return c.wire.Do(ctx, &jsonrpc.Call{
		Method: mcp.MethodInitialize, Params: params, KeepOnCancel: true,
	})
}

// retryInitialize acts on an error answer to initialize with version v.
func (c *Client) retryInitialize(ctx context.Context, v mcp.Version, err error) error {
	if judge(err) == verdictNone {
		return c.wireError("initialize", err)
	}
	other, ok := bestSession(namedVersions(err), v)
	if !ok {
		return &answerError{fmt.Errorf("initialize: %w", err)}
	}
	result, err := c.sendInitialize(ctx, other)
	if err != nil {
		return c.wireError("initialize with version "+string(other), err)
	}
	return c.greeted(ctx, result, other)
}

// greeted checks an InitializeResult and ends the handshake.
func (c *Client) greeted(ctx context.Context, result jsonrpc.Object, asked mcp.Version) error {
	if !result.IsObject() {
		return &answerError{&ResultError{mcp.MethodInitialize, "is " + mcp.TypeName(result.Raw) + ", not an object"}}
	}
	text, ok := result.Text("protocolVersion")
	if !ok {
		return &answerError{&ResultError{mcp.MethodInitialize, "has no protocolVersion"}}
	}
	v := mcp.Version(text)
	if !v.Known() || v.Stateless() {
		return &answerError{fmt.Errorf("initialize: asked for version %s, the server answered with %q: %w", asked, text, &VersionError{[]string{text}})}
	}
	c.info = readInitialize(result)
	c.info.Version = v
	if err := c.wire.Notify(ctx, mcp.MethodInitialized, nil); err != nil {
		return c.wireError(mcp.MethodInitialized, err)
	}
	return nil
}

// namedVersions returns the versions that an error names: the list in its data,
// else those known here that its texts mention.
func namedVersions(err error) []string {
	var text strings.Builder
	if answer, ok := errors.AsType[*jsonrpc.Error](err); ok {
		if list := supportedIn(answer.Data); list != nil {
			return list
		}
		text.WriteString(answer.Message)
		text.Write(answer.Data)
	}
	if e, ok := errors.AsType[HTTPError](err); ok {
		text.Write(e.HTTPBody())
	}
	var out []string
	for _, v := range mcp.Versions() {
		if strings.Contains(text.String(), string(v)) {
			out = append(out, string(v))
		}
	}
	return out
}

func supportedIn(data jsontext.Value) []string {
	list, err := jsonrpc.Elements(object(data).Get("supported"))
	if err != nil {
		return nil
	}
	out := []string{}
	for _, v := range list {
		if s, ok := jsonrpc.Text(v); ok {
			out = append(out, s)
		}
	}
	return out
}

// bestSession returns the newest version among offered that begins with
// initialize and is not the one that was refused.
func bestSession(offered []string, refused mcp.Version) (mcp.Version, bool) {
	var left []string
	for _, s := range offered {
		if v := mcp.Version(s); !v.Stateless() && v != refused {
			left = append(left, s)
		}
	}
	return mcp.Best(left)
}
