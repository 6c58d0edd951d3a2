package catalog

import (
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/yosida95/uritemplate/v3"

	"github.com/mcp-roster/roster/mcp"
)

// List is a server's list of one kind.
type List struct {
	// Items are the definitions as the server wrote them, in its order. The
	// catalog keeps copies.
	Items []jsontext.Value
	// TTL is how long the list may be kept; 0 or less: not at all, or not said.
	TTL time.Duration
	// Degraded: the list is known not to be whole.
	Degraded bool
}

// ttl is how long clients may keep the list.
func (l *List) ttl() time.Duration {
	if l.Degraded {
		return 0
	}
	return max(l.TTL, 0)
}

// Lists are a server's new lists, by kind; a nil one has not changed.
type Lists [len(mcp.Kinds)]*List

// over returns the lists with those that have not changed taken from old.
func (l Lists) over(old Lists) Lists {
	for k := range l {
		if l[k] == nil {
			l[k] = old[k]
		}
	}
	return l
}

// Entry is one item that clients see. It is never changed once others have it.
type Entry struct {
	// Server is the name of the server that has the item.
	Server string
	// Kind says whose list the item is in.
	Kind mcp.Kind
	// Own is the server's own name for it, or its URI or URI template: what is
	// sent to the server.
	Own string
	// Exposed is what clients call it: another name, but the same URI.
	Exposed string
	// Definition is what clients see.
	Definition mcp.Definition
	// Params are a tool's arguments that clients repeat in headers.
	Params []mcp.ParamHeader

	raw      jsontext.Value        // as the server wrote it
	rename   []mcp.Edit            // of a request's params; nil: the names are the same
	template *uritemplate.Template // of a template; nil if it cannot be read
}

// Rename returns the edits of a request's params after which they have the server's
// own name. They must not be changed.
func (e *Entry) Rename() []mcp.Edit { return e.rename }

// HasParam reports whether a header field repeats one of a tool's arguments.
// Field names are compared without regard to case.
func (e *Entry) HasParam(field string) bool {
	return slices.ContainsFunc(e.Params, func(p mcp.ParamHeader) bool {
		return strings.EqualFold(field, mcp.HeaderParamPrefix+p.Name)
	})
}

// key is the name by which an item is known among those of its server.
func (e *Entry) key() string { return fold(e.Kind, e.Own) }

// folds bring a kind's names into the form in which they are compared.
var folds = [len(mcp.Kinds)]func(string) string{
	mcp.Resources: mcp.FoldURI, mcp.Templates: mcp.FoldURI,
}

// named reports whether a kind's items have names, which are made to differ
// from those of other servers. The others have URIs, which are not rewritten.
func named(k mcp.Kind) bool { return folds[k] == nil }

func fold(k mcp.Kind, name string) string {
	if f := folds[k]; f != nil {
		return f(name)
	}
	return name
}
