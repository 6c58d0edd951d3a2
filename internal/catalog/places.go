package catalog

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mcp-roster/roster/internal/state"
)

// gap is the distance between neighbouring places, which leaves room for
// servers that come between them later.
const gap = 1 << 32

// arrange gives each configured server a place, in the order of the
// configuration. Servers that had one keep it, also while they are gone, and new
// ones come where the configuration has them. Only if there is no order yet, if
// servers that had places have changed their order, or if no room is left, are
// all places given anew: that is a new epoch. It takes time in proportion to the
// servers, and for each new one to all of them.
func arrange(x state.Index, configured []string) state.Index {
	at := positions(x.Places)
	if x.Epoch != 0 && growing(x.Places) && inOrder(at, configured) {
		if places, ok := insert(x.Places, at, configured); ok {
			x.Places = places
			return x
		}
	}
	x.Epoch, x.Places = newEpoch(), renumber(x.Places, configured)
	return x
}

// newEpoch returns an epoch that no other order has.
func newEpoch() uint64 { return 1 + rand.Uint64N(math.MaxUint64) }

// positions says where in places each server stands.
func positions(places []state.Place) map[string]int {
	at := make(map[string]int, len(places))
	for i, p := range places {
		at[p.Server] = i
	}
	return at
}

// placesOf returns the place of each server.
func placesOf(x state.Index) map[string]uint64 {
	at := make(map[string]uint64, len(x.Places))
	for _, p := range x.Places {
		at[p.Server] = p.At
	}
	return at
}

// growing reports whether places are what this package made: whatever wrote a
// file, a damaged order is not built upon.
func growing(places []state.Place) bool {
	last := uint64(0)
	for _, p := range places {
		if p.At <= last || p.At > math.MaxUint64-2*gap {
			return false
		}
		last = p.At
	}
	return len(positions(places)) == len(places)
}

// inOrder reports whether the configured servers that have places stand in the
// configuration's order.
func inOrder(at map[string]int, configured []string) bool {
	last := -1
	for _, name := range configured {
		if i, ok := at[name]; ok {
			if i < last {
				return false
			}
			last = i
		}
	}
	return true
}

// insert gives places to the servers that have none, each behind the one before
// it in the configuration; false if there is no room.
func insert(places []state.Place, at map[string]int, configured []string) ([]state.Place, bool) {
	places = slices.Clone(places)
	next, inserted := 0, 0 // position behind the configured server before; insertions so far
	for _, name := range configured {
		if i, ok := at[name]; ok {
			next = i + inserted + 1
			continue
		}
		low := uint64(0)
		if next > 0 {
			low = places[next-1].At
		}
		high := low + 2*gap
		if next < len(places) {
			high = places[next].At
		}
		if high-low < 2 || high < low {
			return nil, false
		}
		places = slices.Insert(places, next, state.Place{Server: name, At: low + (high-low)/2})
		next++
		inserted++
	}
	return places, true
}

// renumber puts the configured servers in their order and those that are gone
// behind them.
func renumber(places []state.Place, configured []string) []state.Place {
	seen := make(map[string]bool, len(configured))
	var out []state.Place
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, state.Place{Server: name, At: uint64(len(out)+1) * gap})
		}
	}
	for _, name := range configured {
		add(name)
	}
	for _, p := range places {
		add(p.Server)
	}
	return out
}
