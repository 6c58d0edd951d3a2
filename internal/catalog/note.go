package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcp-roster/roster/mcp"
)

// Note says why an item is not listed as its server lists it.
type Note struct {
	// Name is the server's own, cut if it is very long; empty if the item has
	// none or the note is about several.
	Name string
	// Reason is for people.
	Reason string
}

const (
	// maxNotes is how many notes are kept of one list.
	maxNotes = 100
	// maxNoteName is how many bytes of a name a note has.
	maxNoteName = 128
)

// notes are those of one list.
type notes struct {
	list []Note
	more int // notes that were too many
}

func (n *notes) add(name, reason string) {
	if len(n.list) == maxNotes {
		n.more++
		return
	}
	if len(name) > maxNoteName {
		name = strings.ToValidUTF8(name[:maxNoteName], "") + "…"
	}
	n.list = append(n.list, Note{name, reason})
}

// all returns the notes, with one that counts those that were too many.
func (n *notes) all() []Note {
	if n.more == 0 {
		return n.list
	}
	return append(slices.Clip(n.list), Note{Reason: fmt.Sprintf("and %d more", n.more)})
}

// complaint is a note that is to be logged.
type complaint struct {
	server string
	kind   mcp.Kind
	note   Note
}

// noteLocked publishes what is wrong with a server's list, and has what is new
// of it logged.
func (c *Catalog) noteLocked(b *block, k mcp.Kind) {
	l := &b.lists[k]
	n := notes{list: slices.Clone(l.refused.list), more: l.refused.more}
	for _, e := range l.hidden {
		n.add(e.Own, "server "+c.names.owner(k, e.key())+" has the same URI and was first")
	}
	now, old := n.all(), *b.notes[k].Load()
	if slices.Equal(now, old) {
		return
	}
	b.notes[k].Store(&now)
	for _, note := range now {
		if !slices.Contains(old, note) {
			c.complaints = append(c.complaints, complaint{b.Name, k, note})
		}
	}
}

// logAll logs complaints.
func (c *Catalog) logAll(list []complaint) {
	for _, it := range list {
		c.log.Warn("left out of a list", "list", it.kind.String(), "server", it.server, "name", it.note.Name, "reason", it.note.Reason)
	}
}
