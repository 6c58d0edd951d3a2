package mcp_test

import (
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

const (
	version = `"io.modelcontextprotocol/protocolVersion":`
	info    = `"io.modelcontextprotocol/clientInfo":`
	caps    = `"io.modelcontextprotocol/clientCapabilities":`
	level   = `"io.modelcontextprotocol/logLevel":`
)

func TestReadCaller(t *testing.T) {
	tests := []struct {
		name, params string
		want         mcp.Caller
		bad          bool
	}{
		{"no params", ``, mcp.Caller{}, false},
		{"no _meta", `{}`, mcp.Caller{}, false},
		{"null _meta", `{"_meta":null}`, mcp.Caller{}, false},
		{"session", `{"_meta":{"progressToken":0}}`, mcp.Caller{}, false},
		{"version only", `{"_meta":{` + version + `"2026-07-28"}}`, mcp.Caller{Version: "2026-07-28"}, false},
		{"unknown version", `{"_meta":{` + version + `"x"}}`, mcp.Caller{Version: "x"}, false},
		{"all", `{"_meta":{"a":1,` + version + `"2026-07-28",` + info + `{"name":"c" },` + caps + `{ },` + level + `"info"}}`, mcp.Caller{Version: "2026-07-28", Info: jsontext.Value(`{"name":"c" }`), Capabilities: jsontext.Value(`{ }`), LogLevel: "info"}, false},
		{"without version", `{"_meta":{` + caps + `{}}}`, mcp.Caller{}, false},
		{"other letters", `{"_meta":{"io.modelcontextprotocol/ProtocolVersion":"2026-07-28"},"_Meta":{` + version + `"x"}}`, mcp.Caller{}, false},
		{"version is a number", `{"_meta":{` + version + `20260728}}`, mcp.Caller{}, true},
		{"version is null", `{"_meta":{` + version + `null}}`, mcp.Caller{}, true},
		{"_meta is a string", `{"_meta":"x"}`, mcp.Caller{}, true},
		{"_meta is an array", `{"_meta":[]}`, mcp.Caller{}, true},
		{"version twice", `{"_meta":{` + version + `"2026-07-28",` + version + `"2026-07-28"}}`, mcp.Caller{}, true},
		{"capabilities are a string", `{"_meta":{` + version + `"2026-07-28",` + caps + `"all"}}`, mcp.Caller{}, true},
		{"capabilities are null", `{"_meta":{` + version + `"2026-07-28",` + caps + `null}}`, mcp.Caller{}, true},
		{"info is a string", `{"_meta":{` + version + `"2026-07-28",` + info + `"me"}}`, mcp.Caller{}, true},
		{"level is a number", `{"_meta":{` + version + `"2026-07-28",` + level + `7}}`, mcp.Caller{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mcp.ReadCaller(params(t, tt.params))
			if (err != nil) != tt.bad || err != nil && jsonrpc.AsError(err).Code != jsonrpc.CodeInvalidParams {
				t.Fatalf("got %v", err)
			}
			if got.Version != tt.want.Version || string(got.Info) != string(tt.want.Info) || string(got.Capabilities) != string(tt.want.Capabilities) || got.LogLevel != tt.want.LogLevel {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// params returns params as a request has them; "": none.
func params(tb testing.TB, text string) jsonrpc.Object {
	tb.Helper()
	if text == "" {
		return jsonrpc.Object{}
	}
	return object(tb, text)
}

func TestSetCaller(t *testing.T) {
	modern := mcp.Caller{Version: "2026-07-28", Info: jsontext.Value(`{"name":"r"}`), Capabilities: jsontext.Value(`{"sampling":{}}`), LogLevel: "debug"}
	const said = version + `"2026-07-28",` + info + `{"name":"r"},` + caps + `{"sampling":{}},` + level + `"debug"`
	tests := []struct {
		name, from string
		caller     mcp.Caller
		want       string
	}{
		{"to nothing", ``, modern, `{"_meta":{` + said + `}}`},
		{"to params", `{ "name":"x" }`, modern, `{ "name":"x","_meta":{` + said + `} }`},
		{"to _meta", `{"_meta":{ "progressToken":0 },"name":"x"}`, modern, `{"_meta":{ "progressToken":0,` + said + ` },"name":"x"}`},
		{
			"over another", `{"_meta":{` + level + `"info","traceparent":"t",` + version + `"2026-07-28",` + info + `{},` + caps + `{}}}`, modern,
			`{"_meta":{` + level + `"debug","traceparent":"t",` + version + `"2026-07-28",` + info + `{"name":"r"},` + caps + `{"sampling":{}}}}`,
		},
		{"anonymous", `{"_meta":{` + info + `{},` + level + `"info"}}`, mcp.Caller{Version: "2026-07-28"}, `{"_meta":{` + version + `"2026-07-28",` + caps + `{}}}`},
		{"over what cannot be read", `{"_meta":7,"a":1}`, mcp.Caller{Version: "v"}, `{"_meta":{` + version + `"v",` + caps + `{}},"a":1}`},

		{"none to nothing", ``, mcp.Caller{}, ``},
		{"none", `{ "a":1 }`, mcp.Caller{}, `{ "a":1 }`},
		{"none, other _meta", `{"_meta":{ "progressToken":1.0 }}`, mcp.Caller{}, `{"_meta":{ "progressToken":1.0 }}`},
		{"none, empty _meta", `{"_meta":{ }}`, mcp.Caller{}, `{"_meta":{ }}`},
		{"removed", `{"_meta":{"progressToken":9007199254740993,` + version + `"2026-07-28",` + info + `{},` + caps + `{},` + level + `"info"},"a":1}`, mcp.Caller{}, `{"_meta":{"progressToken":9007199254740993},"a":1}`},
		{"removed with _meta", `{"name":"x","_meta":{` + version + `"2026-07-28",` + caps + `{}}}`, mcp.Caller{}, `{"name":"x"}`},
		{"removed with all", `{"_meta":{` + caps + `{}}}`, mcp.Caller{}, `{}`},
		{"server's keys stay", `{"_meta":{"io.modelcontextprotocol/serverInfo":{},"io.modelcontextprotocol/subscriptionId":"s"}}`, mcp.Caller{}, `{"_meta":{"io.modelcontextprotocol/serverInfo":{},"io.modelcontextprotocol/subscriptionId":"s"}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from := params(t, tt.from)
			got := mcp.SetCaller(from, tt.caller)
			if string(got) != tt.want || (got == nil) != (tt.want == "") {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if string(from.Raw) != tt.from {
				t.Errorf("the original became %s", from.Raw)
			}
			if tt.caller.Version == "" {
				return
			}
			read, err := mcp.ReadCaller(object(t, string(got)))
			if err != nil || read.Version != tt.caller.Version || read.LogLevel != tt.caller.LogLevel || string(read.Info) != string(tt.caller.Info) {
				t.Errorf("read again: %+v, %v", read, err)
			}
		})
	}
}

// TestMetaStaysBytes is C-100 and C-103: to a stateless server and back, all
// but the reserved keys is as it was.
func TestMetaStaysBytes(t *testing.T) {
	for _, name := range []string{"fid_bigint", "fid_presence", "mod_listen"} {
		for _, m := range fixture(t, name) {
			if m.IsResponse() {
				continue
			}
			caller, err := mcp.ReadCaller(m.Params)
			if err != nil {
				t.Fatal(err)
			}
			to := mcp.SetCaller(m.Params, mcp.Caller{Version: mcp.Latest, Info: jsontext.Value(`{"name":"roster"}`)})
			back := mcp.SetCaller(object(t, string(to)), caller)
			if string(back) != string(m.Params.Raw) {
				t.Errorf("%s\nbecame %s\nand    %s", m.Params.Raw, to, back)
			}
		}
	}
}
