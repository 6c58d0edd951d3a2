package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
	"github.com/mcp-roster/roster/server"
)

type (
	toolFunc   = func(ctx context.Context, call *server.ToolCall) (jsontext.Value, error)
	promptFunc = func(ctx context.Context, r *server.Request) (jsontext.Value, error)
)

// Schemas of arguments.
const (
	noArguments = `{"type":"object"}`
	prompting   = `{"type":"object","properties":{"prompt":{"type":"string","description":"What to ask the model"}},"required":["prompt"]}`
	messaging   = `{"type":"object","properties":{"message":{"type":"string","description":"What to show to the user"}},"required":["message"]}`
	mirroring   = `{"type":"object","properties":{"region":{"type":"string","description":"Repeated in a header","x-mcp-header":"Region"},"level":{"type":"integer","description":"Not repeated"}}}`
	conditional = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
}`
)

// Media: a PNG of one pixel, a WAV of one sample, as base64.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

	image    = `{"type":"image","data":"` + png + `","mimeType":"image/png"}`
	audio    = `{"type":"audio","data":"` + wav + `","mimeType":"audio/wav"}`
	embedded = `{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}`
	mixed    = `{"type":"text","text":"Multiple content types test:"},` + image +
		`,{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}`
)

func addTools(m *server.Memory) error {
	tools := []struct {
		name, description, schema string
		call                      toolFunc
	}{
		{"test_simple_text", "Returns a text", noArguments, always(server.TextResult("This is a simple text response for testing."))},
		{"test_image_content", "Returns an image", noArguments, always(contents(image))},
		{"test_audio_content", "Returns a sound", noArguments, always(contents(audio))},
		{"test_embedded_resource", "Returns a resource", noArguments, always(contents(embedded))},
		{"test_multiple_content_types", "Returns a text, an image and a resource", noArguments, always(contents(mixed))},
		{"test_error_handling", "Always fails", noArguments, fail},
		{"test_tool_with_logging", "Logs three messages", noArguments, logThrice},
		{"test_tool_with_progress", "Reports progress", noArguments, progress},
		{"test_logging_tool", "Logs a message if that is wanted", noArguments, logOnce},
		{"test_reconnection", "Takes its time, so that a client can come back for the result", noArguments, takeTime},
		{"test_streaming_elicitation", "Reports progress and asks for nothing", noArguments, progress},
		{"json_schema_2020_12_tool", "Has a schema with conditions", conditional, always(server.TextResult("The arguments were accepted."))},
		{"test_x_mcp_header", "Has an argument that is repeated in a header", mirroring, sayRegion},
		{"test_missing_capability", "Works only for clients that declare sampling", noArguments, needSampling},
		{"test_trigger_tool_change", "Changes a tool", noArguments, changeTool(m)},
		{"test_trigger_prompt_change", "Changes a prompt", noArguments, changePrompt(m)},

		{"test_sampling", "Asks the model", prompting, askModel},
		{"test_elicitation", "Asks the user", messaging, askUser},
		{"test_elicitation_sep1034_defaults", "Asks the user, with default values", noArguments, elicitForm(defaultsForm)},
		{"test_elicitation_sep1330_enums", "Asks the user to choose", noArguments, elicitForm(enumsForm)},
		{"test_input_required_result_elicitation", "Asks for a name", noArguments, greet},
		{"test_input_required_result_sampling", "Asks the model for a capital", noArguments, askCapital},
		{"test_input_required_result_list_roots", "Asks for the client's roots", noArguments, countRoots},
		{"test_input_required_result_request_state", "Asks for confirmation and checks its state", noArguments, confirm},
		{"test_input_required_result_tampered_state", "Asks for confirmation and refuses state that is not its own", noArguments, confirm},
		{"test_input_required_result_multiple_inputs", "Asks for three things at once", noArguments, askAll},
		{"test_input_required_result_multi_round", "Asks for one thing after the other", noArguments, askTwice},
		{"test_input_required_result_capabilities", "Asks for what the client can answer", noArguments, askWhatIsDeclared},
	}
	for _, t := range tools {
		tool, err := newTool(t.name, t.description, t.schema, t.call)
		if err != nil {
			return err
		}
		if err := m.Tools.Add(tool); err != nil {
			return err
		}
	}
	return nil
}

func newTool(name, description, schema string, call toolFunc) (*server.Tool, error) {
	return server.NewTool(fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":%s}`,
		mcp.String(name), mcp.String(description), schema), call)
}

