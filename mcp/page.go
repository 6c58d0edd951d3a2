package mcp

import (
	"hash/maphash"
	"iter"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
)

// Hints tell a client of a stateless version how long it may keep a result
// (2026-07-28, server/utilities/caching). The zero Hints say not at all.
type Hints struct {
	TTL    time.Duration // rounded down to milliseconds; negative counts as 0
	Public bool          // may be shown to any caller
}

// AppendHints appends the members ttlMs and cacheScope, without a comma before
// them.
func (h Hints) AppendHints(dst []byte) []byte {
	dst = append(dst, `"ttlMs":`...)
	dst = strconv.AppendInt(dst, max(h.TTL.Milliseconds(), 0), 10)
	if h.Public {
		return append(dst, `,"cacheScope":"public"`...)
	}
	return append(dst, `,"cacheScope":"private"`...)
}

// Page is one page of a list.
type Page struct {
	Kind  Kind
	Items []jsontext.Value
	// Next is the cursor of the page behind it; "": this is the last.
	Next string
	// Hints and Server are written for stateless versions only.
	Hints  Hints
	Server jsontext.Value // an Implementation object; nil: left out

	size int // bytes of Items, with a comma each
}

// PageLimits say when a page is full. A zero limit has the default: 2,000 items,
// 8 MiB.
type PageLimits struct{ Items, Bytes int }

// WithDefaults returns the limits with none left at zero.
func (l PageLimits) WithDefaults() PageLimits {
	if l.Items == 0 {
		l.Items = 2000
	}
	if l.Bytes == 0 {
		l.Bytes = 8 << 20
	}
	return l
}

// Add puts an item on the page; false if the page is full. Each page takes at
// least one.
func (p *Page) Add(item jsontext.Value, limits PageLimits) bool {
	if len(p.Items) > 0 && (len(p.Items) >= limits.Items || p.size+len(item) > limits.Bytes) {
		return false
	}
	p.Items = append(p.Items, item)
	p.size += len(item) + 1
	return true
}

// Size returns about how many bytes Append adds.
func (p *Page) Size() int { return p.size + len(p.Server) + 256 }

// Append appends the page as the result of a list request in a version.
func (p *Page) Append(dst []byte, v Version) []byte {
	dst = append(dst, '{')
	if v.Stateless() {
		dst = append(dst, `"resultType":"complete",`...)
	}
	dst = append(dst, '"')
	dst = append(dst, p.Kind.Field()...)
	dst = append(dst, `":[`...)
	for i, item := range p.Items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, item...)
	}
	dst = append(dst, ']')
	if p.Next != "" {
		dst = append(dst, `,"nextCursor":`...)
		dst = jsonrpc.AppendString(dst, p.Next)
	}
	if v.Stateless() {
		dst = append(dst, ',')
		dst = p.Hints.AppendHints(dst)
		if p.Server != nil {
			dst = append(dst, `,"_meta":{"`+MetaServerInfo+`":`...)
			dst = append(dst, p.Server...)
			dst = append(dst, '}')
		}
	}
	return append(dst, '}')
}

// fingerprintSeed makes fingerprints good for one process only.
var fingerprintSeed = maphash.MakeSeed()

// Fingerprint returns a number that is equal for equal items in equal order, and
// in practice for no others. It means nothing to another process.
func Fingerprint(items iter.Seq[jsontext.Value]) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	for item := range items {
		_, _ = h.Write(item) // a hash takes everything
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}
