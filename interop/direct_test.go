package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestDirect points every client at every server, without a gateway.
func TestDirect(t *testing.T) {
	sayMissing(t)
	w := newWorld(t)
	if n := findNPM(); n.missing == "" {
		w.add(w.everythingHTTP(t, n, entry{Type: "sse"}))
	}
	tb := &table{columns: []string{"CLIENT"}}
	for _, s := range w.servers {
		tb.columns = append(tb.columns, s.name)
	}
	first := make(map[string]*report)
	for _, c := range clients {
		if c.npm && findNPM().missing != "" {
			tb.add(c.name, "skipped: npm peers are missing")
			continue
		}
		row := []string{c.name}
		for _, s := range w.servers {
			if c.era == "modern" && !s.modern {
				row = append(row, "-") // such a client speaks nothing else
				continue
			}
			row = append(row, runCell(t, c.name+"/"+s.name, func(t *testing.T) {
				r := w.ask(t, c, s)
				if first[s.name] == nil {
					first[s.name] = r
				}
				checkAgreement(t, c, r, first[s.name])
			}))
		}
		tb.add(row...)
	}
	tb.log(t)
}

// ask lets a client ask a server itself, and checks what it saw.
func (w *world) ask(t *testing.T, c client, s server) *report {
	t.Helper()
	ctx, cancel := bounded(t, 2*time.Minute)
	defer cancel()
	j := w.direct(s, c.era)
	uses := c.uses(s)
	if !s.mute || c.version(true) == "2026-07-28" {
		uses = append(uses, c.features(s)...)
	}
	for _, u := range uses {
		j.Ops = append(j.Ops, u.asked())
	}
	r, err := c.do(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if r.Error != "" {
		t.Fatal(r.Error)
	}
	if want := c.version(s.modern); r.Version != "" && r.Version != want {
		t.Errorf("protocol version %s, want %s", r.Version, want)
	}
	for _, k := range kinds {
		ids, err := k.ids(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(ids) < s.least[k.name] {
			t.Errorf("%d %s, want at least %d", len(ids), k.name, s.least[k.name])
		}
		if err := checkUnion(ids, [][]string{ids}); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
	}
	for i, u := range uses {
		if err := u.check(r, i); err != nil {
			t.Error(err)
		}
	}
	return r
}

// uses is what a client does with a server.
func (c client) uses(s server) []use {
	if !c.slow {
		return slices.Clone(s.uses)
	}
	return slices.DeleteFunc(slices.Clone(s.uses), func(u use) bool { return u.Method != "tools/call" })
}

// features is what a client does with a server that speaks first.
func (c client) features(s server) []use {
	if c.slow {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.features), func(u use) bool { return c.version(true) < u.since })
}

// asked is the op that says what to listen for.
func (u use) asked() op {
	o := u.op
	o.Await = len(u.heard)
	for _, event := range u.heard {
		kind, _, _ := strings.Cut(event, " ")
		if !slices.Contains(o.Heed, kind) {
			o.Heed = append(o.Heed, kind)
		}
	}
	return o
}

func (u use) check(r *report, i int) error {
	if i >= len(r.Ops) {
		return fmt.Errorf("%v: no answer", u.op)
	}
	o := r.Ops[i]
	if o.Error != "" {
		return fmt.Errorf("%v: %s", u.op, o.Error)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, o.Result); err != nil {
		return fmt.Errorf("%v: %w", u.op, err)
	}
	if !strings.Contains(compact.String(), u.want) {
		return fmt.Errorf("%v: no %q in %s", u.op, u.want, short(o.Result))
	}
	if err := sameList(o.Heard, u.heard); err != nil {
		return fmt.Errorf("%v: heard %q: %w", u.op, o.Heard, err)
	}
	return nil
}

// checkAgreement checks that a client saw the same lists as the first one. Clients that declare other
// capabilities may see other tools.
func checkAgreement(t *testing.T, c client, r, first *report) {
	t.Helper()
	for _, k := range kinds {
		if c.fixed && k.name == "tools" {
			continue
		}
		got, err1 := k.ids(r)
		want, err2 := k.ids(first)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if err := sameList(got, want); err != nil {
			t.Errorf("%s: %v", k.name, err)
		}
	}
}
