package catalog_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// A URI is its first owner's until that lists it no longer; then it is the next
// one's, in the order of the configuration.
func TestSharedURI(t *testing.T) {
	var log bytes.Buffer
	c := open(servers("a", "b", "c"), catalog.Options{Logger: logTo(&log)})
	signals := 0
	defer c.Watch(func() { signals++ })()
	ownerOf := func(uri string) string {
		e, ok := c.Find(mcp.Resources, uri)
		if !ok {
			return ""
		}
		return e.Server
	}
	c.Replace("c", resourcesAt("FILE://Host/x", "file://host/c"))
	invalid := resourcesAt("file://host/x", "file://host/b")
	invalid[mcp.Resources].Items = append(invalid[mcp.Resources].Items, jsontext.Value(`{"uri":"file://no-name"}`))
	c.Replace("b", invalid)
	c.Replace("a", resourcesAt("file://host/x"))
	wantNames(t, c, mcp.Resources, "file://host/b", "FILE://Host/x", "file://host/c")
	if got := ownerOf("file://HOST/x"); got != "c" {
		t.Errorf("owner is %q", got)
	}
	r, _ := c.Report("b")
	if notes := r.LeftOut[mcp.Resources]; len(notes) != 2 || !strings.Contains(notes[1].Reason, "server c") {
		t.Errorf("report says %+v", notes)
	}

	before := signals
	c.Replace("c", resourcesAt("file://host/c"))
	if signals != before+1 {
		t.Errorf("%d signals for one change", signals-before)
	}
	wantNames(t, c, mcp.Resources, "file://host/x", "file://host/b", "file://host/c")
	if got := ownerOf("file://host/x"); got != "a" {
		t.Errorf("owner is %q", got)
	}
	r, _ = c.Report("b")
	if notes := r.LeftOut[mcp.Resources]; len(notes) != 2 || !strings.Contains(notes[1].Reason, "server a") {
		t.Errorf("report says %+v", notes)
	}
	c.Replace("a", resourcesAt())
	wantNames(t, c, mcp.Resources, "file://host/b", "file://host/x", "file://host/c")
	c.Replace("b", resourcesAt())
	if got := ownerOf("file://host/x"); got != "" {
		t.Errorf("owner of a URI that nobody lists is %q", got)
	}
	c.Replace("c", resourcesAt("file://host/x"))
	if got := ownerOf("file://host/x"); got != "c" {
		t.Errorf("owner is %q", got)
	}
}

// Templates and resources have tables of their own, and one server may list a
// URI in another spelling the next time.
func TestSpellingsOfAURI(t *testing.T) {
	c := open(servers("a"), catalog.Options{})
	lists := resourcesAt("HTTP://X/y", "http://x/y", "http://x/Y")
	lists[mcp.Templates] = listOf(jsontext.Value(`{"uriTemplate":"http://x/y","name":"t"}`))
	c.Replace("a", lists)
	wantNames(t, c, mcp.Resources, "HTTP://X/y", "http://x/Y")
	wantNames(t, c, mcp.Templates, "http://x/y")
	c.Replace("a", resourcesAt("http://X/y"))
	wantNames(t, c, mcp.Resources, "http://X/y")
	if e, ok := c.Find(mcp.Resources, "http://x/y"); !ok || e.Own != "http://X/y" {
		t.Errorf("found %+v", e)
	}
	if e, ok := c.Find(mcp.Templates, "http://x/y"); !ok || e.Kind != mcp.Templates {
		t.Errorf("found %+v", e)
	}
}

