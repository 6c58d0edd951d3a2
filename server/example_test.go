package server_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcp-roster/roster/server"
	"github.com/mcp-roster/roster/stdio"
)

// A tool is a Go function: its types are its schemas.
func ExampleNewFuncTool() {
	type Place struct {
		City string `json:"city" jsonschema:"name of the city, in English"`
		Days int    `json:"days,omitzero" jsonschema:"how far to look ahead"`
	}
	type Weather struct {
		Celsius int    `json:"celsius"`
		Sky     string `json:"sky"`
	}
	forecast, err := server.NewFuncTool(
		server.FuncTool{Name: "forecast", Description: "Tells the weather of tomorrow."},
		func(_ context.Context, _ *server.ToolCall, in Place) (Weather, error) {
			if in.City == "" {
				return Weather{}, errors.New("city is empty: which one is meant?")
			}
			return Weather{Celsius: 18, Sky: "clear"}, nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(forecast.Definition()))
	// Output:
	// {"name":"forecast","description":"Tells the weather of tomorrow.","inputSchema":{"type":"object","properties":{"city":{"type":"string","description":"name of the city, in English"},"days":{"type":"integer","description":"how far to look ahead"}},"required":["city"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"celsius":{"type":"integer"},"sky":{"type":"string"}},"required":["celsius","sky"],"additionalProperties":false}}
}

// A whole server over standard input and output, whose tools come and go: "unlock"
// adds another tool, and the client is told of it.
func Example() {
	memory := server.NewMemory(server.MemoryOptions{Name: "vault", Version: "1.0.0"})
	open, err := server.NewFuncTool(server.FuncTool{Name: "open", Description: "Opens the vault."},
		func(context.Context, *server.ToolCall, struct{}) (string, error) { return "It is full of gold.", nil })
	if err != nil {
		log.Fatal(err)
	}
	unlock, err := server.NewFuncTool(server.FuncTool{Name: "unlock", Description: "Unlocks the vault."},
		func(context.Context, *server.ToolCall, struct{}) (string, error) {
			if err := memory.Tools.Add(open); err != nil {
				return "", errors.New("it is not locked")
			}
			return "Click.", nil
		})
	if err != nil {
		log.Fatal(err)
	}
	if err := memory.Tools.Add(unlock); err != nil {
		log.Fatal(err)
	}
	srv := server.New(memory, server.Options{})
	defer srv.Close()

	// A program passes os.Stdin and os.Stdout. Here the client is a conversation.
	stdin, toServer := io.Pipe()
	fromServer, stdout := io.Pipe()
	go talk(toServer, fromServer) // ends with the conversation
	if err := stdio.Serve(context.Background(), stdin, stdout, srv, nil); err != nil {
		log.Fatal(err)
	}
	// Output:
	// {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"Click."}]}}
	// {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
	// {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"It is full of gold."}]}}
	// {"jsonrpc":"2.0","id":4,"result":{"content":[{"type":"text","text":"it is not locked"}],"isError":true}}
}

// talk is a client that prints what it is told once it has begun.
func talk(w io.WriteCloser, r io.Reader) {
	defer func() { _ = w.Close() }()
	in := bufio.NewScanner(r)
	for _, say := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"thief","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"unlock"}}`,
		``, // and hear of the change
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"open"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"unlock"}}`,
	} {
		_, _ = fmt.Fprintln(w, say)
		if in.Scan() && !strings.Contains(in.Text(), "protocolVersion") {
			fmt.Println(in.Text())
		}
	}
}

// Definitions may also be written by hand, and are then listed byte for byte.
func ExampleNewTool() {
	upper, err := server.NewTool(jsontext.Value(`{"name":"upper","inputSchema":{"type":"object"}}`),
		func(_ context.Context, call *server.ToolCall) (jsontext.Value, error) {
			return server.TextResult(strings.ToUpper(string(call.Arguments))), nil
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(upper.Name())
	// Output: upper
}
