package mcphttp

import (
	"context"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const (
	maxBatch     = 1024 // messages
	batchWorkers = 16   // requests of one batch that run at once
)

// postBatch serves several messages that came as one array, which only version
// 2025-03-26 has (2025-03-26, basic/transports, Sending Messages to the Server).
func (h *Handler) postBatch(w http.ResponseWriter, r *http.Request, body []byte) *refusal {
	header := mcp.Version(headerValue(r.Header, mcp.HeaderVersion))
	if header != "" && !header.HasBatches() || headerValue(r.Header, mcp.HeaderSession) == "" {
		return badRequest(jsonrpc.ErrBatch)
	}
	if h.isClosed() {
		return closing()
	}
	s, f := h.session(r)
	if f != nil {
		return f
	}
	defer h.sessions.release(s)
	if !s.version.HasBatches() {
		return badRequest(jsonrpc.ErrBatch)
	}
	b, f := parseBatch(body)
	if f != nil {
		return f
	}
	if b.answers == 0 {
		b.run(func(*jsonrpc.Message) {}, func(m *jsonrpc.Message) { h.passive(r, m, s) })
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	return h.serveBatch(w, r, b, s)
}

// messageBatch is a batch that was read as a whole before any of it is run.
type messageBatch struct {
	messages []jsonrpc.Message
	errors   [][]byte // answers to what is not a message
	answers  int      // how many there will be
}

func parseBatch(body []byte) (*messageBatch, *refusal) {
	elements, err := jsonrpc.Elements(body)
	switch {
	case err != nil:
		return nil, badRequest(jsonrpc.Errorf(jsonrpc.CodeParse, "not valid JSON: %v", err))
	case len(elements) == 0:
		return nil, refused(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "an empty batch")
	case len(elements) > maxBatch:
		return nil, refused(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "a batch of more than %d messages", maxBatch)
	}
	b := &messageBatch{}
	for _, e := range elements {
		m, err := jsonrpc.Parse(e)
		if err == nil && m.Method == mcp.MethodInitialize {
			err = jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "initialize cannot be part of a batch")
		}
		if err != nil {
			b.errors = append(b.errors, jsonrpc.AppendError(nil, m.ID, jsonrpc.AsError(err)))
			continue
		}
		b.messages = append(b.messages, m)
		if m.IsRequest() {
			b.answers++
		}
	}
	if len(b.messages) == 0 {
		return nil, refused(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "no element of the batch is a message that can be one")
	}
	b.answers += len(b.errors)
	return b, nil
}

// run starts the requests and handles the other messages, in the order in which
// they came, and waits for all.
func (b *messageBatch) run(request, other func(*jsonrpc.Message)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, batchWorkers)
	for i := range b.messages {
		m := &b.messages[i]
		if !m.IsRequest() {
			other(m)
			continue
		}
		slots <- struct{}{} // free when a request has ended, which has its own limits
		wg.Go(func() {      // ends with its request
			defer func() { <-slots }()
			request(m)
		})
	}
}

// passive handles a message of a session that has no answer.
func (h *Handler) passive(r *http.Request, m *jsonrpc.Message, s *serverSession) {
	if m.IsResponse() {
		s.answered(m)
		return
	}
	h.notify(r, m, s)
}

func (h *Handler) serveBatch(w http.ResponseWriter, r *http.Request, b *messageBatch, s *serverSession) *refusal {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	x := &exchange{h: h, response: w, request: r, session: s, cancel: cancel}
	if !h.enter(x) {
		return closing()
	}
	defer h.leave(x)
	for _, e := range b.errors {
		x.answer(e)
	}
	x.arm()
	b.run(func(m *jsonrpc.Message) {
		if answer := h.serveElement(ctx, r, m, x); answer != nil {
			x.answer(answer)
		}
	}, func(m *jsonrpc.Message) { h.passive(r, m, s) })
	x.respondAll()
	return nil
}

// serveElement runs one request of a batch; nil if it was cancelled.
func (h *Handler) serveElement(ctx context.Context, r *http.Request, m *jsonrpc.Message, x *exchange) []byte {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	running, f := x.session.begin(m.ID, cancel)
	if f != nil {
		return jsonrpc.AppendError(nil, m.ID, f.err)
	}
	defer x.session.end(running)
	var result jsontext.Value
	result, err := h.call(ctx, &jsonrpc.Request{
		ID: m.ID, Method: m.Method, Params: m.Params, Header: r.Header, Principal: h.opts.Principal(r), Session: x.session.public, Peer: x,
	})
	if canceled(ctx) {
		return nil
	}
	return appendAnswer(nil, m.ID, result, err)
}
