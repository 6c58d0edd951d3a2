package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goClient does a job with the official Go SDK.
func goClient(ctx context.Context, j job) (*report, error) {
	r := &report{Pages: map[string]int{}}
	var heard counter
	var declared mcp.ClientCapabilities
	if err := json.Unmarshal(j.Capabilities, &declared); err != nil {
		return nil, err
	}
	c := mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1"}, &mcp.ClientOptions{
		Capabilities:               &declared,
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { heard.add("tools") },
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { heard.add("prompts") },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { heard.add("resources") },
	})
	var stderr tail
	s, err := c.Connect(ctx, goTransport(j, &stderr), &mcp.ClientSessionOptions{ProtocolVersion: goVersion(j.Era)})
	if err != nil {
		return nil, fmt.Errorf("connect: %w; standard error ends:\n%s", err, indent(stderr.String()))
	}
	err = goWork(ctx, s, j, r)
	if closed := s.Close(); err == nil && closed != nil {
		err = fmt.Errorf("close: %w", closed)
	}
	if err != nil {
		r.Error = fmt.Sprintf("%v; standard error ends:\n%s", err, indent(stderr.String()))
	}
	r.ListChanged = heard.counts()
	return r, nil
}

func goVersion(era string) string {
	switch era {
	case "auto":
		return ""
	case "legacy":
		return "2025-11-25"
	case "modern":
		return "2026-07-28"
	}
	return era
}

func goTransport(j job, stderr *tail) mcp.Transport {
	if j.URL != "" {
		if j.Transport == "sse" {
			return &mcp.SSEClientTransport{Endpoint: j.URL}
		}
		return &mcp.StreamableClientTransport{Endpoint: j.URL}
	}
	cmd := exec.Command(j.Command, j.Args...)
	ownGroup(cmd)
	cmd.Stderr = stderr
	for k, v := range j.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	return &mcp.CommandTransport{Command: cmd, TerminateDuration: 10 * time.Second}
}

func goWork(ctx context.Context, s *mcp.ClientSession, j job, r *report) error {
	init := s.InitializeResult()
	r.Version = init.ProtocolVersion
	has := init.Capabilities
	for end := time.Now().Add(time.Duration(j.PatienceMs) * time.Millisecond); ; {
		r.Walks++
		if err := goLists(ctx, s, has, r); err != nil {
			return err
		}
		if r.whole(j.Want) || time.Now().After(end) {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	for _, o := range j.Ops {
		r.Ops = append(r.Ops, goOp(ctx, s, o, time.Duration(j.TimeoutMs)*time.Millisecond))
	}
	return nil
}

// goLists follows the cursors of all lists that the server declares.
func goLists(ctx context.Context, s *mcp.ClientSession, has *mcp.ServerCapabilities, r *report) error {
	if has.Tools != nil {
		if err := goWalk(r, "tools", &r.Tools, func(cursor string) ([]*mcp.Tool, string, error) {
			res, err := s.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return res.Tools, res.NextCursor, nil
		}); err != nil {
			return err
		}
	}
	if has.Prompts != nil {
		if err := goWalk(r, "prompts", &r.Prompts, func(cursor string) ([]*mcp.Prompt, string, error) {
			res, err := s.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return res.Prompts, res.NextCursor, nil
		}); err != nil {
			return err
		}
	}
	if has.Resources == nil {
		return nil
	}
	if err := goWalk(r, "resources", &r.Resources, func(cursor string) ([]*mcp.Resource, string, error) {
		res, err := s.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return res.Resources, res.NextCursor, nil
	}); err != nil {
		return err
	}
	return goWalk(r, "templates", &r.Templates, func(cursor string) ([]*mcp.ResourceTemplate, string, error) {
		res, err := s.ListResourceTemplates(ctx, &mcp.ListResourceTemplatesParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return res.ResourceTemplates, res.NextCursor, nil
	})
}

func goWalk[T any](r *report, kind string, into *[]json.RawMessage, page func(cursor string) ([]T, string, error)) error {
	*into = nil
	cursor := ""
	for n := 1; ; n++ {
		items, next, err := page(cursor)
		if err != nil {
			return fmt.Errorf("%s, page %d: %w", kind, n, err)
		}
		for _, item := range items {
			raw, err := json.Marshal(item)
			if err != nil {
				return err
			}
			*into = append(*into, raw)
		}
		r.Pages[kind] = n
		if next == "" {
			return nil
		}
		if n == 1000 {
			return fmt.Errorf("%s: more than %d pages", kind, n)
		}
		cursor = next
	}
}

func goOp(ctx context.Context, s *mcp.ClientSession, o op, limit time.Duration) outcome {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var result any
	var err error
	switch o.Method {
	case "prompts/get":
		args := make(map[string]string)
		for k, v := range o.Arguments {
			args[k] = fmt.Sprint(v)
		}
		result, err = s.GetPrompt(ctx, &mcp.GetPromptParams{Name: o.Name, Arguments: args})
	case "resources/read":
		result, err = s.ReadResource(ctx, &mcp.ReadResourceParams{URI: o.Name})
	default:
		call := &mcp.CallToolParams{Name: o.Name}
		if o.Arguments != nil { // a nil map would be sent as null
			call.Arguments = o.Arguments
		}
		result, err = s.CallTool(ctx, call)
	}
	if err != nil {
		return outcome{Error: err.Error()}
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Result: raw}
}

// A counter counts by name. Its zero value is ready, for any goroutines.
type counter struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counter) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = make(map[string]int)
	}
	c.n[name]++
}

func (c *counter) counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := make(map[string]int)
	for k, v := range c.n {
		n[k] = v
	}
	return n
}
