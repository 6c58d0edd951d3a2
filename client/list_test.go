package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
	"github.com/mcp-roster/roster/internal/mcptest"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// pager answers list requests of every kind with pages that a function makes of
// the number of the request, from 1.
type pager struct {
	mu      sync.Mutex
	cursors []string // as they came; "-" for none
	pages   func(n int, p *mcptest.Peer, m *jsonrpc.Message)
}

func (s *pager) on(p *mcptest.Peer, m *jsonrpc.Message) bool {
	if _, ok := mcp.KindOf(m.Method); !ok {
		return false
	}
	cursor := "-"
	if v := m.Params.Get("cursor"); v != nil {
		cursor = string(v)
	}
	s.mu.Lock()
	s.cursors = append(s.cursors, cursor)
	n := len(s.cursors)
	s.mu.Unlock()
	s.pages(n, p, m)
	return true
}

func (s *pager) asked() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.cursors, " ")
}

// page returns a page of items with a cursor, given as JSON; "": none.
func page(kind mcp.Kind, cursor string, names ...string) string {
	var items []string
	for _, name := range names {
		items = append(items, fmt.Sprintf(`{"%s":"%s"}`, kind.Key(), name))
	}
	out := fmt.Sprintf(`{"%s":[%s]`, kind.Field(), strings.Join(items, ","))
	if cursor != "" {
		out += `,"nextCursor":` + cursor
	}
	return out + "}"
}

// names returns the names or URIs of a list.
func names(l client.List) string {
	var out []string
	for _, item := range l.Items {
		obj, _ := jsonrpc.ParseObject(item)
		name, _ := obj.Text(l.Kind.Key())
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

// walk lists one kind of a server in a bubble.
func walk(t *testing.T, v mcp.Version, kind mcp.Kind, limits client.Limits, pages func(n int, p *mcptest.Peer, m *jsonrpc.Message), check func(t *testing.T, l client.List, err error, s *pager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &pager{pages: pages}
		c := connect(t, client.Options{Dial: host(v, allLists, s.on).Dial})
		l, err := c.List(t.Context(), kind, limits)
		check(t, l, err, s)
	})
}

// replies answers the n-th request with the n-th result, and the last one with
// all that follow.
func replies(results ...string) func(int, *mcptest.Peer, *jsonrpc.Message) {
	return func(n int, p *mcptest.Peer, m *jsonrpc.Message) { p.Reply(m, results[min(n, len(results))-1]) }
}

// TestSeeds4_01_AllPagesInOrder is C-001 and C-009 as well: every kind, each
// cursor exactly as it came.
func TestSeeds4_01_AllPagesInOrder(t *testing.T) {
	for _, v := range []mcp.Version{mcp.V20241105, mcp.V20251125, mcp.V20260728} {
		for _, k := range mcp.Kinds {
			t.Run(string(v)+" "+k.String(), func(t *testing.T) {
				walk(t, v, k, client.Limits{}, replies(
					page(k, `"p\u0032/é"`, "c"), page(k, `"{\"next\": 3}"`, "a"), page(k, "", "b"),
				), func(t *testing.T, l client.List, err error, s *pager) {
					if err != nil || names(l) != "c a b" || l.Pages != 3 || l.Tripped != "" || len(l.Warnings) > 0 {
						t.Errorf("%+v, %v", l, err)
					}
					if want := `- "p\u0032/é" "{\"next\": 3}"`; s.asked() != want {
						t.Errorf("asked %s, want %s", s.asked(), want)
					}
				})
			})
		}
	}
	t.Run("C-001 fixture", func(t *testing.T) {
		lines := fixture(t, "pag_three_pages.jsonl")
		walk(t, mcp.V20251125, mcp.Tools, client.Limits{}, func(n int, p *mcptest.Peer, m *jsonrpc.Message) {
			p.Raw(withID(lines[n-1], m))
		}, func(t *testing.T, l client.List, err error, _ *pager) {
			if err != nil || names(l) != "t1 t2 t3 t4 t5 t6" {
				t.Errorf("%s, %v", names(l), err)
			}
			if got := string(l.Items[4]); got != `{"name":"t5","inputSchema":{"type":"object"}}` {
				t.Errorf("an item became %s", got)
			}
		})
	})
}

func TestSeeds4_01_OnePageOneRequest(t *testing.T) {
	walk(t, mcp.V20251125, mcp.Prompts, client.Limits{}, replies(page(mcp.Prompts, "", "a")), func(t *testing.T, l client.List, err error, s *pager) {
		if err != nil || names(l) != "a" || s.asked() != "-" {
			t.Errorf("%v, %v, asked %s", l, err, s.asked())
		}
	})
}

// TestListUndeclared: a server is not asked for what it does not declare, and one
// that declares a kind whose method it does not know has none of it.
func TestListUndeclared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host(mcp.V20251125, `{"tools":{},"prompts":null}`, nil)
		c := connect(t, client.Options{Dial: h.Dial})
		for _, k := range mcp.Kinds {
			l, err := c.List(t.Context(), k, client.Limits{})
			if err != nil || len(l.Items) > 0 || l.Kind != k {
				t.Errorf("%s: %v, %v", k, l, err)
			}
			if warned := len(l.Warnings) > 0; warned != (k == mcp.Tools) {
				t.Errorf("%s: warnings %q", k, l.Warnings)
			}
		}
		if h.Peer().Count(mcp.MethodToolsList) != 1 || h.Peer().Count(mcp.MethodPromptsList) != 0 {
			t.Errorf("sent %s", methods(h.Peer()))
		}
	})
}

