package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// Schemas of forms for the user.
const (
	nameForm     = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	colourForm   = `{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`
	contextForm  = `{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`
	confirmForm  = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
	userForm     = `{"type":"object","properties":{"username":{"type":"string","description":"Your name here"},"email":{"type":"string","description":"Your address"}},"required":["username","email"]}`
	defaultsForm = `{"type":"object","properties":{
		"name":{"type":"string","description":"A name","default":"John Doe"},
		"age":{"type":"integer","description":"An age","default":30},
		"score":{"type":"number","description":"A score","default":95.5},
		"status":{"type":"string","description":"A status","enum":["active","inactive","pending"],"default":"active"},
		"verified":{"type":"boolean","description":"Whether it is verified","default":true}}}`
	enumsForm = `{"type":"object","properties":{
		"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},
		"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti":{"type":"array","minItems":1,"maxItems":3,"items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`
)

// Questions to the client.

func elicit(key, message, form string) server.Question {
	return server.Question{
		Key: key, Method: mcp.MethodElicit,
		Params: fmt.Appendf(nil, `{"message":%s,"requestedSchema":%s}`, mcp.String(message), form),
	}
}

func sample(key, prompt string) server.Question {
	return server.Question{
		Key: key, Method: mcp.MethodSampling,
		Params: fmt.Appendf(nil, `{"messages":[{"role":"user","content":{"type":"text","text":%s}}],"maxTokens":100}`, mcp.String(prompt)),
	}
}

func roots() server.Question {
	return server.Question{Key: "client_roots", Method: mcp.MethodRootsList}
}

// Answers.

// field returns a text that the user gave; an error if the user did not.
func field(answer jsonrpc.Object, name string) (string, error) {
	if action, _ := answer.Text("action"); action != "accept" {
		return "", fmt.Errorf("the user has not accepted: %q", action)
	}
	content, err := jsonrpc.ParseObject(answer.Get("content"))
	if err != nil {
		return "", fmt.Errorf("the answer's content: %w", err)
	}
	text, ok := content.Text(name)
	if !ok {
		return "", fmt.Errorf("the answer has no text %q", name)
	}
	return text, nil
}

// said returns what the model said.
func said(answer jsonrpc.Object) string {
	content, err := jsonrpc.ParseObject(answer.Get("content"))
	if text, ok := content.Text("text"); ok && err == nil {
		return text
	}
	return "(not a text)"
}

// sign returns state with a proof that it is from here.
func sign(state string) string { return state + "." + mac(state) }

// verify returns the state that was signed.
func verify(signed string) (string, error) {
	state, proof, ok := strings.Cut(signed, ".")
	if !ok || !hmac.Equal([]byte(proof), []byte(mac(state))) {
		return "", jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.requestState is not what this server sent")
	}
	return state, nil
}

func mac(state string) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(state))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Tools that ask.

func askModel(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	answers, err := call.Ask(ctx, "", sample("model", argument(call.Request, "prompt")))
	if err != nil {
		return nil, err
	}
	return server.TextResult("LLM response: " + said(answers["model"])), nil
}

func askUser(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	return tellAnswer(ctx, call, argument(call.Request, "message"), userForm)
}

func elicitForm(form string) toolFunc {
	return func(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
		return tellAnswer(ctx, call, "Please fill in this form", form)
	}
}

func tellAnswer(ctx context.Context, call *server.ToolCall, message, form string) (jsontext.Value, error) {
	answers, err := call.Ask(ctx, "", elicit("user", message, form))
	if err != nil {
		return nil, err
	}
	action, _ := answers["user"].Text("action")
	return server.TextResult(fmt.Sprintf("Elicitation completed: action=%s, content=%s", action, answers["user"].Get("content"))), nil
}

func greet(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	answers, err := call.Ask(ctx, "", elicit("user_name", "What is your name?", nameForm))
	if err != nil {
		return nil, err
	}
	name, err := field(answers["user_name"], "name")
	return server.TextResult("Hello, " + name + "!"), err
}

func askCapital(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	answers, err := call.Ask(ctx, "", sample("capital_question", "What is the capital of France?"))
	if err != nil {
		return nil, err
	}
	return server.TextResult("Sampling response: " + said(answers["capital_question"])), nil
}

func countRoots(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	answers, err := call.Ask(ctx, "", roots())
	if err != nil {
		return nil, err
	}
	return server.TextResult(fmt.Sprintf("The client's roots: %s", answers["client_roots"].Get("roots"))), nil
}

// confirm asks with state that the second round depends on.
func confirm(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	if signed := call.State(); signed != "" {
		if _, err := verify(signed); err != nil {
			return nil, err
		}
	}
	if _, err := call.Ask(ctx, sign("confirm"), elicit("confirm", "Please confirm", confirmForm)); err != nil {
		return nil, err
	}
	if call.Caller.Version.Stateless() && call.State() == "" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.requestState is missing")
	}
	return server.TextResult("state-ok: the state came back, and a confirmation with it"), nil
}

func askAll(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	answers, err := call.Ask(ctx, sign("all"),
		elicit("user_name", "What is your name?", nameForm), sample("greeting", "Generate a greeting"), roots())
	if err != nil {
		return nil, err
	}
	name, err := field(answers["user_name"], "name")
	return server.TextResult(fmt.Sprintf("%s %s, with roots %s", said(answers["greeting"]), name, answers["client_roots"].Get("roots"))), err
}

// askTwice remembers the first answer in the state of the second question.
func askTwice(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	const first, second = "1:", "2:"
	state := first
	if signed := call.State(); signed != "" {
		var err error
		if state, err = verify(signed); err != nil {
			return nil, err
		}
	}
	name, known := strings.CutPrefix(state, second)
	if !known {
		answers, err := call.Ask(ctx, sign(first), elicit("step1", "Step 1: What is your name?", nameForm))
		if err != nil {
			return nil, err
		}
		if name, err = field(answers["step1"], "name"); err != nil {
			return nil, err
		}
		name = base64.RawURLEncoding.EncodeToString([]byte(name))
	}
	answers, err := call.Ask(ctx, sign(second+name), elicit("step2", "Step 2: What is your favorite color?", colourForm))
	if err != nil {
		return nil, err
	}
	colour, err := field(answers["step2"], "color")
	if err != nil {
		return nil, err
	}
	plain, err := base64.RawURLEncoding.DecodeString(name)
	return server.TextResult(fmt.Sprintf("%s likes %s.", plain, colour)), err
}

func askWhatIsDeclared(ctx context.Context, call *server.ToolCall) (jsontext.Value, error) {
	var questions []server.Question
	if call.Declares("elicitation") {
		questions = append(questions, elicit("user_name", "What is your name?", nameForm))
	}
	if call.Declares("sampling") {
		questions = append(questions, sample("greeting", "Generate a greeting"))
	}
	if call.Declares("roots") {
		questions = append(questions, roots())
	}
	answers, err := call.Ask(ctx, "", questions...)
	if err != nil {
		return nil, err
	}
	return server.TextResult(fmt.Sprintf("The client answered %d questions.", len(answers))), nil
}
