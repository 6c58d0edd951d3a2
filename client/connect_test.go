package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// TestConnectOnPipes has what a server on pipes does with the first request, and
// what must come of it.
func TestConnectOnPipes(t *testing.T) {
	refuse := func(code int, data string) func(*mcptest.Peer, *jsonrpc.Message) bool {
		return func(p *mcptest.Peer, m *jsonrpc.Message) bool {
			if m.Method == mcp.MethodDiscover {
				p.Refuse(m, code, "no", data)
			}
			return m.Method == mcp.MethodDiscover
		}
	}
	tests := []struct {
		name    string
		version mcp.Version
		on      func(*mcptest.Peer, *jsonrpc.Message) bool
		want    mcp.Version // "": an error
		sent    string
	}{
		{"stateless", mcp.V20260728, nil, mcp.V20260728, "server/discover"},
		{"method not found", mcp.V20251125, nil, mcp.V20251125, "server/discover initialize notifications/initialized"},
		{"invalid params", mcp.V20250618, refuse(-32602, ""), mcp.V20250618, "server/discover initialize notifications/initialized"},
		{"C-202 no overlap", mcp.V20251125, refuse(-32022, `{"supported":["2026-10-01"],"requested":"2026-07-28"}`), "", "server/discover"},
		{"C-202 no list", mcp.V20251125, refuse(-32022, `{"supported":[]}`), "", "server/discover"},
		{
			"C-202 overlap", mcp.V20250618, refuse(-32022, `{"supported":["2025-06-18","2024-11-05"]}`), mcp.V20250618,
			"server/discover initialize notifications/initialized",
		},
		{"header mismatch", mcp.V20251125, refuse(-32020, ""), "", "server/discover"},
		{"oldest", mcp.V20241105, nil, mcp.V20241105, "server/discover initialize notifications/initialized"},
		{"unknown answer", "2025-01-01", nil, "", "server/discover initialize"},
		{
			"discover lists sessions only", mcp.V20250618, func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				if m.Method == mcp.MethodDiscover {
					p.Reply(m, mcptest.Discovered("{}", "2025-06-18"))
				}
				return m.Method == mcp.MethodDiscover
			}, mcp.V20250618, "server/discover initialize notifications/initialized",
		},
		{
			"answers anything with {}", mcp.V20251125, func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				if m.Method == mcp.MethodDiscover {
					p.Reply(m, "{}")
				}
				return m.Method == mcp.MethodDiscover
			}, mcp.V20251125, "server/discover initialize notifications/initialized",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host(tt.version, `{"tools":{"listChanged":true}}`, tt.on)
				c, err := client.Connect(t.Context(), client.Options{Dial: h.Dial})
				synctest.Wait()
				if got := methods(h.Peer()); got != tt.sent {
					t.Errorf("sent %s, want %s", got, tt.sent)
				}
				if tt.want == "" {
					if err == nil {
						t.Fatal("connected")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				info := c.Server()
				if info.Version != tt.want || info.Instructions != "be brief" || string(info.Info) != `{"name":"fake","version":"1"}` {
					t.Errorf("server is %+v", info)
				}
				if !info.Lists(mcp.Tools) || !info.ListChanged(mcp.Tools) || info.Lists(mcp.Prompts) {
					t.Errorf("capabilities are %s", info.Capabilities.Raw)
				}
			})
		})
	}
}

// TestConnectNamesVersions checks that the error for C-202 says what would do.
func TestConnectNamesVersions(t *testing.T) {
	h := host(mcp.V20251125, "{}", func(p *mcptest.Peer, m *jsonrpc.Message) bool {
		p.Refuse(m, -32022, "no", `{"supported":["2026-10-01"]}`)
		return true
	})
	_, err := client.Connect(t.Context(), client.Options{Dial: h.Dial})
	v, ok := errors.AsType[*client.VersionError](err)
	if !ok || len(v.Supported) != 1 || !strings.Contains(err.Error(), "2026-10-01") || !strings.Contains(err.Error(), "2026-07-28") {
		t.Error(err)
	}
}