// TestSeeds4_02_Termination has servers whose lists do not end by themselves;
// C-004 is the first.
func TestSeeds4_02_Termination(t *testing.T) {
	k := mcp.Tools
	tests := []struct {
		name  string
		pages func(int, *mcptest.Peer, *jsonrpc.Message)
		trip  client.Guard
		items string
		asked int
	}{
		{"null ends", replies(page(k, "null", "a")), "", "a", 1},
		{"same cursor", replies(page(k, `"x"`, "a", "b")), client.GuardRepeat, "a b", 2},
		{"same cursor, spelled otherwise", replies(page(k, `"x"`, "a"), page(k, `"\u0078"`, "b")), client.GuardRepeat, "a b", 2},
		{"cycle of two", replies(page(k, `"A"`, "a"), page(k, `"B"`, "b"), page(k, `"A"`, "c"), page(k, "", "d")), client.GuardRepeat, "a b c", 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			walk(t, mcp.V20260728, k, client.Limits{}, tt.pages, func(t *testing.T, l client.List, err error, s *pager) {
				checkTrip(t, l, err, tt.trip)
				if names(l) != tt.items || len(s.cursors) != tt.asked {
					t.Errorf("listed %s, asked %s", names(l), s.asked())
				}
			})
		})
	}
}

// checkTrip checks that a walk was ended by a guard, or by none.
func checkTrip(t *testing.T, l client.List, err error, want client.Guard) {
	t.Helper()
	if want == "" {
		if err != nil || l.Tripped != "" {
			t.Errorf("error %v, tripped %q", err, l.Tripped)
		}
		return
	}
	w, ok := errors.AsType[*client.WalkError](err)
	if !ok || w.Trip != want || l.Tripped != want || w.Page != l.Pages || len(w.List.Items) != len(l.Items) || !strings.Contains(err.Error(), string(want)) {
		t.Errorf("error %v, tripped %q, want %q", err, l.Tripped, want)
	}
}

// TestSeeds4_02_StuckCursor is C-004 with its fixture.
func TestSeeds4_02_StuckCursor(t *testing.T) {
	lines := fixture(t, "pag_stuck_cursor.jsonl")
	walk(t, mcp.V20251125, mcp.Tools, client.Limits{}, func(n int, p *mcptest.Peer, m *jsonrpc.Message) {
		p.Raw(withID(lines[min(n, len(lines))-1], m))
	}, func(t *testing.T, l client.List, err error, s *pager) {
		checkTrip(t, l, err, client.GuardRepeat)
		if names(l) != "a b c d e f g h" || len(s.cursors) != 2 {
			t.Errorf("listed %s after %d requests", names(l), len(s.cursors))
		}
	})
}

