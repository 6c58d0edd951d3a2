package clientfile

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tailscale/hujson"

	"github.com/mcp-roster/roster/mcp"
)

// maxDepth bounds nested objects and arrays: the parser is recursive.
const maxDepth = 512

var errTooDeep = fmt.Errorf("objects and arrays are nested more than %d deep", maxDepth)

// byteOrderMark is what some editors put in front of a text.
const byteOrderMark = "\ufeff"

// jsonText is JSON with comments. Offsets in root count in raw.
type jsonText struct {
	mark string // the byte order mark, or ""
	raw  []byte // without it
	root hujson.Value
	none bool // raw is blank: root is an object that is not there
}

func parseJSON(raw []byte) (*jsonText, error) {
	t := new(jsonText)
	if rest, ok := bytes.CutPrefix(raw, []byte(byteOrderMark)); ok {
		t.mark, raw = byteOrderMark, rest
	}
	return t, t.parse(raw)
}

// parse takes raw as the text.
func (t *jsonText) parse(raw []byte) error {
	t.raw = raw
	if len(bytes.TrimSpace(raw)) == 0 {
		t.none, t.root = true, hujson.Value{Value: new(hujson.Object)}
		return nil
	}
	t.none = false
	if tooDeep(raw) {
		return errTooDeep
	}
	// hujson wants a line break at the end of a comment, even of the last one.
	root, err := hujson.Parse(append(bytes.Clone(raw), '\n'))
	if err != nil {
		var line, column int
		if _, scanErr := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); scanErr != nil {
			return errors.New("the text is not JSON")
		}
		return fmt.Errorf("the text is not JSON: something is wrong at line %d, column %d", line, column)
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return errors.New("the text is JSON, but not an object")
	}
	t.root = root
	return nil
}

// tooDeep reports whether brackets are nested deeper than maxDepth. It counts
// those in comments, too.
func tooDeep(raw []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"', quoted && c == '\n':
			quoted = c == '"' && !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}

func (t *jsonText) bytes() []byte { return append([]byte(t.mark), t.raw...) }

// piece is a member of an object or an element of an array.
type piece struct {
	key    string
	start  int // of the name, or of the element
	value  hujson.Value
	before hujson.Extra // what stands before start, behind "{", "[" or ","
	comma  int          // offset behind the comma, or -1
}

func (p piece) end() int { return p.value.EndOffset }

// list is the pieces of an object or an array.
type list struct {
	pieces []piece
	array  bool
	open   int          // offset behind the bracket
	close  int          // offset of the closing one
	after  hujson.Extra // what stands before it, behind the last piece or its comma
}

// listOf returns the pieces of a value that is an object or an array.
func listOf(v hujson.Value) (list, bool) {
	l := list{open: v.StartOffset + 1, close: v.EndOffset - 1}
	switch v := v.Value.(type) {
	case *hujson.Object:
		l.after = v.AfterExtra
		for i := range v.Members {
			m := &v.Members[i]
			name := m.Name.Value.(hujson.Literal).String()
			l.pieces = append(l.pieces, piece{key: name, start: m.Name.StartOffset, value: m.Value, before: m.Name.BeforeExtra})
		}
	case *hujson.Array:
		l.array, l.after = true, v.AfterExtra
		for i := range v.Elements {
			e := v.Elements[i]
			l.pieces = append(l.pieces, piece{key: elementName(e), start: e.StartOffset, value: e, before: e.BeforeExtra})
		}
	default:
		return list{}, false
	}
	for i := range l.pieces {
		p := &l.pieces[i]
		p.comma = -1
		if i < len(l.pieces)-1 || p.value.AfterExtra != nil {
			p.comma = p.value.EndOffset + len(p.value.AfterExtra) + 1
		}
	}
	return l, true
}

// elementName returns the "name" of an element of an array, its "id" if it has no
// name, or "".
func elementName(v hujson.Value) string {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return ""
	}
	for _, key := range [...]string{"name", "id"} {
		for _, m := range object.Members {
			literal, ok := m.Value.Value.(hujson.Literal)
			if ok && m.Name.Value.(hujson.Literal).String() == key && literal.Kind() == '"' {
				return literal.String()
			}
		}
	}
	return ""
}

