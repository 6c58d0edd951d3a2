package mcp_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-roster/roster/mcp"
)

// TestEncodeHeader has the rows of the specification's table (2026-07-28,
// basic/transports/streamable-http, Value Encoding) and what lies around them.
func TestEncodeHeader(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"plain ASCII", "us-west1", "us-west1"},
		{"non-ASCII", "Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="},
		{"spaces around", " padded ", "=?base64?IHBhZGRlZCA=?="},
		{"newline", "line1\nline2", "=?base64?bGluZTEKbGluZTI=?="},
		{"sentinels", "=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
		{"empty", "", ""},
		{"space within", "a b", "a b"},
		{"tab within", "a\tb", "a\tb"},
		{"tab behind", "a\t", "=?base64?YQk=?="},
		{"space alone", " ", "=?base64?IA==?="},
		{"carriage return", "a\r\nX: y", "=?base64?YQ0KWDogeQ==?="},
		{"NUL", "a\x00", "=?base64?YQA=?="},
		{"DEL", "a\x7f", "=?base64?YX8=?="},
		{"all of visible ASCII", `!"#$%&'()*+,-./09:;<=>?@AZ[\]^_` + "`az{|}~", `!"#$%&'()*+,-./09:;<=>?@AZ[\]^_` + "`az{|}~"},
		{"first sentinel alone", "=?base64?x", "=?base64?x"},
		{"last sentinel alone", "x?=", "x?="},
		{"nothing between", "=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="},
		{"sentinels that overlap", "=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="},
		{"sentinel in capitals", "=?BASE64?eA==?=", "=?BASE64?eA==?="},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := mcp.EncodeHeader(tt.value)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if back, err := mcp.DecodeHeader(got); back != tt.value || err != nil {
				t.Errorf("came back as %q, %v", back, err)
			}
		})
	}
}

func TestDecodeHeader(t *testing.T) {
	tests := []struct{ name, field, want, err string }{
		{"plain", "a b", "a b", ""},
		{"overlapping sentinels", "=?base64?=", "=?base64?=", ""},
		{"empty base64", "=?base64??=", "", ""},
		{"capitals", "=?Base64?eA==?=", "=?Base64?eA==?=", ""},
		{"space before the sentinel", " =?base64?eA==?=", " =?base64?eA==?=", ""},
		{"no padding", "=?base64?eA?=", "", "base64"},
		{"not base64", "=?base64?e?A=?=", "", "base64"},
		{"URL alphabet", "=?base64?__8=?=", "", "base64"},
		{"loose bits", "=?base64?eB==?=", "", "base64"},
		{"space in base64", "=?base64?eA= =?=", "", "base64"},
		{"not UTF-8", "=?base64?/w==?=", "", "UTF-8"},
		{"half a rune", "=?base64?5Lg=?=", "", "UTF-8"},
		{"raw non-ASCII", "é", "", "characters"},
		{"raw bytes", "\xff", "", "characters"},
		{"newline", "a\nb", "", "characters"},
		{"newline in base64", "=?base64?eA\n==?=", "", "characters"},
		{"NUL", "\x00", "", "characters"},
		{"DEL", "\x7f", "", "characters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mcp.DecodeHeader(tt.field)
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func FuzzHeader(f *testing.F) {
	for _, s := range []string{"", "a", " a", "=?base64?eA==?=", "=?base64?=", "世界", "a\r\nb", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if v, err := mcp.DecodeHeader(s); err == nil && !utf8.ValidString(v) {
			t.Errorf("%q was read as %q", s, v)
		}
		if !utf8.ValidString(s) {
			return
		}
		field := mcp.EncodeHeader(s)
		for _, c := range []byte(field) {
			if c != '\t' && (c < ' ' || c > '~') {
				t.Fatalf("%q is written as %q", s, field)
			}
		}
		if strings.Trim(field, " \t") != field {
			t.Errorf("%q is written as %q", s, field)
		}
		if got, err := mcp.DecodeHeader(field); got != s || err != nil {
			t.Errorf("%q came back as %q, %v", s, got, err)
		}
	})
}

func TestNameMember(t *testing.T) {
	for method, want := range map[string]string{
		mcp.MethodToolsCall: "name", mcp.MethodPromptsGet: "name", mcp.MethodResourcesRead: "uri",
		mcp.MethodTasksGet: "taskId", mcp.MethodTasksUpdate: "taskId", mcp.MethodTasksCancel: "taskId",
		mcp.MethodToolsList: "", mcp.MethodDiscover: "", mcp.MethodListen: "", "": "",
	} {
		if got := mcp.NameMember(method); got != want {
			t.Errorf("%s: %q, want %q", method, got, want)
		}
	}
}
