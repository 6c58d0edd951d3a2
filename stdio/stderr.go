package stdio

import (
	"bytes"
	"io"
	"strings"
	"time"
	"unicode"
)

const (
	stderrRingSize  = 64 << 10 // what Process.Stderr returns at most
	stderrLineSize  = 4 << 10  // what the hook is shown of a line
	stderrCutSize   = 4 << 10  // what is read beyond that, so that Hide sees no half of a secret
	stderrLineRate  = 100      // lines per second for the hook
	reasonLines     = 5        // of standard error in an ExitError's text
	reasonLineBytes = 300      // of each of them
)

// stderrReader empties a child's standard error, whatever is written there and
// however fast: into a ring, and line by line to a hook.
type stderrReader struct {
	ring *ring
	hook func(line []byte, dropped int)
	hide func(text string) string // nil: everything may be shown

	line    []byte // the unfinished line, at most stderrLineSize and stderrCutSize
	dropped int    // lines the hook was spared since it was last called
	second  time.Time
	shown   int // lines since second
}

// run reads until the stream ends or is closed.
func (s *stderrReader) run(src io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		s.ring.write(buf[:n])
		if s.hook != nil {
			s.split(buf[:n], time.Now())
		}
		if err != nil {
			break
		}
	}
	if s.hook != nil {
		s.endLine(time.Now())
		if s.dropped > 0 {
			s.hook(nil, s.dropped)
		}
	}
}

// split cuts what was read now into lines. A progress bar ends its lines with CR.
func (s *stderrReader) split(p []byte, now time.Time) {
	for len(p) > 0 {
		i := bytes.IndexAny(p, "\r\n")
		piece := p
		if i >= 0 {
			piece = p[:i]
		}
		if room := stderrLineSize + stderrCutSize - len(s.line); room > 0 {
			s.line = append(s.line, piece[:min(room, len(piece))]...)
		}
		if i < 0 {
			return
		}
		s.endLine(now)
		p = p[i+1:]
	}
}

func (s *stderrReader) endLine(now time.Time) {
	line := bytes.TrimSpace(s.line)
	s.line = s.line[:0]
	if len(line) == 0 {
		return
	}
	if now.Sub(s.second) >= time.Second {
		s.second, s.shown = now, 0
	}
	if s.shown >= stderrLineRate {
		s.dropped++
		return
	}
	s.shown++
	if s.hide != nil {
		line = []byte(s.hide(string(line)))
	}
	s.hook(line[:min(len(line), stderrLineSize)], s.dropped)
	s.dropped = 0
}

// tail returns what may be shown of the end of a standard error. If the start was
// forgotten, so is what may be half of a secret there.
func (s *stderrReader) tail() []byte {
	tail := s.ring.tail()
	if s.hide == nil {
		return tail
	}
	full := len(tail) == stderrRingSize
	tail = []byte(s.hide(string(tail)))
	if full {
		tail = tail[min(len(tail), stderrCutSize):]
	}
	return tail
}

// lastLines returns the last lines of a standard error as one line of printable
// text, empty if there are none.
func lastLines(tail []byte) string {
	var lines []string
	for len(tail) > 0 && len(lines) < reasonLines {
		i := bytes.LastIndexAny(tail, "\r\n")
		line := bytes.TrimSpace(tail[i+1:])
		tail = tail[:max(i, 0)]
		if len(line) > reasonLineBytes {
			line = line[:reasonLineBytes]
		}
		text := strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return ' '
		}, strings.ToValidUTF8(string(line), "?"))
		if text = strings.TrimSpace(text); text != "" {
			lines = append(lines, text)
		}
	}
	var out strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		out.WriteString(lines[i])
		if i > 0 {
			out.WriteString(" | ")
		}
	}
	return out.String()
}
