// Command goserver is an MCP server made of the official Go SDK and nothing else. The interop
// tests put it behind roster: over stdio or Streamable HTTP, in every era the SDK has.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	var o options
	flag.StringVar(&o.name, "name", "go", "name of the server; its resource URIs begin with it")
	flag.StringVar(&o.listen, "listen", "", "address for Streamable HTTP; empty for stdio")
	flag.BoolVar(&o.stateless, "stateless", false, "serve HTTP without sessions, which the SDK wants for 2026-07-28")
	flag.StringVar(&o.versions, "versions", "", "comma separated protocol versions; empty for all the SDK has")
	flag.IntVar(&o.resources, "resources", 2, "number of resources")
	flag.IntVar(&o.page, "page", 0, "items in a page of a list; 0 for the SDK's default")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "goserver:", err)
		os.Exit(1)
	}
}

type options struct {
	name, listen, versions string
	stateless              bool
	resources, page        int
}

func run(ctx context.Context, o options) error {
	server := newServer(o)
	if o.listen == "" {
		return server.Run(ctx, &mcp.StdioTransport{})
	}
	ln, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "goserver: listening url=http://%s/mcp\n", ln.Addr())
	handler := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: o.stateless},
	)
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = web.Close() })
	return web.Serve(ln)
}

type addArgs struct {
	A int `json:"a" jsonschema:"first summand"`
	B int `json:"b" jsonschema:"second summand"`
}

type addResult struct {
	Sum int `json:"sum"`
}

type routeArgs struct {
	Region string `json:"region"`
	Text   string `json:"text"`
}

func newServer(o options) *mcp.Server {
	opts := &mcp.ServerOptions{
		PageSize: o.page, Instructions: "Adds numbers as " + o.name + ".",
		CompletionHandler:  complete,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	}
	if o.versions != "" {
		opts.SupportedProtocolVersions = strings.Split(o.versions, ",")
	}
	s := mcp.NewServer(&mcp.Implementation{Name: o.name, Version: "1"}, opts)
	addTools(s, o.name)
	addFeatures(s)
	s.AddPrompt(&mcp.Prompt{
		Name:        "greeting",
		Description: "says hello",
		Arguments:   []*mcp.PromptArgument{{Name: "who", Required: true}},
	}, greet)
	for i := range o.resources {
		s.AddResource(&mcp.Resource{
			URI:      fmt.Sprintf("%s://item/%05d", o.name, i),
			Name:     fmt.Sprintf("item %d", i),
			MIMEType: "text/plain",
		}, read)
	}
	s.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: o.name + "://made/{key}",
		Name:        "made to order",
	}, read)
	return s
}

// addTools registers one tool with structured output, one whose argument also travels in an HTTP
// header in 2026-07-28, and two that say who the server and the client are.
func addTools(s *mcp.Server, name string) {
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: "adds two numbers"},
		func(_ context.Context, _ *mcp.CallToolRequest, in addArgs) (*mcp.CallToolResult, addResult, error) {
			return nil, addResult{in.A + in.B}, nil
		})
	mcp.AddTool(s, &mcp.Tool{
		Name:        "route",
		Description: "repeats its text with its region",
		InputSchema: &jsonschema.Schema{
			Type: "object",
			Properties: map[string]*jsonschema.Schema{
				"region": {Type: "string", Extra: map[string]any{"x-mcp-header": "Region"}},
				"text":   {Type: "string"},
			},
			Required: []string{"region", "text"},
		},
	}, func(_ context.Context, _ *mcp.CallToolRequest, in routeArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Region + ": " + in.Text}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "declared", Description: "repeats what the client declares"}, declared)
	mcp.AddTool(s, &mcp.Tool{Name: "who", Description: "names the server"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
		})
}

// declared tells what the client of a call declares.
func declared(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	var d struct {
		Roots       *mcp.RootCapabilities        `json:"roots,omitempty"`
		Sampling    *mcp.SamplingCapabilities    `json:"sampling,omitempty"`
		Elicitation *mcp.ElicitationCapabilities `json:"elicitation,omitempty"`
	}
	if c := req.ClientCapabilities(); c != nil {
		d.Roots, d.Sampling, d.Elicitation = c.RootsV2, c.Sampling, c.Elicitation
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, nil, err
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
}

func greet(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	text := "hello " + req.Params.Arguments["who"]
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text}}}}, nil
}

func read(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: "text/plain", Text: "this is " + uri}}}, nil
}
