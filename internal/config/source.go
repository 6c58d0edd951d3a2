package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

const (
	maxFileBytes = 8 << 20 // of a configuration file
	maxDepth     = 512     // of nested objects and arrays
)

// source is one file, parsed.
type source struct {
	path   string // as given
	folder string // the workspace folder, absolute
	text   []byte // without the byte order mark; offsets count in it
	marks  []mark // at the start of each line, and every few KiB
	root   *hujson.Object
	start  int // offset of root
}

// mark is a place in the text from which others are found.
type mark struct{ offset, line, column int }

// readSource reads and parses a file. The error is a *SyntaxError unless the
// file could not be read.
func readSource(path string) (*source, error) {
	text, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return newSource(path, text)
}

// newSource parses the text of a file.
func newSource(path string, text []byte) (*source, error) {
	folder, err := workspaceFolder(path)
	if err != nil {
		return nil, fmt.Errorf("find the folder of %s: %w", path, err)
	}
	s := &source{path: path, folder: folder}
	if encoding := foreignEncoding(text); encoding != "" {
		return nil, s.errorAt(0, "the file is "+encoding+", expected UTF-8: save it as UTF-8")
	}
	s.text = bytes.TrimPrefix(text, []byte("\ufeff"))
	s.marks = marks(s.text)
	return s, s.parse()
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("read configuration: %s is larger than %d MiB", path, maxFileBytes>>20)
	}
	return text, nil
}

// workspaceFolder is the folder of the file, or the one above it if the file
// stands in an editor's own folder of a project.
func workspaceFolder(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(abs)
	if slices.Contains([]string{".vscode", ".cursor", ".gemini", ".kiro", ".roo"}, filepath.Base(dir)) {
		dir = filepath.Dir(dir)
	}
	return dir, nil
}

// foreignEncoding names the encoding of text if it is one that we refuse.
func foreignEncoding(text []byte) string {
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe, 0, 0}), bytes.HasPrefix(text, []byte{0, 0, 0xfe, 0xff}):
		return "UTF-32"
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return "UTF-16"
	case len(text) >= 2 && (text[0] == 0) != (text[1] == 0):
		return "UTF-16"
	}
	return ""
}

func (s *source) parse() error {
	if at := invalidUTF8(s.text); at >= 0 {
		return s.errorAt(at, "expected UTF-8, found a byte that is not")
	}
	if len(bytes.TrimSpace(s.text)) == 0 {
		return s.errorAt(0, "the file is empty, expected a JSON object")
	}
	if at, _ := scan(s.text); at >= 0 {
		return s.errorAt(at, fmt.Sprintf("objects and arrays are nested more than %d deep", maxDepth))
	}
	// hujson wants a line break at the end of a comment, even of the last one.
	value, err := hujson.Parse(append(bytes.Clone(s.text), '\n'))
	if err != nil {
		return s.syntaxError(err)
	}
	root, ok := value.Value.(*hujson.Object)
	if !ok {
		return s.errorAt(value.StartOffset, "expected a JSON object, found "+kind(value))
	}
	s.root, s.start = root, value.StartOffset
	return nil
}

func invalidUTF8(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// scan returns the offset of the bracket that exceeds maxDepth, or -1, and that
// of a string that does not end, or -1. The parser is recursive, and Go cannot
// recover from a stack that is full.
func scan(text []byte) (deep, open int) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return i, -1
			}
		case '}', ']':
			depth--
		case '"':
			start := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			if i >= len(text) {
				return -1, start
			}
		case '/':
			i = skipComment(text, i)
		}
	}
	return -1, -1
}

// skipComment returns the offset of the last byte of the comment that starts
// at i, or i if none does.
func skipComment(text []byte, i int) int {
	end := ""
	switch rest := text[i:]; {
	case bytes.HasPrefix(rest, []byte("//")):
		end = "\n"
	case bytes.HasPrefix(rest, []byte("/*")):
		end = "*/"
	default:
		return i
	}
	n := bytes.Index(text[i+2:], []byte(end))
	if n < 0 {
		return len(text)
	}
	return i + 2 + n + len(end) - 1
}

// marks returns marks that are close enough to each other for a position to be
// found fast, however long the lines are.
func marks(text []byte) []mark {
	const distance = 4 << 10
	last := mark{offset: 0, line: 1, column: 1}
	marks := []mark{last}
	for i, c := range text {
		switch {
		case c == '\n':
			last = mark{offset: i + 1, line: last.line + 1, column: 1}
			marks = append(marks, last)
		case i == last.offset+distance:
			last = mark{offset: i, line: last.line, column: last.column + characters(text[last.offset:i])}
			marks = append(marks, last)
		}
	}
	return marks
}

