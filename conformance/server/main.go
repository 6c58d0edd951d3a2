// Command server is an MCP server made with the library that has everything that
// the conformance suite asks of servers. One URL serves all protocol versions.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/mcphttp"
	"github.com/mcp-roster/roster/server"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends. It says where as the first line of out.
func run(ctx context.Context, addr string, out io.Writer) error {
	memory, err := newMemory()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	srv := server.New(memory, server.Options{Logger: logger})
	handler := mcphttp.NewHandler(srv, mcphttp.HandlerOptions{Logger: logger})
	mux := http.NewServeMux()
	mux.Handle("/mcp", handler)
	web := &http.Server{Handler: handler.Guard().Wrap(mux), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }() // ends with Shutdown
	if _, err := fmt.Fprintf(out, "listening on http://%s/mcp\n", listener.Addr()); err != nil {
		return err
	}
	err = keepChanging(ctx, memory, served)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	srv.Close()
	return errors.Join(err, handler.Close(ctx), web.Shutdown(ctx))
}

// keepChanging says every other second that the watched resource has changed, until
// ctx ends or serving does, whose error it returns.
func keepChanging(ctx context.Context, memory *server.Memory, served <-chan error) error {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			memory.ResourceUpdated(watchedURI)
		case err := <-served:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

func newMemory() (*server.Memory, error) {
	memory := server.NewMemory(server.MemoryOptions{
		Name: "roster-conformance", Version: "1.0.0",
		Instructions: "A server with one of everything, for the conformance suite.",
		Logging:      true,
		Complete:     complete,
	})
	return memory, errors.Join(addTools(memory), addPrompts(memory), addResources(memory))
}

// complete has one list of words for every argument.
func complete(context.Context, *server.Request) (jsontext.Value, error) {
	return jsontext.Value(`{"completion":{"values":["paris","park","party"],"total":3,"hasMore":false}}`), nil
}

// key signs what clients keep for this server. It is another one each time the
// server starts.
var key = []byte(rand.Text())
