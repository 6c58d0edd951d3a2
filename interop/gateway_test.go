package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// separator stands between the name of a server and the name of its tool or prompt.
const separator = "__"

// A gateway is the roster under test with its servers, and what each client library sees of these itself.
type gateway struct {
	*world
	binary, config string
	seen           map[string]map[string]*report // by library and era, then by server
	short          bool                          // some list was not whole in time, so do not wait as long again
}

// TestGateway puts all servers behind one roster and drives it with every client.
func TestGateway(t *testing.T) {
	binary := rosterBinary(t)
	sayMissing(t)
	g := &gateway{world: newWorld(t), binary: binary, seen: make(map[string]map[string]*report)}
	g.writeConfig(t)
	tb := &table{columns: []string{"CLIENT", "WIRE", "VERSION", "LISTS"}}
	for _, s := range g.servers {
		tb.columns = append(tb.columns, s.name)
	}
	tb.columns = append(tb.columns, "REMARKS")
	url := g.serve(t)
	g.declareLikeRoster(t, url, "goold")
	for _, c := range clients {
		if c.npm && findNPM().missing != "" {
			tb.add(c.name, "", "skipped: npm peers are missing")
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Run("http", func(t *testing.T) { g.drive(t, tb, c, "http", job{URL: url}) })
			t.Run("stdio", func(t *testing.T) { g.drive(t, tb, c, "stdio", g.stdio(t)) })
		})
	}
	t.Run("status", func(t *testing.T) { g.checkStatus(t, strings.TrimSuffix(url, "/mcp")+"/status") })
	tb.log(t)
}

// TestGatewaySSE puts a server of the oldest HTTP transport, that of 2024-11-05, behind roster.
func TestGatewaySSE(t *testing.T) {
	binary := rosterBinary(t)
	sayMissing(t)
	n := findNPM()
	if n.missing != "" {
		t.Skip(n.missing)
	}
	g := &gateway{world: emptyWorld(t), binary: binary, seen: make(map[string]map[string]*report)}
	g.add(g.everythingHTTP(t, n, entry{Type: "sse"}))
	g.add(goServer("goold", entry{
		Command: buildGoServer(t, g.dir), Args: []string{"-name", "goold", "-versions", "2025-11-25"}, Env: map[string]string{markName: g.mark},
	}, false, 2))
	g.writeConfig(t)
	tb := &table{columns: []string{"CLIENT", "WIRE", "VERSION", "LISTS", g.servers[0].name, g.servers[1].name, "REMARKS"}}
	url := g.serve(t)
	g.declareLikeRoster(t, url, "goold")
	for _, c := range clients {
		if !c.slow && (c.era == "legacy" || c.era == "auto") {
			t.Run(c.name, func(t *testing.T) { g.drive(t, tb, c, "http", job{URL: url}) })
		}
	}
	tb.log(t)
}

