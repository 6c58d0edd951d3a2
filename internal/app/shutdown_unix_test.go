//go:build unix

package app_test

import (
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/mcp"
)

// TestShutdown closes a gateway to which 50 clients listen: each stream ends as
// its version wants, and nothing is left of the gateway: no goroutine, no child
// process, no descriptor.
func TestShutdown(t *testing.T) {
	one, two := answering(tool("t")), answering(tool("t"))
	two.Version = mcp.Latest
	sockets := []*mcptest.Socket{one.OnPipes(t), two.OnPipes(t)}
	entries := []entry{
		piped("p1", sockets[0]), piped("p2", sockets[1]),
		remote("h1", one.OnHTTP(t).URL), remote("h2", two.OnHTTP(t).URL),
	}
	before := goleak.IgnoreCurrent()
	files := descriptors(t)
	g := newGateway(t, "", entries...)
	g.ready()
	var callers []*mcptest.Caller
	var streams []*mcptest.Listening
	for i := range 50 {
		c := g.http(mcp.Versions()[i%4])
		l, err := c.Listen(bounded(t))
		if err != nil {
			t.Fatal(err)
		}
		callers, streams = append(callers, c), append(streams, l)
	}
	callTool(t, callers[0], "p1__t")
	var pids []int
	for _, s := range sockets {
		pids = append(pids, s.Pids()...)
	}
	if len(pids) != 2 {
		t.Fatalf("%d child processes", len(pids))
	}

	g.close()
	for i, l := range streams {
		select {
		case <-l.Done():
		case <-time.After(patience):
			t.Fatalf("a stream of version %s does not end", callers[i].Version)
		}
		last, err := l.End()
		if err != nil {
			t.Errorf("a stream of version %s ended with %v", callers[i].Version, err)
		}
		if !callers[i].Version.Stateless() {
			continue
		}
		if !strings.Contains(last.Result, `"resultType":"complete"`) || !strings.Contains(last.Result, `"io.modelcontextprotocol/subscriptionId":"listen"`) {
			t.Errorf("a subscription ended with %+v", last)
		}
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("child process %d is still there: %v", pid, err)
		}
	}
	for _, c := range callers {
		c.CloseIdle()
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
	if files != nil {
		var left []string
		eventually(t, "all descriptors are closed", func() bool {
			left = slices.DeleteFunc(descriptors(t), func(f string) bool { return slices.Contains(files, f) })
			return len(left) == 0
		})
	}
}

// descriptors lists what this process has open; nil where that is not known.
func descriptors(t testing.TB) []string {
	if runtime.GOOS != "linux" {
		return nil
	}
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		// The one that reads the directory is gone by now.
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			out = append(out, e.Name()+" "+target)
		}
	}
	return out
}
