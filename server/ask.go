package server

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Question is something that a server wants to know from its caller's client
// before it can go on: from the user, the model, or of the client's roots.
type Question struct {
	// Key names the answer; it stays the same when the question is asked again.
	Key string
	// Method is mcp.MethodElicit, mcp.MethodSampling or mcp.MethodRootsList.
	Method string
	// Params are those of the method. nil: {}.
	Params jsontext.Value
}

// capability returns the client capability that the question needs.
func (q *Question) capability() string {
	switch q.Method {
	case mcp.MethodElicit:
		return "elicitation"
	case mcp.MethodSampling:
		return "sampling"
	case mcp.MethodRootsList:
		return "roots"
	}
	return ""
}

// Ask returns the client's answers to questions, by their keys: results of the
// questions' methods.
//
// A client with a session is asked at once, one question after the other. A
// stateless one cannot be asked during a request: the error is then an
// *InputRequired, which is to be returned and ends the request, and the client
// sends the request again together with the answers (2026-07-28,
// basic/patterns/mrtr). The caller of Ask therefore begins anew each time, and
// finds the answers to those questions only that were asked last. What it has to
// remember, it puts in state, and finds with State; it is sent to the client,
// which can read and change it.
//
// A client that has not declared that it answers such questions is not asked; the
// error says what it lacks. That a client refuses to answer is a *jsonrpc.Error;
// that a user declines is an answer.
func (r *Request) Ask(ctx context.Context, state string, questions ...Question) (map[string]jsonrpc.Object, error) {
	for i := range questions {
		if need := questions[i].capability(); !r.Declares(need) {
			return nil, mcp.MissingCapability(append(append([]byte("{"), mcp.String(need)...), ":{}}"...))
		}
	}
	if r.Caller.Version.Stateless() {
		return r.answers(state, questions)
	}
	answers := make(map[string]jsonrpc.Object, len(questions))
	for _, q := range questions {
		answer, err := r.Peer.Call(ctx, q.Method, q.Params)
		if err != nil {
			return nil, err
		}
		answers[q.Key] = answer
	}
	return answers, nil
}

// Declares reports whether the caller's client has a capability, such as
// "elicitation".
func (r *Request) Declares(capability string) bool {
	declared, err := jsonrpc.ParseObject(r.Caller.Capabilities)
	return err == nil && declared.Get(capability).Kind() == '{'
}

// State returns what the last Ask of a stateless request gave the client to keep;
// "" if this is the first. It has been in the client's hands: where it decides
// anything that the client must not, its author is to be verified.
func (r *Request) State() string {
	state, _ := r.Params.Text("requestState")
	return state
}

// answers takes the answers that came with a stateless request. An answer that is
// no object is none.
func (r *Request) answers(state string, questions []Question) (map[string]jsonrpc.Object, error) {
	var came jsonrpc.Object
	if raw := r.Params.Get("inputResponses"); raw != nil {
		var err error
		if came, err = jsonrpc.ParseObject(raw); err != nil || !came.IsObject() {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.inputResponses must be an object")
		}
	}
	answers := make(map[string]jsonrpc.Object, len(questions))
	for _, q := range questions {
		answer, err := jsonrpc.ParseObject(came.Get(q.Key))
		if err != nil || !answer.IsObject() {
			return nil, &InputRequired{Questions: questions, State: state}
		}
		answers[q.Key] = answer
	}
	return answers, nil
}

// InputRequired is the error of a Source for a stateless request that can go on
// only with answers from the client. The client gets it as a result.
type InputRequired struct {
	Questions []Question
	State     string // "": none
}

// Error says what is missing.
func (e *InputRequired) Error() string { return "input from the client is required" }

// result returns the InputRequiredResult.
func (e *InputRequired) result() jsontext.Value {
	out := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range e.Questions {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, mcp.String(q.Key)...), `:{"method":`...)
		out = append(append(out, mcp.String(q.Method)...), `,"params":`...)
		if q.Params == nil {
			out = append(out, '{', '}')
		}
		out = append(append(out, q.Params...), '}')
	}
	out = append(out, '}')
	if e.State != "" {
		out = append(append(out, `,"requestState":`...), mcp.String(e.State)...)
	}
	return append(out, '}')
}

// Log sends a log message to the caller's client, if it wants messages of such a
// level: one of debug, info, notice, warning, error, critical, alert and
// emergency. logger names where the message is from and may be empty; data is any
// JSON value. A client with a session that has not said what it wants gets info and
// above, a stateless one that has not said so gets nothing.
func (r *Request) Log(ctx context.Context, level, logger string, data jsontext.Value) error {
	least := r.Caller.LogLevel
	if least == "" {
		if r.Caller.Version.Stateless() {
			return nil
		}
		least = "info"
	}
	if slices.Index(mcp.LogLevels[:], level) < slices.Index(mcp.LogLevels[:], least) {
		return nil
	}
	params := append([]byte(`{"level":`), mcp.String(level)...)
	if logger != "" {
		params = append(append(params, `,"logger":`...), mcp.String(logger)...)
	}
	if data == nil {
		data = jsontext.Value("null")
	}
	params = append(append(params, `,"data":`...), data...)
	return r.Peer.Notify(ctx, mcp.MethodMessage, append(params, '}'))
}
