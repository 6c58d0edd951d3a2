package main

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestMember(t *testing.T) {
	tests := []struct {
		name, msg, key, want string
		missing              bool
	}{
		{name: "number", msg: `{"jsonrpc":"2.0","id":17,"method":"ping"}`, key: "id", want: `17`},
		{name: "string", msg: `{"id":"a\"b","method":"ping"}`, key: "id", want: `"a\"b"`},
		{name: "backslash before the quote", msg: `{"x":"\\","id":1}`, key: "id", want: `1`},
		{name: "null", msg: `{"id": null }`, key: "id", want: `null`},
		{name: "last", msg: `{"result":{"id":3,"a":["]","}"]},"id":4}`, key: "id", want: `4`},
		{name: "white space", msg: " {\n \"id\"\t: 5\r\n, \"method\" : \"ping\" } ", key: "id", want: `5`},
		{name: "nested only", msg: `{"params":{"id":3},"method":"x"}`, key: "id", missing: true},
		{name: "inside a string", msg: `{"params":"\"id\":3"}`, key: "id", missing: true},
		{name: "object", msg: `{"result":{"a":{}},"id":1}`, key: "result", want: `{"a":{}}`},
		{name: "empty object", msg: `{}`, key: "id", missing: true},
		{name: "array", msg: `[{"id":1}]`, key: "id", missing: true},
		{name: "cut off", msg: `{"id":"abc`, key: "id", missing: true},
		{name: "empty", msg: ``, key: "id", missing: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, b, ok := member([]byte(tt.msg), tt.key)
			if ok == tt.missing {
				t.Fatalf("found = %v, want %v", ok, !tt.missing)
			}
			if got := tt.msg[a:b]; ok && got != tt.want {
				t.Errorf("value = %q, want %q", got, tt.want)
			}
		})
	}
}

// FuzzMember compares the scanner with encoding/json on objects that the latter
// accepts, and looks for panics on everything else.
func FuzzMember(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":17,"method":"ping","params":{"id":[1,{"x":"}"}]}}`))
	f.Add([]byte(`{"a":"\\\"","id":"x"}`))
	f.Fuzz(func(t *testing.T, msg []byte) {
		a, b, ok := member(msg, "id")
		names := map[string]json.RawMessage{}
		if json.Unmarshal(msg, &names) != nil || bytes.ContainsRune(msg, '\\') || names == nil {
			return
		}
		want, there := names["id"]
		if ok != there {
			t.Fatalf("found = %v, want %v", ok, there)
		}
		if bytes.Count(msg, []byte(`"id"`)) == 1 && ok && string(msg[a:b]) != string(want) {
			t.Errorf("value = %q, want %q", msg[a:b], want)
		}
	})
}
