package config_test

import (
	"reflect"
	"testing"

	"github.com/mcp-roster/roster/internal/config"
)

func TestCompare(t *testing.T) {
	const base = `{"mcpServers":{"a":{"command":"x"},"b":{"url":"http://h/mcp"},"c":{"command":"z"}}}`
	for name, c := range map[string]struct {
		next string
		want config.Changes
	}{
		"nothing":             {base, config.Changes{}},
		"only the layout":     {"\n\n" + `{"mcpServers":{"a":{"command":"x"}, "b":{"url":"http://h/mcp"},"c":{"command":"z"}}}`, config.Changes{}},
		"added and removed":   {`{"mcpServers":{"a":{"command":"x"},"d":{"command":"y"},"c":{"command":"z"}}}`, config.Changes{Added: []string{"d"}, Removed: []string{"b"}}},
		"switched off":        {`{"mcpServers":{"a":{"command":"x","disabled":true},"b":{"url":"http://h/mcp"},"c":{"command":"z"}}}`, config.Changes{Removed: []string{"a"}}},
		"another URL":         {`{"mcpServers":{"a":{"command":"x"},"b":{"url":"http://h/other"},"c":{"command":"z"}}}`, config.Changes{Restarted: []string{"b"}}},
		"a timeout":           {`{"mcpServers":{"a":{"command":"x","timeout":"1s"},"b":{"url":"http://h/mcp"},"c":{"command":"z"}}}`, config.Changes{Restarted: []string{"a"}}},
		"the timeout of all":  {base[:len(base)-1] + `,"roster":{"requestTimeout":"1s"}}`, config.Changes{Restarted: []string{"a", "b", "c"}}},
		"a prefix":            {`{"mcpServers":{"a":{"command":"x","prefix":""},"b":{"url":"http://h/mcp"},"c":{"command":"z"}}}`, config.Changes{Adjusted: []string{"a"}}},
		"another order":       {`{"mcpServers":{"b":{"url":"http://h/mcp"},"a":{"command":"x"},"c":{"command":"z"}}}`, config.Changes{Reordered: true}},
		"settings":            {base[:len(base)-1] + `,"roster":{"tlsCert":"/c","tlsKey":"/k","sse":false,"pageItems":3}}`, config.Changes{Settings: []string{"pageItems", "sse", "tlsCert", "tlsKey"}}},
		"a setting that runs": {base[:len(base)-1] + `,"roster":{"startupWait":"1s"}}`, config.Changes{}},
	} {
		old, next := read(t, base), read(t, c.next)
		got := config.Compare(old, next)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		c.want.Settings = nil
		if got.Servers() != !reflect.DeepEqual(c.want, config.Changes{}) {
			t.Errorf("%s: Servers is %v", name, got.Servers())
		}
	}
}

// read returns the configuration in a file with this content.
func read(t *testing.T, text string) *config.Config {
	t.Helper()
	c, _, err := config.Load(write(t, text), func(string) (string, bool) { return "/s", true })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFingerprint changes fields of a server, secret ones among them: each gives
// another fingerprint. The layout of the file does not.
func TestFingerprint(t *testing.T) {
	seen := make(map[string]string)
	for _, text := range []string{
		`{"mcpServers":{}}`,
		`{"mcpServers":{"a":{"url":"http://h/mcp"}}}`,
		`{"mcpServers":{"b":{"url":"http://h/mcp"}}}`,
		`{"mcpServers":{"a":{"url":"http://h/mcp","headers":{"X":"1"}}}}`,
		`{"mcpServers":{"a":{"url":"http://h/mcp","headers":{"X":"2"}}}}`,
		`{"mcpServers":{"a":{"url":"http://h/mcp","bearer":"one"}}}`,
		`{"mcpServers":{"a":{"url":"http://h/mcp","bearer":"two"}}}`,
		`{"mcpServers":{"a":{"url":"http://h/mcp","oauth":{"clientId":"i","clientSecret":"one"}}}}`,
		`{"mcpServers":{"a":{"url":"http://h/mcp","oauth":{"clientId":"i","clientSecret":"two"}}}}`,
		`{"mcpServers":{"a":{"command":"x","args":["ab"]}}}`,
		`{"mcpServers":{"a":{"command":"x","args":["a","b"]}}}`,
		`{"mcpServers":{"a":{"command":"x","timeout":"1s"}}}`,
		`{"mcpServers":{"a":{"command":"x","inheritEnv":true}}}`,
		`{"mcpServers":{"a":{"command":"x"},"b":{"command":"x"}}}`,
		`{"mcpServers":{"b":{"command":"x"},"a":{"command":"x"}}}`,
	} {
		c := read(t, text)
		got := c.Fingerprint()
		if other, ok := seen[got]; ok {
			t.Errorf("the fingerprint of\n%s is that of\n%s", text, other)
		}
		seen[got] = text
		if again := read(t, "\n\n "+text).Fingerprint(); again != got {
			t.Errorf("%s: the fingerprint depends on the layout", text)
		}
	}
}
