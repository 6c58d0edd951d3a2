package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

func addPrompts(m *server.Memory) error {
	prompts := []struct {
		definition string
		get        promptFunc
	}{
		{`{"name":"test_simple_prompt","description":"A text"}`, simplePrompt},
		{`{"name":"test_prompt_with_arguments","description":"A text with two arguments in it","arguments":[` +
			`{"name":"arg1","description":"The first","required":true},{"name":"arg2","description":"The second","required":true}]}`, argumentsPrompt},
		{`{"name":"test_prompt_with_embedded_resource","description":"A resource","arguments":[` +
			`{"name":"resourceUri","description":"The resource's URI","required":true}]}`, resourcePrompt},
		{`{"name":"test_prompt_with_image","description":"An image"}`, imagePrompt},
		{`{"name":"test_input_required_result_prompt","description":"What the user says"}`, askingPrompt},
	}
	for _, p := range prompts {
		prompt, err := server.NewPrompt(jsontext.Value(p.definition), p.get)
		if err != nil {
			return err
		}
		if err := m.Prompts.Add(prompt); err != nil {
			return err
		}
	}
	return nil
}

// messages returns a prompt's result with one message of the user for each content.
func messages(contents ...string) jsontext.Value {
	out := []byte(`{"messages":[`)
	for i, c := range contents {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, `{"role":"user","content":`...), c...), '}')
	}
	return append(out, "]}"...)
}

func text(s string) string { return fmt.Sprintf(`{"type":"text","text":%s}`, mcp.String(s)) }

func simplePrompt(context.Context, *server.Request) (jsontext.Value, error) {
	return messages(text("This is a simple prompt for testing.")), nil
}

func argumentsPrompt(_ context.Context, r *server.Request) (jsontext.Value, error) {
	return messages(text(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", argument(r, "arg1"), argument(r, "arg2")))), nil
}

func resourcePrompt(_ context.Context, r *server.Request) (jsontext.Value, error) {
	resource := fmt.Sprintf(`{"type":"resource","resource":{"uri":%s,"mimeType":"text/plain","text":"Embedded resource content for testing."}}`,
		mcp.String(argument(r, "resourceUri")))
	return messages(resource, text("Please process the embedded resource above.")), nil
}

func imagePrompt(context.Context, *server.Request) (jsontext.Value, error) {
	return messages(image, text("Please analyze the image above.")), nil
}

func askingPrompt(ctx context.Context, r *server.Request) (jsontext.Value, error) {
	answers, err := r.Ask(ctx, "", elicit("user_context", "What is this about?", contextForm))
	if err != nil {
		return nil, err
	}
	about, err := field(answers["user_context"], "context")
	return messages(text("Context: " + about)), err
}