// TestSeeds4_02_PageCap: exactly 1,000 requests, and a list of 1,000 pages is
// whole. The endless one is C-007.
func TestSeeds4_02_PageCap(t *testing.T) {
	for _, last := range []int{999, 1000, 1001, 1 << 30} {
		t.Run(fmt.Sprint(last), func(t *testing.T) {
			walk(t, mcp.V20251125, mcp.Tools, client.Limits{}, func(n int, p *mcptest.Peer, m *jsonrpc.Message) {
				cursor := fmt.Sprintf(`"c%d"`, n)
				if n == last {
					cursor = ""
				}
				p.Reply(m, page(mcp.Tools, cursor, fmt.Sprint("t", n)))
			}, func(t *testing.T, l client.List, err error, s *pager) {
				want := client.Guard("")
				if last > 1000 {
					want = client.GuardPages
				}
				checkTrip(t, l, err, want)
				if n := min(last, 1000); len(l.Items) != n || len(s.cursors) != n || l.Pages != n {
					t.Errorf("%d items after %d requests", len(l.Items), len(s.cursors))
				}
			})
		})
	}
}

func TestSeeds4_02_OtherCaps(t *testing.T) {
	endless := func(n int, p *mcptest.Peer, m *jsonrpc.Message) {
		p.Reply(m, page(mcp.Tools, fmt.Sprintf(`"c%d"`, n), fmt.Sprint("a", n), fmt.Sprint("b", n)))
	}
	size := len(page(mcp.Tools, `"c1"`, "a1", "b1"))
	tests := []struct {
		name   string
		limits client.Limits
		pages  func(int, *mcptest.Peer, *jsonrpc.Message)
		trip   client.Guard
		items  int
	}{
		{"items", client.Limits{Items: 5}, endless, client.GuardItems, 5},
		{"items, exactly", client.Limits{Items: 2}, replies(page(mcp.Tools, "", "a", "b")), "", 2},
		{"bytes", client.Limits{Bytes: 2 * size}, endless, client.GuardBytes, 4},
		{"cursor", client.Limits{}, replies(page(mcp.Tools, `"`+strings.Repeat("x", 64<<10+1)+`"`, "a")), client.GuardCursor, 1},
		{"cursor, longest", client.Limits{}, replies(page(mcp.Tools, `"`+strings.Repeat("x", 64<<10)+`"`, "a"), page(mcp.Tools, "", "b")), "", 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			walk(t, mcp.V20251125, mcp.Tools, tt.limits, tt.pages, func(t *testing.T, l client.List, err error, _ *pager) {
				checkTrip(t, l, err, tt.trip)
				if len(l.Items) != tt.items {
					t.Errorf("%d items, want %d", len(l.Items), tt.items)
				}
			})
		})
	}
	t.Run("time", func(t *testing.T) {
		walk(t, mcp.V20251125, mcp.Tools, client.Limits{}, func(n int, p *mcptest.Peer, m *jsonrpc.Message) {
			time.AfterFunc(7*time.Second, func() { endless(n, p, m) })
		}, func(t *testing.T, l client.List, err error, _ *pager) {
			checkTrip(t, l, err, client.GuardTime)
			if l.Pages != 8 {
				t.Errorf("%d pages in a minute of 7 s each", l.Pages)
			}
		})
	})
}