// find returns the last piece with a key; of several the last one counts.
func (l list) find(key string) int {
	for i, p := range slices.Backward(l.pieces) {
		if p.key == key {
			return i
		}
	}
	return -1
}

// follow goes from the root along a path as far as it leads. left is what is not
// there.
func (t *jsonText) follow(path []string) (v hujson.Value, left []string) {
	v = t.root
	for i, key := range path {
		l, ok := listOf(v)
		if !ok {
			return v, path[i:]
		}
		at := l.find(key)
		if at < 0 {
			return v, path[i:]
		}
		v = l.pieces[at].value
	}
	return v, nil
}

func (t *jsonText) keys(path ...string) []string {
	v, left := t.follow(path)
	l, ok := listOf(v)
	if len(left) > 0 || !ok {
		return nil
	}
	var keys []string
	for _, p := range l.pieces {
		if !slices.Contains(keys, p.key) && (!l.array || p.key != "") {
			keys = append(keys, p.key)
		}
	}
	return keys
}

func (t *jsonText) value(path ...string) ([]byte, bool) {
	v, left := t.follow(path)
	if len(left) > 0 || t.none {
		return nil, false
	}
	return t.raw[v.StartOffset:v.EndOffset], true
}

func (t *jsonText) set(value []byte, path ...string) error {
	v, left := t.follow(path)
	if len(left) == 0 {
		return t.splice(v.StartOffset, v.EndOffset, t.style().fit(value, t.indentAt(v.StartOffset), false))
	}
	if t.none {
		if err := t.splice(0, len(t.raw), "{}"+t.style().eol); err != nil {
			return err
		}
		return t.set(value, path...)
	}
	if literal, ok := v.Value.(hujson.Literal); ok && literal.Kind() == 'n' {
		if err := t.splice(v.StartOffset, v.EndOffset, "{}"); err != nil {
			return err
		}
		return t.set(value, path...)
	}
	if len(left) > 1 {
		if err := t.set([]byte("{}"), path[:len(path)-len(left)+1]...); err != nil {
			return err
		}
		return t.set(value, path...)
	}
	l, ok := listOf(v)
	if !ok {
		return fmt.Errorf("%q is neither an object nor an array", path[len(path)-len(left)-1])
	}
	return t.insert(l, left[0], value)
}

// insert adds a piece behind the others of a list.
func (t *jsonText) insert(l list, key string, value []byte) error {
	s := t.style()
	name := string(mcp.String(key)) + ": "
	if l.array {
		named, err := withName(key, value)
		if err != nil {
			return err
		}
		name, value = "", named
	}
	body := l.close - len(l.after) + len(trimSpace(l.after)) // behind the last thing but space
	if len(l.pieces) == 0 {
		outer := t.indentAt(l.open - 1)
		if !s.lines && !endsInLineComment(l.after) {
			return t.splice(body, l.close, name+s.fit(value, "", false))
		}
		inner := outer + s.unit
		return t.splice(body, l.close, s.eol+inner+name+s.fit(value, inner, false)+s.eol+outer)
	}
	last := l.pieces[len(l.pieces)-1]
	indent, broken := lineIndent(last.before)
	text := s.gap + name + s.fit(value, "", true)
	if broken {
		text = s.eol + indent + name + s.fit(value, indent, l.inline(t.raw))
	}
	if endsInLineComment(l.after) && !broken {
		text = s.eol + text
	}
	if last.comma >= 0 {
		return t.splice(body, body, text+",")
	}
	// Two places: the comma goes behind the value, in front of any comment.
	end := last.end()
	return t.splice(end, body, ","+string(t.raw[end:body])+text)
}

// withName puts a "name" in front of the members of an entry that has none.
func withName(name string, entry []byte) ([]byte, error) {
	e, err := parseJSON(entry)
	if err != nil {
		return nil, err
	}
	rest := bytes.TrimLeft(entry[e.root.StartOffset+1:], " \t")
	if len(e.keys()) == 0 {
		return fmt.Appendf(nil, `{"name": %s%s`, mcp.String(name), rest), nil
	}
	if elementName(e.root) == name {
		return entry, nil
	}
	if slices.Contains(e.keys(), "name") {
		err := e.set(mcp.String(name), "name")
		return e.bytes(), err
	}
	return fmt.Appendf(nil, `{"name": %s, %s`, mcp.String(name), rest), nil
}