// TestConnectSilentServer is C-200: a server that drops what it does not know.
func TestConnectSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host(mcp.V20250326, "{}", func(_ *mcptest.Peer, m *jsonrpc.Message) bool { return m.Method == mcp.MethodDiscover })
		began := time.Now()
		c := connect(t, client.Options{Dial: h.Dial})
		if took := time.Since(began); took != client.DefaultProbeTimeout {
			t.Errorf("took %v", took)
		}
		if c.Server().Version != mcp.V20250326 || h.Dials() != 1 {
			t.Errorf("version %s after %d dials", c.Server().Version, h.Dials())
		}
		synctest.Wait()
		if got := methods(h.Peer()); got != "server/discover initialize notifications/initialized" {
			t.Errorf("sent %s", got)
		}
	})
}

// TestConnectSlowServer: the answer to server/discover counts when it comes late.
func TestConnectSlowServer(t *testing.T) {
	later := func(p *mcptest.Peer, m *jsonrpc.Message, d time.Duration, answer func()) {
		time.AfterFunc(d, answer)
	}
	t.Run("stateless", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := host(mcp.V20260728, "{}", func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				switch m.Method {
				case mcp.MethodDiscover:
					later(p, m, 10*time.Second, func() { p.Reply(m, mcptest.Discovered("{}", "2026-07-28", "2025-11-25")) })
				case mcp.MethodInitialize:
					later(p, m, 9*time.Second, func() { p.Reply(m, mcptest.Initialized("2025-11-25", "{}")) })
				}
				return true
			})
			if v := connect(t, client.Options{Dial: h.Dial}).Server().Version; v != mcp.V20260728 {
				t.Errorf("version %s", v)
			}
		})
	})
	t.Run("refuses initialize first", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := host(mcp.V20260728, "{}", func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				switch m.Method {
				case mcp.MethodDiscover:
					later(p, m, 3*time.Second, func() { p.Reply(m, mcptest.Discovered("{}", "2026-07-28")) })
				case mcp.MethodInitialize:
					p.Refuse(m, -32601, "no such method", "")
				}
				return true
			})
			if v := connect(t, client.Options{Dial: h.Dial}).Server().Version; v != mcp.V20260728 {
				t.Errorf("version %s", v)
			}
		})
	})
	t.Run("old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := host(mcp.V20250618, "{}", func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				switch m.Method {
				case mcp.MethodDiscover:
					later(p, m, 5*time.Second, func() { p.Refuse(m, -32601, "no such method", "") })
				case mcp.MethodInitialize:
					later(p, m, 5*time.Second, func() { p.Reply(m, mcptest.Initialized("2025-06-18", "{}")) })
				}
				return true
			})
			c := connect(t, client.Options{Dial: h.Dial})
			synctest.Wait()
			if c.Server().Version != mcp.V20250618 || h.Peer().Count(mcp.MethodInitialize) != 1 {
				t.Errorf("version %s, sent %s", c.Server().Version, methods(h.Peer()))
			}
		})
	})
	t.Run("never answers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := host("", "{}", func(*mcptest.Peer, *jsonrpc.Message) bool { return true })
			began := time.Now()
			_, err := client.Connect(t.Context(), client.Options{Dial: h.Dial})
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != client.DefaultConnectTimeout {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			synctest.Wait()
			if n := h.Peer().Count(mcp.MethodCanceled); n != 0 {
				t.Error("initialize was cancelled")
			}
		})
	})
}

// TestConnectDiesOnProbe: a process that the probe kills is started once more.
func TestConnectDiesOnProbe(t *testing.T) {
	die := func(p *mcptest.Peer, m *jsonrpc.Message) bool {
		if m.Method == mcp.MethodDiscover {
			p.Close()
		}
		return m.Method == mcp.MethodDiscover
	}
	synctest.Test(t, func(t *testing.T) {
		h := host(mcp.V20251125, "{}", die)
		c := connect(t, client.Options{Dial: h.Dial})
		if c.Server().Version != mcp.V20251125 || h.Dials() != 2 || h.Count(mcp.MethodDiscover) != 1 {
			t.Errorf("version %s after %d dials", c.Server().Version, h.Dials())
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := host(mcp.V20251125, "{}", func(p *mcptest.Peer, _ *jsonrpc.Message) bool { p.Close(); return true })
		if _, err := client.Connect(t.Context(), client.Options{Dial: h.Dial}); err == nil || h.Dials() != 2 {
			t.Errorf("%v after %d dials", err, h.Dials())
		}
	})
}

// TestConnectRemembered is C-204: what is remembered saves the probe while it is
// true, and is found out when it is not.
func TestConnectRemembered(t *testing.T) {
	tests := []struct {
		name       string
		remembered mcp.Version
		is         mcp.Version
		discovers  int
	}{
		{"sessions, still", mcp.V20250618, mcp.V20251125, 0},
		{"sessions, now stateless", mcp.V20251125, mcp.V20260728, 1},
		{"stateless, still", mcp.V20260728, mcp.V20260728, 1},
		{"stateless, now sessions", mcp.V20260728, mcp.V20250326, 1},
		{"unknown version", "2031-01-01", mcp.V20250326, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host(tt.is, "{}", nil)
				c := connect(t, client.Options{Dial: h.Dial, Remembered: tt.remembered})
				if c.Server().Version != tt.is || h.Count(mcp.MethodDiscover) != tt.discovers {
					t.Errorf("version %s, %d probes", c.Server().Version, h.Count(mcp.MethodDiscover))
				}
			})
		})
	}
}

