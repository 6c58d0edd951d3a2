package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/mcp-roster/roster/mcp"
)

// separator stands between a server's name and its item's in an exposed name.
// It is only written, never looked for: names are routed by table.
const separator = "__"

// owner is who an exposed name belongs to.
type owner struct{ server, key string }

// names says who owns which exposed name or URI. A name keeps its owner, also
// while the owner's item is gone, until it is released. It belongs to the
// catalog's writer.
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

// claim makes a name an owner's; false if it is another's.
func (n *names) claim(k mcp.Kind, name string, o owner) bool {
	if was, taken := n.owners[k][name]; taken && was != o {
		return false
	}
	n.owners[k][name] = o
	n.given[k][o] = name
	return true
}

// reclaim gives a name back to the owner that it had in an earlier life; false
// if the owner has one, or it is no name that would be given today.
func (n *names) reclaim(k mcp.Kind, name string, o owner) bool {
	_, has := n.given[k][o]
	return !has && n.legal(name) && n.claim(k, name, o)
}

// release lets anybody have an owner's name.
func (n *names) release(k mcp.Kind, o owner) {
	if name, ok := n.given[k][o]; ok {
		delete(n.owners[k], name)
		delete(n.given[k], o)
	}
}

// owner returns the server that owns a name; "" if it is free.
func (n *names) owner(k mcp.Kind, name string) string { return n.owners[k][name].server }

// maxAttempts is how many names are tried for an item. With the usual length
// two are as good as never needed; with a length of a few characters there may
// be no name left.
const maxAttempts = 100

// give returns the name for an item: the one it had, else prefix and key put
// together, else that with a digest of who it is; false if there is none.
func (n *names) give(k mcp.Kind, prefix string, o owner) (string, bool) {
	if name, ok := n.given[k][o]; ok {
		return name, true
	}
	plain := prefix + o.key
	if n.legal(plain) && n.claim(k, plain, o) {
		return plain, true
	}
	legal := mapLegal(plain)
	for attempt := range maxAttempts {
		name := n.withDigest(legal, o, attempt)
		if n.claim(k, name, o) {
			return name, true
		}
	}
	return "", false
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

// withDigest cuts a name of legal characters so that "_" and a digest of the
// owner fit behind it. Of a length that only has room for the digest it returns
// as much of that as fits.
func (n *names) withDigest(name string, o owner, attempt int) string {
	const size = 8 // hexadecimal digits
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %d:%s%s", attempt, len(o.server), o.server, o.key))
	digest := hex.EncodeToString(sum[:size/2])
	room := n.length - size - 1
	if room <= 0 {
		return digest[:min(size, n.length)]
	}
	return name[:min(len(name), room)] + "_" + digest
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
