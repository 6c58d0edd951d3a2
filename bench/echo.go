package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

const maxEcho = 16 << 20

// An echoServer is a stdio MCP server of the 2025-11-25 era that costs as
// little as possible: every answer is prepared and only the id is filled in.
type echoServer struct {
	list    []byte         // after the id of a tools/list reply
	results map[int][]byte // by size: after the id of a tools/call reply
}

func newEchoServer(tools int) *echoServer {
	list := append([]byte(`,"result":{"tools":[`), appendTools(nil, "", tools)...)
	return &echoServer{list: append(list, "]}}\n"...), results: map[int][]byte{}}
}

const (
	initialized = `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},` +
		`"serverInfo":{"name":"echo","version":"1.0.0"}}}` + "\n"
	emptyResult = `,"result":{}}` + "\n"
	unknown     = `,"error":{"code":-32601,"message":"method not found"}}` + "\n"
)

// serve answers the lines of in on out until in ends. Replies are held back
// while another whole request is there to be read.
func (e *echoServer) serve(in io.Reader, out io.Writer) error {
	r := bufio.NewReaderSize(in, 256<<10)
	w := bufio.NewWriterSize(out, 256<<10)
	var long []byte
	for {
		line, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			long = append(long, line...)
			continue
		case errors.Is(err, io.EOF):
			return w.Flush()
		case err != nil:
			return fmt.Errorf("read request: %w", err)
		}
		if len(long) > 0 {
			long = append(long, line...)
			line = long
		}
		e.answer(w, line)
		long = long[:0]
		if next, _ := r.Peek(r.Buffered()); bytes.IndexByte(next, '\n') < 0 {
			if err := w.Flush(); err != nil {
				return fmt.Errorf("write reply: %w", err)
			}
		}
	}
}

// answer writes the reply to one message, or nothing if it asks for none.
// Write errors stay with w.
func (e *echoServer) answer(w *bufio.Writer, line []byte) {
	a, b, ok := member(line, "id")
	m, n, called := member(line, "method")
	if !ok || !called {
		return
	}
	_, _ = w.WriteString(`{"jsonrpc":"2.0","id":`)
	_, _ = w.Write(line[a:b])
	switch string(line[m:n]) {
	case `"tools/call"`:
		_, _ = w.Write(e.result(line))
	case `"tools/list"`:
		_, _ = w.Write(e.list)
	case `"initialize"`:
		_, _ = w.WriteString(initialized)
	case `"ping"`:
		_, _ = w.WriteString(emptyResult)
	default:
		_, _ = w.WriteString(unknown)
	}
}

// result returns what follows the id in the reply to a call for a text of
// some size, and keeps it for the next such call.
func (e *echoServer) result(call []byte) []byte {
	size := 0
	if _, rest, ok := bytes.Cut(call, []byte(`"size":`)); ok {
		for len(rest) > 0 && rest[0] >= '0' && rest[0] <= '9' && size < maxEcho {
			size = size*10 + int(rest[0]-'0')
			rest = rest[1:]
		}
	}
	result, ok := e.results[size]
	if !ok {
		result = fmt.Appendf(nil, `,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", text(size))
		e.results[size] = result
	}
	return result
}

// text returns size bytes of ASCII prose, with no character that JSON escapes.
func text(size int) []byte {
	const prose = "The quick brown fox jumps over the lazy dog, and the dog does not mind. "
	return bytes.Repeat([]byte(prose), size/len(prose)+1)[:size]
}