// rosterBinary returns the path of the binary under test.
func rosterBinary(t *testing.T) string {
	t.Helper()
	path := os.Getenv("ROSTER")
	if path == "" {
		const why = "ROSTER names no roster binary to test; make run builds one"
		if os.Getenv("CI") == "true" {
			t.Fatal(why)
		}
		t.Skip(why)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeConfig writes the configuration file with the servers in their order.
func (g *gateway) writeConfig(t *testing.T) {
	t.Helper()
	var b bytes.Buffer
	b.WriteString("{\n  \"mcpServers\": {")
	for i, s := range g.servers {
		raw, err := json.Marshal(s.entry)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n    %q: %s", s.name, raw)
	}
	b.WriteString("\n  }\n}\n")
	g.config = filepath.Join(g.dir, "roster.json")
	if err := os.WriteFile(g.config, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// serve starts roster on HTTP and returns its URL.
func (g *gateway) serve(t *testing.T) string {
	t.Helper()
	cmd := exec.Command(g.binary, "serve", "--config", g.config, "--listen", "127.0.0.1:0")
	cmd.Env = environ(map[string]string{"ROSTER_STATE_DIR": t.TempDir(), markName: g.mark})
	ready := regexp.MustCompile(`listening.*url="?(http://[^\s"]+)`)
	p, url, err := startProcess(t.Context(), cmd, "roster", ready, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.stop(20 * time.Second); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of roster ends:\n%s", indent(p.stderr.String()))
		}
	})
	return url
}

// declareLikeRoster finds out what roster declares to a shared server of the older versions, of which server is one. What
// the servers show depends on it, so clients that are pointed at them for comparison have to declare the same.
func (g *gateway) declareLikeRoster(t *testing.T, url, server string) {
	t.Helper()
	ctx, cancel := bounded(t, time.Minute)
	defer cancel()
	o := op{Method: "tools/call", Name: server + separator + "declared", Arguments: map[string]any{}}
	r, err := goClient(ctx, job{URL: url, Era: "legacy", Capabilities: capabilities, Ops: []op{o}, TimeoutMs: 30_000})
	if err != nil {
		t.Fatal(err)
	}
	if r.Error != "" || r.Ops[0].Error != "" {
		t.Fatalf("%v: %s%s", o, r.Error, r.Ops[0].Error)
	}
	var result struct{ Content []struct{ Text string } }
	var text string
	if err = json.Unmarshal(r.Ops[0].Result, &result); err == nil && len(result.Content) > 0 {
		text = result.Content[0].Text
	}
	if !json.Valid([]byte(text)) {
		t.Fatalf("%v: %v in %s", o, err, r.Ops[0].Result)
	}
	t.Logf("roster declares to servers of older versions: %s", text)
	g.declare = json.RawMessage(text)
}

// patience is how long a client waits for whole lists. Roster keeps the first list back for 10 s while servers start.
func (g *gateway) patience() time.Duration {
	if g.short {
		return 2 * time.Second
	}
	return 15 * time.Second
}

// stdio is the target of a roster on standard input and output that begins with nothing remembered.
func (g *gateway) stdio(t *testing.T) job {
	return job{
		Command: g.binary,
		Args:    []string{"serve", "--stdio", "--config", g.config},
		Env:     environment(map[string]string{"ROSTER_STATE_DIR": t.TempDir(), markName: g.mark}),
	}
}

// drive lets a client list and use everything through the gateway, and adds what came of it to the table.
func (g *gateway) drive(t *testing.T, tb *table, c client, wire string, j job) {
	row := []string{c.name, wire, "", "FAIL"}
	defer func() { tb.add(row...) }()
	direct := g.direct(t, c)
	ctx, cancel := bounded(t, 5*time.Minute)
	defer cancel()
	j.Era, j.Capabilities, j.TimeoutMs, j.PatienceMs = c.era, rootCapabilities, 60_000, int(g.patience().Milliseconds())
	j.Want = g.want(c, direct)
	first := make(map[string]int) // index of the first op of a server
	for _, s := range g.servers {
		first[s.name] = len(j.Ops)
		for _, u := range g.uses(c, s) {
			j.Ops = append(j.Ops, exposed(s, u.asked()))
		}
	}
	began := time.Now()
	r, err := c.do(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if r.Error != "" {
		t.Error(r.Error)
	}
	g.short = g.short || !r.whole(j.Want)
	row[2], row[3] = r.Version, runCell(t, "lists", func(t *testing.T) {
		if want := c.version(true); r.Version != "" && r.Version != want {
			t.Errorf("protocol version %s, want %s", r.Version, want)
		}
		g.checkLists(t, c, r, direct)
	})
	for _, s := range g.servers {
		row = append(row, runCell(t, s.name, func(t *testing.T) {
			g.checkItems(t, c, s, r, direct[s.name])
			for i, u := range g.uses(c, s) {
				if err := checkUse(u, r, first[s.name]+i, direct[s.name], i); err != nil {
					t.Error(err)
				}
			}
		}))
	}
	row = append(row, remarks(r, time.Since(began)))
}

// uses is what a client does with a server through the gateway: a slow one calls one tool.
func (g *gateway) uses(c client, s server) []use {
	if c.slow {
		return c.uses(s)[:1]
	}
	return append(c.uses(s), c.features(s)...)
}

// exposed is an op as a client of the gateway has to ask for it.
func exposed(s server, o op) op {
	if o.Method == "tools/call" || o.Method == "prompts/get" || o.Method == "completion/complete" {
		o.Name = s.name + separator + o.Name
	}
	return o
}

// direct returns what a client's library sees of each server when it asks the servers themselves, as nearly in the client's era as
// all servers allow.
func (g *gateway) direct(t *testing.T, c client) map[string]*report {
	t.Helper()
	if c.fixed {
		g.direct(t, reference) // for names
	}
	if c.era != "auto" && c.era != "modern" || c.slow {
		c.era = "legacy"
	} else {
		c.era = "auto"
	}
	key := c.library + " " + c.era
	if g.seen[key] != nil {
		return g.seen[key]
	}
	var mu sync.Mutex
	seen := make(map[string]*report)
	t.Run("direct "+key, func(t *testing.T) {
		for _, s := range g.servers {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				r := g.ask(t, c, s)
				mu.Lock()
				defer mu.Unlock()
				seen[s.name] = r
			})
		}
	})
	if len(seen) < len(g.servers) {
		t.Fatal("without what the servers themselves say there is nothing to compare")
	}
	g.seen[key] = seen
	return seen
}

// names returns the identities of one kind that a server should contribute for a client. Clients that declare capabilities of
// their own see other tools of server-everything than roster does, so for them it is what the reference client sees.
func (g *gateway) names(k kind, c client, s server, direct map[string]*report) ([]string, error) {
	r := direct[s.name]
	if c.fixed {
		r = g.seen[reference.library+" "+reference.era][s.name]
	}
	ids, err := k.ids(r)
	if err != nil {
		return nil, err
	}
	if k.own {
		for i := range ids {
			ids[i] = s.name + separator + ids[i]
		}
	}
	return ids, nil
}

// lists returns what all servers should contribute, in order.
func (g *gateway) lists(k kind, c client, direct map[string]*report) ([][]string, error) {
	var lists [][]string
	for _, s := range g.servers {
		ids, err := g.names(k, c, s, direct)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		lists = append(lists, ids)
	}
	return lists, nil
}

// want is how many items of each kind there should be.
func (g *gateway) want(c client, direct map[string]*report) map[string]int {
	want := make(map[string]int)
	for _, k := range kinds {
		all := make(map[string]bool)
		lists, _ := g.lists(k, c, direct) // an error comes up again in checkLists
		for _, list := range lists {
			for _, id := range list {
				all[id] = true
			}
		}
		want[k.name] = len(all)
	}
	return want
}

// checkLists checks set and order of everything.
func (g *gateway) checkLists(t *testing.T, c client, r *report, direct map[string]*report) {
	for _, k := range kinds {
		got, err1 := k.ids(r)
		lists, err2 := g.lists(k, c, direct)
		if err := errors.Join(err1, err2); err != nil {
			t.Errorf("%s: %v", k.name, err)
			continue
		}
		if err := checkUnion(got, lists); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
	}
}

// checkItems checks that one server's items are there as the server defined them.
func (g *gateway) checkItems(t *testing.T, c client, s server, r, direct *report) {
	for _, k := range kinds {
		got, err := index(k, r)
		if err != nil {
			t.Error(err)
			continue
		}
		own, err := index(k, direct)
		if err != nil {
			t.Error(err)
			continue
		}
		want, err := g.names(k, c, s, map[string]*report{s.name: direct})
		if err != nil {
			t.Error(err)
			continue
		}
		if k.own {
			ids, _ := k.ids(r)
			if err := sameList(withPrefix(ids, s.name+separator), want); err != nil {
				t.Errorf("%s: %v", k.name, err)
			}
		}
		bad := 0
		for _, id := range want {
			mine, ok := own[strings.TrimPrefix(id, s.name+separator)]
			if !ok {
				continue // a tool that the gateway sees and this client itself does not
			}
			if got[id] == nil {
				err = errors.New("is missing")
			} else {
				err = sameItem(got[id], mine, append(c.drops(), k.id)...)
			}
			if bad++; err == nil {
				bad--
			} else if bad <= 3 {
				t.Errorf("%s: %s: %v", k.name, id, err)
			}
		}
		if bad > 3 {
			t.Errorf("%s: %d more like this", k.name, bad-3)
		}
	}
}

func index(k kind, r *report) (map[string]json.RawMessage, error) {
	ids, err := k.ids(r)
	if err != nil {
		return nil, err
	}
	m := make(map[string]json.RawMessage, len(ids))
	for i, id := range ids {
		m[id] = k.of(r)[i]
	}
	return m, nil
}

func withPrefix(ids []string, prefix string) []string {
	var own []string
	for _, id := range ids {
		if strings.HasPrefix(id, prefix) {
			own = append(own, id)
		}
	}
	return own
}

// checkUse checks the answer to an op through the gateway, the i-th, by what must be in it and by the answer that
// the server itself gave, its j-th.
func checkUse(u use, r *report, i int, direct *report, j int) error {
	if err := u.check(r, i); err != nil {
		return err
	}
	if j >= len(direct.Ops) {
		return nil // the server itself does not do it for this client
	}
	if err := sameResult(r.Ops[i].Result, direct.Ops[j].Result); err != nil {
		return fmt.Errorf("%v: %w", u.op, err)
	}
	return nil
}

func remarks(r *report, d time.Duration) string {
	s := []string{fmt.Sprintf("%.1fs", d.Seconds())}
	if r.Walks > 1 {
		s = append(s, fmt.Sprintf("listed %d times", r.Walks))
	}
	for _, k := range kinds {
		if n := r.Pages[k.name]; n > 1 {
			s = append(s, fmt.Sprintf("%d pages of %s", n, k.name))
		}
		if n := r.ListChanged[k.name]; n > 0 {
			s = append(s, fmt.Sprintf("%s changed %d times", k.name, n))
		}
	}
	return strings.Join(s, ", ")
}

// checkStatus checks that the status is JSON that speaks of every server.
func (g *gateway) checkStatus(t *testing.T, url string) {
	ctx, cancel := bounded(t, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || !json.Valid(body) {
		t.Fatalf("GET /status: %s, %s", res.Status, short(body))
	}
	for _, s := range g.servers {
		if !bytes.Contains(body, []byte(`"`+s.name+`"`)) {
			t.Errorf("GET /status does not speak of %s: %s", s.name, short(body))
		}
	}
}
