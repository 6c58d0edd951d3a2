package config

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
)

// Key is 32 hexadecimal digits that stand for how the server is reached:
// transport, command, arguments, environment, working directory, URL and
// headers. It stays the same over restarts and versions, whatever the name, the
// order of variables and headers, and the other fields. It is a hash, from which
// nothing can be read.
func (s Server) Key() string {
	h := sha256.New()
	write := func(values ...string) {
		// Lengths in front keep ["a", "b"] and ["ab"] apart.
		h.Write(binary.AppendUvarint(nil, uint64(len(values))))
		for _, v := range values {
			h.Write(binary.AppendUvarint(nil, uint64(len(v))))
			h.Write([]byte(v))
		}
	}
	write("roster server 1", string(s.Transport), s.Command, s.Dir, s.URL)
	write(s.Args...)
	write(sorted(s.Env)...)
	write(sorted(s.Headers)...)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// sorted returns names and values in turn, by name.
func sorted(pairs []Pair) []string {
	pairs = slices.Clone(pairs)
	slices.SortStableFunc(pairs, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	var flat []string
	for _, p := range pairs {
		flat = append(flat, p.Name, p.Value)
	}
	return flat
}
