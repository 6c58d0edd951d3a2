package mcphttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// post serves a POST: it reads the message, finds out by what version it was
// sent, and hands it on. What it returns is still to be written.
func (h *Handler) post(w http.ResponseWriter, r *http.Request) *refusal {
	limitBodyTime(w, &h.opts)
	if !accepts(r.Header, "application/json", "text/event-stream") {
		return refused(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest,
			"Accept must list application/json and text/event-stream")
	}
	if !isJSON(r.Header.Get("Content-Type")) {
		return refused(http.StatusUnsupportedMediaType, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
	}
	body, f := readBody(w, r, &h.opts)
	if f != nil {
		return f
	}
	m, err := jsonrpc.Parse(body)
	switch {
	case errors.Is(err, jsonrpc.ErrBatch):
		return h.postBatch(w, r, body)
	case err != nil:
		return unreadable(&m, jsonrpc.AsError(err))
	}
	if f := h.postMessage(w, r, &m); f != nil {
		if !m.IsResponse() { // its id is one of ours
			f.id = m.ID
		}
		return f
	}
	return nil
}

// unreadable refuses what is not a message. Of what is not even JSON no id is
// to be believed.
func unreadable(m *jsonrpc.Message, err *jsonrpc.Error) *refusal {
	f := badRequest(err)
	if err.Code != jsonrpc.CodeParse {
		f.id = m.ID
	}
	return f
}

func (h *Handler) postMessage(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) *refusal {
	caller, f := h.caller(r, m)
	if f != nil {
		return f
	}
	if h.isClosed() {
		return closing()
	}
	switch {
	case caller.Version.Stateless() && m.IsResponse():
		return refused(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
			"a response answers nothing: protocol version %s has no requests from servers", caller.Version)
	case caller.Version.Stateless() && m.IsRequest():
		if f := checkHeaders(r.Header, m, &caller); f != nil {
			return f
		}
		return h.serve(w, r, m, nil)
	case caller.Version.Stateless():
		h.notify(r, m, nil)
		w.WriteHeader(http.StatusAccepted)
		return nil
	case !h.servesSessions():
		return h.noSessions(m)
	case m.Method == mcp.MethodInitialize && m.IsRequest():
		return h.initialize(w, r, m)
	}
	return h.postInSession(w, r, m)
}

// caller says by what version a message was sent: what its header and its _meta
// say, which must agree. The zero version is one of a session's. Only a request
// must have both; of other messages the specification leaves the headers open.
func (h *Handler) caller(r *http.Request, m *jsonrpc.Message) (mcp.Caller, *refusal) {
	header := headerValue(r.Header, mcp.HeaderVersion)
	version := mcp.Version(header)
	if header != "" && !h.serves(version) {
		return mcp.Caller{}, badRequest(mcp.UnsupportedVersion(header, h.opts.Versions))
	}
	if m.IsResponse() {
		return mcp.Caller{Version: version}, nil
	}
	if m.Method == mcp.MethodInitialize && header != "" {
		if asked, ok := m.Params.Text("protocolVersion"); ok && asked != header && mcp.Version(asked).Known() {
			return mcp.Caller{}, mismatch("MCP-Protocol-Version %s, but params.protocolVersion %s", header, asked)
		}
	}
	caller, err := mcp.ReadCaller(m.Params)
	meta := caller.Version
	if m.IsRequest() {
		switch {
		case err != nil && version.Stateless():
			return caller, badRequest(jsonrpc.AsError(err))
		case meta != "" && header == "" && !h.serves(meta):
			return caller, badRequest(mcp.UnsupportedVersion(string(meta), h.opts.Versions))
		case meta.Stateless() && header == "":
			return caller, mismatch("the %s header is missing", "MCP-Protocol-Version")
		case meta != "" && header != "" && meta != version:
			return caller, mismatch("MCP-Protocol-Version %q, but params._meta says %q", header, meta)
		case meta == "" && version.Stateless():
			return caller, badRequest(jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params._meta needs %q", mcp.MetaVersion))
		}
	}
	if header != "" {
		caller.Version = version
	}
	return caller, nil
}

// noSessions refuses what needs a session where there are none. The client may
// know no way but initialize, so that this is all it will learn.
func (h *Handler) noSessions(m *jsonrpc.Message) *refusal {
	if m.Method == mcp.MethodInitialize {
		asked, _ := m.Params.Text("protocolVersion")
		return badRequest(mcp.UnsupportedVersion(asked, h.opts.Versions))
	}
	return mismatch("the %s header is missing", "MCP-Protocol-Version")
}

// postInSession serves what belongs to a session.
func (h *Handler) postInSession(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) *refusal {
	s, f := h.session(r)
	if f != nil {
		return f
	}
	defer h.sessions.release(s)
	switch {
	case m.IsRequest():
		return h.serve(w, r, m, s)
	case m.IsNotification():
		h.notify(r, m, s)
	case !s.answered(m):
		h.opts.Logger.Debug("response to nothing", "id", m.ID.String())
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

// session returns the session that a request names; it has to be released.
func (h *Handler) session(r *http.Request) (*serverSession, *refusal) {
	id := headerValue(r.Header, mcp.HeaderSession)
	if id == "" {
		return nil, refused(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
			"the request has neither an Mcp-Session-Id, which initialize gives, nor an MCP-Protocol-Version that needs none")
	}
	s, ok := h.sessions.use(id, h.opts.Principal(r), false)
	if !ok {
		return nil, sessionNotFound()
	}
	return s, nil
}

// serve runs one request and writes its response.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message, s *serverSession) *refusal {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	x := &exchange{h: h, response: w, request: r, session: s, method: m.Method, cancel: cancel}
	if !h.enter(x) {
		return closing()
	}
	defer h.leave(x)
	req := jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params, Header: r.Header, Principal: h.opts.Principal(r), Peer: x}
	var running *serverCall
	if s == nil {
		stop := context.AfterFunc(r.Context(), func() { cancel(jsonrpc.ErrCanceled) })
		defer stop()
	} else {
		var f *refusal
		if running, f = s.begin(m.ID, cancel); f != nil {
			return f
		}
		req.Session = s.public
	}
	x.arm()
	scratch := h.buffers.get()
	defer h.buffers.put(scratch)
	req.Scratch = &scratch.b
	result, err := h.call(ctx, &req)
	if s != nil {
		s.end(running) // before the answer: then the client may use the id again
	}
	x.respond(m.ID, result, err, canceled(ctx))
	return nil
}

// notify runs a notification. Those of one session run one after the other.
func (h *Handler) notify(r *http.Request, m *jsonrpc.Message, s *serverSession) {
	req := jsonrpc.Request{Method: m.Method, Params: m.Params, Header: r.Header, Peer: noPeer{}}
	if s == nil {
		_, _ = h.call(r.Context(), &req) // a notification has no answer
		return
	}
	if m.Method == mcp.MethodCanceled {
		s.cancelRequest(m.Params)
	}
	req.Session, req.Peer = s.public, s.public.Peer
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	running, f := s.begin(jsonrpc.ID{}, cancel)
	if f != nil {
		return
	}
	defer s.end(running)
	select {
	case s.notes <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-s.notes }()
	_, _ = h.call(ctx, &req) // a notification has no answer
}

// initialize runs the request that begins a session. The session is there only
// if the handler agrees. The response is never a stream, since its header has
// the session's id.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) *refusal {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer cancel(nil)
	x := &exchange{h: h, response: w, request: r, method: m.Method, cancel: cancel}
	if !h.enter(x) {
		return closing()
	}
	defer h.leave(x)
	s := newServerSession(h.opts.Principal(r), &h.keptBytes, &h.opts)
	x.session = s
	req := jsonrpc.Request{ID: m.ID, Method: m.Method, Params: m.Params, Header: r.Header, Principal: h.opts.Principal(r), Session: s.public, Peer: s.public.Peer}
	result, err := h.call(ctx, &req)
	if err != nil || r.Context().Err() != nil { // refused, or nobody is there to get the id
		s.close()
		x.respond(m.ID, result, err, false)
		return nil
	}
	s.speak(negotiated(result))
	if !h.sessions.add(s) {
		s.close()
		return h.tooManySessions()
	}
	w.Header().Set(mcp.HeaderSession, s.public.ID)
	x.respond(m.ID, result, nil, false)
	return nil
}

func (h *Handler) tooManySessions() *refusal {
	if h.isClosed() {
		return closing()
	}
	return refused(http.StatusServiceUnavailable, jsonrpc.CodeInternal, "too many sessions: none of %d is idle", h.opts.MaxSessions)
}

// negotiated returns the version that an answer to initialize agrees on.
func negotiated(result []byte) mcp.Version {
	if obj, err := jsonrpc.ParseObject(result); err == nil {
		if v, ok := obj.Text("protocolVersion"); ok {
			return mcp.Version(v)
		}
	}
	return mcp.V20250326
}