func (t *jsonText) remove(path ...string) error {
	for {
		parent, left := t.follow(path[:len(path)-1])
		l, ok := listOf(parent)
		if len(left) > 0 || !ok {
			return nil
		}
		at := l.find(path[len(path)-1])
		if at < 0 {
			return nil
		}
		if err := t.cut(l, at); err != nil {
			return err
		}
	}
}

// cut takes one piece out of a list.
func (t *jsonText) cut(l list, at int) error {
	p := l.pieces[at]
	start := p.start - len(p.before) + len(trimSpace(p.before))
	end := p.end()
	following := l.after // what stands behind what is cut
	switch {
	case p.comma >= 0:
		end = p.comma
		if at < len(l.pieces)-1 {
			following = l.pieces[at+1].before
		}
	case at > 0: // the comma of the one before goes, too
		before := l.pieces[at-1]
		return t.splices(
			edit{before.comma - 1, before.comma, ""},
			edit{start, end + sameLine(following), ""},
		)
	}
	end += sameLine(following)
	if len(l.pieces) == 1 && start == l.open && len(trimSpace(t.raw[end:l.close])) == 0 {
		end = l.close // nothing is left
	}
	if _, broken := lineIndent(p.before); !broken && at == 0 && len(l.pieces) > 1 {
		end += len(following) - len(bytes.TrimLeft(following, " \t"))
	}
	return t.splice(start, end, "")
}

// sameLine returns the length of a line comment, and the space before it, with
// which an extra begins; 0 if it does not.
func sameLine(extra hujson.Extra) int {
	rest := bytes.TrimLeft(extra, " \t")
	if !bytes.HasPrefix(rest, []byte("//")) {
		return 0
	}
	end := bytes.IndexAny(rest, "\r\n")
	if end < 0 {
		end = len(rest)
	}
	return len(extra) - len(rest) + end
}

func (t *jsonText) rename(to string, path ...string) error {
	parent, left := t.follow(path[:len(path)-1])
	l, ok := listOf(parent)
	at := -1
	if ok && len(left) == 0 {
		at = l.find(path[len(path)-1])
	}
	if at < 0 {
		return ErrNoServer
	}
	if l.array {
		return t.set(mcp.String(to), append(slices.Clone(path), "name")...)
	}
	old := parent.Value.(*hujson.Object).Members[at].Name
	return t.splice(old.StartOffset, old.EndOffset, string(mcp.String(to)))
}

// edit replaces the text from start to end.
type edit struct {
	start, end int
	text       string
}

func (t *jsonText) splice(start, end int, text string) error {
	return t.splices(edit{start, end, text})
}

// splices makes edits, which are in order, and reads the result.
func (t *jsonText) splices(edits ...edit) error {
	var b bytes.Buffer
	at := 0
	for _, e := range edits {
		b.Write(t.raw[at:e.start])
		b.WriteString(e.text)
		at = e.end
	}
	b.Write(t.raw[at:])
	if err := t.parse(b.Bytes()); err != nil {
		return fmt.Errorf("the edit would break the file: %w", err)
	}
	return nil
}

// trimSpace returns what of an extra stands before the space at its end.
func trimSpace(extra []byte) []byte {
	trimmed := bytes.TrimRight(extra, " \t\r\n")
	return trimmed
}

// endsInLineComment reports whether what follows an extra would be in a comment.
func endsInLineComment(extra []byte) bool {
	trimmed := trimSpace(extra)
	line := trimmed[bytes.LastIndexByte(trimmed, '\n')+1:]
	return bytes.Contains(line, []byte("//")) && !bytes.HasSuffix(line, []byte("*/"))
}

// lineIndent returns the space between the last line break of an extra and its
// end; false if it has no line break.
func lineIndent(extra []byte) (string, bool) {
	i := bytes.LastIndexByte(extra, '\n')
	if i < 0 {
		return "", false
	}
	return leadingSpace(string(extra[i+1:])), true
}