// characters counts the bytes that start a character in UTF-8.
func characters(text []byte) int {
	n := 0
	for _, c := range text {
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}

// position returns the place of a byte of the file.
func (s *source) position(offset int) Position {
	if len(s.marks) == 0 {
		return Position{File: s.path, Line: 1, Column: 1}
	}
	offset = min(max(offset, 0), len(s.text))
	m := s.marks[sort.Search(len(s.marks), func(i int) bool { return s.marks[i].offset > offset })-1]
	return Position{File: s.path, Line: m.line, Column: m.column + characters(s.text[m.offset:offset])}
}

func (s *source) errorAt(offset int, message string) *SyntaxError {
	return &SyntaxError{Position: s.position(offset), Message: message}
}

// syntaxError turns an error of the parser, which may quote a secret, into one
// that says what was expected.
func (s *source) syntaxError(err error) *SyntaxError {
	offset := s.parserOffset(err)
	if inner := errors.Unwrap(err); inner != nil {
		err = inner
	}
	const value = `a value: a string in double quotes, a number, true, false, null, "{" or "["`
	expected := value
	message := err.Error()
	switch {
	case strings.Contains(message, "invalid literal") && offset < len(s.text) && s.text[offset] == '"':
		return s.stringError(offset)
	case strings.Contains(message, "parsing string"):
		_, open := scan(s.text)
		return s.stringError(open)
	case strings.Contains(message, "object name"), strings.Contains(message, "object after name"):
		expected = `":" after a key`
		if strings.Contains(message, "at start of object name") {
			expected = "a key in double quotes"
		}
	case strings.Contains(message, "object after value"), strings.Contains(message, "after object value"):
		expected = `"," or "}" after a value`
	case strings.Contains(message, "array after value"), strings.Contains(message, "after array value"):
		expected = `"," or "]" after a value`
	case strings.Contains(message, "parsing comment"):
		expected = `"*/" that ends the comment`
	case strings.Contains(message, "line comment"):
		expected = "no line separator (U+2028, U+2029) in a comment"
	case strings.Contains(message, "top-level"):
		expected = "the end of the file"
	}
	return s.errorAt(offset, "expected "+expected+", found "+s.found(offset))
}

// parserOffset returns the offset that an error of the parser gives as line
// and column, the latter in bytes.
func (s *source) parserOffset(err error) int {
	var line, column int
	if _, err := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); err != nil || line < 1 {
		return 0
	}
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].line >= line })
	if i == len(s.marks) { // behind the line break that parse appends
		return len(s.text)
	}
	return min(s.marks[i].offset+column-1, len(s.text))
}

// found describes what stands at offset by its first character.
func (s *source) found(offset int) string {
	if offset >= len(s.text) {
		return "the end of the file"
	}
	r, _ := utf8.DecodeRune(s.text[offset:])
	return fmt.Sprintf("%q", r)
}

// stringError says what is wrong in the string that starts at offset.
func (s *source) stringError(offset int) *SyntaxError {
	for i := offset + 1; i < len(s.text) && s.text[i] != '"'; i++ {
		switch c := s.text[i]; {
		case c == '\n' || c == '\r':
			return s.errorAt(i, `expected a double quote that ends the string before the line ends (a line break in a string is \n)`)
		case c < ' ':
			return s.errorAt(i, fmt.Sprintf(`expected an escape such as \t, found the control character %q in a string`, c))
		case c == '\\':
			i++
			if i < len(s.text) && !strings.ContainsRune(`"\/bfnrtu`, rune(s.text[i])) {
				return s.errorAt(i-1, `expected an escape that JSON knows (a backslash is \\), found `+s.found(i)+" after a backslash")
			}
			if i < len(s.text) && s.text[i] == 'u' && !hexDigits(s.text[i+1:], 4) {
				return s.errorAt(i-1, `expected four hexadecimal digits after \u`)
			}
		}
	}
	return s.errorAt(offset, "expected a double quote that ends this string")
}

func hexDigits(text []byte, n int) bool {
	return len(text) >= n && len(bytes.Trim(text[:n], "0123456789abcdefABCDEF")) == 0
}

// kind names the type of a value for a message.
func kind(v hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case 'n':
		return "null"
	default:
		return string(v.Value.(hujson.Literal))
	}
}
