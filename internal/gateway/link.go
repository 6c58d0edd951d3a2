package gateway

import (
	"bytes"
	"slices"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

const (
	// maxLinks is how many links are remembered for one client, and maxLinked
	// for how many clients; of more, the oldest are forgotten.
	maxLinks  = 1000
	maxLinked = 1000
)

// links are the resources that results have shown to clients and that no list
// has, by client: which server showed them.
type links struct {
	mu       sync.Mutex // guards the fields below
	byClient map[any]*shown
	order    []any // the clients, the oldest first
}

// shown is what one client was shown.
type shown struct {
	owner map[string]string // by folded URI
	order []string          // the oldest first
}

// note takes note of the links in a result. Only one that has the words
// resource_link is looked at.
func (l *links) note(r *server.Request, name string, result jsonrpc.Object) {
	if !mentionsLink(result.Raw) {
		return
	}
	uris := linked(result)
	if len(uris) == 0 {
		return
	}
	client := clientOf(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byClient == nil {
		l.byClient = make(map[any]*shown)
	}
	s := l.byClient[client]
	if s == nil {
		l.makeRoomLocked()
		s = &shown{owner: make(map[string]string)}
		l.byClient[client] = s
		l.order = append(l.order, client)
	}
	for _, uri := range uris {
		s.add(mcp.FoldURI(uri), name)
	}
}

// makeRoomLocked forgets sessions that have ended, and the oldest client if there
// are still too many.
func (l *links) makeRoomLocked() {
	l.order = slices.DeleteFunc(l.order, func(client any) bool {
		session, ok := client.(*jsonrpc.Session)
		if !ok {
			return false
		}
		select {
		case <-session.Done():
			delete(l.byClient, client)
			return true
		default:
			return false
		}
	})
	if len(l.order) >= maxLinked {
		delete(l.byClient, l.order[0])
		l.order = l.order[1:]
	}
}

func (s *shown) add(uri, name string) {
	if _, again := s.owner[uri]; again {
		s.order = slices.DeleteFunc(s.order, func(other string) bool { return other == uri })
	}
	s.owner[uri] = name
	s.order = append(s.order, uri)
	if len(s.order) > maxLinks {
		delete(s.owner, s.order[0])
		s.order = s.order[1:]
	}
}

// owner returns the server whose result showed a URI to a client.
func (l *links) owner(r *server.Request, uri string) (name string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.byClient[clientOf(r)]; s != nil {
		name, ok = s.owner[mcp.FoldURI(uri)]
	}
	return name, ok
}

// linked returns the URIs of the links in the result of a tool or prompt.
func linked(result jsonrpc.Object) []string {
	var uris []string
	look := func(raw jsontext.Value) {
		content, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return
		}
		if kind, _ := content.Text("type"); kind == "resource_link" {
			if uri, ok := content.Text("uri"); ok {
				uris = append(uris, uri)
			}
		}
	}
	content, _ := jsonrpc.Elements(result.Get("content"))
	for _, raw := range content {
		look(raw)
	}
	messages, _ := jsonrpc.Elements(result.Get("messages"))
	for _, raw := range messages {
		if message, err := jsonrpc.ParseObject(raw); err == nil {
			look(message.Get("content"))
		}
	}
	return uris
}

// mentionsLink reports whether "resource_link", with its quotes, is in a result. It
// looks for the underscore, the rarest of these bytes in most texts.
func mentionsLink(raw []byte) bool {
	const before, behind = `"resource`, `link"`
	for at := 0; ; at++ {
		i := bytes.IndexByte(raw[at:], '_')
		if i < 0 {
			return false
		}
		at += i
		if bytes.HasSuffix(raw[:at], []byte(before)) && bytes.HasPrefix(raw[at+1:], []byte(behind)) {
			return true
		}
	}
}
