package app_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-roster/roster/mcp"
)

// TestSlowClients is C-165: clients that send a byte and then nothing harm nobody,
// and those that do not get as far as the end of a header are cut off.
func TestSlowClients(t *testing.T) {
	g := newGateway(t, "", piped("s", answering(tool("t")).OnPipes(t)))
	g.ready()
	host := strings.TrimSuffix(strings.TrimPrefix(g.URL(), "http://"), "/mcp")
	open := func(text string) net.Conn {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	const each = 150
	var headers []net.Conn
	for range each {
		headers = append(headers, open("P"))
		open("POST /mcp HTTP/1.1\r\nHost: " + host + "\r\nContent-Type: application/json\r\n" +
			"Accept: application/json, text/event-stream\r\nContent-Length: 100\r\n\r\n{")
	}
	for _, v := range []mcp.Version{mcp.Latest, mcp.LatestSession} {
		c := g.http(v)
		same(t, "a normal client's list", list(t, c, mcp.Tools), exposed("s", []string{tool("t")}))
		callTool(t, c, "s__t")
	}
	for _, conn := range headers {
		if err := conn.SetReadDeadline(time.Now().Add(2 * patience)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(conn); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("a client that sends no header is kept")
		}
	}
}

// TestRelist_OneSession is C-180: however often a server is listed anew, it has one
// session with us, which is deleted in the end.
func TestRelist_OneSession(t *testing.T) {
	b := answering(tool("t0"))
	site := b.OnHTTP(t)
	var deleted atomic.Int32
	site.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			deleted.Add(1)
		}
		return false
	})
	g := newGateway(t, "", remote("s", site.URL))
	g.ready()
	c := g.http(mcp.Latest)
	for i := range 20 {
		b.Add(mcp.Tools, tool(fmt.Sprintf("t%d", i+1)))
		b.Changed(bounded(t), mcp.Tools)
		eventually(t, "the tool is listed", func() bool { return len(list(t, c, mcp.Tools)) == i+2 })
	}
	if n := b.Count(mcp.MethodInitialize); n != 1 || deleted.Load() != 0 {
		t.Errorf("%d sessions, %d of them deleted", n, deleted.Load())
	}
	g.close()
	if n := deleted.Load(); n != 1 {
		t.Errorf("%d sessions were deleted in the end", n)
	}
}
