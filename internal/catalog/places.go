package catalog

import (
	"slices"

	"github.com/mcp-roster/roster/internal/state"
)

// gap is the distance between neighbouring places, which leaves room for
// servers that come between them later.
const gap = 1 << 32

// arrange gives each configured server a place, in the order of the
// configuration. Servers that had one keep it, also while they are gone, and new
// ones come where the configuration has them. Only if servers that had places
// have changed their order, or no room is left, are all places given anew: that
// is a new epoch.
func arrange(x state.Index, configured []string) state.Index {
	if inOrder(x.Places, configured) {
		if places, ok := insert(x.Places, configured); ok {
			x.Places = places
			return x
		}
	}
	return state.Index{Epoch: x.Epoch + 1, Ordinals: x.Ordinals, Places: renumber(x.Places, configured)}
}

func indexOf(places []state.Place, name string) int {
	return slices.IndexFunc(places, func(p state.Place) bool { return p.Server == name })
}

// inOrder reports whether the configured servers that have places stand in the
// configuration's order.
func inOrder(places []state.Place, configured []string) bool {
	last := -1
	for _, name := range configured {
		if i := indexOf(places, name); i >= 0 {
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
func insert(places []state.Place, configured []string) ([]state.Place, bool) {
	places = slices.Clone(places)
	at := 0 // position behind the configured server before
	for _, name := range configured {
		if i := indexOf(places, name); i >= 0 {
			at = i + 1
			continue
		}
		low := uint64(0)
		if at > 0 {
			low = places[at-1].At
		}
		high := low + 2*gap
		if at < len(places) {
			high = places[at].At
		}
		if high-low < 2 {
			return nil, false
		}
		places = slices.Insert(places, at, state.Place{Server: name, At: low + (high-low)/2})
		at++
	}
	return places, true
}

// renumber puts the configured servers in their order and those that are gone
// behind them.
func renumber(places []state.Place, configured []string) []state.Place {
	var out []state.Place
	for _, name := range configured {
		out = append(out, state.Place{Server: name})
	}
	for _, p := range places {
		if !slices.Contains(configured, p.Server) {
			out = append(out, state.Place{Server: p.Server})
		}
	}
	for i := range out {
		out[i].At = uint64(i+1) * gap
	}
	return out
}