// TestSeeds4_03_BlankCursor: a cursor like any other from a stateless server,
// the end from an older one.
func TestSeeds4_03_BlankCursor(t *testing.T) {
	for _, blank := range []string{`""`, `" "`, `"\t\n"`, `"\u0020"`} {
		for _, v := range mcp.Versions() {
			t.Run(string(v)+blank, func(t *testing.T) {
				walk(t, v, mcp.Tools, client.Limits{}, replies(page(mcp.Tools, blank, "a"), page(mcp.Tools, "", "b")),
					func(t *testing.T, l client.List, err error, s *pager) {
						items, asked := "a", "-"
						if v.Stateless() {
							items, asked = "a b", "- "+blank
						}
						if err != nil || names(l) != items || s.asked() != asked {
							t.Errorf("listed %s, asked %s, %v", names(l), s.asked(), err)
						}
					})
			})
		}
	}
	t.Run("for ever", func(t *testing.T) {
		walk(t, mcp.V20260728, mcp.Tools, client.Limits{}, replies(page(mcp.Tools, `""`, "a")), func(t *testing.T, l client.List, err error, s *pager) {
			if err != nil || names(l) != "a" || s.asked() != `- ""` || len(l.Warnings) == 0 {
				t.Errorf("%+v, %v, asked %s", l, err, s.asked())
			}
		})
	})
	t.Run("for ever with news", func(t *testing.T) {
		walk(t, mcp.V20260728, mcp.Tools, client.Limits{}, replies(page(mcp.Tools, `""`, "a"), page(mcp.Tools, `""`, "b")), func(t *testing.T, l client.List, err error, s *pager) {
			checkTrip(t, l, err, client.GuardRepeat)
			if names(l) != "a b" || s.asked() != `- ""` {
				t.Errorf("%+v, asked %s", l, s.asked())
			}
		})
	})
}

// TestSeeds4_04_Failures: what makes a walk fail, on the first page and on a
// later one; C-008 is the later error.
func TestSeeds4_04_Failures(t *testing.T) {
	tests := []struct {
		name   string
		answer func(p *mcptest.Peer, m *jsonrpc.Message)
		reason string
	}{
		{"error", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Refuse(m, -32603, "it broke", "") }, "it broke (-32603)"},
		{"null result", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Reply(m, "null") }, "is null"},
		{"array", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Reply(m, "[]") }, "is an array"},
		{"no list", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Reply(m, "{}") }, "has no tools"},
		{"not a list", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Reply(m, `{"tools":{}}`) }, "is an object, not an array"},
		{"neither result nor error", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Raw(`{"jsonrpc":"2.0","id":` + m.ID.String() + `}`) }, "result or error"},
		{"cursor of a wrong type", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Reply(m, `{"tools":[],"nextCursor":5}`) }, "is a number"},
		{"wants input", func(p *mcptest.Peer, m *jsonrpc.Message) { p.Reply(m, `{"resultType":"input_required"}`) }, `"input_required"`},
		{"death", func(p *mcptest.Peer, _ *jsonrpc.Message) { p.Close() }, "connection closed"},
	}
	for _, tt := range tests {
		for at := 1; at <= 2; at++ {
			t.Run(fmt.Sprintf("%s on page %d", tt.name, at), func(t *testing.T) {
				walk(t, mcp.V20260728, mcp.Tools, client.Limits{}, func(n int, p *mcptest.Peer, m *jsonrpc.Message) {
					if n == at {
						tt.answer(p, m)
						return
					}
					p.Reply(m, page(mcp.Tools, fmt.Sprintf(`"c%d"`, n), fmt.Sprint("t", n)))
				}, func(t *testing.T, l client.List, err error, _ *pager) {
					w, ok := errors.AsType[*client.WalkError](err)
					if !ok || w.Trip != "" || w.Page != at || w.Kind != mcp.Tools {
						t.Fatalf("error is %#v", err)
					}
					if text := err.Error(); !strings.Contains(text, tt.reason) || !strings.Contains(text, fmt.Sprint("tools/list: page ", at)) {
						t.Errorf("error says %q", text)
					}
					if len(l.Items) != 0 || len(w.List.Items) != at-1 { // item 5: the error has what was gathered
						t.Errorf("returned %d items, gathered %d", len(l.Items), len(w.List.Items))
					}
				})
			})
		}
	}
}

