package app_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// odd has what decoding and encoding again would change: members nobody knows in
// an odd order, numbers in every spelling, escapes and their absence, HTML
// (C-098, C-100, C-104), and space.
const odd = `"x-z":{"z":1.0,"a":1e400,"B":-0,"b":1E+2},"x-big":[9007199254740993,9223372036854775807,12345678901234567890,{"n":-9007199254740993}],` +
	`"x-text":"\u2028 ` + "\u2028\u2029" + ` \/ / \u003c <a href=\"x\">&</a> &amp; 你好 \u00e9 é \ud83d\ude00 😀 \b\f\n\r\t",` +
	`"x-null":null, "x-empty" : [ ] ,"\u0078-escaped":{}`

// gatewayInfo is what results say of the gateway to those who want to know.
const gatewayInfo = `"io.modelcontextprotocol/serverInfo":{"name":"roster","title":"Roster","version":"test"}`

// oracle is a server whose definitions and results are odd, and that keeps what
// it is asked.
type oracle struct {
	*mcptest.Backend
	name string
	wire string

	mu    sync.Mutex // guards asked
	asked map[string]jsonrpc.Object
}

func newOracle(name, wire string, v mcp.Version) *oracle {
	o := &oracle{Backend: &mcptest.Backend{Version: v}, name: name, wire: wire, asked: make(map[string]jsonrpc.Object)}
	o.Do = o.do
	for _, k := range mcp.Kinds {
		o.Set(k, o.definition(k, "ask", "plain"))
	}
	o.Add(mcp.Tools,
		`{"inputSchema":{"type":"object"},"name":"Ask"}`, // C-113
		`{"name":"free","outputSchema":{"type":["array","null"]},"inputSchema":{"type":"object"}}`)
	return o
}

// definition returns the definition of an item as it is listed under a name.
func (o *oracle) definition(k mcp.Kind, name, uri string) string {
	switch k {
	case mcp.Tools:
		return `{` + odd + `,"name":"` + name + `","outputSchema":{"type":"object","$defs":{"n":{"maximum":1e400}}},` +
			`"inputSchema":{"properties":{"n":{"type":"integer","default":12345678901234567890}},"type":"object"},"_meta":{"k":[1.0]}}`
	case mcp.Prompts:
		return `{"arguments":[{"name":"a","x":1.0}],` + odd + `,"name":"` + name + `"}`
	case mcp.Resources:
		return `{"name":"n","size":1.0,"uri":"` + o.uri(uri) + `",` + odd + `}`
	default:
		return `{"name":"n",` + odd + `,"uriTemplate":"` + o.uri(uri) + `/{x}"}`
	}
}

func (o *oracle) uri(path string) string { return "ui://" + o.name + "/" + path }

// members of results, without what only some versions have.
var resultMembers = map[string]string{
	mcp.MethodToolsCall: `"structuredContent":{"status":"ok","list":[],"none":null,"score":1.0,"big":9007199254740993},` + odd +
		`,"content":[{"text":"<b>","type":"text","x":1e400}],"isError":false`,
	mcp.MethodPromptsGet:    odd + `,"messages":[{"content":{"type":"text","text":"&"},"role":"user"}]`,
	mcp.MethodResourcesRead: `"contents":[{"blob":"AAEC/+8=","uri":"ui://x","mimeType":"a/b"}],` + odd,
	mcp.MethodComplete:      odd + `,"completion":{"values":["<",">"],"total":1.0}`,
}

const resultMeta = `"_meta":{"example.com/k":[1,2.0],"z":null}`

// result returns the result as the server writes it.
func (o *oracle) result(method string) string {
	if !o.Version.Stateless() {
		return `{` + resultMembers[method] + `,` + resultMeta + `}`
	}
	head := `{"resultType":"complete",`
	if method == mcp.MethodResourcesRead {
		head += `"ttlMs":5000,"cacheScope":"public",`
	}
	return head + resultMembers[method] + `,` + resultMeta + `}`
}

// seen returns the result as a client must see it.
func (o *oracle) seen(method string, client mcp.Version) string {
	if !client.Stateless() {
		return `{` + resultMembers[method] + `,` + resultMeta + `}`
	}
	out := strings.TrimSuffix(o.result(method), `}}`) + `,` + gatewayInfo + `}`
	if o.Version.Stateless() {
		return out + `}`
	}
	out += `,"resultType":"complete"`
	if method == mcp.MethodResourcesRead {
		out += `,"ttlMs":0,"cacheScope":"private"`
	}
	return out + `}`
}

