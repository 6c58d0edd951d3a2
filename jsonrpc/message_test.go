package jsonrpc_test

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name, data string
		kind       string // request, notification or response
		id         string // JSON text, "" for none
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, "request", "1"},
		{"without params", `{"jsonrpc":"2.0","id":1,"method":"m"}`, "request", "1"},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"m","params":null}`, "request", "1"},
		{"any order, white space", " {\"params\":{\"a\":[ ]}\r\n,\t\"method\" : \"m\" ,\"id\":-7,\"jsonrpc\":\"2.0\"} \n", "request", "-7"},
		{"unknown members", `{"jsonrpc":"2.0","id":1,"method":"m","extra":{"a":1,"a":2},"extra":1}`, "request", "1"},
		{"escaped names", `{"json\u0072pc":"2.0","\u0069d":1,"metho\u0064":"\u006d"}`, "request", "1"},
		{"notification", `{"jsonrpc":"2.0","method":"m","params":{}}`, "notification", ""},
		{"result", `{"jsonrpc":"2.0","id":"x","result":{}}`, "response", `"x"`},
		{"result that is no object", `{"jsonrpc":"2.0","id":"x","result":[1]}`, "response", `"x"`},
		{"result with a name twice", `{"jsonrpc":"2.0","id":"x","result":{"a":1,"a":2}}`, "response", `"x"`},
		{"error", `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":""}}`, "response", `"x"`},
		{"error without id", `{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`, "response", ""},
		{"error with null id", `{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`, "response", ""},
		{"big id", `{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"m"}`, "request", "123456789012345678901234567890"},
		{"minus zero", `{"jsonrpc":"2.0","id":-0,"method":"m"}`, "request", "-0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := jsonrpc.Parse([]byte(tt.data))
			if err != nil {
				t.Fatal(err)
			}
			got := map[bool]string{m.IsRequest(): "request", m.IsNotification(): "notification", m.IsResponse(): "response"}[true]
			if got != tt.kind || m.ID.String() != tt.id || m.ID.IsZero() != (tt.id == "") {
				t.Errorf("got a %s with id %s", got, m.ID)
			}
			if !m.IsResponse() && m.Method != "m" {
				t.Errorf("method is %q", m.Method)
			}
		})
	}
}

