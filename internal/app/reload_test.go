package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// become writes a configuration and has it taken over.
func (g *gateway) become(settings string, servers ...entry) {
	g.t.Helper()
	g.write(configuration(settings, servers...))
	if _, err := g.Reload(bounded(g.t)); err != nil {
		g.t.Fatal(err)
	}
}

// told is a client that is told of changed lists.
func (g *gateway) told(v mcp.Version) *mcptest.Caller {
	g.t.Helper()
	c := g.http(v)
	list(g.t, c, mcp.Tools)
	if _, err := c.Listen(bounded(g.t)); err != nil {
		g.t.Fatal(err)
	}
	return c
}

// TestReload_OneStep has servers come, go and change at once: clients see all of it
// in one step and hear of it once, and servers that are the same do not notice.
func TestReload_OneStep(t *testing.T) {
	same1, same2 := answering(tools("stable%d", 3)...), answering(tools("stable%d", 3)...)
	goes, comes, changes := answering(tools("g%d", 3)...), answering(tools("c%d", 3)...), answering(tools("x%d", 3)...)
	socket1, site2, socketX := same1.OnPipes(t), same2.OnHTTP(t), changes.OnPipes(t)
	one, two := piped("one", socket1), remote("two", site2.URL)
	g := newGateway(t, `"pageItems":2`, one, piped("goes", goes.OnPipes(t)), piped("changes", socketX), two)
	g.ready()
	pid, pidX := socket1.Pids(), socketX.Pids()
	sessions := same2.Count(mcp.MethodInitialize)
	old, modern := g.told(mcp.LatestSession), g.told(mcp.Latest)
	before := list(t, old, mcp.Tools)

	stays := slices.Concat(exposed("one", tools("stable%d", 3)), exposed("two", tools("stable%d", 3)))
	changes.Set(mcp.Tools, tools("y%d", 2)...)
	stop := make(chan struct{})
	var walker sync.WaitGroup
	walker.Go(func() { // ends with stop
		c := g.http(mcp.Latest)
		for {
			items, err := c.List(bounded(t), mcp.Tools)
			if err == nil {
				err = checkWalk(items, stays)
			}
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	g.become(`"pageItems":2`, one, piped("comes", comes.OnPipes(t)), piped("changes", socketX, `"args":["new"]`), two)
	close(stop)
	walker.Wait()
	want := slices.Concat(exposed("one", tools("stable%d", 3)), exposed("comes", tools("c%d", 3)), exposed("changes", tools("y%d", 2)), exposed("two", tools("stable%d", 3)))
	for _, c := range []*mcptest.Caller{old, modern} {
		if err := c.Notes.Wait(bounded(t), mcp.Tools.ChangedMethod(), 1); err != nil {
			t.Fatal(err)
		}
		same(t, "after the reload", list(t, c, mcp.Tools), want)
	}
	if len(before) != 12 {
		t.Errorf("%d tools before", len(before))
	}
	for _, c := range []*mcptest.Caller{old, modern} {
		if n := c.Notes.Count(mcp.Tools.ChangedMethod()); n != 1 {
			t.Errorf("told %d times", n)
		}
		callTool(t, c, "one__stable0")
		callTool(t, c, "comes__c0")
		callTool(t, c, "changes__y0")
	}
	if !slices.Equal(socket1.Pids(), pid) || socket1.Starts() != 1 || same2.Count(mcp.MethodInitialize) != sessions {
		t.Error("a server that is the same was started anew")
	}
	if slices.Equal(socketX.Pids(), pidX) || socketX.Starts() != 2 {
		t.Errorf("the changed server was started %d times", socketX.Starts())
	}
	for _, s := range g.Status().Servers {
		if s.Name == "goes" {
			t.Error("the status still has the server that went")
		}
	}
	// Back again: what is remembered of it is there at once, in its place.
	g.become(`"pageItems":2`, one, piped("goes", goes.OnPipes(t)), two)
	same(t, "with the server that came back", list(t, modern, mcp.Tools),
		slices.Concat(exposed("one", tools("stable%d", 3)), exposed("goes", tools("g%d", 3)), exposed("two", tools("stable%d", 3))))
}

// TestReload_Order puts servers in another order: lists follow it, clients are told,
// and cursors of the former order are refused; when a server only comes or goes,
// walks that are under way go on.
func TestReload_Order(t *testing.T) {
	var entries []entry
	lists := make(map[string][]string)
	for _, name := range []string{"m", "z", "a"} {
		entries = append(entries, remote(name, answering(tools("t%d", 4)...).OnHTTP(t).URL))
		lists[name] = exposed(name, tools("t%d", 4))
	}
	m, z, a := entries[0], entries[1], entries[2]
	g := newGateway(t, `"pageItems":3`, m, a)
	g.ready()
	c := g.told(mcp.Latest)
	head, cursor := begin(t, c, 2)
	g.become(`"pageItems":3`, m, z, a)
	same(t, "a walk that was under way", slices.Concat(head, resume(t, c, cursor)), slices.Concat(lists["m"], lists["a"]))
	same(t, "with the new one", list(t, c, mcp.Tools), slices.Concat(lists["m"], lists["z"], lists["a"]))
	head, cursor = begin(t, c, 1)
	g.become(`"pageItems":3`, z, a)
	same(t, "a walk whose server went", slices.Concat(head, resume(t, c, cursor)), slices.Concat(lists["m"][:3], lists["z"], lists["a"]))
	_, cursor = begin(t, c, 1)
	list(t, c, mcp.Tools) // it knows
	g.become(`"pageItems":3`, a, z)
	if got, err := c.Call(bounded(t), mcp.MethodToolsList, `{"cursor":`+cursor+`}`); err != nil || got.Code() != jsonrpc.CodeInvalidParams {
		t.Errorf("a cursor of another order: %+v, %v", got, err)
	}
	same(t, "in another order", list(t, c, mcp.Tools), slices.Concat(lists["a"], lists["z"]))
	g.restart()
	same(t, "after a restart", list(t, g.http(mcp.Latest), mcp.Tools), slices.Concat(lists["a"], lists["z"]))
}

// TestReload_Prefix changes what takes effect without a restart of the server.
func TestReload_Prefix(t *testing.T) {
	b := answering(tools("t%d", 3)...)
	socket, other := b.OnPipes(t), answering(tools("t%d", 2)...).OnPipes(t)
	g := newGateway(t, "", piped("one", socket), piped("two", other))
	g.ready()
	c := g.told(mcp.LatestSession)
	g.become("", piped("one", socket, `"prefix":""`), piped("two", other))
	if err := c.Notes.Wait(bounded(t), mcp.Tools.ChangedMethod(), 1); err != nil {
		t.Fatal(err)
	}
	same(t, "without a prefix", list(t, c, mcp.Tools), slices.Concat(tools("t%d", 3), exposed("two", tools("t%d", 2))))
	callTool(t, c, "t0")
	g.become("", piped("one", socket, `"prefix":"two__"`), piped("two", other, `"prefix":"one__"`))
	same(t, "with each other's", list(t, c, mcp.Tools), slices.Concat(exposed("two", tools("t%d", 3)), exposed("one", tools("t%d", 2))))
	if socket.Starts() != 1 || other.Starts() != 1 {
		t.Error("a server was started anew")
	}
	now := list(t, c, mcp.Tools)
	g.restart()
	same(t, "after a restart", list(t, g.http(mcp.LatestSession), mcp.Tools), now)
}

// TestReload_InFlight has calls under way: to a server that stays they go on, to
// one that goes they end with a tool error that says so, and so do those to one that
// is started anew.
func TestReload_InFlight(t *testing.T) {
	for _, over := range []string{"pipes", "HTTP"} {
		release := make(chan struct{})
		waiting := func() *mcptest.Backend {
			b := answering(tool("t"))
			b.Do = func(ctx context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
				select {
				case <-release:
				case <-ctx.Done():
				}
				return jsontext.Value(`{"content":[{"type":"text","text":"done"}]}`), nil
			}
			return b
		}
		var entries []entry
		var backends []*mcptest.Backend
		for _, name := range []string{"stays", "goes", "changes"} {
			b := waiting()
			backends = append(backends, b)
			if over == "pipes" {
				entries = append(entries, piped(name, b.OnPipes(t)))
			} else {
				entries = append(entries, remote(name, b.OnHTTP(t).URL))
			}
		}
		g := newGateway(t, "", entries...)
		g.ready()
		answers := make(map[string]chan string)
		for i, name := range []string{"stays", "goes", "changes"} {
			ch := make(chan string, 1)
			answers[name] = ch
			c := g.http(mcp.LatestSession)
			go func() { // ends with the call
				a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`__t","arguments":{}}`)
				ch <- fmt.Sprint(a.Result, a.Error, err)
			}()
			if err := backends[i].WaitCount(bounded(t), mcp.MethodToolsCall, 1); err != nil {
				t.Fatal(err)
			}
		}
		changed := entries[2]
		changed.json = extend(changed.json, []string{`"timeout":60000`})
		g.become("", entries[0], changed)
		for name, want := range map[string]string{"goes": "removed from the configuration", "changes": "its configuration has changed"} {
			if got := <-answers[name]; !strings.Contains(got, want) || !strings.Contains(got, `"isError":true`) || !strings.Contains(got, name) {
				t.Errorf("over %s, a call to the server that %s: %s", over, name, got)
			}
		}
		close(release)
		if got := <-answers["stays"]; !strings.Contains(got, "done") {
			t.Errorf("over %s, a call to the server that stays: %s", over, got)
		}
		callTool(t, g.http(mcp.Latest), "changes__t")
		a, err := g.http(mcp.Latest).Call(bounded(t), mcp.MethodToolsCall, `{"name":"goes__t","arguments":{}}`)
		if err != nil || !strings.Contains(a.Error, "goes__t") {
			t.Errorf("over %s, a call behind the end: %+v, %v", over, a, err)
		}
		g.close()
	}
}

// TestReload_BadFile offers files with mistakes: nothing changes, and the status
// says which file, line and field.
func TestReload_BadFile(t *testing.T) {
	socket := answering(tool("t")).OnPipes(t)
	one := piped("one", socket)
	g := newGateway(t, "", one)
	g.ready()
	good := configuration("", one)
	bad := one
	bad.json = extend(bad.json, []string{`"args":[{}]`})
	for name, c := range map[string]struct {
		text string
		want admin.Problem
	}{
		"not JSON":       {`{"mcpServers":` + "\n{", admin.Problem{File: g.file(), Line: 2, Severity: "error"}},
		"a wrong field":  {"\n" + configuration("", bad), admin.Problem{File: g.file(), Line: 2, Severity: "error", Server: "one", Field: "args[0]"}},
		"a wrong key":    {"\n\n" + configuration(`"listen":7`, one), admin.Problem{File: g.file(), Line: 3, Severity: "error", Field: "roster.listen"}},
		"an empty file":  {"", admin.Problem{File: g.file(), Line: 1, Severity: "error"}},
		"of two servers": {configuration("", piped("two", socket), bad), admin.Problem{File: g.file(), Line: 1, Severity: "error", Server: "one", Field: "args[0]"}},
	} {
		g.write(c.text)
		_, err := g.Reload(bounded(t))
		if _, ok := errors.AsType[*admin.RefusedError](err); !ok {
			t.Errorf("%s: %v", name, err)
			continue
		}
		refused := g.Status().Config.Refused
		if refused == nil || len(refused.Problems) != 1 {
			t.Errorf("%s: the status has %+v", name, refused)
			continue
		}
		got := refused.Problems[0]
		if !strings.Contains(err.Error(), fmt.Sprintf("%s:%d:", c.want.File, c.want.Line)) || !strings.Contains(err.Error(), c.want.Field) {
			t.Errorf("%s: the error does not say where: %v", name, err)
		}
		got.Column, got.Message = 0, ""
		if got != c.want {
			t.Errorf("%s: the status has %+v, want %+v", name, got, c.want)
		}
	}
	if err := os.Remove(g.file()); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Reload(bounded(t)); err == nil {
		t.Error("a file that is gone was taken over")
	}
	if socket.Starts() != 1 || len(g.Status().Servers) != 1 {
		t.Errorf("a bad file has changed something: %+v", g.Status().Servers)
	}
	callTool(t, g.http(mcp.Latest), "one__t")
	// A server that is wrong from the beginning is left out, as at the start.
	wrong := entry{"two", `{"command":7}`}
	g.write(configuration("", one, wrong))
	if _, err := g.Reload(bounded(t)); err != nil {
		t.Error(err)
	}
	if s := g.server("two"); s.State != upstream.Disabled || !strings.Contains(s.Error, "command") {
		t.Errorf("the wrong server is %+v", s)
	}
	g.write(good)
	if _, err := g.Reload(bounded(t)); err != nil || g.Status().Config.Refused != nil {
		t.Errorf("a good file: %v, %+v", err, g.Status().Config)
	}
}

// TestReload_Settings changes what cannot change while the gateway runs.
func TestReload_Settings(t *testing.T) {
	one := piped("one", answering(tool("t")).OnPipes(t))
	g := newGateway(t, "", one)
	g.ready()
	g.write(configuration(`"listen":"127.0.0.1:1","nameLength":20`, one))
	want := []string{"listen", "nameLength"}
	if plan, err := g.Plan(); err != nil || !slices.Equal(plan.Settings, want) || plan.Servers() {
		t.Errorf("the plan is %+v, %v", plan, err)
	}
	for range 2 {
		if _, err := g.Reload(bounded(t)); err != nil {
			t.Fatal(err)
		}
		if got := g.Status().Config.NeedRestart; !slices.Equal(got, want) {
			t.Errorf("the status has %q", got)
		}
	}
	g.become("", one)
	if got := g.Status().Config.NeedRestart; got != nil {
		t.Errorf("as at the start, the status has %q", got)
	}
}

// TestReload_C172 has the file written by halves, while it is watched: what runs
// stays, and the whole file is taken over without another touch (C-172).
func TestReload_C172(t *testing.T) {
	var all []entry
	for _, name := range []string{"one", "two"} {
		all = append(all, piped(name, answering(tool("t")).OnPipes(t)))
	}
	socket := answering(tool("t")).OnPipes(t)
	all = append(all, piped("three", socket))
	g := stoppedGateway(t)
	g.watch = true
	g.start("", all...)
	g.ready()
	texts := []string{configuration("", all[0], all[2]), configuration("", all...)}
	for i := range rounds(6, 100) {
		text := texts[i%2]
		g.write(text[:len(text)/2])
		g.until("the half is seen", func(st admin.Status) bool { return st.Config.Refused != nil })
		if n := len(g.Status().Servers); n != 3-i%2 {
			t.Fatalf("with half a file, %d servers", n)
		}
		g.write(text)
		g.until("the whole is taken over", func(st admin.Status) bool {
			return st.Config.Refused == nil && len(st.Servers) == 2+i%2
		})
	}
	if socket.Starts() != 1 {
		t.Errorf("a server that stayed was started %d times", socket.Starts())
	}
}

// TestReload_C175 changes one of ten servers in each way there is: it alone is
// started anew, with the new value (C-175).
func TestReload_C175(t *testing.T) {
	var entries []entry
	var sockets []*mcptest.Socket
	var backends []*mcptest.Backend
	for i := range 9 {
		b := answering(tool("t"))
		backends = append(backends, b)
		if name := fmt.Sprintf("s%d", i); i < 3 {
			s := b.OnPipes(t)
			sockets = append(sockets, s)
			entries = append(entries, piped(name, s))
		} else {
			entries = append(entries, remote(name, b.OnHTTP(t).URL))
		}
	}
	socket := answering(tool("t")).OnPipes(t)
	site, second := answering(tool("t")).OnHTTP(t), answering(tool("t")).OnHTTP(t)
	var header atomic.Value
	site.Hook(func(_ http.ResponseWriter, r *http.Request) bool {
		header.Store(r.Header.Get("X-Test"))
		return false
	})
	command, env := socket.Command()
	child := func(more string) entry {
		raw, _ := json.Marshal(env) // strings only
		return entry{"s9", `{"command":` + string(mcp.String(command)) + `,"env":` + strings.TrimSuffix(string(raw), "}") + more}
	}
	g := newGateway(t, "", append(entries, child("}}"))...)
	g.ready()
	c := g.http(mcp.LatestSession)
	starts := 1
	for name, more := range map[string]string{
		"args": `},"args":["x"]}`, "env": `,"EXTRA":"1"}}`, "cwd": `},"cwd":"/"}`,
	} {
		g.become("", append(entries, child(more))...)
		starts++
		callTool(t, c, "s9__t")
		if socket.Starts() != starts {
			t.Errorf("with another %s it was started %d times, want %d", name, socket.Starts(), starts)
		}
	}
	g.become("", append(entries, child(`},"disabled":true}`))...)
	if len(socket.Pids()) != 0 || g.server("s9").State != upstream.Disabled || len(list(t, c, mcp.Tools)) != 9 {
		t.Errorf("switched off: %+v", g.server("s9"))
	}
	for _, s := range []entry{
		remote("s9", site.URL), remote("s9", site.URL, `"headers":{"X-Test":"new"}`), remote("s9", second.URL),
	} {
		g.become("", append(entries, s)...)
		callTool(t, c, "s9__t")
		if strings.Contains(s.json, "X-Test") && header.Load() != "new" {
			t.Errorf("the new header is not sent: %q", header.Load())
		}
	}
	for i, s := range sockets {
		if s.Starts() != 1 {
			t.Errorf("server %d was started anew", i)
		}
	}
	for i, b := range backends {
		if n := b.Count(mcp.MethodInitialize); n != 1 {
			t.Errorf("server %d was connected to %d times", i, n)
		}
	}
}

// TestReload_Watch has the file replaced in the ways in which editors and
// Kubernetes do it.
func TestReload_Watch(t *testing.T) {
	one, two := piped("one", answering(tool("t")).OnPipes(t)), piped("two", answering(tool("t")).OnPipes(t))
	g := stoppedGateway(t)
	g.watch = true
	// As Kubernetes mounts a ConfigMap: roster.json -> ..data/roster.json, ..data -> ..1.
	mount := func(version, text string) {
		t.Helper()
		dir := filepath.Join(g.dir, ".."+version)
		must(t, os.Mkdir(dir, 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "roster.json"), []byte(text), 0o600))
		must(t, os.Symlink(".."+version, filepath.Join(g.dir, "..tmp")))
		must(t, os.Rename(filepath.Join(g.dir, "..tmp"), filepath.Join(g.dir, "..data")))
	}
	mount("1", configuration("", one))
	must(t, os.Symlink("..data/roster.json", g.file()))
	g.run()
	g.ready()
	count := func(n int) {
		t.Helper()
		g.until(fmt.Sprintf("%d servers run", n), func(st admin.Status) bool { return len(st.Servers) == n })
	}
	mount("2", configuration("", one, two))
	count(2)
	mount("3", configuration("", two))
	count(1)
	// As editors save: a new file in the place of the old one, which was moved away.
	must(t, os.Rename(g.file(), g.file()+"~"))
	g.write(configuration("", one, two))
	count(2)
	next := filepath.Join(g.dir, "next")
	must(t, os.WriteFile(next, []byte(configuration("", one)), 0o600))
	must(t, os.Rename(next, g.file()))
	count(1)
	// A link to elsewhere.
	elsewhere := filepath.Join(t.TempDir(), "dotfile")
	must(t, os.WriteFile(elsewhere, []byte(configuration("", one, two)), 0o600))
	must(t, os.Remove(g.file()))
	must(t, os.Symlink(elsewhere, g.file()))
	count(2)
	must(t, os.WriteFile(elsewhere, []byte(configuration("", two)), 0o600))
	count(1)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestReload_UnderLoad reloads again and again while clients list and call:
// nothing fails, nothing is missing, and servers that are the same are not started
// anew.
func TestReload_UnderLoad(t *testing.T) {
	var stable []entry
	var want []string
	var sockets []*mcptest.Socket
	for _, name := range []string{"pipes1", "pipes2"} {
		s := answering(tools("stable%d", 3)...).OnPipes(t)
		sockets = append(sockets, s)
		stable = append(stable, piped(name, s))
		want = append(want, exposed(name, tools("stable%d", 3))...)
	}
	overHTTP := answering(tools("stable%d", 3)...)
	stable = append(stable, remote("http", overHTTP.OnHTTP(t).URL))
	want = append(want, exposed("http", tools("stable%d", 3))...)
	url := answering(tools("volatile%d", 2)...).OnHTTP(t).URL
	versions := [][]entry{
		stable,
		{remote("first", url), stable[0], stable[1], remote("middle", url), stable[2]},
		{stable[0], stable[1], remote("middle", url, `"headers":{"X":"1"}`), stable[2], remote("last", url)},
		{remote("first", url, `"prefix":"f_"`), stable[0], stable[1], stable[2]},
		{remote("first", url, `"disabled":true`), stable[0], stable[1], stable[2], remote("last", url)},
	}
	const settings = `"pageItems":4`
	g := newGateway(t, settings, stable...)
	g.ready()
	stop := make(chan struct{})
	var clients sync.WaitGroup
	var walks, calls atomic.Int64
	for i := range rounds(4, 16) {
		c := g.http(mcp.Versions()[i%len(mcp.Versions())])
		clients.Go(func() { // ends with stop
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				items, err := c.List(bounded(t), mcp.Tools)
				if err == nil {
					err = checkWalk(items, want)
				}
				if err != nil {
					t.Error(err)
					return
				}
				walks.Add(1)
				name := []string{"pipes1", "pipes2", "http"}[n%3] + "__stable1"
				a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"`+name+`","arguments":{}}`)
				if err != nil || !strings.Contains(a.Result, "done") {
					t.Errorf("%s: %s%s %v", name, a.Result, a.Error, err)
					return
				}
				calls.Add(1)
			}
		})
	}
	for i := range rounds(40, 1000) {
		if t.Failed() {
			break
		}
		g.become(settings, versions[i%len(versions)]...)
	}
	eventually(t, "clients have listed and called", func() bool { return walks.Load() > 20 && calls.Load() > 20 || t.Failed() })
	close(stop)
	clients.Wait()
	for i, s := range sockets {
		if s.Starts() != 1 {
			t.Errorf("server %d was started %d times", i, s.Starts())
		}
	}
	if n := overHTTP.Count(mcp.MethodInitialize); n != 1 {
		t.Errorf("the server over HTTP was connected to %d times", n)
	}
}
