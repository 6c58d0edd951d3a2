package mcp

import (
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
}

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
