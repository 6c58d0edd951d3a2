package mcphttp

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// SSE returns the two endpoints of HTTP+SSE, the wire of version 2024-11-05
// (2024-11-05, basic/transports, HTTP with SSE), beside the Handler's own path:
//
//	stream, messages := h.SSE("/messages")
//	mux.Handle("/sse", stream)
//	mux.Handle("/messages", messages)
//
// A GET of stream begins a session, and is all that the client hears; its first
// event says where the client POSTs: endpoint, a reference that counts from the
// stream's URL, with the session's id in its query. The session ends with the
// stream. The Handler's bounds, checks and Close are those of both.
//
// Any version that begins with initialize can be spoken there.
func (h *Handler) SSE(endpoint string) (stream, messages http.Handler) {
	return h.route("GET, OPTIONS", func(w http.ResponseWriter, r *http.Request) *refusal {
			if r.Method != http.MethodGet {
				return notAllowed("GET, OPTIONS")
			}
			return h.sseStream(w, r, endpoint)
		}), h.route("POST, OPTIONS", func(w http.ResponseWriter, r *http.Request) *refusal {
			if r.Method != http.MethodPost {
				return notAllowed("POST, OPTIONS")
			}
			return h.sseMessage(w, r)
		})
}

// sseStream begins a session and writes its stream to the end of both.
func (h *Handler) sseStream(w http.ResponseWriter, r *http.Request, endpoint string) *refusal {
	switch {
	case !accepts(r.Header, "text/event-stream"):
		return refused(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must list text/event-stream")
	case !h.servesSessions():
		return notAllowed("OPTIONS")
	case h.isClosed():
		return closing()
	}
	s := newServerSession(h.opts.Principal(r), &h.keptBytes, &h.opts)
	s.sse = true
	s.standing.standing = false // no other stream can come for it
	s.active = 1
	writer := newSSEWriter(w, r, s.standing, &h.opts)
	writer.first = "event: endpoint\ndata: " + endpoint + "?sessionId=" + url.QueryEscape(s.public.ID) + "\n\n"
	s.standing.attach(writer, false, 0)
	if !h.sessions.add(s) {
		s.close()
		return h.tooManySessions()
	}
	if err := writer.run(); err != nil {
		h.opts.Logger.Debug("stream ended early", "method", r.Method, "err", err)
	}
	h.sessions.remove(s)
	h.sessions.release(s)
	return nil
}

// sseMessage takes a message of a client whose session is a stream. A request
// is answered there.
func (h *Handler) sseMessage(w http.ResponseWriter, r *http.Request) *refusal {
	limitBodyTime(w, &h.opts)
	if !isJSON(r.Header.Get("Content-Type")) {
		return refused(http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
	}
	body, f := readBody(w, r, &h.opts)
	if f != nil {
		return f
	}
	m, err := jsonrpc.Parse(body)
	if err != nil {
		return unreadable(&m, jsonrpc.AsError(err))
	}
	if f := h.sseAccept(w, r, &m); f != nil {
		if !m.IsResponse() { // its id is one of ours
			f.id = m.ID
		}
		return f
	}
	return nil
}

func (h *Handler) sseAccept(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) *refusal {
	if h.isClosed() {
		return closing()
	}
	s, ok := h.sessions.use(r.URL.Query().Get("sessionId"), h.opts.Principal(r), true)
	if !ok {
		return refused(http.StatusNotFound, mcp.CodeSessionNotFound,
			"session not found: it has ended or never was; begin a new one with a GET of the stream")
	}
	defer h.sessions.release(s)
	caller, f := h.caller(r, m)
	if f == nil && caller.Version.Stateless() {
		f = badRequest(mcp.UnsupportedVersion(string(caller.Version), h.sessionVersions()))
	}
	if f == nil && m.IsRequest() {
		if f = h.sseRequest(w, r, m, s); f == nil {
			return nil
		}
	}
	switch {
	case f != nil && m.IsRequest():
		// Clients take a POST that fails for the end of the connection.
		_ = s.standing.send(jsonrpc.AppendError(nil, m.ID, f.err), 0) // an error: the client has gone
	case f != nil:
		return f
	case m.IsNotification():
		h.notify(r, m, s)
	case !s.answered(m):
		h.opts.Logger.Debug("response to nothing", "id", m.ID.String())
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// sessionVersions returns the versions that begin with initialize.
func (h *Handler) sessionVersions() []mcp.Version {
	return slices.DeleteFunc(slices.Clone(h.opts.Versions), mcp.Version.Stateless)
}

// sseRequest starts a request. Its POST is done before it is: on that connection
// the client may send what the request waits for.
func (h *Handler) sseRequest(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message, s *serverSession) *refusal {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	x := &exchange{h: h, request: r, session: s, method: m.Method, cancel: cancel, stream: s.standing}
	if !h.enter(x) {
		cancel(nil)
		return closing()
	}
	running, f := s.begin(m.ID, cancel)
	if f != nil {
		h.leave(x)
		cancel(nil)
		return f
	}
	w.WriteHeader(http.StatusAccepted)
	req := jsonrpc.Request{
		ID: m.ID, Method: m.Method, Params: m.Params, Header: r.Header,
		Principal: h.opts.Principal(r), Session: s.public, Peer: x,
	}
	go func() { // ends when the handler returns, which the end of the session makes it do
		defer cancel(nil)
		defer h.leave(x)
		result, err := h.call(ctx, &req)
		s.end(running) // before the answer: then the client may use the id again
		x.close()
		if !canceled(ctx) {
			// Not as one that no bound keeps out: the client could have any number of them wait.
			_ = s.standing.send(appendAnswer(nil, m.ID, result, err), 0) // an error: the client has gone
		}
	}()
	return nil
}
