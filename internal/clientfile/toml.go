package clientfile

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tailscale/hujson"

	"github.com/mcp-roster/roster/mcp"
)

// tomlText is TOML whose servers are tables of their own, as Codex writes them:
// [servers.name]. Only these can be changed.
type tomlText struct {
	raw    []byte
	parsed map[string]any
	lines  []expression
}

// expression is a table header, or a key with its value.
type expression struct {
	path       []string // from the top
	header     bool
	start, end int // of its lines
}

func parseTOML(raw []byte) (*tomlText, error) {
	t := new(tomlText)
	return t, t.parse(raw)
}

func (t *tomlText) parse(raw []byte) error {
	t.raw, t.parsed, t.lines = raw, nil, nil
	if err := toml.Unmarshal(raw, &t.parsed); err != nil {
		if e, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := e.Position()
			return fmt.Errorf("the text is not TOML: something is wrong at line %d, column %d", line, column)
		}
		return errors.New("the text is not TOML")
	}
	var p unstable.Parser
	p.Reset(raw)
	var table []string
	for p.NextExpression() {
		node := p.Expression()
		if node.Kind != unstable.Table && node.Kind != unstable.ArrayTable && node.Kind != unstable.KeyValue {
			continue
		}
		var path []string
		first := -1
		for key := node.Key(); key.Next(); {
			path = append(path, string(key.Node().Data))
			if first < 0 {
				first = int(key.Node().Raw.Offset)
			}
		}
		e := expression{path: path, header: node.Kind != unstable.KeyValue, start: t.lineStart(first), end: t.lineEnd(first)}
		if e.header {
			table = path
		} else {
			e.path = append(slices.Clone(table), path...)
			e.end = t.lineEnd(int(node.Raw.Offset + node.Raw.Length))
		}
		t.lines = append(t.lines, e)
	}
	return p.Error()
}

func (t *tomlText) lineStart(offset int) int {
	return bytes.LastIndexByte(t.raw[:offset], '\n') + 1
}

// lineEnd returns the offset behind the line break after an offset.
func (t *tomlText) lineEnd(offset int) int {
	if i := bytes.IndexByte(t.raw[offset:], '\n'); i >= 0 {
		return offset + i + 1
	}
	return len(t.raw)
}

func (t *tomlText) bytes() []byte { return t.raw }

func (t *tomlText) follow(path []string) (any, bool) {
	var v any = t.parsed
	for _, key := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[key]; !ok {
			return nil, false
		}
	}
	return v, true
}

func (t *tomlText) keys(path ...string) []string {
	v, _ := t.follow(path)
	object, _ := v.(map[string]any)
	var keys []string
	for _, e := range t.lines {
		if len(e.path) > len(path) && slices.Equal(e.path[:len(path)], path) {
			if key := e.path[len(path)]; !slices.Contains(keys, key) && object[key] != nil {
				keys = append(keys, key)
			}
		}
	}
	var others []string // of an inline table
	for key := range object {
		if !slices.Contains(keys, key) {
			others = append(others, key)
		}
	}
	slices.Sort(others)
	return append(keys, others...)
}

func (t *tomlText) value(path ...string) ([]byte, bool) {
	v, ok := t.follow(path)
	if !ok {
		return nil, false
	}
	raw, err := marshal(v)
	return raw, err == nil
}

func (t *tomlText) set(value []byte, path ...string) error {
	if len(path) != 2 {
		return errors.New("in TOML only whole entries can be changed")
	}
	block, err := tomlTable(value, path)
	if err != nil {
		return err
	}
	if bytes.Contains(t.raw, []byte("\r\n")) {
		block = strings.ReplaceAll(block, "\n", "\r\n")
	}
	at := len(t.raw)
	if _, ok := t.follow(path); ok {
		runs, err := t.runs(path)
		if err != nil {
			return err
		}
		at = runs[0][0]
		if err := t.cut(runs); err != nil {
			return err
		}
		block = separate(t.raw[:at], block)
		if at < len(t.raw) && !bytes.HasPrefix(bytes.TrimLeft(t.raw[at:], "\r"), []byte("\n")) {
			block += "\n"
		}
	} else {
		block = separate(t.raw, block)
	}
	return t.reparse(slices.Concat(t.raw[:at], []byte(block), t.raw[at:]), path, true)
}

// separate puts an empty line in front of a block, unless nothing stands there.
func separate(before []byte, block string) string {
	eol := "\n"
	if strings.Contains(block, "\r\n") {
		eol = "\r\n"
	}
	switch {
	case len(before) == 0:
		return block
	case before[len(before)-1] != '\n':
		return eol + eol + block
	}
	return eol + block
}

