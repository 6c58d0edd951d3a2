package config

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler returns a log handler that hands on to next what has no secrets left
// in its attributes.
func (s *Secrets) Handler(next slog.Handler) slog.Handler {
	if s == nil || s.replacer == nil {
		return next
	}
	return &secretsHandler{s, next}
}

type secretsHandler struct {
	secrets *Secrets
	next    slog.Handler
}

func (h *secretsHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

func (h *secretsHandler) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, h.secrets.Hide(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.hide(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

func (h *secretsHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &secretsHandler{h.secrets, h.next.WithAttrs(h.hideAll(attrs))}
}

func (h *secretsHandler) WithGroup(name string) slog.Handler {
	return &secretsHandler{h.secrets, h.next.WithGroup(name)}
}

func (h *secretsHandler) hideAll(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.hide(a)
	}
	return out
}

// hide replaces a value in which a secret is found, by its text if it is not
// text yet.
func (h *secretsHandler) hide(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindGroup:
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(h.hideAll(v.Group())...)}
	case slog.KindString:
		return slog.String(a.Key, h.secrets.Hide(v.String()))
	case slog.KindAny:
		text := fmt.Sprintf("%+v", v.Any())
		if shown := h.secrets.Hide(text); shown != text {
			return slog.String(a.Key, shown)
		}
	}
	return slog.Attr{Key: a.Key, Value: v}
}
