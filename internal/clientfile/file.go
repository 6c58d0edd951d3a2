package clientfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// Format is how a file is written.
type Format string

// The formats.
const (
	JSON Format = "json" // with comments and trailing commas, if they are there already
	TOML Format = "toml"
)

// FormatOf returns the format of a file by the end of its name: TOML for .toml,
// else JSON.
func FormatOf(path string) Format {
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		return TOML
	}
	return JSON
}

// maxBytes bounds the text of a file. That of Claude Code also has its history.
const maxBytes = 64 << 20

// ErrNoServer says that a file has no server of a name.
var ErrNoServer = errors.New("there is no such server")

// text is a text of some format, with objects in objects. A path leads to a value
// by keys; where it meets an array, a key stands for the element whose "name" or
// "id" it is.
type text interface {
	// keys returns the keys of the object at a path, or the names in an array, in
	// order; nil if there is none.
	keys(path ...string) []string
	// value returns the value at a path as JSON, as it is written if it is JSON.
	value(path ...string) ([]byte, bool)
	// set replaces or adds a value, and makes the objects that lead to it.
	set(value []byte, path ...string) error
	// remove takes out a value, which must be there.
	remove(path ...string) error
	// rename gives a key, which must be there, another name.
	rename(to string, path ...string) error
	bytes() []byte
}

// File is a text with a map of servers.
type File struct {
	text
	servers string // the key of the map
}

// Parse reads a text whose servers stand under a key at the top. An empty text is
// a file without servers. With "" as the key it is found: "mcpServers", "servers"
// or "mcp_servers", whichever is there, else the first for JSON and the last for
// TOML. The error says where the text is wrong, and quotes nothing of it.
func Parse(format Format, servers string, raw []byte) (*File, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("the file is larger than %d MiB", maxBytes>>20)
	}
	var t text
	var err error
	if format == TOML {
		t, err = parseTOML(raw)
	} else {
		t, err = parseJSON(raw)
	}
	if err != nil {
		return nil, err
	}
	f := &File{text: t, servers: servers}
	if servers == "" {
		f.servers = findServers(t, format)
	}
	return f, nil
}

func findServers(t text, format Format) string {
	for _, key := range [...]string{"mcpServers", "servers", "mcp_servers"} {
		if raw, ok := t.value(key); ok && (raw[0] == '{' || raw[0] == '[') {
			return key
		}
	}
	if format == TOML {
		return "mcp_servers"
	}
	return "mcpServers"
}

// Key returns the key under which the servers stand.
func (f *File) Key() string { return f.servers }

// Names returns the names of the servers, in the order of the file.
func (f *File) Names() []string { return f.keys(f.servers) }

// Entry returns a server's entry as JSON: to the byte if the file is JSON, with
// comments that it may have.
func (f *File) Entry(name string) ([]byte, bool) { return f.value(f.servers, name) }

// At returns the value at a path of keys from the top, as JSON.
func (f *File) At(path ...string) ([]byte, bool) { return f.value(path...) }

// Set writes a server's entry, which is JSON: in the place of the one of that
// name, else behind all others. An entry of several lines is indented anew and
// else kept as it is; one of a single line is laid out like its neighbours.
func (f *File) Set(name string, entry []byte) error {
	return f.change(func(t text) error { return t.set(entry, f.servers, name) })
}

// SetAt writes a value, which is JSON, at a path of keys from the top.
func (f *File) SetAt(value []byte, path ...string) error {
	return f.change(func(t text) error { return t.set(value, path...) })
}

// RemoveAt takes out the value at a path of keys from the top, if there is one.
func (f *File) RemoveAt(path ...string) error {
	if _, ok := f.value(path...); !ok {
		return nil
	}
	return f.change(func(t text) error { return t.remove(path...) })
}

// SetField writes one key of a server's entry. The value is JSON.
func (f *File) SetField(name, field string, value []byte) error {
	if _, ok := f.Entry(name); !ok {
		return fmt.Errorf("%q: %w", name, ErrNoServer)
	}
	return f.SetAt(value, f.servers, name, field)
}

// Remove takes out a server's entry, and a comment behind it on its last line. All
// other comments stay.
func (f *File) Remove(name string) error {
	if _, ok := f.Entry(name); !ok {
		return fmt.Errorf("%q: %w", name, ErrNoServer)
	}
	return f.RemoveAt(f.servers, name)
}

// Rename gives a server, which keeps its place, another name.
func (f *File) Rename(from, to string) error {
	if _, ok := f.Entry(from); !ok {
		return fmt.Errorf("%q: %w", from, ErrNoServer)
	}
	if _, ok := f.Entry(to); ok {
		return fmt.Errorf("there is a server %q already", to)
	}
	return f.change(func(t text) error { return t.rename(to, f.servers, from) })
}

// Bytes returns the text as it is now. It must not be changed.
func (f *File) Bytes() []byte { return f.bytes() }

// change makes an edit, or leaves everything as it was.
func (f *File) change(edit func(text) error) error {
	var copied text
	switch t := f.text.(type) {
	case *jsonText:
		c := *t
		copied = &c
	case *tomlText:
		c := *t
		copied = &c
	}
	if err := edit(copied); err != nil {
		return err
	}
	f.text = copied
	return nil
}