func (o *oracle) do(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
	o.mu.Lock()
	o.asked[req.Method] = req.Params
	o.mu.Unlock()
	if resultMembers[req.Method] == "" {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found")
	}
	return jsontext.Value(o.result(req.Method)), nil
}

// took returns a member of the params that the server got last.
func (o *oracle) took(method, member string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.asked[method].Get(member))
}

// wires are the combinations of wire and version in which both clients and
// servers speak.
func wires() (out []struct {
	wire    string
	version mcp.Version
},
) {
	for _, wire := range []string{"pipes", "http"} {
		for _, v := range mcp.Versions() {
			if wire == "pipes" || v != mcp.V20241105 { // which had another HTTP
				out = append(out, struct {
					wire    string
					version mcp.Version
				}{wire, v})
			}
		}
	}
	return out
}

// TestMatrix has every kind of client use every kind of server: it lists, calls,
// gets, reads and completes, and every byte is compared.
func TestMatrix(t *testing.T) {
	var oracles []*oracle
	var entries []entry
	for i, w := range wires() {
		o := newOracle(fmt.Sprintf("o%d", i), w.wire, w.version)
		oracles = append(oracles, o)
		if w.wire == "pipes" {
			entries = append(entries, piped(o.name, o.OnPipes(t)))
		} else {
			entries = append(entries, remote(o.name, o.OnHTTP(t).URL))
		}
	}
	g := newGateway(t, "", entries...)
	g.ready()
	for _, s := range g.Status().Servers {
		i := indexOf(oracles, func(o *oracle) bool { return o.name == s.Name })
		if s.Protocol != string(oracles[i].Version) {
			t.Errorf("server %s speaks %s and is spoken to in %s", s.Name, oracles[i].Version, s.Protocol)
		}
	}
	for _, w := range wires() {
		t.Run("client "+w.wire+" "+string(w.version), func(t *testing.T) {
			c := g.http // of the outer test, which outlives this one
			if w.wire == "pipes" {
				c = g.pipes
			}
			client := c(w.version)
			compareLists(t, client, oracles)
			for _, o := range oracles {
				t.Run("server "+o.wire+" "+string(o.Version), func(t *testing.T) { compareResults(t, client, o) })
			}
		})
	}
}

func indexOf[T any](s []T, is func(T) bool) int {
	for i := range s {
		if is(s[i]) {
			return i
		}
	}
	return -1
}

// compareLists compares all four lists with what the servers wrote.
func compareLists(t *testing.T, c *mcptest.Caller, oracles []*oracle) {
	for _, k := range mcp.Kinds {
		var want []string
		for _, o := range oracles {
			name := "ask"
			if k == mcp.Tools || k == mcp.Prompts {
				name = o.name + "__ask"
			}
			want = append(want, o.definition(k, name, "plain"))
			if k != mcp.Tools {
				continue
			}
			free := `"outputSchema":{"type":["array","null"]},`
			if !c.Version.Stateless() {
				free = ""
			}
			want = append(want, `{"inputSchema":{"type":"object"},"name":"`+o.name+`__Ask"}`,
				`{"name":"`+o.name+`__free",`+free+`"inputSchema":{"type":"object"}}`)
		}
		got := result(t, c, k.ListMethod(), `{}`)
		text := `{"` + k.Field() + `":[` + strings.Join(want, ",") + `]}`
		if c.Version.Stateless() {
			text = `{"resultType":"complete",` + text[1:len(text)-1] +
				`,"ttlMs":0,"cacheScope":"private","_meta":{` + gatewayInfo + `}}`
		}
		if got != text {
			t.Errorf("%s:\n%s\nwant\n%s", k.ListMethod(), got, text)
		}
	}
}

