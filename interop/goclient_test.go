package interop

import (
	"bytes"
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
	var declared mcp.ClientCapabilities
	if err := json.Unmarshal(j.Capabilities, &declared); err != nil {
		return nil, err
	}
	if bytes.Contains(j.Capabilities, []byte(`"roots"`)) { // which the SDK does not read into this
		declared.RootsV2 = &mcp.RootCapabilities{ListChanged: true}
	}
	g := &goJob{job: j, changed: make(chan struct{}, 1), heard: make(chan string, 1024), listens: make(chan struct{}, 64)}
	opts := g.handlers()
	opts.Capabilities = &declared
	c := mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1"}, opts)
	c.AddRoots(&mcp.Root{URI: "file:///interop", Name: "interop"})
	c.AddReceivingMiddleware(g.overhear)
	var stderr tail
	s, err := c.Connect(ctx, goTransport(j, &stderr), &mcp.ClientSessionOptions{ProtocolVersion: goVersion(j.Era)})
	if err != nil {
		return nil, fmt.Errorf("connect: %w; standard error ends:\n%s", err, indent(stderr.String()))
	}
	g.ClientSession = s
	err = g.work(ctx, r)
	if closed := s.Close(); err == nil && closed != nil {
		err = fmt.Errorf("close: %w", closed)
	}
	if err != nil {
		r.Error = fmt.Sprintf("%v; standard error ends:\n%s", err, indent(stderr.String()))
	}
	r.ListChanged = g.counts.counts()
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

func (g *goJob) work(ctx context.Context, r *report) error {
	init := g.InitializeResult()
	r.Version = init.ProtocolVersion
	has := init.Capabilities
	patience := time.NewTimer(time.Duration(g.PatienceMs) * time.Millisecond)
	defer patience.Stop()
	for last := false; ; {
		r.Walks++
		if err := goLists(ctx, g.ClientSession, has, r); err != nil {
			return err
		}
		if r.whole(g.Want) || last {
			break
		}
		select {
		case <-g.changed:
		case <-patience.C:
			last = true
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	for _, o := range g.Ops {
		r.Ops = append(r.Ops, g.op(ctx, o))
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
