package mcphttp

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// sessionRoute applies what GET and DELETE have in common: both belong to
// sessions, and versions without them have neither. The session has to be
// released.
func (h *Handler) sessionRoute(r *http.Request) (*serverSession, *refusal) {
	header := headerValue(r.Header, mcp.HeaderVersion)
	switch {
	case !h.servesSessions() || mcp.Version(header).Stateless():
		return nil, notAllowed("POST")
	case header != "" && !h.serves(mcp.Version(header)):
		return nil, badRequest(mcp.UnsupportedVersion(header, h.opts.Versions))
	case h.isClosed():
		return nil, closing()
	}
	return h.session(r)
}

// get serves a session's stream: what belongs to no request, or with
// Last-Event-ID the rest of a stream that was cut (2025-11-25,
// basic/transports, Resumability and Redelivery).
func (h *Handler) get(w http.ResponseWriter, r *http.Request) *refusal {
	if !accepts(r.Header, "text/event-stream") {
		return refused(http.StatusNotAcceptable, jsonrpc.CodeInvalidRequest, "Accept must list text/event-stream")
	}
	s, f := h.sessionRoute(r)
	if f != nil {
		return f
	}
	defer h.sessions.release(s)
	stream, number, resume := s.standing, uint64(0), false
	if last := headerValue(r.Header, mcp.HeaderLastEvent); last != "" && s.version.HasPriming() {
		if stream, number, resume = s.resume(last); !resume {
			return refused(http.StatusBadRequest, jsonrpc.CodeInvalidRequest,
				"Last-Event-ID %q is of no stream that can be resumed", last)
		}
	}
	writer := newSSEWriter(w, r, stream, &h.opts)
	stream.attach(writer, resume, number)
	if err := writer.run(); err != nil {
		h.opts.Logger.Debug("stream ended early", "method", r.Method, "err", err)
	}
	return nil
}

// delete ends a session.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request) *refusal {
	s, f := h.sessionRoute(r)
	if f != nil {
		return f
	}
	h.sessions.remove(s)
	h.sessions.release(s)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// noPeer is the sender of a notification that stands alone: nothing can be sent
// back.
type noPeer struct{}

var errNoStream = errors.New("a notification has no stream to answer on")

func (noPeer) Notify(context.Context, string, jsontext.Value) error { return errNoStream }

func (noPeer) Call(context.Context, string, jsontext.Value) (jsonrpc.Object, error) {
	return jsonrpc.Object{}, errNoStream
}