// compareResults makes each kind of request and compares what the server got and
// what the client did.
func compareResults(t *testing.T, c *mcptest.Caller, o *oracle) {
	ask := `{"z":1.0,"a":{"big":[9007199254740993,1e400]},"t":"\u2028` + "\u2028" + `<&>","":null}`
	arguments := `,"arguments":` + ask
	extra := `,"x-other":1.0,"_meta":{"example.com/n":9007199254740993}`
	requests := []struct{ method, params, member, want string }{
		{mcp.MethodToolsCall, `{"name":"` + o.name + `__ask"` + arguments + extra + `}`, "arguments", ask},
		{mcp.MethodToolsCall, `{"name":"` + o.name + `__Ask"` + extra + `}`, "name", `"Ask"`}, // C-113
		{mcp.MethodToolsCall, `{"name":"` + o.name + `__ask"` + extra + `}`, "name", `"ask"`},
		{mcp.MethodPromptsGet, `{"name":"` + o.name + `__ask"` + arguments + extra + `}`, "arguments", ask},
		{mcp.MethodResourcesRead, `{"uri":"` + o.uri("plain") + `"` + extra + `}`, "uri", `"` + o.uri("plain") + `"`},
		{mcp.MethodResourcesRead, `{"uri":"` + o.uri("plain/any") + `"` + extra + `}`, "uri", `"` + o.uri("plain/any") + `"`},
		{
			mcp.MethodComplete, `{"argument":{"value":"\/","name":"a"},"ref":{"x":1.0,"name":"` + o.name + `__ask","type":"ref/prompt"}` + extra + `}`,
			"ref", `{"x":1.0,"name":"ask","type":"ref/prompt"}`,
		},
		{
			mcp.MethodComplete, `{"argument":{"value":"","name":"x"},"ref":{"type":"ref/resource","uri":"` + o.uri("plain/{x}") + `"}` + extra + `}`,
			"ref", `{"type":"ref/resource","uri":"` + o.uri("plain/{x}") + `"}`,
		},
	}
	for _, r := range requests {
		if got, want := result(t, c, r.method, r.params), o.seen(r.method, c.Version); got != want {
			t.Errorf("%s: the client got\n%s\nwant\n%s", r.method, got, want)
		}
		if got := o.took(r.method, r.member); got != r.want {
			t.Errorf("%s: the server got %s\n%s\nwant\n%s", r.method, r.member, got, r.want)
		}
		if got := o.took(r.method, "x-other"); got != "1.0" {
			t.Errorf("%s: the server got x-other %q", r.method, got)
		}
		meta, err := jsonrpc.ParseObject(jsontext.Value(o.took(r.method, "_meta")))
		if err != nil || string(meta.Get("example.com/n")) != "9007199254740993" {
			t.Errorf("%s: the server got _meta %s", r.method, meta.Raw)
		}
		caller := strings.Contains(string(meta.Raw), mcp.MetaVersion)
		if caller != o.Version.Stateless() {
			t.Errorf("%s: a server of version %s got _meta %s", r.method, o.Version, meta.Raw)
		}
	}
}

// TestPresence has arguments that are absent, null or empty arrive as such
// (C-103).
func TestPresence(t *testing.T) {
	b := &mcptest.Backend{Version: mcp.V20250618}
	b.Set(mcp.Tools, tool("echo"))
	b.Do = func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		args := req.Params.Get("arguments")
		if args.Kind() == '[' {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "arguments must be an object")
		}
		return jsontext.Value(`{"content":[],"got":[` + string(args) + `]}`), nil
	}
	g := newGateway(t, "", remote("s", b.OnHTTP(t).URL))
	for _, c := range []*mcptest.Caller{g.pipes(mcp.V20250618), g.http(mcp.Latest)} {
		for in, want := range map[string]string{
			``: ``, `{}`: `{}`, `null`: `null`, `{"a":null,"b":[]}`: `{"a":null,"b":[]}`,
			`{"id":9007199254740993,"a":[9223372036854775807,{"b":-9007199254740993}]}`: `{"id":9007199254740993,"a":[9223372036854775807,{"b":-9007199254740993}]}`, // C-100
		} {
			params := `{"name":"s__echo"}`
			if in != "" {
				params = `{"name":"s__echo","arguments":` + in + `}`
			}
			if got := result(t, c, mcp.MethodToolsCall, params); !strings.Contains(got, `"got":[`+want+`]`) {
				t.Errorf("arguments %q arrived so that the result is %s", in, got)
			}
		}
		a, err := c.Call(bounded(t), mcp.MethodToolsCall, `{"name":"s__echo","arguments":[1]}`)
		if err != nil || a.Code() != jsonrpc.CodeInvalidParams {
			t.Errorf("arguments that are an array: %+v, %v", a, err)
		}
	}
}