func (t *tomlText) remove(path ...string) error {
	runs, err := t.runs(path)
	if err != nil {
		return err
	}
	if err := t.cut(runs); err != nil {
		return err
	}
	return t.reparse(t.raw, path, false)
}

// runs returns the lines of a table and what is in it, as neighbouring lines
// together. An empty line in front of a header is part of it.
func (t *tomlText) runs(path []string) ([][2]int, error) {
	var runs [][2]int
	for i, e := range t.lines {
		if len(e.path) < len(path) || !slices.Equal(e.path[:len(path)], path) {
			continue
		}
		if !e.header && len(runs) == 0 {
			break // of a table that is written in another way
		}
		start := e.start
		if e.header && (i == 0 || t.lines[i-1].end < start) {
			start = emptyLineBefore(t.raw, start)
		}
		if last := len(runs) - 1; last >= 0 && runs[last][1] >= start {
			runs[last][1] = e.end
		} else {
			runs = append(runs, [2]int{start, e.end})
		}
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("[%s] is not a table of its own: edit it by hand", strings.Join(path, "."))
	}
	return runs, nil
}

// emptyLineBefore returns the start of the empty line in front of an offset, or
// the offset if there is none.
func emptyLineBefore(raw []byte, offset int) int {
	before := raw[:offset]
	for _, empty := range [...]string{"\r\n", "\n"} {
		rest, ok := bytes.CutSuffix(before, []byte(empty))
		if ok && (len(rest) == 0 || rest[len(rest)-1] == '\n') {
			return len(rest)
		}
	}
	return offset
}

func (t *tomlText) cut(runs [][2]int) error {
	raw := bytes.Clone(t.raw)
	for _, run := range slices.Backward(runs) {
		raw = slices.Delete(raw, run[0], run[1])
	}
	return t.reparse(raw, nil, false)
}

// reparse takes a text, which must have the value at a path, or must not.
func (t *tomlText) reparse(raw []byte, path []string, want bool) error {
	if err := t.parse(raw); err != nil {
		return fmt.Errorf("the file cannot be edited, change it by hand: %w", err)
	}
	if _, ok := t.follow(path); path != nil && ok != want {
		return fmt.Errorf("[%s] is written in a way that cannot be edited: change it by hand", strings.Join(path, "."))
	}
	return nil
}

func (t *tomlText) rename(string, ...string) error {
	return errors.New("in TOML nothing can be renamed: change it by hand")
}

// tomlTable writes a JSON object as a table.
func tomlTable(value []byte, path []string) (string, error) {
	v, err := hujson.Parse(append(bytes.Clone(value), '\n'))
	if err != nil {
		return "", fmt.Errorf("the entry is not JSON: %w", err)
	}
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return "", errors.New("the entry is not an object")
	}
	names := make([]string, len(path))
	for i, name := range path {
		names[i] = tomlKey(name)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n", strings.Join(names, "."))
	for _, m := range object.Members {
		if m.Value.Value.Kind() == 'n' {
			continue
		}
		fmt.Fprintf(&b, "%s = ", tomlKey(m.Name.Value.(hujson.Literal).String()))
		writeTOML(&b, m.Value)
		b.WriteByte('\n')
	}
	return b.String(), nil
}

func writeTOML(b *strings.Builder, v hujson.Value) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		for i, m := range v.Members {
			fmt.Fprintf(b, "%s%s = ", []string{"{ ", ", "}[min(i, 1)], tomlKey(m.Name.Value.(hujson.Literal).String()))
			writeTOML(b, m.Value)
		}
		b.WriteString([]string{"{}", " }"}[min(len(v.Members), 1)])
	case *hujson.Array:
		b.WriteByte('[')
		for i, e := range v.Elements {
			if i > 0 {
				b.WriteString(", ")
			}
			writeTOML(b, e)
		}
		b.WriteByte(']')
	case hujson.Literal:
		if v.Kind() == '"' {
			b.WriteString(tomlString(v.String()))
			return
		}
		b.Write(v)
	}
}

// tomlString writes a string. What JSON escapes TOML escapes the same way, and
// DEL beside it.
func tomlString(s string) string {
	return strings.ReplaceAll(string(mcp.String(s)), "\x7f", `\u007F`)
}

func tomlKey(key string) string {
	if regexp.MustCompile(`^[A-Za-z0-9_-]+$`).MatchString(key) {
		return key
	}
	return tomlString(key)
}
