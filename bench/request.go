package main

import (
	"bytes"
	"fmt"
)

// An era says in which shape requests are sent, by the date of the
// specification.
type era string

const (
	stateless era = "2026-07-28" // everything in each request
	session   era = "2025-11-25" // initialize, then a session id
)

// A request is a whole HTTP request with room for a JSON-RPC id.
type request struct {
	bytes []byte
	idAt  int
}

// idDigits is how long every id is, so that neither the length of a request
// nor that of its answer changes.
const idDigits = 10

// firstID is the smallest number of idDigits digits.
const firstID = 1_000_000_000

// setID writes id, which must have idDigits digits.
func (r *request) setID(id int64) {
	for i := idDigits - 1; i >= 0; i-- {
		r.bytes[r.idAt+i] = byte('0' + id%10)
		id /= 10
	}
}

// id returns the digits of the id.
func (r *request) id() []byte { return r.bytes[r.idAt : r.idAt+idDigits] }

// A requester writes requests for one endpoint.
type requester struct {
	host, path string
	era        era
	session    string // of the session era, once known
}

// call asks tool for a text of size bytes.
func (r requester) call(tool string, size int) *request {
	return r.request("tools/call", tool, fmt.Sprintf(`"name":"%s","arguments":{"size":%d}`, tool, size))
}

// list asks for the first page of tools.
func (r requester) list() *request { return r.request("tools/list", "", "") }

// initialize opens a session.
func (r requester) initialize() *request {
	return r.request("initialize", "",
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}`)
}

// request returns a request whose params are the given members, and in the
// stateless era the `_meta` that it requires.
func (r requester) request(method, name, params string) *request {
	if r.era == stateless {
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1.0.0"},` +
			`"io.modelcontextprotocol/clientCapabilities":{}}`
		if params != "" {
			meta += ","
		}
		params = meta + params
	}
	const before = `{"jsonrpc":"2.0","id":`
	body := fmt.Sprintf(before+`%d,"method":"%s","params":{%s}}`, firstID, method, params)
	out := r.post(method, name, body)
	return &request{bytes: out, idAt: len(out) - len(body) + len(before)}
}

// initialized returns the notification that ends the opening of a session.
func (r requester) initialized() []byte {
	return r.post("", "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (r requester) post(method, name, body string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n", r.path, r.host)
	b.WriteString("Accept: application/json, text/event-stream\r\n")
	switch {
	case r.era == stateless:
		fmt.Fprintf(&b, "MCP-Protocol-Version: %s\r\nMcp-Method: %s\r\n", r.era, method)
		if name != "" {
			fmt.Fprintf(&b, "Mcp-Name: %s\r\n", name)
		}
	case method != "initialize":
		r.sessionFields(&b)
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(body), body)
	return b.Bytes()
}

// end returns the request that closes the session.
func (r requester) end() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "DELETE %s HTTP/1.1\r\nHost: %s\r\n", r.path, r.host)
	r.sessionFields(&b)
	b.WriteString("\r\n")
	return b.Bytes()
}

func (r requester) sessionFields(b *bytes.Buffer) {
	fmt.Fprintf(b, "MCP-Protocol-Version: %s\r\n", r.era)
	if r.session != "" {
		fmt.Fprintf(b, "Mcp-Session-Id: %s\r\n", r.session)
	}
}
