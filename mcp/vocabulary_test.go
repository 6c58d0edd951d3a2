package mcp_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

func TestVersions(t *testing.T) {
	type traits struct{ known, stateless, header, batches, priming, anyOutput, url bool }
	tests := []struct {
		version mcp.Version
		want    traits
	}{
		{"2026-07-28", traits{known: true, stateless: true, header: true, anyOutput: true, url: true}},
		{"2025-11-25", traits{known: true, header: true, priming: true, url: true}},
		{"2025-06-18", traits{known: true, header: true}},
		{"2025-03-26", traits{known: true, batches: true}},
		{"2024-11-05", traits{known: true}},
		{"2027-01-01", traits{}},
		{"", traits{}},
	}
	for _, tt := range tests {
		v := tt.version
		got := traits{v.Known(), v.Stateless(), v.HasVersionHeader(), v.HasBatches(), v.HasPriming(), v.HasAnyOutput(), v.HasURLElicitation()}
		if got != tt.want {
			t.Errorf("%s: got %+v", v, got)
		}
	}
	all := mcp.Versions()
	if len(all) != 5 || all[0] != mcp.Latest || all[1] != mcp.LatestSession || !slices.IsSortedFunc(all, func(a, b mcp.Version) int { return strings.Compare(string(b), string(a)) }) {
		t.Errorf("the versions are %v", all)
	}
	all[0] = "x" // is the caller's
	if mcp.Versions()[0] != mcp.Latest {
		t.Error("a caller changed the list")
	}
}

func TestNegotiate(t *testing.T) {
	for asked, want := range map[mcp.Version]mcp.Version{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26", "2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2026-07-28": "2025-11-25", "2030-01-01": "2025-11-25", "": "2025-11-25", "1.0": "2025-11-25",
	} {
		if got := mcp.Negotiate(asked); got != want {
			t.Errorf("%s: got %s, want %s", asked, got, want)
		}
	}
}

func TestBest(t *testing.T) {
	tests := []struct {
		offered []string
		want    mcp.Version
	}{
		{[]string{"2024-11-05", "2026-07-28", "2025-11-25"}, "2026-07-28"},
		{[]string{"2030-01-01", "2025-03-26", "2024-11-05"}, "2025-03-26"},
		{[]string{"2030-01-01"}, ""},
		{nil, ""},
	}
	for _, tt := range tests {
		if got, ok := mcp.Best(tt.offered); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%v: got %s", tt.offered, got)
		}
	}
}

