package mcp

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// MaxCursor is the length, in bytes, beyond which a cursor of ours is not read.
const MaxCursor = 1024

// Cursor is a position in a list: behind one item, in a walk that began when
// the newest item had the ordinal High. It needs no memory on the server and
// stays good while items come and go, because it names a position and not a
// count (2026-07-28, server/utilities/pagination).
type Cursor struct {
	Epoch uint64 // of the order; a cursor of another epoch names no position
	Kind  Kind
	View  string // the view the walk is in
	High  uint64 // items with a greater ordinal wait for the next walk
	// Place and Ordinal are those of the last item returned.
	Place   uint64
	Ordinal uint64
}

var errCursor = errors.New("not a cursor that was given out here")

const cursorFormat = 1

// Encode returns the cursor as an opaque string, within MaxCursor for a View of
// up to 700 bytes.
func (c Cursor) Encode() string {
	b := make([]byte, 0, 48+len(c.View))
	b = append(b, cursorFormat, byte(c.Kind))
	for _, n := range [...]uint64{c.Epoch, c.High, c.Place, c.Ordinal} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, c.View...)
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// DecodeCursor reads a cursor that Encode wrote, in no other spelling. The
// checksum finds damage; it keeps no secret and proves no origin, since a cursor
// grants nothing. Whether the cursor is one of this list is for the caller to see.
func DecodeCursor(s string) (Cursor, error) {
	if len(s) > MaxCursor {
		return Cursor{}, errCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || len(b) < 2+4+4 || b[0] != cursorFormat || int(b[1]) >= len(Kinds) {
		return Cursor{}, errCursor
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.ChecksumIEEE(body) != sum {
		return Cursor{}, errCursor
	}
	c := Cursor{Kind: Kind(b[1])}
	rest := body[2:]
	for _, field := range [...]*uint64{&c.Epoch, &c.High, &c.Place, &c.Ordinal} {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return Cursor{}, errCursor
		}
		*field, rest = n, rest[size:]
	}
	c.View = string(rest)
	if c.Encode() != s { // a line break, or a number with more bytes than it needs
		return Cursor{}, errCursor
	}
	return c, nil
}