// TestConnectUpgraded is C-204 for a server that has learned the newer way and
// still knows the older: it is another program, and is asked anew.
func TestConnectUpgraded(t *testing.T) {
	for remembered, probes := range map[string]int{`{"name":"fake","version":"1"}`: 0, `{"name":"fake","version":"0"}`: 1, "": 0} {
		synctest.Test(t, func(t *testing.T) {
			h := host(mcp.V20260728, "{}", func(p *mcptest.Peer, m *jsonrpc.Message) bool {
				if m.Method == mcp.MethodInitialize {
					p.Reply(m, mcptest.Initialized("2025-11-25", "{}"))
				}
				return m.Method == mcp.MethodInitialize
			})
			opts := client.Options{Dial: h.Dial, Remembered: mcp.V20251125}
			if remembered != "" {
				opts.RememberedInfo = jsontext.Value(remembered)
			}
			want := mcp.V20251125
			if probes > 0 {
				want = mcp.V20260728
			}
			c := connect(t, opts)
			if c.Server().Version != want || h.Count(mcp.MethodDiscover) != probes || h.Dials() != 1+probes {
				t.Errorf("version %s after %d probes and %d dials", c.Server().Version, h.Count(mcp.MethodDiscover), h.Dials())
			}
		})
	}
}

// TestConnectOverHTTP has the answers to the first request over HTTP.
func TestConnectOverHTTP(t *testing.T) {
	answer := func(code int, data string) *jsonrpc.Error {
		e := jsonrpc.Errorf(code, "no")
		if data != "" {
			e.Data = jsontext.Value(data)
		}
		return e
	}
	const fallback = "server/discover initialize notifications/initialized"
	tests := []struct {
		name  string
		probe error
		want  mcp.Version // "": an error
		sent  string
	}{
		{"stateless", nil, mcp.V20260728, "server/discover"},
		{"400 without a body", &httpError{status: 400}, mcp.V20250618, fallback},
		{"400 with an old error", &httpError{status: 400, answer: answer(-32000, "")}, mcp.V20250618, fallback},
		{"404", &httpError{status: 404, body: "page not found"}, mcp.V20250618, fallback},
		{"405", &httpError{status: 405}, mcp.V20250618, fallback},
		{"200 with -32601", answer(-32601, ""), mcp.V20250618, fallback},
		{"404 with -32601", &httpError{status: 404, answer: answer(-32601, "")}, mcp.V20250618, fallback},
		{"400 with -32022, overlap", &httpError{status: 400, answer: answer(-32022, `{"supported":["2025-06-18"]}`)}, mcp.V20250618, fallback},
		{"400 with -32022, no overlap", &httpError{status: 400, answer: answer(-32022, `{"supported":["2026-10-01"]}`)}, "", "server/discover"},
		{"400 with -32020", &httpError{status: 400, answer: answer(-32020, "")}, "", "server/discover"},
		{"400 with -32021", &httpError{status: 400, answer: answer(-32021, "")}, "", "server/discover"},
		{"401", &httpError{status: 401}, "", "server/discover"},
		{"403", &httpError{status: 403, answer: answer(-32600, "")}, "", "server/discover"},
		{"429", &httpError{status: 429}, "", "server/discover"},
		{"502", &httpError{status: 502}, "", "server/discover"},
		{"network", errNetwork, "", "server/discover"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, dial := dialHTTP(func(call *jsonrpc.Call) (string, error) {
				if call.Method == mcp.MethodDiscover {
					return mcptest.Discovered("{}", "2026-07-28", "2025-06-18"), tt.probe
				}
				return mcptest.Initialized("2025-06-18", "{}"), nil
			})
			c, err := client.Connect(t.Context(), client.Options{Dial: dial, HTTP: true})
			if got := w.methods(); got != tt.sent {
				t.Errorf("sent %s, want %s", got, tt.sent)
			}
			switch {
			case tt.want == "" && (err == nil || tt.probe != nil && !errors.Is(err, tt.probe) && !strings.Contains(err.Error(), "2026-10-01")):
				t.Errorf("error is %v, want one about %v", err, tt.probe)
			case tt.want != "" && err != nil:
				t.Error(err)
			case tt.want != "" && c.Server().Version != tt.want:
				t.Errorf("version %s", c.Server().Version)
			}
		})
	}
}

