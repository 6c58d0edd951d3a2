package interop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A goJob is a job that the Go client does.
type goJob struct {
	*mcp.ClientSession
	job
	counts  counter
	changed chan struct{} // a list has changed; one slot
	heard   chan string   // what the server said and asked, as in outcome.Heard
	listens chan struct{} // a subscription of 2026-07-28 was acknowledged
	level   mcp.LoggingLevel
	tokens  int
}

// handlers are those of the Go client; all of them write down what they were told.
func (g *goJob) handlers() *mcp.ClientOptions {
	return &mcp.ClientOptions{
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { g.change("tools") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { g.change("prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { g.change("resources") },
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			g.heard <- "updated " + req.Params.URI
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			g.heard <- fmt.Sprintf("log %s %v", req.Params.Level, req.Params.Data)
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			p := req.Params
			g.heard <- strings.TrimSpace(fmt.Sprintf("progress %v/%v %s", p.Progress, p.Total, p.Message))
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			p := req.Params
			if p.Mode == "url" {
				g.heard <- "elicit url " + p.URL
				return &mcp.ElicitResult{Action: "accept"}, nil
			}
			g.heard <- "elicit form " + p.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada", "colour": "r<e>d"}}, nil
		},
		CreateMessageHandler: func(_ context.Context, req *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			said, _ := req.Params.Messages[0].Content.(*mcp.TextContent)
			if said == nil {
				return nil, errors.New("the first message is not text")
			}
			g.heard <- "sample " + said.Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "hello there"}}, nil
		},
	}
}

func (g *goJob) change(kind string) {
	g.counts.add(kind)
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// op does one op and waits for what must be heard meanwhile.
func (g *goJob) op(ctx context.Context, o op) outcome {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(g.TimeoutMs)*time.Millisecond)
	defer cancel()
	for len(g.heard) > 0 {
		<-g.heard // of an earlier op, which did not heed it
	}
	if o.Cancel {
		return g.cancelled(ctx, o)
	}
	result, err := g.do(ctx, o)
	out := outcome{Heard: g.hear(ctx, o)}
	if err != nil {
		out.Error = err.Error()
	} else if out.Result, err = json.Marshal(result); err != nil {
		out.Error = err.Error()
	}
	return out
}

// cancelled does an op that is given up when there is progress.
func (g *goJob) cancelled(ctx context.Context, o op) outcome {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 1)
	go func() { // ends with ctx
		_, err := g.do(ctx, o)
		failed <- err
	}()
	for {
		select {
		case event := <-g.heard:
			if !strings.HasPrefix(event, "progress ") {
				continue
			}
			cancel()
			if err := <-failed; !errors.Is(err, context.Canceled) {
				return outcome{Error: fmt.Sprintf("cancelled, and got %v", err)}
			}
			return outcome{Result: json.RawMessage(`{"cancelled":true}`)}
		case err := <-failed:
			return outcome{Error: fmt.Sprintf("ended before it was cancelled: %v", err)}
		}
	}
}

// hear returns the events that an op heeds.
func (g *goJob) hear(ctx context.Context, o op) []string {
	var heard []string
	for len(heard) < o.Await || len(g.heard) > 0 {
		select {
		case event := <-g.heard:
			kind, _, _ := strings.Cut(event, " ")
			if slices.Contains(o.Heed, kind) {
				heard = append(heard, event)
			}
		case <-ctx.Done():
			return heard
		}
	}
	return heard
}

func (g *goJob) do(ctx context.Context, o op) (any, error) {
	switch o.Method {
	case "prompts/get":
		return g.GetPrompt(ctx, &mcp.GetPromptParams{Name: o.Name, Arguments: texts(o.Arguments)})
	case "resources/read":
		return g.ReadResource(ctx, &mcp.ReadResourceParams{URI: o.Name})
	case "resources/subscribe":
		return struct{}{}, g.subscribe(ctx, o.Name)
	case "resources/unsubscribe":
		return struct{}{}, g.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: o.Name})
	case "logging/setLevel":
		if g.stateless() {
			g.level = mcp.LoggingLevel(o.Name)
			return struct{}{}, nil
		}
		return struct{}{}, g.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(o.Name)})
	case "completion/complete":
		params := &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: o.Name}}
		for name, value := range texts(o.Arguments) {
			params.Argument = mcp.CompleteParamsArgument{Name: name, Value: value}
		}
		return g.Complete(ctx, params)
	}
	call := &mcp.CallToolParams{Name: o.Name, Meta: mcp.Meta{}}
	if o.Arguments != nil { // a nil map would be sent as null
		call.Arguments = o.Arguments
	}
	if o.Progress {
		g.tokens++
		call.SetProgressToken(fmt.Sprintf("token-%d", g.tokens))
	}
	if g.level != "" {
		call.Meta["io.modelcontextprotocol/logLevel"] = g.level
	}
	return g.CallTool(ctx, call)
}

func (g *goJob) stateless() bool { return g.InitializeResult().ProtocolVersion >= "2026-07-28" }

// subscribe returns when the server has said yes, for which the SDK itself does not wait in 2026-07-28.
func (g *goJob) subscribe(ctx context.Context, uri string) error {
	for len(g.listens) > 0 {
		<-g.listens
	}
	if err := g.Subscribe(ctx, &mcp.SubscribeParams{URI: uri}); err != nil || !g.stateless() {
		return err
	}
	select {
	case <-g.listens:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no acknowledgement: %w", ctx.Err())
	}
}

// overhear writes down what the SDK answers by itself.
func (g *goJob) overhear(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "notifications/subscriptions/acknowledged":
			g.listens <- struct{}{}
		case "roots/list":
			g.heard <- "roots"
		}
		return next(ctx, method, req)
	}
}

func texts(arguments map[string]any) map[string]string {
	out := make(map[string]string)
	for k, v := range arguments {
		out[k] = fmt.Sprint(v)
	}
	return out
}
