package config

import "strings"

// suggest returns ", did you mean ...?" with the known name that is nearest to
// name, or "" if none is near.
func suggest(name string, known []string) string {
	best, ok := Nearest(name, known)
	if !ok {
		return ""
	}
	return ", did you mean " + quote(best) + "?"
}

// Nearest returns the known name that is nearest to a mistyped one, and false if
// none is near. Of equally near ones the first wins; letters' case does not
// count.
func Nearest(name string, known []string) (string, bool) {
	const longest = 40 // a longer name is no typing mistake
	if len(name) > longest {
		return "", false
	}
	best, least := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best, best != ""
}

// distance is the number of bytes to insert, delete, replace, or swap with
// their neighbour to get from a to b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