// always returns a tool that has one result.
func always(result jsontext.Value) toolFunc {
	return func(context.Context, *server.ToolCall) (jsontext.Value, error) { return result, nil }
}

// contents returns a tool's result with items of content.
func contents(items string) jsontext.Value { return jsontext.Value(`{"content":[` + items + `]}`) }

func fail(context.Context, *server.ToolCall) (jsontext.Value, error) {
	return nil, errors.New("this tool intentionally returns an error for testing")
}

// pause waits, but not longer than the caller does.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func logThrice(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if err := errors.Join(call.Log(ctx, "info", "", mcp.String(text)), pause(ctx, 50*time.Millisecond)); err != nil {
			return nil, err
		}
	}
	return server.TextResult("Three messages were logged."), nil
}

func logOnce(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	return server.TextResult("A message was logged for whom wants it."), call.Log(ctx, "info", "", jsontext.Value(`"here"`))
}

func progress(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	for _, done := range []float64{0, 50, 100} {
		if err := errors.Join(call.Progress(ctx, done, 100, ""), pause(ctx, 50*time.Millisecond)); err != nil {
			return nil, err
		}
	}
	return server.TextResult("100 of 100 are done."), nil
}

func takeTime(ctx context.Context, _ *server.ToolCall) (jsontext.Value, error) {
	return server.TextResult("Whoever reads this has the result."), pause(ctx, 100*time.Millisecond)
}

func sayRegion(_ context.Context, call *server.ToolCall) (jsontext.Value, error) {
	return server.TextResult("region: " + argument(call.Request, "region")), nil
}

func needSampling(_ context.Context, call *server.ToolCall) (jsontext.Value, error) {
	if !call.Declares("sampling") {
		return nil, mcp.MissingCapability(jsontext.Value(`{"sampling":{}}`))
	}
	return server.TextResult("The client declares sampling."), nil
}

// changeTool returns a tool that changes the list of tools with each call, never to
// what it was: a client that is told of changes only must hear of each.
func changeTool(m *server.Memory) toolFunc {
	var count atomic.Int64
	return func(context.Context, *server.ToolCall) (jsontext.Value, error) {
		tool, err := newTool("test_changes", fmt.Sprintf("Was made %d times", count.Add(1)), noArguments, always(server.TextResult("here")))
		if err != nil {
			return nil, err
		}
		return server.TextResult("The tools have changed."), m.Tools.Update(func(b *registry.Batch[*server.Tool]) error {
			b.Set(tool)
			return nil
		})
	}
}

// changePrompt returns a tool that changes the list of prompts likewise.
func changePrompt(m *server.Memory) toolFunc {
	var count atomic.Int64
	return func(context.Context, *server.ToolCall) (jsontext.Value, error) {
		prompt, err := server.NewPrompt(fmt.Appendf(nil, `{"name":"test_prompt_changes","description":"Was made %d times"}`, count.Add(1)), simplePrompt)
		if err != nil {
			return nil, err
		}
		return server.TextResult("The prompts have changed."), m.Prompts.Update(func(b *registry.Batch[*server.Prompt]) error {
			b.Set(prompt)
			return nil
		})
	}
}

// argument returns a textual argument of a tool or prompt; "" if it is not there.
func argument(r *server.Request, name string) string {
	args, err := jsonrpc.ParseObject(r.Params.Get("arguments"))
	if err != nil {
		return ""
	}
	text, _ := args.Text(name)
	return text
}
