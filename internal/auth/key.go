// Package auth finds out who is calling, and how we call others: it logs in to servers
// (OAuth), keeps their tokens fresh, and dials nothing that a server names unless it may.
package auth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// Hash is the SHA-256 of a key. A key is random and long enough that its hash may
// be known.
type Hash [sha256.Size]byte

// String is the hash in hexadecimal digits, as the configuration has it.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// NewKey returns a random key of 128 bits or more.
func NewKey() string { return "roster_" + strings.ToLower(rand.Text()) }

// HashKey returns the hash of a key.
func HashKey(key string) Hash { return sha256.Sum256([]byte(key)) }

// Key is a key that callers show as "Authorization: Bearer KEY".
type Key struct {
	Name string // of who has it: the principal of its requests
	Hash Hash
}

// Keys are the keys that are good for a server's routes. No keys let nobody in.
type Keys []Key

// principalKey is where a request's context has the principal.
type principalKey struct{}

// Require returns a handler that hands the requests with a key to next, and
// answers others with 401 (RFC 6750, section 3).
func (k Keys) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, shown := bearer(r.Header["Authorization"])
		name, ok := k.find(token)
		if !shown || !ok {
			refuse(w, shown)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), principalKey{}, name)))
	})
}

// find looks at all keys, whichever it is, so that time tells nothing.
func (k Keys) find(token string) (name string, ok bool) {
	hash := HashKey(token)
	for i := range k {
		if subtle.ConstantTimeCompare(hash[:], k[i].Hash[:]) == 1 {
			name, ok = k[i].Name, true
		}
	}
	return name, ok
}

// bearer returns the token of an Authorization field, if there is one and no
// other such field.
func bearer(fields []string) (token string, ok bool) {
	if len(fields) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(fields[0], " ")
	token = strings.Trim(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != ""
}

func refuse(w http.ResponseWriter, shown bool) {
	challenge, text := `Bearer realm="roster"`, "a key is needed here: Authorization: Bearer KEY"
	if shown {
		challenge, text = challenge+`, error="invalid_token"`, "this key is not known here"
	}
	h := w.Header()
	h.Set("WWW-Authenticate", challenge)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"` + text + `"}}`)) // the client may be gone
}

// Principal returns whose key a request came with; "": it needed none.
func Principal(r *http.Request) string {
	name, _ := r.Context().Value(principalKey{}).(string)
	return name
}