// TestSeeds4_04_NullList is C-102.
func TestSeeds4_04_NullList(t *testing.T) {
	walk(t, mcp.V20251125, mcp.Tools, client.Limits{}, replies(`{"tools":null}`), func(t *testing.T, l client.List, err error, _ *pager) {
		if err != nil || len(l.Items) != 0 || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "tools is null") {
			t.Errorf("%+v, %v", l, err)
		}
	})
}

// TestSeeds4_05_ErrorCarriesWhatWasGathered: a walk that was cut short says, in a
// type, why it ended and on which page, and has the items that came before. Only one
// that a guard ended also returns them as a list.
func TestSeeds4_05_ErrorCarriesWhatWasGathered(t *testing.T) {
	pages := func(n int, p *mcptest.Peer, m *jsonrpc.Message) {
		if n == 3 {
			p.Refuse(m, -32603, "it broke", "")
			return
		}
		p.Reply(m, page(mcp.Prompts, fmt.Sprintf(`"c%d"`, n), fmt.Sprint("a", n), fmt.Sprint("b", n)))
	}
	tests := []struct {
		name     string
		limits   client.Limits
		trip     client.Guard
		page     int
		returned string
	}{
		{"failed", client.Limits{}, "", 3, ""},
		{"ended by a guard", client.Limits{Pages: 2}, client.GuardPages, 2, "a1 b1 a2 b2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			walk(t, mcp.V20251125, mcp.Prompts, tt.limits, pages, func(t *testing.T, l client.List, err error, _ *pager) {
				w, ok := errors.AsType[*client.WalkError](err)
				if !ok {
					t.Fatalf("error is %#v", err)
				}
				if w.Kind != mcp.Prompts || w.Trip != tt.trip || w.Page != tt.page || names(w.List) != "a1 b1 a2 b2" {
					t.Errorf("%+v", w)
				}
				if rpc, ok := errors.AsType[*jsonrpc.Error](err); ok != (tt.trip == "") || ok && rpc.Message != "it broke" {
					t.Errorf("caused by %v", rpc)
				}
				if names(l) != tt.returned {
					t.Errorf("returned %q", names(l))
				}
			})
		})
	}
}

func TestSeeds4_06_SeenTwice(t *testing.T) {
	walk(t, mcp.V20251125, mcp.Resources, client.Limits{}, replies(
		`{"resources":[{"uri":"x:1","v":1},{"uri":"x:2"},{"noUri":1},{"noUri":1}],"nextCursor":"a"}`,
		`{"resources":[{"uri":"x:\u0031","v":2},{"uri":"x:3"}]}`,
	), func(t *testing.T, l client.List, err error, _ *pager) {
		if err != nil || names(l) != "x:1 x:2   x:3" || string(l.Items[0]) != `{"uri":"x:1","v":1}` {
			t.Errorf("listed %q, %v", names(l), err)
		}
		if len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "1 items came more than once") {
			t.Errorf("warnings %q", l.Warnings)
		}
	})
}

