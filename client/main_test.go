package client_test

import (
	"bufio"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// childVersion makes this program a server on its pipes, of the version it holds.
const childVersion = "CLIENT_TEST_CHILD_VERSION"

func TestMain(m *testing.M) {
	if v := os.Getenv(childVersion); v != "" {
		serveChild(mcp.Version(v))
		return
	}
	goleak.VerifyTestMain(m)
}

// serveChild answers until its input ends.
func serveChild(v mcp.Version) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		m, err := jsonrpc.Parse(append([]byte(nil), in.Bytes()...))
		if err != nil || !m.IsRequest() {
			continue
		}
		if frame := pagedAnswer(v, &m); frame != "" {
			fmt.Println(frame)
		}
	}
}

// pagedAnswer answers as a server of one version whose list of tools has three
// pages. A cursor that is not one of its own gets an error.
func pagedAnswer(v mcp.Version, m *jsonrpc.Message) string {
	result := func(raw string) string { return string(jsonrpc.AppendResult(nil, m.ID, []byte(raw))) }
	switch {
	case m.Method == mcp.MethodDiscover && v.Stateless():
		return result(mcptest.Discovered(`{"tools":{}}`, string(v)))
	case m.Method == mcp.MethodInitialize && !v.Stateless():
		return result(mcptest.Initialized(string(v), `{"tools":{}}`))
	case m.Method == mcp.MethodToolsList:
		switch string(m.Params.Get("cursor")) {
		case "":
			return result(page(mcp.Tools, `"p\u0032 é"`, "c"))
		case `"p\u0032 é"`:
			return result(page(mcp.Tools, `"{}"`, "a"))
		case `"{}"`:
			return result(page(mcp.Tools, "", "b"))
		}
		return string(jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(-32602, "no such cursor")))
	case m.Method == mcp.MethodToolsCall:
		return "" // silence
	}
	return string(jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(-32601, "no such method")))
}
