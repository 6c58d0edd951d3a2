package clientfile

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// style is how a JSON text is laid out.
type style struct {
	lines bool   // members stand on lines of their own
	unit  string // one step of indentation
	eol   string // a line break
	gap   string // what follows a comma within a line
}

// style returns how the text is laid out. One without line breaks stays without.
func (t *jsonText) style() style {
	s := style{lines: true, unit: "  ", eol: "\n", gap: " "}
	if bytes.Contains(t.raw, []byte("\r\n")) {
		s.eol = "\r\n"
	}
	if t.none {
		return s
	}
	l, _ := listOf(t.root)
	if len(l.pieces) == 0 {
		return s
	}
	indent, broken := lineIndent(l.pieces[0].before)
	if s.lines = broken; indent != "" {
		s.unit = indent
	}
	if len(l.pieces) > 1 && !broken && len(l.pieces[1].before) == 0 {
		s.gap = ""
	}
	return s
}

// indentAt returns the indentation of the line on which an offset is.
func (t *jsonText) indentAt(offset int) string {
	return leadingSpace(string(t.raw[bytes.LastIndexByte(t.raw[:offset], '\n')+1 : offset]))
}

// inline reports whether all pieces of a list are objects that stand on one line,
// as somebody writes who wants one line for each server.
func (l list) inline(raw []byte) bool {
	return !slices.ContainsFunc(l.pieces, func(p piece) bool {
		object, ok := p.value.Value.(*hujson.Object)
		return !ok || len(object.Members) == 0 || bytes.ContainsRune(raw[p.value.StartOffset:p.value.EndOffset], '\n')
	})
}

// fit lays a JSON value out for a place with that indentation. A value of several
// lines is only indented anew, for it may have comments.
func (s style) fit(value []byte, indent string, inline bool) string {
	value = bytes.TrimSpace(value)
	if bytes.ContainsRune(value, '\n') {
		return s.reindent(value, indent)
	}
	if inline || !s.lines {
		return oneLine(value)
	}
	var b bytes.Buffer
	if json.Indent(&b, value, indent, s.unit) != nil { // it has comments
		return string(value)
	}
	return strings.ReplaceAll(b.String(), "\n", s.eol)
}

// reindent lays all lines but the first out anew: the last gets that indentation,
// and the others as many steps more as they have.
func (s style) reindent(value []byte, indent string) string {
	lines := strings.Split(strings.ReplaceAll(string(value), "\r\n", "\n"), "\n")
	old := leadingSpace(lines[len(lines)-1])
	unit := ""
	for _, line := range lines[1:] {
		if space, ok := strings.CutPrefix(leadingSpace(line), old); ok && space != "" && (unit == "" || len(space) < len(unit)) {
			unit = space
		}
	}
	for i, line := range lines[1:] {
		rest, ok := strings.CutPrefix(line, old)
		if !ok || line == "" {
			continue
		}
		steps := ""
		for unit != "" && strings.HasPrefix(rest, unit) {
			rest, steps = rest[len(unit):], steps+s.unit
		}
		lines[i+1] = indent + steps + rest
	}
	return strings.Join(lines, s.eol)
}

func leadingSpace(line string) string {
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// oneLine writes a value with a space behind each comma and colon and inside of
// braces.
func oneLine(value []byte) string {
	v, err := hujson.Parse(append(bytes.Clone(value), '\n'))
	if err != nil {
		return string(value)
	}
	var b strings.Builder
	writeOneLine(&b, v)
	return b.String()
}

func writeOneLine(b *strings.Builder, v hujson.Value) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		for i, m := range v.Members {
			b.WriteString([]string{"{ ", ", "}[min(i, 1)])
			writeOneLine(b, m.Name)
			b.WriteString(": ")
			writeOneLine(b, m.Value)
		}
		b.WriteString([]string{"{}", " }"}[min(len(v.Members), 1)])
	case *hujson.Array:
		b.WriteByte('[')
		for i, e := range v.Elements {
			if i > 0 {
				b.WriteString(", ")
			}
			writeOneLine(b, e)
		}
		b.WriteByte(']')
	case hujson.Literal:
		b.Write(v)
	}
}