// TestErrorFor is C-225.
func TestErrorFor(t *testing.T) {
	tests := []struct{ code, want int }{ // towards a stateless client
		{mcp.CodeResourceNotFound, jsonrpc.CodeInvalidParams},
		{mcp.CodeURLElicitation, jsonrpc.CodeInternal},
		{mcp.CodeHeaderMismatch, jsonrpc.CodeInternal},
		{mcp.CodeMissingCapability, mcp.CodeMissingCapability},
		{mcp.CodeUnsupportedVersion, jsonrpc.CodeInternal},
		{-32023, jsonrpc.CodeInternal},
		{-32099, jsonrpc.CodeInternal},
		{-32019, -32019},
		{-32000, -32000},
		{-32001, -32001},
		{-32100, -32100},
		{jsonrpc.CodeParse, jsonrpc.CodeParse},
		{jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidParams},
		{4242, 4242},
		{0, 0},
		{1, 1},
	}
	for _, tt := range tests {
		raw := string(jsonrpc.AppendError(nil, jsonrpc.IntID(1), &jsonrpc.Error{Code: tt.code, Message: "m", Data: jsontext.Value(`{ "uri":1.0 }`)}))
		raw = strings.Replace(raw, `"data"`, `"extra":[1],"data"`, 1)
		m, err := jsonrpc.Parse([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range mcp.Versions() {
			got := mcp.ErrorFor(v, m.Error)
			switch {
			case !v.Stateless() || tt.code == tt.want:
				if got != m.Error {
					t.Errorf("%s: %d became %v", v, tt.code, got)
				}
			case got.Code != tt.want || got.Message != "m" || string(got.Data) != `{ "uri":1.0 }` || m.Error.Code != tt.code:
				t.Errorf("%s: %d became %+v", v, tt.code, got)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	e := mcp.UnsupportedVersion(`1"0`, nil)
	if want := `{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"1\"0"}`; e.Code != -32022 || string(e.Data) != want {
		t.Errorf("got %d %s", e.Code, e.Data)
	}
	if e := mcp.UnsupportedVersion("x", []mcp.Version{mcp.V20260728}); string(e.Data) != `{"supported":["2026-07-28"],"requested":"x"}` {
		t.Errorf("got %s", e.Data)
	}
	if e := mcp.MissingCapability(jsontext.Value(`{"sampling":{}}`)); e.Code != -32021 || string(e.Data) != `{"requiredCapabilities":{"sampling":{}}}` {
		t.Errorf("got %d %s", e.Code, e.Data)
	}
}

func TestKinds(t *testing.T) {
	for _, k := range mcp.Kinds {
		if got, ok := mcp.KindOf(k.ListMethod()); got != k || !ok {
			t.Errorf("%v: its list is that of %v", k, got)
		}
		if !slices.Contains(mcp.KindsChanged(k.ChangedMethod()), k) {
			t.Errorf("%v: its notification is that of %v", k, mcp.KindsChanged(k.ChangedMethod()))
		}
	}
	want := "tools tools/list tools name notifications/tools/list_changed tools toolsListChanged" +
		" prompts prompts/list prompts name notifications/prompts/list_changed prompts promptsListChanged" +
		" resources resources/list resources uri notifications/resources/list_changed resources resourcesListChanged" +
		" templates resources/templates/list resourceTemplates uriTemplate notifications/resources/list_changed resources resourcesListChanged"
	var got []string
	for _, k := range mcp.Kinds {
		got = append(got, k.String(), k.ListMethod(), k.Field(), k.Key(), k.ChangedMethod(), k.Capability(), k.Filter())
	}
	if strings.Join(got, " ") != want {
		t.Errorf("got %s", got)
	}
	if _, ok := mcp.KindOf("tools/call"); ok {
		t.Error("tools/call lists something")
	}
	if got := mcp.KindsChanged("notifications/resources/list_changed"); !slices.Equal(got, []mcp.Kind{mcp.Resources, mcp.Templates}) {
		t.Errorf("resources and templates: %v", got)
	}
	if got := mcp.KindsChanged("notifications/resources/updated"); got != nil {
		t.Errorf("updated: %v", got)
	}
}

func TestPage(t *testing.T) {
	items := []jsontext.Value{jsontext.Value(`{"name" : "b","n":1.0}`), jsontext.Value(`{"name":"<a>"}`)}
	tests := []struct {
		name    string
		page    mcp.Page
		version mcp.Version
		want    string
	}{
		{"empty, session", mcp.Page{Kind: mcp.Tools}, mcp.V20251125, `{"tools":[]}`},
		{"empty, stateless", mcp.Page{Kind: mcp.Prompts}, mcp.V20260728, `{"resultType":"complete","prompts":[],"ttlMs":0,"cacheScope":"private"}`},
		{"items", mcp.Page{Kind: mcp.Templates, Items: items}, mcp.V20241105, `{"resourceTemplates":[{"name" : "b","n":1.0},{"name":"<a>"}]}`},
		{"cursor", mcp.Page{Kind: mcp.Resources, Items: items[:1], Next: `a"b`}, mcp.V20250618, `{"resources":[{"name" : "b","n":1.0}],"nextCursor":"a\"b"}`},
		{"hints are for stateless versions", mcp.Page{Kind: mcp.Tools, Hints: mcp.Hints{TTL: time.Second, Public: true}, Server: jsontext.Value(`{}`)}, mcp.V20251125, `{"tools":[]}`},
		{
			"all",
			mcp.Page{Kind: mcp.Tools, Items: items, Next: "n", Hints: mcp.Hints{TTL: 1500*time.Microsecond + time.Second, Public: true}, Server: jsontext.Value(`{"name":"r"}`)},
			mcp.V20260728,
			`{"resultType":"complete","tools":[{"name" : "b","n":1.0},{"name":"<a>"}],"nextCursor":"n","ttlMs":1001,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"r"}}}`,
		},
		{"negative", mcp.Page{Kind: mcp.Tools, Hints: mcp.Hints{TTL: -time.Second}}, mcp.V20260728, `{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := string(tt.page.Append([]byte("x"), tt.version))
			if got != "x"+tt.want {
				t.Errorf("got  %s\nwant x%s", got, tt.want)
			}
			object(t, got[1:])
		})
	}
}

func TestPageLimits(t *testing.T) {
	item := jsontext.Value(`{"name":"0123456789"}`)
	tests := []struct {
		name   string
		limits mcp.PageLimits
		want   int
	}{
		{"items", mcp.PageLimits{Items: 3}.WithDefaults(), 3},
		{"bytes", mcp.PageLimits{Bytes: 3*len(item) + 2}.WithDefaults(), 3},
		{"one byte less", mcp.PageLimits{Bytes: 3*len(item) + 1}.WithDefaults(), 2},
		{"always one", mcp.PageLimits{Bytes: 1}.WithDefaults(), 1},
		{"default", mcp.PageLimits{}.WithDefaults(), 2000},
	}
	for _, tt := range tests {
		p := mcp.Page{Kind: mcp.Tools}
		for p.Add(item, tt.limits) {
			if len(p.Items) > 3000 {
				break
			}
		}
		if len(p.Items) != tt.want {
			t.Errorf("%s: %d items, want %d", tt.name, len(p.Items), tt.want)
		}
		if got := len(p.Append(nil, mcp.Latest)); got > p.Size() {
			t.Errorf("%s: %d bytes, Size says %d", tt.name, got, p.Size())
		}
	}
}

func TestFingerprint(t *testing.T) {
	of := func(items ...string) uint64 {
		return mcp.Fingerprint(func(yield func(jsontext.Value) bool) {
			for _, s := range items {
				if !yield(jsontext.Value(s)) {
					return
				}
			}
		})
	}
	if one, other := of("a", "b"), of("a", "b"); one != other {
		t.Error("equal items differ")
	}
	seen := map[uint64]int{}
	for i, items := range [][]string{{}, {""}, {"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"a", "", "b"}} {
		if j, ok := seen[of(items...)]; ok {
			t.Errorf("lists %d and %d are equal", i, j)
		}
		seen[of(items...)] = i
	}
}

func TestFoldURI(t *testing.T) {
	for uri, want := range map[string]string{
		"HTTP://Example.COM/A": "http://example.com/A", "file:///A/b": "file:///A/b", "FILE:///A": "file:///A", "urn:X:Y": "urn:X:Y",
		"x://User@HOST:80/P?Q#F": "x://User@host:80/P?Q#F", "X://HOST": "x://host", "": "", "x://H{V}/A": "x://h{V}/A", "x://H?A": "x://h?A",
	} {
		if got := mcp.FoldURI(uri); got != want {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
}
