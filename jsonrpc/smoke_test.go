package jsonrpc_test

import (
	"context"
	"io"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

type pipe struct {
	in  <-chan []byte
	out chan<- []byte
	end chan struct{}
}

func (p *pipe) ReadFrame() ([]byte, error) {
	select {
	case f, ok := <-p.in:
		if !ok {
			return nil, io.EOF
		}
		return f, nil
	case <-p.end:
		return nil, io.ErrClosedPipe
	}
}

func (p *pipe) WriteFrames(fs [][]byte) error {
	for _, f := range fs {
		select {
		case p.out <- f:
		case <-p.end:
			return io.ErrClosedPipe
		}
	}
	return nil
}

func (p *pipe) Close() error { close(p.end); return nil }

func TestConnCall(t *testing.T) {
	a, b := make(chan []byte), make(chan []byte)
	srv := jsonrpc.NewConn(t.Context(), &pipe{a, b, make(chan struct{})}, jsonrpc.ConnOptions{
		Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) (jsontext.Value, error) {
			return r.Params.Raw, nil
		}),
	})
	cli := jsonrpc.NewConn(t.Context(), &pipe{b, a, make(chan struct{})}, jsonrpc.ConnOptions{})
	got, err := cli.Call(t.Context(), "x", jsontext.Value(`{"a" : 1.0 }`))
	if err != nil || string(got.Raw) != `{"a" : 1.0 }` {
		t.Fatalf("got %s, %v", got.Raw, err)
	}
	if err := cli.Close(); err != nil {
		t.Error(err)
	}
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
}
