package gateway

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/mcp"
)

// nearest returns up to three listed names that are close to one that is not
// listed.
func nearest(all lists, kind mcp.Kind, name string) []string {
	const most, names, length = 3, 5000, 128
	type candidate struct {
		name     string
		distance int
	}
	if len(name) > length {
		return nil
	}
	var found []candidate
	n := 0
	all.Each(kind, func(e *catalog.Entry) bool {
		d := distance(strings.ToLower(name), strings.ToLower(e.Exposed))
		if strings.EqualFold(name, e.Own) {
			d = 0
		}
		if d <= max(2, len(name)/3) {
			found = append(found, candidate{e.Exposed, d})
		}
		n++
		return n < names
	})
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.distance, b.distance) })
	var out []string
	for _, c := range found[:min(most, len(found))] {
		out = append(out, c.name)
	}
	return out
}

// distance is how many bytes must be put in, taken out or replaced to make one
// string of the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
