package jsonrpc

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deeply arrays and objects of a message may nest.
const MaxDepth = 512

// scanner checks JSON text in one pass over its bytes, and finds where the
// parts of a message lie. It accepts what jsontext accepts with duplicate names
// allowed: the grammar of RFC 8259, valid UTF-8, and no lone surrogates, raw or
// escaped. Names that stand twice are for the caller to find, at the levels
// that it reads.
//
// Its methods take the offset of what they read and return the offset behind
// it. A negative offset means that the text is not JSON and err says why.
type scanner struct {
	data []byte
	err  *syntaxError
	deep bool // nested beyond MaxDepth; what is in there was not checked
}

// syntaxError says why bytes are not JSON.
type syntaxError struct {
	offset int
	reason string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("not valid JSON at byte %d: %s", e.offset, e.reason)
}

const failed = -1

func (s *scanner) fail(at int, reason string) int {
	s.err = &syntaxError{at, reason}
	return failed
}

// expected fails because of what stands at an offset.
func (s *scanner) expected(at int, what string) int {
	if at >= len(s.data) {
		return s.fail(len(s.data), "ends where "+what+" is expected")
	}
	return s.fail(at, fmt.Sprintf("%q where %s is expected", s.data[at], what))
}

// space skips white space.
func (s *scanner) space(i int) int {
	const white = 1<<' ' | 1<<'\t' | 1<<'\n' | 1<<'\r'
	for uint(i) < uint(len(s.data)) && s.data[i] <= ' ' && white>>s.data[i]&1 != 0 {
		i++
	}
	return i
}

// end checks that only white space follows.
func (s *scanner) end(i int) int {
	if i = s.space(i); i < len(s.data) {
		return s.fail(i, "more bytes behind the value")
	}
	return i
}

// value reads the value that starts at i, inside of depth arrays and objects.
func (s *scanner) value(i, depth int) int {
	if uint(i) >= uint(len(s.data)) {
		return s.expected(i, "a value")
	}
	switch c := s.data[i]; c {
	case '"':
		return s.text(i)
	case '{':
		if depth == MaxDepth {
			return s.tooDeep(i)
		}
		return s.object(i, depth+1)
	case '[':
		if depth == MaxDepth {
			return s.tooDeep(i)
		}
		return s.array(i, depth+1)
	case 't':
		return s.literal(i, "true")
	case 'f':
		return s.literal(i, "false")
	case 'n':
		return s.literal(i, "null")
	default:
		return s.number(i)
	}
}

// object reads an object that is itself the depth-th level.
func (s *scanner) object(i, depth int) int {
	i, more := s.open(i, '}')
	for more {
		_, v := s.name(i)
		if v < 0 {
			return v
		}
		if i = s.value(v, depth); i < 0 {
			return i
		}
		i, more = s.next(i, '}')
	}
	return i
}

// array reads an array that is itself the depth-th level.
func (s *scanner) array(i, depth int) int {
	i, more := s.open(i, ']')
	for more {
		if i = s.value(i, depth); i < 0 {
			return i
		}
		i, more = s.next(i, ']')
	}
	return i
}

// open steps behind an opening bracket: to the first element (more), or behind
// the closing bracket.
func (s *scanner) open(i int, closing byte) (at int, more bool) {
	i = s.space(i + 1)
	if uint(i) < uint(len(s.data)) && s.data[i] == closing {
		return i + 1, false
	}
	return i, true
}

// next steps behind an element: to the next one (more), or behind the closing
// bracket.
func (s *scanner) next(i int, closing byte) (at int, more bool) {
	i = s.space(i)
	if uint(i) < uint(len(s.data)) {
		switch s.data[i] {
		case ',':
			return s.space(i + 1), true
		case closing:
			return i + 1, false
		}
	}
	return s.expected(i, "a comma or "+string(closing)), false
}

// name reads the name of a member and its colon. It returns where the name ends
// and where the value starts.
func (s *scanner) name(i int) (end, value int) {
	if uint(i) >= uint(len(s.data)) || s.data[i] != '"' {
		return failed, s.expected(i, "a member's name")
	}
	if end = s.text(i); end < 0 {
		return failed, failed
	}
	i = s.space(end)
	if uint(i) >= uint(len(s.data)) || s.data[i] != ':' {
		return failed, s.expected(i, "a colon")
	}
	return end, s.space(i + 1)
}