// TestParseErrors has rows 5 and 6 of the checks on a POST, and C-094.
func TestParseErrors(t *testing.T) {
	const invalid, params, syntax = jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidParams, jsonrpc.CodeParse
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	tests := []struct {
		name, data string
		code       int
		id, method string
		answer     bool // was meant as a response
	}{
		{"nothing", ``, syntax, "", "", false},
		{"white space", "\n", syntax, "", "", false},
		{"text", `hello`, syntax, "", "", false},
		{"half", `{"jsonrpc":"2.0","id":5,"method":`, syntax, "5", "", false},
		{"half, after the method", `{"jsonrpc":"2.0","method":"m","id":5,"params":{`, syntax, "5", "m", false},
		{"half a result", `{"jsonrpc":"2.0","id":5,"result":{`, syntax, "5", "", true},
		{"two messages", `{"jsonrpc":"2.0","id":5,"method":"m"}{}`, syntax, "5", "m", false},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\xff\"}", syntax, "5", "", false},
		{"lone surrogate", `{"jsonrpc":"2.0","id":5,"method":"m","params":{"a":"\ud800"}}`, syntax, "5", "m", false},
		{"comment", `{"jsonrpc":"2.0",/**/"id":5,"method":"m"}`, syntax, "", "", false},
		{"broken batch", `[{"jsonrpc":"2.0"`, syntax, "", "", false},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"m"}]`, invalid, "", "", false},
		{"number", `7`, invalid, "", "", false},
		{"null", `null`, invalid, "", "", false},
		{"string", `"x"`, invalid, "", "", false},
		{"empty object", `{}`, invalid, "", "", true},
		{"no version", `{"id":5,"method":"m"}`, invalid, "5", "m", false},
		{"version 1.0", `{"jsonrpc":"1.0","id":5,"method":"m"}`, invalid, "5", "m", false},
		{"version is a number", `{"jsonrpc":2.0,"id":5,"method":"m"}`, invalid, "5", "m", false},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`, invalid, "", "m", false},
		{"object id", `{"jsonrpc":"2.0","id":{},"method":"m"}`, invalid, "", "m", false},
		{"array id", `{"jsonrpc":"2.0","id":[1],"method":"m"}`, invalid, "", "m", false},
		{"boolean id", `{"jsonrpc":"2.0","id":true,"method":"m"}`, invalid, "", "m", false},
		{"fraction id", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, invalid, "", "m", false},
		{"whole fraction id", `{"jsonrpc":"2.0","id":1.0,"method":"m"}`, invalid, "", "m", false},
		{"exponent id", `{"jsonrpc":"2.0","id":1e3,"method":"m"}`, invalid, "", "m", false},
		{"result with null id", `{"jsonrpc":"2.0","id":null,"result":{}}`, invalid, "", "", true},
		{"result without id", `{"jsonrpc":"2.0","result":{}}`, invalid, "", "", true},
		{"method is a number", `{"jsonrpc":"2.0","id":5,"method":1}`, invalid, "5", "", false},
		{"method is null", `{"jsonrpc":"2.0","id":5,"method":null}`, invalid, "5", "", false},
		{"method is empty", `{"jsonrpc":"2.0","id":5,"method":""}`, invalid, "5", "", false},
		{"method and result", `{"jsonrpc":"2.0","id":5,"method":"m","result":{}}`, invalid, "5", "m", false},
		{"method and error", `{"jsonrpc":"2.0","id":5,"method":"m","error":{}}`, invalid, "5", "m", false},
		{"result and error", `{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":""}}`, invalid, "5", "", true},
		{"neither", `{"jsonrpc":"2.0","id":5}`, invalid, "5", "", true},
		{"method in other letters", `{"jsonrpc":"2.0","id":5,"Method":"m"}`, invalid, "5", "", true},
		{"id twice", `{"jsonrpc":"2.0","id":5,"id":5,"method":"m"}`, invalid, "", "m", false},
		{"id twice, one escaped", `{"jsonrpc":"2.0","id":5,"i\u0064":6,"method":"m"}`, invalid, "", "m", false},
		{"method twice", `{"jsonrpc":"2.0","id":5,"method":"m","method":"n"}`, invalid, "5", "n", false},
		{"params twice", `{"jsonrpc":"2.0","id":5,"method":"m","params":{},"params":{}}`, invalid, "5", "m", false},
		{"result twice", `{"jsonrpc":"2.0","id":5,"result":1,"result":1}`, invalid, "5", "", true},
		{"version twice", `{"jsonrpc":"2.0","jsonrpc":"2.0","id":5,"method":"m"}`, invalid, "5", "m", false},
		{"params is an array", `{"jsonrpc":"2.0","id":5,"method":"m","params":[1]}`, params, "5", "m", false},
		{"params is a string", `{"jsonrpc":"2.0","id":5,"method":"m","params":"x"}`, params, "5", "m", false},
		{"params of a notification", `{"jsonrpc":"2.0","method":"m","params":false}`, params, "", "m", false},
		{"name twice in params", `{"jsonrpc":"2.0","params":{"name":"a","name":"b"},"id":5,"method":"m"}`, params, "5", "m", false},
		{"name twice in params, escaped", `{"jsonrpc":"2.0","params":{"name":"a","n\u0061me":"b"},"id":5,"method":"m"}`, params, "5", "m", false},
		{"name twice in long params", `{"jsonrpc":"2.0","params":{` + members(40) + `,"k7":1},"id":5,"method":"m"}`, params, "5", "m", false},
		{"too many params", `{"jsonrpc":"2.0","params":{` + members(1<<16+1) + `},"id":5,"method":"m"}`, params, "5", "m", false},
		{"too large a result", `{"jsonrpc":"2.0","result":{` + members(1<<16+1) + `},"id":5}`, invalid, "5", "", true},
		{"too deep", `{"jsonrpc":"2.0","method":"m","params":{"x":` + deep + `},"id":5}`, invalid, "5", "m", false},
		{"too deep, in an unknown member", `{"jsonrpc":"2.0","method":"m","x":` + deep + `,"id":5}`, invalid, "5", "m", false},
		{"too deep a result", `{"jsonrpc":"2.0","result":` + deep + `,"id":5}`, invalid, "5", "", true},
		{"too deep a batch", deep, invalid, "", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := jsonrpc.Parse([]byte(tt.data))
			var e *jsonrpc.Error
			if !errors.As(err, &e) || e.Code != tt.code || e.FromPeer() {
				t.Fatalf("got %+v, %v", m, err)
			}
			if m.ID.String() != tt.id || m.Method != tt.method || (m.Error != nil) != tt.answer {
				t.Errorf("%v: got id %q, method %q, error %v", err, m.ID, m.Method, m.Error)
			}
			if !m.Params.IsZero() || !m.Result.IsZero() {
				t.Errorf("a refused message has %q and %q", m.Params.Raw, m.Result.Raw)
			}
		})
	}
}

