package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain lets the test binary stand in for the program, which starts itself
// in several roles, and for the gateway.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "echo", relayName, listName:
			main()
			return
		case "serve":
			if err := serveStub(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	// Else every process of ours waits a second before it ends, under -race.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
	os.Exit(m.Run())
}

// serveStub is a gateway of the simplest kind, and strict about how it is
// started and about what requests must carry.
func serveStub() error {
	if got := strings.Join(os.Args[4:], " "); os.Args[2] != "--config" || got != "--listen 127.0.0.1:0" || os.Getenv("ROSTER_STATE_DIR") == "" {
		return fmt.Errorf("started as %q", os.Args)
	}
	var config struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	b, err := os.ReadFile(os.Args[3])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &config); err != nil {
		return err
	}
	first := config.MCPServers["s01"]
	if len(config.MCPServers) != catalogServers || first.Command == "" {
		return fmt.Errorf("configuration %s", b)
	}
	child := exec.Command(first.Command, first.Args...)
	in, err := child.StdinPipe()
	if err != nil {
		return err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	r := newRelay(in)
	go func() { _ = r.read(out) }()
	return serve(&stub{calls: r, list: newListHandler(catalogServers, catalogTools)})
}

type stub struct {
	calls    *relay
	list     *listHandler
	sessions atomic.Int64 // open ones
}

func (s *stub) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodDelete && req.Header.Get("Mcp-Session-Id") == "abc" {
		s.sessions.Add(-1)
		return
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	req.Body = io.NopCloser(strings.NewReader(string(body)))
	var msg struct {
		Method string
		Params struct {
			Name string
			Meta map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal(body, &msg); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h := req.Header
	switch version := h.Get("MCP-Protocol-Version"); {
	case version == "2026-07-28":
		if h.Get("Mcp-Method") != msg.Method || h.Get("Mcp-Name") != msg.Params.Name || len(msg.Params.Meta) != 3 ||
			msg.Params.Meta["io.modelcontextprotocol/protocolVersion"] != version {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
	case msg.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "abc")
		s.sessions.Add(1)
	case version != "2025-11-25" || h.Get("Mcp-Session-Id") != "abc" || s.sessions.Load() <= 0:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if msg.Method == "tools/list" {
		s.list.ServeHTTP(w, req)
		return
	}
	if msg.Method == "tools/call" && msg.Params.Name != "s01__echo" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.calls.ServeHTTP(w, req)
}

// The whole program, in both eras, with a gateway that cannot be far from the
// relay since it is one.
func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []era{stateless, session} {
		t.Run(string(e), func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "new", "latest.json")
			err := run(t.Context(), []string{
				"-roster", self, "-era", string(e), "-rounds", "2", "-duration", "30ms", "-sizes", "70000", "-callers", "1,8",
				"-o", out, "-check", "-min-call", "0.01", "-min-list", "0.01",
			})
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			var rep report
			if err := json.Unmarshal(b, &rep); err != nil {
				t.Fatal(err)
			}
			if len(rep.Scenarios) != 5 {
				t.Errorf("%d scenarios, want 2 of calls, 2 of lists and the open loop", len(rep.Scenarios))
			}
			for _, sc := range rep.Scenarios {
				if got := len(sc.Samples[rosterName]); got != 2 || sc.Medians[rosterName].Calls == 0 || sc.Ratios["throughput"].Median <= 0 {
					t.Errorf("%s: %d samples, medians %+v, ratios %+v", sc.Name, got, sc.Medians, sc.Ratios)
				}
			}
		})
	}
}

func TestRunBelowThreshold(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{
		"-roster", self, "-rounds", "1", "-duration", "20ms", "-run", "^call 100B c1$",
		"-o", filepath.Join(t.TempDir(), "x.json"), "-check", "-min-call", "1000",
	})
	if err == nil || !strings.Contains(err.Error(), "too slow:\ncall 100B c1: ") {
		t.Errorf("error = %v, want one that names the scenario", err)
	}
}

func TestRunRefuses(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"argument", []string{"x"}, "unexpected argument"},
		{"era", []string{"-era", "2024-01-01"}, "-era"},
		{"target", []string{"-only", "relay,rooster"}, `no "rooster"`},
		{"sizes", []string{"-sizes", "1,x"}, "-sizes"},
		{"callers", []string{"-callers", "0"}, "-callers"},
		{"pattern", []string{"-run", "("}, "-run"},
		{"rounds", []string{"-rounds", "0"}, "-rounds"},
		{"no gateway", []string{"-source", t.TempDir()}, "-only relay,list"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := run(t.Context(), tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestListeningURL(t *testing.T) {
	tests := map[string]string{
		"listening url=http://127.0.0.1:1234/mcp\n":                                    "http://127.0.0.1:1234/mcp",
		`time=2026 level=INFO msg=listening url="http://127.0.0.1:1/mcp" pid=3` + "\n": "http://127.0.0.1:1/mcp",
		`level=INFO msg="starting server" name=s01 url=http://127.0.0.1:9/mcp` + "\n":  "",
		"listening\n": "",
		"":            "",
	}
	for line, want := range tests {
		if got := listeningURL(line); got != want {
			t.Errorf("listeningURL(%q) = %q, want %q", line, got, want)
		}
	}
}

func TestSummarize(t *testing.T) {
	var lat []time.Duration
	for i := range 200 {
		lat = append(lat, time.Duration(200-i)*time.Microsecond)
	}
	got := summarize(lat, 2*time.Second, time.Millisecond, 3<<20)
	want := sample{Calls: 200, Throughput: 100, P50: 100, P99: 198, CPU: 5, RSS: 3}
	if got != want {
		t.Errorf("summarize = %+v, want %+v", got, want)
	}
	if got := summarize(nil, time.Second, 0, 0); got != (sample{}) {
		t.Errorf("of nothing = %+v", got)
	}
}

func TestRatio(t *testing.T) {
	r := result{scenario: scenario{kind: kindCall, bytes: 100, callers: 1}}
	for i, ours := range []float64{50, 90, 60} {
		r.add(relayName, sample{Throughput: []float64{100, 100, 200}[i]})
		r.add(rosterName, sample{Throughput: ours})
	}
	got, ok := r.ratio(throughput)
	if want := (ratio{Median: 0.5, Low: 0.3, High: 0.9}); !ok || got != want {
		t.Errorf("ratio = %+v, %v; want %+v", got, ok, want)
	}
	if short, err := shortfalls([]result{r}, map[string]float64{kindCall: 0.5}); err != nil || len(short) != 0 {
		t.Errorf("at the threshold: %q, %v", short, err)
	}
	if short, err := shortfalls([]result{r}, map[string]float64{kindCall: 0.51}); err != nil || len(short) != 1 {
		t.Errorf("below the threshold: %q, %v", short, err)
	}
	if _, err := shortfalls([]result{r}, map[string]float64{kindList: 0.5}); err == nil {
		t.Error("nothing to check, and no error")
	}
}