// TestSeeds4_07_SilentServer: a page that does not come fails the walk, and the
// server is told.
func TestSeeds4_07_SilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &pager{pages: func(int, *mcptest.Peer, *jsonrpc.Message) {}}
		h := host(mcp.V20251125, allLists, s.on)
		c := connect(t, client.Options{Dial: h.Dial, CallTimeout: 20 * time.Second})
		began := time.Now()
		_, err := c.List(t.Context(), mcp.Tools, client.Limits{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 20*time.Second || !strings.Contains(err.Error(), "20s") {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		synctest.Wait()
		if h.Peer().Count(mcp.MethodCanceled) != 1 {
			t.Error("the server was not told")
		}
		began = time.Now()
		_, err = c.List(t.Context(), mcp.Tools, client.Limits{Time: 5 * time.Second})
		if w, _ := errors.AsType[*client.WalkError](err); w == nil || w.Trip != client.GuardTime || time.Since(began) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestListHints: the shortest TTL counts, and private as soon as one page is.
func TestListHints(t *testing.T) {
	tests := []struct {
		name    string
		version mcp.Version
		first   string
		second  string
		want    mcp.Hints
		has     bool
	}{
		{"shortest", mcp.V20260728, `,"ttlMs":5000,"cacheScope":"public"`, `,"ttlMs":300,"cacheScope":"public"`, mcp.Hints{TTL: 300 * time.Millisecond, Public: true}, true},
		{"private once", mcp.V20260728, `,"ttlMs":5000,"cacheScope":"public"`, `,"ttlMs":9000,"cacheScope":"private"`, mcp.Hints{TTL: 5 * time.Second}, true},
		{"negative", mcp.V20260728, `,"ttlMs":-5`, `,"ttlMs":9000`, mcp.Hints{}, true},
		{"absent once", mcp.V20260728, `,"ttlMs":5000`, ``, mcp.Hints{}, false},
		{"of an older version", mcp.V20251125, `,"ttlMs":5000`, `,"ttlMs":5000`, mcp.Hints{}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := `{"tools":[{"name":"a"}],"nextCursor":"x"` + tt.first + "}"
			second := `{"tools":[{"name":"b"}]` + tt.second + "}"
			walk(t, tt.version, mcp.Tools, client.Limits{}, replies(first, second), func(t *testing.T, l client.List, err error, _ *pager) {
				if err != nil || l.Hints != tt.want || l.HasTTL != tt.has || names(l) != "a b" {
					t.Errorf("%+v, %v", l, err)
				}
			})
		})
	}
}

// TestListConcurrently: walks and calls share a client.
func TestListConcurrently(t *testing.T) {
	var n atomic.Int64
	s := &pager{pages: func(_ int, p *mcptest.Peer, m *jsonrpc.Message) {
		cursor := `"next"`
		if m.Params.Get("cursor") != nil {
			cursor = ""
		}
		p.Reply(m, page(mcp.Tools, cursor, fmt.Sprint("t", n.Add(1))))
	}}
	c := connect(t, client.Options{Dial: host(mcp.V20260728, allLists, s.on).Dial, HTTP: true})
	var tasks sync.WaitGroup
	for range 4 {
		tasks.Go(func() {
			for range 50 {
				if l, err := c.List(t.Context(), mcp.Tools, client.Limits{}); err != nil || len(l.Items) != 2 {
					t.Errorf("%v, %v", l, err)
				}
			}
		})
	}
	tasks.Wait()
}

// FuzzList gives walks foreign pages: they end, and keep their promises.
func FuzzList(f *testing.F) {
	f.Add(`{"tools":[{"name":"a"}],"nextCursor":"x"}`, `{"tools":null}`)
	f.Add(`{"tools":[{"name":"a","inputSchema":{"properties":{"p":{"type":"string","x-mcp-header":"P"}}}}]}`, `{}`)
	f.Add(`{"tools":[1,null,{"name":2}],"ttlMs":1e400,"nextCursor":""}`, `[]`)
	f.Fuzz(func(t *testing.T, first, second string) {
		for _, v := range []jsontext.Value{jsontext.Value(first), jsontext.Value(second)} {
			if !v.IsValid(jsontext.AllowDuplicateNames(true)) {
				t.Skip() // a wire hands on valid JSON only
			}
		}
		n := 0
		_, dial := dialHTTP(func(call *jsonrpc.Call) (string, error) {
			if call.Method == mcp.MethodDiscover {
				return mcptest.Discovered(allLists, "2026-07-28"), nil
			}
			n++
			if n%2 == 1 {
				return first, nil
			}
			return second, nil
		})
		c, err := client.Connect(t.Context(), client.Options{Dial: dial, HTTP: true})
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.List(t.Context(), mcp.Tools, client.Limits{Pages: 10})
		if n > 10 {
			t.Fatalf("%d requests", n)
		}
		w, failed := errors.AsType[*client.WalkError](err)
		if failed != (err != nil) || failed && w.Trip == "" && len(l.Items) > 0 {
			t.Fatalf("%v with %d items", err, len(l.Items))
		}
	})
}