// TestConnectVersionRefused is C-198: a server that answers initialize with the
// versions it knows is asked once more.
func TestConnectVersionRefused(t *testing.T) {
	tests := []struct {
		name  string
		first error
		want  string // offered; the last one
		fails bool
	}{
		{"400 and a text", &httpError{status: 400, body: "Bad Request: Unsupported protocol version: 2025-11-25 (supported versions: 2025-06-18, 2025-03-26)"}, "2025-06-18", false},
		{"-32602 and data", &jsonrpc.Error{Code: -32602, Message: "Unsupported protocol version", Data: jsontext.Value(`{"supported":["2024-11-05"],"requested":"2025-11-25"}`)}, "2024-11-05", false},
		{"-32022 and data", &httpError{status: 400, answer: &jsonrpc.Error{Code: -32022, Data: jsontext.Value(`{"supported":["2025-03-26"]}`)}}, "2025-03-26", false},
		{"no overlap", &jsonrpc.Error{Code: -32602, Message: "only 2023-01-01"}, "2025-11-25", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var offered []string
			w, dial := dialHTTP(func(call *jsonrpc.Call) (string, error) {
				if call.Method == mcp.MethodDiscover {
					return "", &httpError{status: 404}
				}
				params, _ := jsonrpc.ParseObject(call.Params)
				v, _ := params.Text("protocolVersion")
				offered = append(offered, v)
				if len(offered) == 1 || v == "2025-11-25" {
					return "", tt.first
				}
				return mcptest.Initialized(v, "{}"), nil
			})
			c, err := client.Connect(t.Context(), client.Options{Dial: dial, HTTP: true})
			if last := offered[len(offered)-1]; last != tt.want || (err != nil) != tt.fails {
				t.Fatalf("offered %v, error %v", offered, err)
			}
			if !tt.fails && (len(offered) != 2 || string(c.Server().Version) != tt.want) {
				t.Errorf("offered %v, version %s", offered, c.Server().Version)
			}
			if strings.Count(w.methods(), mcp.MethodDiscover) != 1 {
				t.Errorf("sent %s", w.methods())
			}
		})
	}
}

// TestConnectVersionKept is C-196 and, for what a client has to do with it,
// C-199: the version is what the server answered, not what we offered.
func TestConnectVersionKept(t *testing.T) {
	for _, v := range mcp.Versions() {
		t.Run(string(v), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host(v, "{}", nil)
				if got := connect(t, client.Options{Dial: h.Dial}).Server().Version; got != v {
					t.Errorf("version %s", got)
				}
			})
		})
	}
}

// TestInitializeParams: what a server with sessions is told.
func TestInitializeParams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host(mcp.V20251125, "{}", nil)
		connect(t, client.Options{Dial: h.Dial, Info: jsontext.Value(`{"name":"me","version":"3"}`), Capabilities: jsontext.Value(`{"roots":{}}`)})
		synctest.Wait()
		log := h.Peer().Log()
		const want = `{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"me","version":"3"}}`
		if got := string(log[1].Params.Raw); got != want {
			t.Errorf("initialize has %s", got)
		}
		if got := log[0].Params.Raw; !strings.Contains(string(got), `"io.modelcontextprotocol/clientCapabilities":{}`) {
			t.Errorf("server/discover has %s", got)
		}
	})
}
