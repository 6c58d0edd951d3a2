package cli

import "net/http"

// keyVariable names the environment variable with the key for a gateway that is
// named by its URL.
const keyVariable = "ROSTER_KEY"

// access is how a gateway is asked.
type access struct {
	key       string            // "": it asks for none
	transport http.RoundTripper // nil: what makes requests by default
}

func (a access) header() http.Header {
	h := make(http.Header)
	if a.key != "" {
		h.Set("Authorization", "Bearer "+a.key)
	}
	return h
}
