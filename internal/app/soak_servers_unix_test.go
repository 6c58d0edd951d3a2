//go:build unix

package app_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/stdio"
)

// kept is how many tools of each server of a soak are there all along.
const kept = 4

// soakPrompt is the prompt that each server has.
const soakPrompt = `{"name":"p"}`

// mood is how a server of a soak misbehaves now.
type mood int32

const (
	well     mood = iota
	failing       // lists are answered with an error
	broken        // lists are no lists
	cut           // lists fail after half of them
	cycle         // lists give the same cursor again and again
	twice         // every answer comes twice
	wrongIDs      // answers have ids of other requests
	noisy         // there is much between the answers that is none
	stopped       // nothing is answered, until later
)

var lies = []mood{failing, broken, cut, cycle, twice, wrongIDs, noisy}

// subject is a server of a soak, in one of two eras at a time. One that is good
// is never disturbed; its tools come and go as those of the others do.
type subject struct {
	name   string
	good   bool
	socket *mcptest.Socket // nil: over HTTP
	site   *mcptest.Site   // nil: on pipes
	mood   atomic.Int32
	busy   atomic.Bool // something is being done to it

	mu       sync.Mutex // guards the fields below
	eras     [2]*mcptest.Backend
	era      int
	volatile []string
	all      []string      // its tools
	next     int           // number of the next volatile tool
	resumed  chan struct{} // closed when the server is not stopped any more
}

// newSubject returns a server on pipes or over HTTP.
func newSubject(t testing.TB, i int, name string, good bool) (*subject, entry) {
	s := &subject{name: name, good: good, era: i % 2}
	sessions := []mcp.Version{mcp.V20251125, mcp.V20250618, mcp.V20250326, mcp.V20241105}
	for era, v := range []mcp.Version{sessions[i/2%len(sessions)], mcp.Latest} {
		b := &mcptest.Backend{Version: v, Page: []int{0, 2, 3}[i%3], Do: s.do, List: s.list}
		b.Set(mcp.Prompts, soakPrompt)
		s.eras[era] = b
	}
	s.tools()
	const limits = `"timeout":"3s","connectTimeout":"10s"`
	if i%3 == 0 {
		s.socket = mcptest.NewSocket(t, func(ctx context.Context, conn net.Conn, _ int) {
			_ = stdio.Serve(ctx, conn, &mouth{Conn: conn, subject: s}, s.backend(), nil) // it ends as the soak wants
		})
		return s, piped(name, s.socket, limits)
	}
	b := s.backend()
	s.site = mcptest.NewSite(t, b, b.Version)
	s.site.Hook(s.hook)
	return s, remote(name, s.site.URL, limits)
}

// backend is the server in its era.
func (s *subject) backend() *mcptest.Backend {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.eras[s.era]
}

// soakTool returns the definition of a tool, as its server or the gateway names
// it.
func soakTool(server, own string) string {
	name := own
	if server != "" {
		name = server + "__" + own
	}
	return `{"name":"` + name + `","inputSchema":{"type":"object"},"x":1.0,"own":"` + own + `"}`
}

// tools sets the lists of tools. A name that was taken away never comes back.
func (s *subject) tools() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.volatile) < 6 && (s.next == 0 || rand.IntN(3) > 0) {
		s.volatile = append(s.volatile, soakTool("", fmt.Sprintf("v%d", s.next)))
		s.next++
	}
	var all []string
	for i := range kept {
		all = append(all, soakTool("", fmt.Sprintf("keep%d", i)))
	}
	// A server's order is its own affair, but for the first list of all.
	if s.volatile = slices.Clone(s.volatile); s.next > 6 {
		n := rand.IntN(len(s.volatile) + 1)
		s.volatile = slices.Delete(s.volatile, n/2, n)
		all = append(all, s.volatile...)
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	s.all = all
	for _, b := range s.eras {
		b.Set(mcp.Tools, all...)
	}
}

func (s *subject) do(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	if req.Method != mcp.MethodToolsCall {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "%s has no %s", s.name, req.Method)
	}
	args, _ := jsonrpc.ParseObject(req.Params.Get("arguments"))
	said, _ := args.Text("say")
	return jsontext.Value(`{"content":[{"type":"text","text":` + string(mcp.String(s.name+" says "+said)) + `}]}`), nil
}

func (s *subject) list(_ context.Context, k mcp.Kind, req *jsonrpc.Request) (jsontext.Value, error) {
	cursor, paged := req.Params.Text("cursor")
	switch mood(s.mood.Load()) {
	case failing:
		return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s lists nothing today", s.name)
	case broken:
		return jsontext.Value(`{"` + k.Field() + `":7}`), nil
	case cut:
		if paged && cursor == "half" {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s has lost the rest", s.name)
		}
		all := s.everything(k)
		return s.backend().ListResult(k, all[:len(all)/2], true, "half"), nil
	case cycle:
		// All is there, since such a list is taken in the end.
		return s.backend().ListResult(k, s.everything(k), true, "again"), nil
	}
	return nil, nil
}

