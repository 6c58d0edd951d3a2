package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// sameItem compares a definition seen through a gateway with the same seen at its server. All members must be
// equal but those to ignore, such as the one that names it.
func sameItem(got, want json.RawMessage, ignore ...string) error {
	return same(got, want, func(m map[string]any) {
		for _, member := range ignore {
			delete(m, member)
		}
	})
}

// sameResult compares results. What says who answered, and what only one of the eras has, may differ.
func sameResult(got, want json.RawMessage) error {
	return same(got, want, func(m map[string]any) {
		delete(m, "resultType")
		delete(m, "ttlMs")
		delete(m, "cacheScope")
		if meta, ok := m["_meta"].(map[string]any); ok {
			delete(meta, "io.modelcontextprotocol/serverInfo")
			if len(meta) == 0 {
				delete(m, "_meta")
			}
		}
	})
}

func same(got, want json.RawMessage, ignore func(map[string]any)) error {
	g, err := object(got, ignore)
	if err != nil {
		return err
	}
	w, err := object(want, ignore)
	if err != nil {
		return err
	}
	if reflect.DeepEqual(g, w) {
		return nil
	}
	var members []string
	for _, k := range slices.Sorted(maps.Keys(w)) {
		if !reflect.DeepEqual(g[k], w[k]) {
			members = append(members, fmt.Sprintf("%s: got %s, want %s", k, member(g, k), member(w, k)))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(g)) {
		if _, ok := w[k]; !ok {
			members = append(members, fmt.Sprintf("%s: got %s, want none", k, member(g, k)))
		}
	}
	return errors.New(strings.Join(members, "; "))
}

func member(m map[string]any, k string) string {
	v, ok := m[k]
	if !ok {
		return "none"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return short(raw)
}

func object(raw json.RawMessage, ignore func(map[string]any)) (map[string]any, error) {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // 1 and 1.0 differ, and big integers stay whole
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("not a JSON object: %w: %s", err, short(raw))
	}
	ignore(m)
	return m, nil
}

func short(raw json.RawMessage) string {
	if len(raw) > 300 {
		return string(raw[:300]) + "..."
	}
	return string(raw)
}

// sameList compares the identities of a list, in order.
func sameList(got, want []string) error {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Errorf("%d items, want %d; missing: %s", len(got), len(want), some(want[i:]))
		case i >= len(want):
			return fmt.Errorf("%d items, want %d; too many: %s", len(got), len(want), some(got[i:]))
		case got[i] != want[i]:
			return fmt.Errorf("item %d of %d is %q, want %q", i, len(got), got[i], want[i])
		}
	}
	return nil
}

func some(list []string) string {
	if len(list) > 5 {
		return strings.Join(list[:5], ", ") + ", ..."
	}
	return strings.Join(list, ", ")
}

// checkUnion checks the list that a gateway makes of the lists of its servers: everything exactly once, nothing else,
// the servers in their order, and the items of a server in its order. An item that several servers have
// may be at the place of any of them.
func checkUnion(got []string, lists [][]string) error {
	type place struct{ list, item int }
	places := make(map[string][]place) // ascending
	for i, list := range lists {
		for j, id := range list {
			places[id] = append(places[id], place{i, j})
		}
	}
	seen := make(map[string]bool)
	last := place{-1, -1}
	for n, id := range got {
		if seen[id] {
			return fmt.Errorf("item %d, %q, is there twice", n, id)
		}
		seen[id] = true
		if places[id] == nil {
			return fmt.Errorf("item %d, %q, is of no server", n, id)
		}
		// Taking the earliest possible place leaves most room for the rest.
		i := slices.IndexFunc(places[id], func(p place) bool {
			return p.list > last.list || p.list == last.list && p.item > last.item
		})
		if i < 0 {
			return fmt.Errorf("item %d, %q, is out of order", n, id)
		}
		last = places[id][i]
	}
	for _, list := range lists {
		for _, id := range list {
			if !seen[id] {
				return fmt.Errorf("%q is missing, and %d items in all", id, len(places)-len(seen))
			}
		}
	}
	return nil
}
