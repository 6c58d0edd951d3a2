package catalog

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/mcp-roster/roster/mcp"
)

// separator stands between a server's name and its item's in an exposed name.
// It is only written, never looked for: names are routed by table.
const separator = "__"

// owner is who an exposed name belongs to.
type owner struct{ server, key string }

// names gives exposed names, which keep their owners: also that of an item that
// is gone is not given to another. It belongs to the catalog's writer.
type names struct {
	length int // the most characters a name may have
	owners [len(mcp.Kinds)]map[string]owner
	given  [len(mcp.Kinds)]map[owner]string
}

func newNames(length int) *names {
	n := &names{length: length}
	for _, k := range mcp.Kinds {
		n.owners[k] = make(map[string]owner)
		n.given[k] = make(map[owner]string)
	}
	return n
}

// claim records a name given earlier; false if it is another's.
func (n *names) claim(k mcp.Kind, name string, o owner) bool {
	if was, taken := n.owners[k][name]; taken && was != o {
		return false
	}
	n.owners[k][name] = o
	n.given[k][o] = name
	return true
}

// give returns the name for an item: the one it had, else prefix and key put
// together, else that with a digest of who it is, longer until it is free.
func (n *names) give(k mcp.Kind, prefix string, o owner) string {
	if name, ok := n.given[k][o]; ok {
		return name
	}
	plain := prefix + o.key
	if n.legal(plain) && n.claim(k, plain, o) {
		return plain
	}
	sum := sha256.Sum256([]byte(o.server + "\x00" + o.key))
	digest := hex.EncodeToString(sum[:])
	for size := 8; ; size += 4 { // ends: digests of different owners differ
		name := n.shorten(plain, digest[:size])
		if n.claim(k, name, o) {
			return name
		}
	}
}

// legal reports whether a name is one that model APIs accept.
func (n *names) legal(name string) bool {
	for i := range len(name) {
		if !legalByte(name[i]) {
			return false
		}
	}
	return name != "" && len(name) <= n.length
}

func legalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// shorten maps a name to legal characters and cuts it so that "_" and the
// digest fit behind it.
func (n *names) shorten(name, digest string) string {
	name = mapLegal(name)
	room := max(n.length-len(digest)-1, 0)
	if len(name) > room {
		name = name[:room]
	}
	if room == 0 {
		return digest[:min(len(digest), n.length)]
	}
	return name + "_" + digest
}

// mapLegal writes "_" for each character that a name must not have.
func mapLegal(s string) string {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		if r < 0x80 && legalByte(byte(r)) {
			out = append(out, byte(r))
		} else {
			out = append(out, '_')
		}
	}
	return string(out)
}
