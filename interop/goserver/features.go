package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The requestState of a tool that asks. It must come back as it is.
const askState = "state <1> & \"zürich\" \u2028"

type askArgs struct {
	What string `json:"what" jsonschema:"form, url, sampling or roots"`
}

type touchArgs struct {
	URI string `json:"uri"`
}

// addFeatures registers tools that do more than answer: that ask the client, report progress, log,
// wait until they are cancelled, and change a resource.
func addFeatures(s *mcp.Server) {
	mcp.AddTool(s, &mcp.Tool{Name: "ask", Description: "asks the client, and repeats its answer"}, ask)
	mcp.AddTool(s, &mcp.Tool{Name: "count", Description: "reports progress three times"}, count)
	mcp.AddTool(s, &mcp.Tool{Name: "log", Description: "logs at three levels"}, logThrice)
	mcp.AddTool(s, &mcp.Tool{Name: "touch", Description: "says that a resource has changed"},
		func(ctx context.Context, _ *mcp.CallToolRequest, in touchArgs) (*mcp.CallToolResult, any, error) {
			return text("touched"), nil, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
		})
	cancelled := make(chan struct{}, 64)
	mcp.AddTool(s, &mcp.Tool{Name: "wait", Description: "waits until it is cancelled"},
		func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			if err := progress(ctx, req, 1, 0, "waiting"); err != nil {
				return nil, nil, err
			}
			<-ctx.Done()
			cancelled <- struct{}{}
			return nil, nil, ctx.Err()
		})
	mcp.AddTool(s, &mcp.Tool{Name: "waited", Description: "returns when a wait has been cancelled"},
		func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			select {
			case <-cancelled:
				return text("the wait was cancelled"), nil, nil
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		})
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// ask returns what it wants to know. For clients of older versions the SDK turns that into a request.
func ask(_ context.Context, req *mcp.CallToolRequest, in askArgs) (*mcp.CallToolResult, any, error) {
	if answers := req.Params.InputResponses; answers != nil {
		raw, err := json.Marshal(answers["q"])
		if err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprintf("answer: %s (state %t)", raw, req.Params.RequestState == askState)), nil, nil
	}
	var q mcp.InputRequest
	switch in.What {
	case "form":
		q = &mcp.ElicitParams{Mode: "form", Message: "Colour?", RequestedSchema: &jsonschema.Schema{
			Type: "object", Properties: map[string]*jsonschema.Schema{"colour": {Type: "string"}},
		}}
	case "url":
		q = &mcp.ElicitParams{Mode: "url", Message: "Log in", URL: "https://example.com/?a=1&b=2", ElicitationID: "e-1"}
	case "sampling":
		q = &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{
			{Role: "user", Content: &mcp.TextContent{Text: "Say <hello>"}},
		}}
	case "roots":
		q = &mcp.ListRootsParams{}
	default:
		return nil, nil, fmt.Errorf("asks nothing like %q", in.What)
	}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"q": q}, RequestState: askState}, nil, nil
}

func count(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	for i := range 3 {
		if err := progress(ctx, req, float64(i)+0.5, 2.5, "counting"); err != nil {
			return nil, nil, err
		}
	}
	return text("counted"), nil, nil
}

// progress reports it if the client of a call wants to know.
func progress(ctx context.Context, req *mcp.CallToolRequest, done, total float64, message string) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: done, Total: total, Message: message,
	})
}

func logThrice(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	for _, level := range []mcp.LoggingLevel{"debug", "warning", "error"} {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "l", Data: "of " + level}); err != nil {
			return nil, nil, err
		}
	}
	return text("logged"), nil, nil
}

// complete completes the argument of the prompt.
func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	start := req.Params.Argument.Value
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{start + "da", start + "lan"}, Total: 2}}, nil
}