func (s *subject) everything(k mcp.Kind) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch k {
	case mcp.Tools:
		return s.all
	case mcp.Prompts:
		return []string{soakPrompt}
	}
	return nil
}

// hook has a server over HTTP misbehave.
func (s *subject) hook(w http.ResponseWriter, r *http.Request) bool {
	s.mu.Lock()
	resumed := s.resumed
	s.mu.Unlock()
	switch mood(s.mood.Load()) {
	case stopped:
		select {
		case <-resumed:
		case <-r.Context().Done():
		}
	case twice:
		panic(http.ErrAbortHandler)
	case wrongIDs:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":987654321,"result":{}}`)) // the client may be gone
		return true
	case noisy:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write(bytes.Repeat([]byte("<p>come back later</p>"), rand.IntN(10_000))) // as above
		return true
	}
	return false
}

// mouth is the output of a server on pipes, as its mood has it.
type mouth struct {
	net.Conn
	subject *subject
}

// Write writes whole frames.
func (m *mouth) Write(p []byte) (int, error) {
	n := len(p)
	switch mood(m.subject.mood.Load()) {
	case twice:
		p = bytes.Repeat(p, 2)
	case wrongIDs:
		p = bytes.ReplaceAll(p, []byte(`"id":`), []byte(`"id":1`))
	case noisy:
		noise := strings.Repeat("this is no message\n\n{\"nor\":\"is this\"}\n{\n\x00\xff\n", rand.IntN(200))
		noise += strings.Repeat("z", rand.IntN(1<<20)) + "\n" + `{"jsonrpc":"2.0","id":123456789,"result":{}}` + "\n"
		p = append([]byte(noise), p...)
	}
	if _, err := m.Conn.Write(p); err != nil {
		return 0, err
	}
	return n, nil
}

// fault is something that is done to a server for a while.
type fault struct {
	name   string
	weight int
	do     func(ctx context.Context, s *subject, d time.Duration, lie mood)
}

// changing is no fault: it is done to good servers, too.
var changing = fault{"change", 30, func(ctx context.Context, s *subject, _ time.Duration, _ mood) {
	s.tools()
	s.changed(ctx)
}}

var faults = []fault{
	changing,
	{"kill", 10, kill},
	{"stop", 12, stop},
	{"flood", 12, flood},
	{"lie", 30, lie},
	{"upgrade", 8, upgrade},
}

func kill(ctx context.Context, s *subject, d time.Duration, _ mood) {
	if s.socket != nil {
		s.socket.Kill()
		return
	}
	s.site.Down()
	pause(ctx, d)
	s.site.Up()
}

func stop(ctx context.Context, s *subject, d time.Duration, _ mood) {
	if s.socket == nil {
		resumed := make(chan struct{})
		s.mu.Lock()
		s.resumed = resumed
		s.mu.Unlock()
		s.mood.Store(int32(stopped))
		pause(ctx, d)
		s.mood.Store(int32(well))
		close(resumed)
		return
	}
	pids := s.socket.Pids()
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP) // it may be gone
	}
	pause(ctx, d)
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGCONT) // as above
	}
}

// flood has a server say more than anybody wants to hear.
func flood(ctx context.Context, s *subject, d time.Duration, _ mood) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	b := s.backend()
	for n := 0; n < 300 && ctx.Err() == nil; n++ {
		b.Changed(ctx, mcp.Kinds[n%len(mcp.Kinds)])
	}
	if s.socket == nil {
		return
	}
	for _, pid := range s.socket.Pids() {
		// Where there is no such file, there is no flood of this kind.
		f, err := os.OpenFile(fmt.Sprintf("/proc/%d/fd/2", pid), os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		_ = f.SetWriteDeadline(time.Now().Add(d))
		line := []byte(strings.Repeat("complaint ", 400) + "\n")
		for range 1000 {
			if _, err := f.Write(line); err != nil {
				break
			}
		}
		_ = f.Close() // nothing is lost
	}
}

// lie has a server lie, and makes somebody ask it.
func lie(ctx context.Context, s *subject, d time.Duration, lie mood) {
	s.mood.Store(int32(lie))
	s.changed(ctx)
	pause(ctx, d)
	s.mood.Store(int32(well))
	s.changed(ctx)
}

// changed tells that the tools have changed, which takes a moment at most.
func (s *subject) changed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	s.backend().Changed(ctx, mcp.Tools)
}

// upgrade starts a server anew, in its other era.
func upgrade(ctx context.Context, s *subject, d time.Duration, _ mood) {
	if s.site != nil {
		s.site.Down()
	}
	s.mu.Lock()
	s.era = 1 - s.era
	b := s.eras[s.era]
	s.mu.Unlock()
	if s.socket != nil {
		s.socket.Kill()
		return
	}
	s.site.Become(b, b.Version)
	pause(ctx, d/4)
	s.site.Up()
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
