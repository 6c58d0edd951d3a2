package clientfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/clientfile"
)

// An edit of JSON changes what it is about, and not a byte beside.
func TestEditJSON(t *testing.T) {
	type file = clientfile.File
	set := func(name, entry string) func(*file) error {
		return func(f *file) error { return f.Set(name, []byte(entry)) }
	}
	remove := func(name string) func(*file) error { return func(f *file) error { return f.Remove(name) } }
	tests := []struct {
		name     string
		in, want string
		edit     func(*file) error
	}{
		{
			"into nothing", "", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"x\"\n    }\n  }\n}\n",
			set("new", `{"command":"x"}`),
		},
		{"into an empty object", `{}`, "{\n  \"mcpServers\": {\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}", set("new", `{"a":1}`)},
		{"into an empty map", "{\n  \"mcpServers\": {}\n}\n", "{\n  \"mcpServers\": {\n    \"new\": {\n      \"a\": 1\n    }\n  }\n}\n", set("new", `{"a":1}`)},
		{
			"behind lines of one entry each", "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"} // the first\n  }\n}",
			"{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}, // the first\n    \"new\": { \"command\": \"x\", \"args\": [\"a\", \"b\"] }\n  }\n}",
			set("new", `{"command":"x","args":["a","b"]}`),
		},
		{
			"behind a trailing comma", "{\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"x\": 1,\n\t\t},\n\t\t// end\n\t},\n}",
			"{\n\t\"mcpServers\": {\n\t\t\"a\": {\n\t\t\t\"x\": 1,\n\t\t},\n\t\t// end\n\t\t\"new\": {\n\t\t\t\"a\": 1\n\t\t},\n\t},\n}",
			set("new", `{"a":1}`),
		},
		{"without line breaks", `{"mcpServers":{"a":{}},"x":1}`, `{"mcpServers":{"a":{},"new": { "a": 1 }},"x":1}`, set("new", `{"a":1}`)},
		{"CRLF", "{\r\n \"mcpServers\": {\r\n  \"a\": {}\r\n }\r\n}", "{\r\n \"mcpServers\": {\r\n  \"a\": {},\r\n  \"new\": {\r\n   \"a\": 1\r\n  }\r\n }\r\n}", set("new", `{"a":1}`)},
		{"byte order mark", "\ufeff{\"mcpServers\": {\"a\": {}}}", "\ufeff{\"mcpServers\": {\"a\": {}, \"new\": { \"b\": 1 }}}", set("new", `{"b":1}`)},
		{"null for a map", "{\n  \"mcpServers\": null\n}", "{\n  \"mcpServers\": {\n    \"new\": {}\n  }\n}", set("new", `{}`)},
		{"a comment in the way", "{\"mcpServers\": {\"a\": {} // last\n}}", "{\"mcpServers\": {\"a\": {}, // last\n \"new\": { \"b\": 1 }\n}}", set("new", `{"b":1}`)},
		{
			"an entry of several lines", "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}",
			"{\n  \"mcpServers\": {\n    \"a\": {},\n    \"new\": {\n      // why\n      \"a\": 1\n    }\n  }\n}",
			set("new", "{\n\t\t// why\n\t\t\"a\": 1\n\t}"),
		},
		{"in the place of another", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"x\": 1\n    }, // a\n    \"b\": {}\n  }\n}", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"y\": 2\n    }, // a\n    \"b\": {}\n  }\n}", set("a", `{"y":2}`)},
		{"an array", "{\"mcpServers\": [{\"name\": \"a\"}]}", "{\"mcpServers\": [{\"name\": \"a\"}, { \"name\": \"new\", \"b\": 1 }]}", set("new", `{"b":1}`)},

		{"remove the first", "{\n  \"mcpServers\": {\n    // one\n    \"a\": {}, // a\n    // two\n    \"b\": {}\n  }\n}", "{\n  \"mcpServers\": {\n    // one\n    // two\n    \"b\": {}\n  }\n}", remove("a")},
		{"remove the last", "{\n  \"mcpServers\": {\n    \"a\": {}, // a\n    \"b\": {} // b\n  }\n}", "{\n  \"mcpServers\": {\n    \"a\": {} // a\n  }\n}", remove("b")},
		{"remove the last with its comma", "{\n  \"mcpServers\": {\n    \"a\": {},\n    \"b\": {},\n  }\n}", "{\n  \"mcpServers\": {\n    \"a\": {},\n  }\n}", remove("b")},
		{"remove the only one", "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}", "{\n  \"mcpServers\": {}\n}", remove("a")},
		{"remove within a line", `{"mcpServers": {"a": {}, "b": {}, "c": {}}}`, `{"mcpServers": {"a": {}, "c": {}}}`, remove("b")},
		{"remove the first within a line", `{"mcpServers": {"a": {}, "b": {}}}`, `{"mcpServers": {"b": {}}}`, remove("a")},
		{"remove what stands twice", `{"mcpServers": {"a": {}, "b": {}, "a": {"x":1}}}`, `{"mcpServers": {"b": {}}}`, remove("a")},
		{"remove from an array", `{"mcpServers": [{"name": "a"}, {"name": "b"}]}`, `{"mcpServers": [{"name": "a"}]}`, remove("b")},

		{"rename", "{\"mcpServers\": {\"a\" : {}, // x\n\"b\": {}}}", "{\"mcpServers\": {\"c\" : {}, // x\n\"b\": {}}}", func(f *file) error { return f.Rename("a", "c") }},
		{"rename in an array", `{"mcpServers": [{"command": "x", "name": "a"}]}`, `{"mcpServers": [{"command": "x", "name": "c"}]}`, func(f *file) error { return f.Rename("a", "c") }},
		{"a field", "{\"servers\": {\"a\": {\"disabled\": false /* for now */}}}", "{\"servers\": {\"a\": {\"disabled\": true /* for now */}}}", func(f *file) error { return f.SetField("a", "disabled", []byte("true")) }},
		{"a new field", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n    }\n  }\n}", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"disabled\": true\n    }\n  }\n}", func(f *file) error { return f.SetField("a", "disabled", []byte("true")) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkEdit(t, clientfile.JSON, tt.in, tt.want, tt.edit)
		})
	}
}