// TestServerErrors has errors of a server arrive as the server wrote them, and a
// tool's failure stay a result (C-106).
func TestServerErrors(t *testing.T) {
	answers := map[string]string{
		"quota":  `{"code":4242, "x":1.0,"message":"quo\u0074a","data":{"retryAfter":7,"n":9007199254740993}}`,
		"failed": `{"content":[{"type":"text","text":"tool failed"}],"isError":true}`,
	}
	missing := `{"code":-32602,"message":"Resource not found","data":{"uri":"file:///none"}}`
	old := `{"code":-32002,"message":"Resource not found","data":{"uri":"file:///old"}}`
	for _, v := range []mcp.Version{mcp.V20250326, mcp.Latest} {
		// The frames are written as they are, by no code of ours.
		socket := mcptest.NewRawSocket(t, func(m *jsonrpc.Message, write func(frame string)) {
			id := string(m.ID.Raw())
			name, _ := m.Params.Text("name")
			uri, _ := m.Params.Text("uri")
			answer := `"result":` + answers[name]
			switch {
			case m.Method == mcp.MethodDiscover && v.Stateless():
				answer = `"result":` + mcptest.Discovered(mcptest.Everything, string(v))
			case m.Method == mcp.MethodInitialize && !v.Stateless():
				answer = `"result":` + mcptest.Initialized(string(v), mcptest.Everything)
			case m.Method == mcp.MethodToolsList:
				answer = `"result":{"resultType":"complete","tools":[` + tool("quota") + `,` + tool("failed") + `]}`
			case m.Method == mcp.MethodResourcesList:
				answer = `"result":{"resources":[{"uri":"file:///none","name":"n"},{"uri":"file:///old","name":"n"}],"resultType":"complete"}`
			case uri == "file:///old":
				answer = `"error":` + old
			case uri != "":
				answer = `"error":` + missing
			case name == "quota":
				answer = `"error":` + answers[name]
			case name == "":
				answer = `"error":{"code":-32601,"message":"no"}`
			}
			if m.IsRequest() {
				write(`{"id":` + id + `,` + answer + `,"jsonrpc":"2.0"}`)
			}
		})
		g := newGateway(t, "", piped("s", socket))
		for _, c := range []*mcptest.Caller{g.pipes(mcp.V20241105), g.http(mcp.V20251125), g.http(mcp.Latest)} {
			for params, want := range map[string]string{
				`{"name":"s__quota"}`:    answers["quota"],
				`{"uri":"file:///none"}`: missing,
				`{"uri":"file:///old"}`:  old,
			} {
				method := mcp.MethodToolsCall
				if strings.Contains(params, "uri") {
					method = mcp.MethodResourcesRead
				}
				if c.Version.Stateless() {
					want = strings.Replace(want, "-32002", "-32602", 1)
				}
				a, err := c.Call(bounded(t), method, params)
				if err != nil || a.Error != want {
					t.Errorf("%s from %s to %s: %s, %v; want %s", params, v, c.Version, a.Error, err, want)
				}
			}
			if got := callTool(t, c, "s__failed"); !bytes.Contains([]byte(got), []byte(`"isError":true`)) {
				t.Errorf("a tool that failed: %s", got)
			}
		}
		g.close()
	}
}

// TestCaseVariants has members that differ from known ones in case be unknown
// ones, to the gateway as to the server (C-166).
func TestCaseVariants(t *testing.T) {
	b := &mcptest.Backend{Version: mcp.V20250618}
	b.Set(mcp.Tools, tool("ok"), tool("secret"))
	b.Do = func(_ context.Context, req *jsonrpc.Request) (jsontext.Value, error) {
		return jsontext.Value(`{"content":[],"got":` + string(req.Params.Raw) + `}`), nil
	}
	g := newGateway(t, "", remote("s", b.OnHTTP(t).URL))
	g.ready()
	c := g.http(mcp.V20250618)
	got := result(t, c, mcp.MethodToolsCall, `{"name":"s__ok","Name":"s__secret","NAME":1,"arguments":{}}`)
	if want := `{"content":[],"got":{"name":"ok","Name":"s__secret","NAME":1,"arguments":{}`; !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	for frame, want := range map[string]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","Method":"tools/call","params":{"name":"s__secret"}}`:  `"result":{"tools":`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"s__ok"},"PARAMS":{"name":"secret"}}`: `"got":{"name":"ok"`,
		`{"JSONRPC":"2.0","ID":4,"METHOD":"tools/list"}`:                                                      `"error":{"code":-32600`,
	} {
		got, err := c.Frame(bounded(t), frame)
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: %s, %v; want %s in it", frame, got, err, want)
		}
	}
}
