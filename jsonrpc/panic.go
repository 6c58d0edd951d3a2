package jsonrpc

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/go-json-experiment/json/jsontext"
)

// Handle has h handle a request, as every wire does it: a panic ends the request
// only. It is answered with CodeInternal, which says nothing of the panic; log
// gets that, with its stack, at error level.
func Handle(ctx context.Context, h Handler, req *Request, log *slog.Logger) (result jsontext.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("handler panicked", "method", req.Method, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			result, err = nil, Errorf(CodeInternal, "internal error")
		}
	}()
	return h.Handle(ctx, req)
}