// members returns n members with different names.
func members(n int) string {
	b := make([]byte, 0, 16*n)
	for i := range n {
		b = append(b, `,"k`...)
		b = strconv.AppendInt(b, int64(i), 10)
		b = append(b, `":`...)
		b = strconv.AppendInt(b, int64(i), 10)
	}
	return string(b[1:])
}

// TestIDsComeBack is C-089 and C-091: an id is written as it was read.
func TestIDsComeBack(t *testing.T) {
	for _, line := range append(fixtureLines(t, "ids_strings"), fixtureLines(t, "ids_zero")[0]) {
		m, err := jsonrpc.Parse([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		id := line[len(`{"jsonrpc":"2.0","id":`):strings.Index(line, `,"method"`)]
		for _, got := range [][]byte{
			jsonrpc.AppendResult(nil, m.ID, jsontext.Value("{}")),
			jsonrpc.AppendError(nil, m.ID, jsonrpc.Errorf(1, "x")),
			jsonrpc.AppendRequest(nil, m.ID, "x", nil),
		} {
			if !bytes.HasPrefix(got, []byte(`{"jsonrpc":"2.0","id":`+id+`,`)) {
				t.Errorf("%s is answered with %s", line, got)
			}
		}
	}
}

// TestNullIDs is C-094.
func TestNullIDs(t *testing.T) {
	want := []int{jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidRequest, jsonrpc.CodeParse, 0}
	for i, line := range fixtureLines(t, "ids_null") {
		m, err := jsonrpc.Parse([]byte(line))
		if want[i] == 0 {
			if err != nil || !m.IsNotification() {
				t.Errorf("%s: got %+v, %v", line, m, err)
			}
			continue
		}
		if err == nil || jsonrpc.AsError(err).Code != want[i] {
			t.Errorf("%s: %v", line, err)
		}
		reply := jsonrpc.AppendError(nil, m.ID, jsonrpc.AsError(err))
		if bytes.Contains(reply, []byte("null,")) || m.ID.IsZero() == bytes.Contains(reply, []byte(`"id":`)) {
			t.Errorf("%s is answered with %s", line, reply)
		}
	}
}

// TestNamesMatchExactly is C-166.
func TestNamesMatchExactly(t *testing.T) {
	lines := fixtureLines(t, "sec_case_keys")
	for i, want := range []struct{ method, name string }{{"tools/list", "secret"}, {"tools/call", "ok"}, {"tools/call", "ok"}} {
		m, err := jsonrpc.Parse([]byte(lines[i]))
		name, _ := m.Params.Text("name")
		if err != nil || m.Method != want.method || name != want.name {
			t.Errorf("%s: method %s, name %s, %v", lines[i], m.Method, name, err)
		}
	}
	if m, err := jsonrpc.Parse([]byte(lines[3])); err == nil {
		t.Errorf("%s: accepted as %+v", lines[3], m)
	}
}

// TestBatch is C-205 on this level: a batch is told apart, and its messages can
// be taken out.
func TestBatch(t *testing.T) {
	for i, line := range fixtureLines(t, "ver_batch") {
		if _, err := jsonrpc.Parse([]byte(line)); !errors.Is(err, jsonrpc.ErrBatch) {
			t.Errorf("%s: %v", line, err)
		}
		got, err := jsonrpc.Elements([]byte(line))
		if want := []int{0, 2, 1}[i]; err != nil || len(got) != want {
			t.Errorf("%s: %d messages, %v", line, len(got), err)
		}
	}
}

// TestExplosiveMessages is C-164: refused or read, in bounded time.
func TestExplosiveMessages(t *testing.T) {
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"echo","arguments":{"x":` + arguments + `}},"id":1}`
	}
	keys := members(1_000_000)
	some := keys[:strings.Index(keys, `,"k100000"`)]
	tests := []struct {
		name, data string
		code       int
	}{
		{"arrays", call(strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)), jsonrpc.CodeInvalidRequest},
		{"objects", call(strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000)), jsonrpc.CodeInvalidRequest},
		{"arrays that do not end", call(strings.Repeat("[", 1_000_000)), jsonrpc.CodeParse},
		{"arrays that end as objects", call(strings.Repeat("[", 100_000) + strings.Repeat("}", 100_000)), jsonrpc.CodeParse},
		{"below", call("{" + keys + "}"), 0},
		{"in params", `{"jsonrpc":"2.0","method":"m","params":{` + some + `},"id":1}`, jsonrpc.CodeInvalidParams},
		{"in the envelope", `{"jsonrpc":"2.0","method":"m",` + some + `,"id":1}`, 0},
		{"backslashes", call(`"` + strings.Repeat(`\\`, 1_000_000) + `"`), 0},
		{"a long number", call(strings.Repeat("9", 1_000_000)), 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			begin := time.Now()
			m, err := jsonrpc.Parse([]byte(tt.data))
			if took := time.Since(begin); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			switch {
			case tt.code == 0:
				if err != nil {
					t.Error(err)
				}
			case err == nil || jsonrpc.AsError(err).Code != tt.code:
				t.Errorf("got %v", err)
			}
			if tt.code != jsonrpc.CodeParse && m.ID != jsonrpc.IntID(1) {
				t.Errorf("the id is %v", m.ID)
			}
		})
	}
}

// TestValuesStayBytes is C-098, C-100, C-103 and C-104: whatever a message
// carries is written as it was read.
func TestValuesStayBytes(t *testing.T) {
	for _, line := range slices.Concat(fixtureLines(t, "fid_*"), []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"n":1.0,"N":1E400,"z":-0,"s":"\u003c\/é\ud83d\ude00","e":{ } , "a":[ 1,2 ]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2,"":3}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"message":"\u0041","code":-1,"extra":1.50,"data":null}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1.0,"message":"","code":1}}`,
	}) {
		m, err := jsonrpc.Parse([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if got := string(write(m)); got != line {
			t.Errorf("read %s\nwrote %s", line, got)
		}
	}
}

// TestPresence is C-103: absent, null and empty are three things.
func TestPresence(t *testing.T) {
	want := []string{"", "{}", "null", `{"a":null,"b":[]}`, "[1]"}
	for i, line := range fixtureLines(t, "fid_presence") {
		m, err := jsonrpc.Parse([]byte(line))
		got := m.Params.Get("arguments")
		if err != nil || string(got) != want[i] || (got == nil) != (i == 0) {
			t.Errorf("%s: arguments are %q, %v", line, got, err)
		}
	}
}

// TestParseAllocates: a message costs its index and its two strings.
func TestParseAllocates(t *testing.T) {
	texts := benchmarkTexts()
	for _, name := range []string{"request/100B", "response/100B", "request/10KiB-data", "response/1MiB-text"} {
		data := texts[name]
		got := testing.AllocsPerRun(10, func() {
			if _, err := jsonrpc.Parse(data); err != nil {
				t.Fatal(err)
			}
		})
		if got > 2 {
			t.Errorf("%s: %v allocations", name, got)
		}
	}
}
