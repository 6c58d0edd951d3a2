package state

import (
	"errors"
	"unicode/utf8"
)

// Index is what concerns all servers together.
type Index struct {
	// Epoch names an order of the servers: positions of one epoch mean nothing
	// in another. 0: there is no order yet.
	Epoch uint64 `json:"epoch"`
	// Ordinals is a number that no ordinal given out so far exceeds.
	Ordinals uint64 `json:"ordinals"`
	// Places has the servers in order. A removed one keeps its place.
	Places []Place `json:"places"`
}

// Place is where a server stands among the others: at the greater At the later.
type Place struct {
	Server string `json:"server"`
	At     uint64 `json:"at"`
}

// Server is what is kept of one server's lists.
type Server struct {
	// Name is the server's name in the configuration.
	Name string `json:"name"`
	// Principal is who the lists were for, of a server that runs for each client
	// apart; "" for all.
	Principal string `json:"principal,omitempty"`
	// Key says how the server is reached: lists kept under another key are
	// another server's.
	Key string `json:"key"`
	// Prefix is what its exposed names begin with.
	Prefix string `json:"prefix"`
	// Lists has the last good list by kind, in the order in which clients see
	// it; a kind that is missing was never listed.
	Lists map[string][]Item `json:"lists"`
	// Names has the names given to items that are gone, by kind, those that went
	// first before the others, so that nobody else gets them.
	Names map[string][]Name `json:"names,omitempty"`
}

// Item is one listed item.
type Item struct {
	// Ordinal is the number under which it was first seen.
	Ordinal uint64 `json:"ordinal"`
	// Name is the exposed one; empty if it is the item's own.
	Name string `json:"name,omitempty"`
	// Raw is the definition as the server wrote it, to the byte.
	Raw Text `json:"raw"`
}

// Name is a name that an item has been given.
type Name struct {
	Own     string `json:"own"`     // the server's
	Exposed string `json:"exposed"` // the clients'
}

// Peer is what is kept of how a server is spoken to.
type Peer struct {
	// Name and Key are as in Server.
	Name string `json:"name"`
	Key  string `json:"key"`
	// Version is the protocol version last spoken.
	Version string `json:"version,omitempty"`
	// Info and Capabilities are the JSON objects it described itself with.
	Info         string `json:"info,omitempty"`
	Capabilities string `json:"capabilities,omitempty"`
	// Instructions are the server's own.
	Instructions string `json:"instructions,omitempty"`
}

// Text is bytes of UTF-8 that come back as they were. It is written as a JSON
// string, since a JSON encoder would reformat a value.
type Text []byte

// MarshalText returns the bytes; an error if they are not UTF-8, which a file
// would not give back.
func (t Text) MarshalText() ([]byte, error) {
	if !utf8.Valid(t) {
		return nil, errors.New("text is not UTF-8")
	}
	return t, nil
}

// UnmarshalText takes over a copy of the bytes.
func (t *Text) UnmarshalText(b []byte) error {
	*t = append((*t)[:0], b...)
	return nil
}