// A word is eight bytes of text, compared at once. The byte-wise differences
// below set the top bit of a byte that is special; a borrow can reach only
// bytes behind one that is special itself, so the first one found is true.
const (
	each = 0x0101010101010101
	tops = 0x80 * each
)

// text reads a string.
func (s *scanner) text(i int) int {
	start := i + 1
	wide := uint64(0) // has a top bit if there are bytes beyond ASCII
	i = start
	for {
		for i+8 <= len(s.data) {
			w := binary.LittleEndian.Uint64(s.data[i:])
			special := ((w - ' '*each) | ((w ^ '"'*each) - each) | ((w ^ '\\'*each) - each)) &^ w & tops
			wide |= w
			if special != 0 {
				i += bits.TrailingZeros64(special) / 8
				break
			}
			i += 8
		}
		for i < len(s.data) && !isSpecial(s.data[i]) {
			wide |= uint64(s.data[i])
			i++
		}
		if i >= len(s.data) {
			return s.fail(i, "ends in a string")
		}
		switch s.data[i] {
		case '"':
			if wide&tops != 0 && !utf8.Valid(s.data[start:i]) {
				return s.notUTF8(start)
			}
			return i + 1
		case '\\':
			if i = s.escape(i); i < 0 {
				return i
			}
		default:
			return s.fail(i, "control character in a string")
		}
	}
}

func isSpecial(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

func (s *scanner) notUTF8(i int) int {
	for {
		r, size := utf8.DecodeRune(s.data[i:])
		if r == utf8.RuneError && size == 1 {
			return s.fail(i, "invalid UTF-8")
		}
		i += size
	}
}

// escape reads an escape sequence; a surrogate must be followed by its other
// half.
func (s *scanner) escape(i int) int {
	if i+1 >= len(s.data) {
		return s.fail(len(s.data), "ends in a string")
	}
	switch s.data[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		u := s.hex(i)
		switch {
		case u < 0:
			return failed
		case u < 0xD800 || u > 0xDFFF:
			return i + 6
		case u < 0xDC00 && i+7 < len(s.data) && s.data[i+6] == '\\' && s.data[i+7] == 'u':
			low := s.hex(i + 6)
			if low < 0 {
				return failed
			}
			if low >= 0xDC00 && low <= 0xDFFF {
				return i + 12
			}
		}
		return s.fail(i, "escaped half of a surrogate pair")
	}
	return s.fail(i, "unknown escape sequence")
}

// hex reads the digits of the \u sequence at i.
func (s *scanner) hex(i int) int {
	if i+6 > len(s.data) {
		return s.fail(len(s.data), "ends in a string")
	}
	u := 0
	for _, c := range s.data[i+2 : i+6] {
		switch {
		case c >= '0' && c <= '9':
			u = u<<4 | int(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			u = u<<4 | int(c|0x20-'a'+10)
		default:
			return s.fail(i, "unknown escape sequence")
		}
	}
	return u
}

func (s *scanner) literal(i int, want string) int {
	if end := i + len(want); end <= len(s.data) && string(s.data[i:end]) == want {
		return end
	}
	return s.expected(i, want)
}

func (s *scanner) number(i int) int {
	at := i
	if s.is(i, '-') {
		i++
	}
	if s.is(i, '0') {
		i++
	} else if i = s.digits(i); i < 0 {
		return s.expected(at, "a value")
	}
	if s.is(i, '.') {
		if i = s.digits(i + 1); i < 0 {
			return i
		}
	}
	if s.is(i, 'e') || s.is(i, 'E') {
		i++
		if s.is(i, '+') || s.is(i, '-') {
			i++
		}
		i = s.digits(i)
	}
	return i
}

func (s *scanner) is(i int, c byte) bool { return uint(i) < uint(len(s.data)) && s.data[i] == c }

// digits reads at least one digit.
func (s *scanner) digits(i int) int {
	start := i
	for uint(i) < uint(len(s.data)) && s.data[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return s.expected(i, "a digit")
	}
	return i
}

// tooDeep skips an array or object that is nested too deeply, without a look at
// its grammar: the message is refused, but its id may stand behind.
func (s *scanner) tooDeep(i int) int {
	s.deep = true
	depth := 0
	for i < len(s.data) {
		switch s.data[i] {
		case '"':
			if i = s.text(i); i < 0 {
				return i
			}
			continue
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return s.expected(i, "a closing bracket")
}

// unescape decodes a quoted string that was checked before.
func unescape(quoted []byte) string {
	out, _ := jsontext.AppendUnquote(nil, quoted)
	return string(out)
}
