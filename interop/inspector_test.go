package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// inspector does a job with the command line mode of the MCP inspector: one process and one connection
// for each list and each op.
func inspector(ctx context.Context, j job) (*report, error) {
	home, err := os.MkdirTemp("", "inspector")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	run, err := inspectorRunner(home, j)
	if err != nil {
		return nil, err
	}
	r := &report{}
	for end := time.Now().Add(time.Duration(j.PatienceMs) * time.Millisecond); ; {
		r.Walks++
		if err := inspectorLists(ctx, run, r); err != nil {
			return r, err
		}
		if r.whole(j.Want) || time.Now().After(end) {
			break
		}
	}
	for _, o := range j.Ops {
		r.Ops = append(r.Ops, inspectorOp(ctx, run, o))
	}
	return r, nil
}

// A runner runs the inspector once and returns the result it printed.
type runner func(ctx context.Context, args ...string) (json.RawMessage, error)

// inspectorRunner writes the target of a job to a configuration file, so that no argument of its command is taken
// for one of the inspector.
func inspectorRunner(home string, j job) (runner, error) {
	e := entry{URL: j.URL, Command: j.Command, Args: j.Args, Env: j.Env}
	switch {
	case j.Transport == "sse":
		e.Type = "sse"
	case e.URL != "":
		e.Type = "streamable-http"
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]entry{"target": e}})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(home, "config.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	n := findNPM()
	base := []string{
		n.script("@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--cli",
		"--config", file, "--server", "target", "--protocol-era", j.Era, "--format", "json",
		"--connect-timeout", fmt.Sprint(j.TimeoutMs), "--stored-auth-only",
	}
	env := environ(map[string]string{"HOME": home, "MCP_INSPECTOR_SECRET_STORE": "memory"})
	return func(ctx context.Context, args ...string) (json.RawMessage, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Duration(j.TimeoutMs)*time.Millisecond)
		defer cancel()
		out, err := runCommand(ctx, nil, "", env, n.node, append(base[:len(base):len(base)], args...)...)
		if err != nil {
			return nil, fmt.Errorf("inspector %v: %w", args, err)
		}
		var envelope struct{ Result json.RawMessage }
		if err := json.Unmarshal(out, &envelope); err != nil {
			return nil, fmt.Errorf("inspector %v: %w in %q", args, err, out)
		}
		return envelope.Result, nil
	}, nil
}

func inspectorLists(ctx context.Context, run runner, r *report) error {
	for _, list := range []struct {
		method, member string
		into           *[]json.RawMessage
	}{
		{"tools/list", "tools", &r.Tools},
		{"prompts/list", "prompts", &r.Prompts},
		{"resources/list", "resources", &r.Resources},
		{"resources/templates/list", "resourceTemplates", &r.Templates},
	} {
		result, err := run(ctx, "--method", list.method)
		if err != nil {
			return err
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(result, &members); err != nil {
			return fmt.Errorf("%s: %w", list.method, err)
		}
		if err := json.Unmarshal(members[list.member], list.into); err != nil {
			return fmt.Errorf("%s: %w", list.method, err)
		}
	}
	return nil
}

func inspectorOp(ctx context.Context, run runner, o op) outcome {
	args := []string{"--method", o.Method}
	switch o.Method {
	case "tools/call":
		arguments := o.Arguments
		if arguments == nil {
			arguments = map[string]any{}
		}
		raw, err := json.Marshal(arguments)
		if err != nil {
			return outcome{Error: err.Error()}
		}
		args = append(args, "--tool-name", o.Name, "--tool-args-json", string(raw))
	case "prompts/get":
		args = append(args, "--prompt-name", o.Name)
		for k, v := range o.Arguments {
			args = append(args, "--prompt-args", fmt.Sprintf("%s=%v", k, v))
		}
	case "resources/read":
		args = append(args, "--uri", o.Name)
	}
	result, err := run(ctx, args...)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	return outcome{Result: result}
}