func checkEdit(t *testing.T, format clientfile.Format, in, want string, edit func(*clientfile.File) error) {
	t.Helper()
	f, err := clientfile.Parse(format, "", []byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if err := edit(f); err != nil {
		t.Fatal(err)
	}
	if got := string(f.Bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestEditTOML(t *testing.T) {
	tests := []struct {
		name, in, want string
		edit           func(*clientfile.File) error
	}{
		{
			"into nothing", "", "[mcp_servers.new]\ncommand = \"x\"\nargs = [\"a\"]\nenv = { \"a b\" = \"c\\\\d\" }\n",
			func(f *clientfile.File) error {
				return f.Set("new", []byte(`{"command":"x","args":["a"],"env":{"a b":"c\\d"}}`))
			},
		},
		{
			"behind everything", "model = \"x\"\n\n[tui]\na = 1", "model = \"x\"\n\n[tui]\na = 1\n\n[mcp_servers.new]\nurl = \"u\"\n",
			func(f *clientfile.File) error { return f.Set("new", []byte(`{"url":"u"}`)) },
		},
		{
			"in the place of another", "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a.env]\nA = \"1\"\n\n# b\n[b]\n", "[mcp_servers.a]\ncommand = \"y\"\n\n# b\n[b]\n",
			func(f *clientfile.File) error { return f.Set("a", []byte(`{"command":"y"}`)) },
		},
		{
			"remove with what is in it", "[x]\n\n[mcp_servers.a]\ncommand = \"\"\"\n[no]\n\"\"\"\n\n[mcp_servers.a.env]\nA = \"1\" # one\n\n# b\n[b]\n", "[x]\n\n# b\n[b]\n",
			func(f *clientfile.File) error { return f.Remove("a") },
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkEdit(t, clientfile.TOML, tt.in, tt.want, tt.edit)
		})
	}
}

// What cannot be edited is refused, and stays as it was.
func TestEditRefused(t *testing.T) {
	tests := []struct {
		name   string
		format clientfile.Format
		in     string
		edit   func(*clientfile.File) error
		want   string
	}{
		{"not JSON", clientfile.JSON, "{\n  secret", nil, "line 2, column 3"},
		{"not an object", clientfile.JSON, "[]", nil, "not an object"},
		{"too deep", clientfile.JSON, strings.Repeat("[", 1000), nil, "nested"},
		{"not TOML", clientfile.TOML, "a = 1\nsecret", nil, "line 2"},
		{"no server", clientfile.JSON, "{}", func(f *clientfile.File) error { return f.Remove("a") }, "no such server"},
		{"a name that is taken", clientfile.JSON, `{"mcpServers": {"a": {}, "b": {}}}`, func(f *clientfile.File) error { return f.Rename("a", "b") }, "already"},
		{"a map that is none", clientfile.JSON, `{"mcpServers": 7}`, func(f *clientfile.File) error { return f.Set("a", []byte("{}")) }, "neither an object nor an array"},
		{"an inline table", clientfile.TOML, "mcp_servers = { a = { command = \"x\" } }\n", func(f *clientfile.File) error { return f.Remove("a") }, "by hand"},
		{"beside an inline table", clientfile.TOML, "mcp_servers = { a = { command = \"x\" } }\n", func(f *clientfile.File) error { return f.Set("b", []byte("{}")) }, "by hand"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f, err := clientfile.Parse(tt.format, "", []byte(tt.in))
			if err == nil && tt.edit != nil {
				err = tt.edit(f)
				if got := string(f.Bytes()); got != tt.in {
					t.Errorf("the text became %q", got)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want one with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the text: %v", err)
			}
		})
	}
}

// fixture returns the file of a client as the client writes it.
func fixture(t *testing.T, c clientfile.Client) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "clients", c.Name+"."+string(c.Format)))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// An entry that is added and taken out again leaves each client's file as it was,
// without any help of a copy.
func TestThereAndBack(t *testing.T) {
	for _, c := range clientfile.Clients() {
		for _, target := range []clientfile.Target{{Command: "/opt/roster", Args: []string{"serve", "--stdio"}}, {URL: "http://127.0.0.1:7678/mcp?a=b&c"}} {
			entry, err := c.Entry(target)
			if c.Name == "claude-desktop" && target.URL != "" {
				if err == nil || !strings.Contains(err.Error(), "Claude Desktop reads no URLs") {
					t.Errorf("%s: %v", c.Name, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			raw := fixture(t, c)
			f, err := clientfile.Parse(c.Format, c.Servers, raw)
			if err != nil {
				t.Fatal(err)
			}
			names := f.Names()
			if len(names) != 2 {
				t.Fatalf("%s: servers %q", c.Name, names)
			}
			if err := f.Set("roster", entry); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if got := f.Names(); !slices.Equal(got, append(names, "roster")) {
				t.Errorf("%s: servers %q", c.Name, got)
			}
			if bytes.Equal(f.Bytes(), raw) {
				t.Errorf("%s: nothing was written", c.Name)
			}
			if err := f.Remove("roster"); err != nil {
				t.Fatalf("%s: %v", c.Name, err)
			}
			if !bytes.Equal(f.Bytes(), raw) {
				t.Errorf("%s: it became\n%s", c.Name, f.Bytes())
			}
		}
	}
}

// FuzzJSON: whatever the text, an edit leaves one that is read, in which only that
// entry differs.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"mcpServers":{}}`, "{ // x\n}", "{\"mcpServers\": { // none\n }}", "{\"mcpServers\": [ /* a */ ]}",
		"{\"mcpServers\": {\"a\": {} // a\n,}}", "{\"mcpServers\": {\"a\": {}, /* b */ \"b\": [] /* c */ , }, }", "\ufeff{\r\n}",
		`{"servers": {"a": {"x": "//"}}, "x": 1}`, "{\"mcpServers\": [{\"name\": \"a\"}, // x\n]}", `{"mcpServers": null}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := clientfile.Parse(clientfile.JSON, "", []byte(text))
		if err != nil {
			return
		}
		names := file.Names()
		if slices.Contains(names, "new") {
			return
		}
		entries := func() [][]byte {
			var all [][]byte
			for _, n := range names {
				e, _ := file.Entry(n)
				all = append(all, bytes.Clone(e))
			}
			return all
		}
		before := entries()
		if file.Set("new", []byte(`{"command":"x","args":["{","//"]}`)) != nil {
			return
		}
		if got := file.Names(); !slices.Equal(got, append(slices.Clone(names), "new")) {
			t.Fatalf("servers %q, then %q", names, got)
		}
		if err := file.Remove("new"); err != nil {
			t.Fatal(err)
		}
		if got := file.Names(); !slices.Equal(got, names) || !slices.EqualFunc(before, entries(), bytes.Equal) {
			t.Fatalf("servers %q, then %q", names, got)
		}
	})
}

// FuzzTOML is FuzzJSON for TOML, in which not everything can be edited.
func FuzzTOML(f *testing.F) {
	for _, seed := range []string{
		"", "a = 1", "[mcp_servers.a]\ncommand = \"x\"\n[mcp_servers.a.env]\nA = '1'\n", "mcp_servers = {}", "[mcp_servers]\na.command = 'x'\r\n",
		"x = \"\"\"\n[mcp_servers.b]\n\"\"\"\n\n[[mcp_servers.l]]\n", "[mcp_servers.\"a b\"] # c\n\n\n[z]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := clientfile.Parse(clientfile.TOML, "mcp_servers", []byte(text))
		if err != nil {
			return
		}
		names := file.Names()
		if slices.Contains(names, "new") {
			return
		}
		if file.Set("new", []byte(`{"command":"x","args":["[y]","\"\"\""],"env":{"a.b":"c"}}`)) != nil {
			return
		}
		if len(file.Names()) != len(names)+1 {
			t.Fatalf("servers %q, then %q", names, file.Names())
		}
		if err := file.Remove("new"); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(file.Names(), names) {
			t.Fatalf("servers %q, then %q", names, file.Names())
		}
		if got := string(file.Bytes()); strings.HasSuffix(text, "\n") && got != text {
			t.Fatalf("got %q, want %q", got, text)
		}
	})
}
