package gateway

import (
	"maps"
	"net/http"
	"strings"
)

// forwarded adds to the header fields of a call those of the client's request that
// a server is to get: names are canonical and have no protocol's among them. What
// the client names in Connection is for one hop (RFC 9110, section 7.6.1). A field
// that stands twice is passed on as a list.
func forwarded(names []string, from http.Header, header map[string]string) map[string]string {
	if len(names) == 0 || from == nil {
		return header
	}
	header = maps.Clone(header)
	hop := strings.ToLower("," + strings.ReplaceAll(strings.Join(from["Connection"], ","), " ", "") + ",")
	for _, name := range names {
		values := from[name]
		if len(values) == 0 || strings.Contains(hop, ","+strings.ToLower(name)+",") {
			continue
		}
		if header == nil {
			header = make(map[string]string)
		}
		header[name] = strings.Join(values, ", ")
	}
	return header
}
