package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

func listTools(ctx context.Context, s *session) error {
	_, err := s.list(ctx, mcp.Tools)
	return err
}

// declare makes a request that says what this client can answer. Lists do not say it.
func declare(ctx context.Context, s *session) error {
	_, err := s.call(ctx, mcp.MethodToolsList, jsontext.Value(`{}`))
	return err
}

func addNumbers(ctx context.Context, s *session) error {
	if err := listTools(ctx, s); err != nil {
		return err
	}
	_, err := s.callTool(ctx, "add_numbers", jsontext.Value(`{"a":2,"b":3}`))
	return err
}

// callEachTool calls all tools, without arguments.
func callEachTool(ctx context.Context, s *session) error {
	tools, err := s.list(ctx, mcp.Tools)
	for _, tool := range tools {
		if _, failed := s.callTool(ctx, tool.Key, jsontext.Value(`{}`)); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", tool.Key, failed))
		}
	}
	return err
}

// keepState calls the tools one after the other, and two at a time, so that the
// state of one call could get into another.
func keepState(ctx context.Context, s *session) error {
	if err := callEachTool(ctx, s); err != nil {
		return err
	}
	failed := make(chan error)
	names := []string{"test_mrtr_no_state", "test_mrtr_unrelated"}
	for _, name := range names {
		go func() { // ends with the call
			_, err := s.callTool(ctx, name, jsontext.Value(`{}`))
			failed <- err
		}()
	}
	return errors.Join(<-failed, <-failed)
}

// useEverything lists and uses tools, resources and prompts.
func useEverything(ctx context.Context, s *session) error {
	if err := callEachTool(ctx, s); err != nil {
		return err
	}
	for _, use := range []struct {
		kind           mcp.Kind
		method, member string
	}{{mcp.Resources, mcp.MethodResourcesRead, "uri"}, {mcp.Prompts, mcp.MethodPromptsGet, "name"}} {
		items, err := s.list(ctx, use.kind)
		if err != nil {
			return err
		}
		for _, item := range items {
			if _, err := s.call(ctx, use.method, fmt.Appendf(nil, `{%q:%s}`, use.member, mcp.String(item.Key))); err != nil {
				return err
			}
		}
	}
	return nil
}

// callAsTold makes the calls that are in the scenario's context.
func callAsTold(ctx context.Context, s *session) error {
	if err := listTools(ctx, s); err != nil {
		return err
	}
	told, err := jsonrpc.ParseObject(jsontext.Value(os.Getenv(envContext)))
	if err != nil {
		return fmt.Errorf("%s: %w", envContext, err)
	}
	calls, err := jsonrpc.Elements(told.Get("toolCalls"))
	if err != nil {
		return fmt.Errorf("%s: toolCalls: %w", envContext, err)
	}
	for _, call := range calls {
		if _, err := s.call(ctx, mcp.MethodToolsCall, call); err != nil {
			return err
		}
	}
	return nil
}

// echoSchema sends a tool's schema back as it came.
func echoSchema(ctx context.Context, s *session) error {
	tools, err := s.list(ctx, mcp.Tools)
	if err != nil {
		return err
	}
	for _, tool := range tools {
		if tool.Key == "json_schema_2020_12_tool" {
			_, err := s.callTool(ctx, "json_schema_echo", fmt.Appendf(nil, `{"schema":%s}`, tool.Object.Get("inputSchema")))
			return err
		}
	}
	return errors.New("the tool with the schema is not listed")
}