// C-215: a list may be kept as long as the shortest of its parts, on all pages,
// and not at all if one did not say or is not whole; it is private.
func TestCacheHints(t *testing.T) {
	minute, second := time.Minute, time.Second
	type part struct {
		ttl      time.Duration
		degraded bool
		empty    bool
		silent   bool // not heard of
	}
	for name, tt := range map[string]struct {
		parts []part
		want  string
	}{
		"none":            {nil, "0"},
		"one":             {[]part{{ttl: 5 * minute}}, "300000"},
		"shortest":        {[]part{{ttl: 5 * minute}, {ttl: second}}, "1000"},
		"without a hint":  {[]part{{ttl: 5 * minute}, {ttl: second}, {}}, "0"},
		"negative":        {[]part{{ttl: 5 * minute}, {ttl: -5 * time.Millisecond}}, "0"},
		"degraded":        {[]part{{ttl: 5 * minute}, {ttl: minute, degraded: true}}, "0"},
		"an empty part":   {[]part{{ttl: minute}, {empty: true}}, "60000"},
		"one is not here": {[]part{{ttl: minute}, {silent: true}}, "0"},
		"below 1 ms":      {[]part{{ttl: time.Microsecond}}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := []string{"a", "b", "c"}[:len(tt.parts)]
			c := open(servers(ids...), catalog.Options{Page: mcp.PageLimits{Items: 1}})
			for i, p := range tt.parts {
				l := toolsNamed("x", "y")[mcp.Tools]
				if p.empty {
					l.Items = nil
				}
				l.TTL, l.Degraded = p.ttl, p.degraded
				if !p.silent {
					c.Replace(ids[i], catalog.Lists{mcp.Tools: l})
				}
			}
			var cursor *string
			for range 10 {
				_, next, raw := page(t, c, mcp.Tools, mcp.Latest, cursor)
				obj, err := jsonrpc.ParseObject(raw)
				if err != nil {
					t.Fatal(err)
				}
				if ttl, scope := string(obj.Get("ttlMs")), string(obj.Get("cacheScope")); ttl != tt.want || scope != `"private"` {
					t.Errorf("ttlMs %s, cacheScope %s, want %s, private", ttl, scope, tt.want)
				}
				if cursor = next; next == nil {
					break
				}
			}
			_, _, raw := page(t, c, mcp.Tools, mcp.LatestSession, nil)
			if bytes.Contains(raw, []byte("ttlMs")) {
				t.Errorf("a client with sessions is given hints: %s", raw)
			}
		})
	}
}

// Another time to keep a list is on the next page, and not a change of the list.
func TestHintsAlone(t *testing.T) {
	c := open(servers("a"), catalog.Options{})
	lists := toolsNamed("x")
	c.Replace("a", lists)
	sum := c.Fingerprint(mcp.Tools, mcp.Latest)
	other := *lists[mcp.Tools]
	other.TTL = time.Minute
	if c.Replace("a", catalog.Lists{mcp.Tools: &other}) || sum != c.Fingerprint(mcp.Tools, mcp.Latest) {
		t.Error("another ttl counts as a change")
	}
	_, _, raw := page(t, c, mcp.Tools, mcp.Latest, nil)
	if !bytes.Contains(raw, []byte(`"ttlMs":60000`)) {
		t.Errorf("page: %s", raw)
	}
}

// Header annotations that are invalid keep a tool of an HTTP server out, not one
// of another.
func TestHeaderAnnotations(t *testing.T) {
	annotated := func(name, header string) jsontext.Value {
		return jsontext.Value(`{"name":"` + name + `","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"` + header + `"}}}}`)
	}
	opts := servers("web", "pipe")
	opts[0].HTTP = true
	c := open(opts, catalog.Options{})
	lists := catalog.Lists{mcp.Tools: listOf(annotated("good", "Region"), annotated("bad", "not a token"))}
	c.Replace("web", lists)
	c.Replace("pipe", lists)
	wantNames(t, c, mcp.Tools, "web__good", "pipe__good", "pipe__bad")
	for _, name := range []string{"web__good", "pipe__good"} {
		if e, _ := c.Find(mcp.Tools, name); !e.HasParam("mcp-param-REGION") || e.HasParam("Mcp-Param-Other") {
			t.Errorf("%s has params %+v", name, e.Params)
		}
	}
	r, _ := c.Report("web")
	if len(r.LeftOut[mcp.Tools]) != 1 || r.Counts[mcp.Tools] != 1 {
		t.Errorf("report says %+v", r)
	}
	if _, ok := c.Report("nobody"); ok {
		t.Error("there is a report on a server that there is not")
	}
}

// The catalog keeps nothing of the bytes that it was given.
func TestItemsAreCopied(t *testing.T) {
	c := open([]catalog.ServerOptions{prefixed("a", "")}, catalog.Options{})
	buffer := append(tool("x", "before"), tool("y", "before")...)
	half := len(buffer) / 2
	c.Replace("a", catalog.Lists{mcp.Tools: listOf(buffer[:half], buffer[half:])})
	for i := range buffer {
		buffer[i] = '!'
	}
	wantNames(t, c, mcp.Tools, "x", "y")
	if !c.Replace("a", catalog.Lists{mcp.Tools: listOf(tool("x", "after"), tool("y", "before"))}) {
		t.Error("a changed item is no change")
	}
}
