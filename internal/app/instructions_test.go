package app_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// instructionsOf begins anew with a gateway and returns what it says of its use.
func instructionsOf(t *testing.T, g *gateway, v mcp.Version) string {
	t.Helper()
	method, params := mcp.MethodDiscover, `{}`
	if !v.Stateless() {
		method, params = mcp.MethodInitialize, fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}`, v)
	}
	obj, err := jsonrpc.ParseObject(jsontext.Value(result(t, g.pipes(v), method, params)))
	if err != nil {
		t.Fatal(err)
	}
	said, _ := obj.Text("instructions")
	return said
}

// TestInstructions: clients get what all servers say of their use, under the
// servers' names, within 2,000 bytes and each its fair share, also of those that
// are away.
func TestInstructions(t *testing.T) {
	backend := func(instructions string) *mcptest.Backend {
		b := &mcptest.Backend{Version: mcp.V20251125, Instructions: instructions}
		b.Set(mcp.Tools, tool("t"))
		return b
	}
	a, z := backend("be brief").OnPipes(t), backend(strings.Repeat("äöü ", 2000)).OnPipes(t)
	mute := backend("").OnPipes(t)
	g := newGateway(t, "", piped("a", a), piped("m", mute), piped("y", backend("be kind").OnPipes(t)), piped("z", z))
	g.ready()
	for _, v := range []mcp.Version{mcp.V20250618, mcp.V20260728} {
		got := instructionsOf(t, g, v)
		if !strings.HasPrefix(got, "# a\nbe brief\n# y\nbe kind\n# z\näöü äöü") || !strings.HasSuffix(got, "…") {
			t.Errorf("%s: %q", v, got)
		}
		if len(got) > 2000 || len(got) < 1900 || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, valid %v", v, len(got), utf8.ValidString(got))
		}
	}
	g.close()
	g.start("", piped("a", a), dead(t, "gone"))
	if got := instructionsOf(t, g, mcp.V20260728); got != "# a\nbe brief" {
		t.Errorf("from what is remembered: %q", got)
	}
}
