package mcphttp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// event is one server-sent event.
type event struct {
	data  []byte        // lines joined by LF; the receiver's
	kind  string        // its type; "": that of messages
	id    string        // the last id seen on the stream, this event's included
	retry time.Duration // likewise the last; 0: none
}

// errEventSize is for an event that does not end within the limit.
var errEventSize = errors.New("an event of the stream is larger than the limit")

const (
	maxEventID = 4 << 10   // longer ids are taken as none
	maxRetry   = time.Hour // longer times are taken as this
)

// eventReader reads a stream of server-sent events (WHATWG HTML, section 9.2).
// It is our own because the message in an event must stay bytes that are copied
// once, because events that have only an id matter to a client that resumes,
// and because an endless event must be cut off while it is read.
type eventReader struct {
	r       *bufio.Reader
	limit   int // of the bytes in one event, and in one line
	begun   bool
	afterCR bool
	id      string
	retry   time.Duration
}

func newEventReader(limit int) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(nil, 32<<10), limit: limit}
}

// reset prepares for another stream, which goes on from an id.
func (e *eventReader) reset(r io.Reader, id string, retry time.Duration) {
	e.r.Reset(r)
	e.begun, e.afterCR, e.id, e.retry = false, false, id, retry
}

// next returns the next event that has data, or an id and nothing else. io.EOF is
// the end of the stream; an event that the end cuts off is dropped, as the
// standard says, with its id.
func (e *eventReader) next() (event, error) {
	ev := event{id: e.id, retry: e.retry}
	size, lines, touched := 0, 0, false
	for {
		line, owned, err := e.line(e.limit - size)
		if err != nil {
			return event{}, err
		}
		if len(line) == 0 {
			if lines > 0 || touched {
				e.id, e.retry = ev.id, ev.retry
				return ev, nil
			}
			e.retry = ev.retry
			size, ev.kind = 0, ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "data":
			switch {
			case lines > 0:
				ev.data = append(append(ev.data, '\n'), value...)
			case owned:
				ev.data = value
			default:
				ev.data = bytes.Clone(value)
			}
			lines++
		case "event":
			ev.kind = string(value)
			if ev.kind == "message" {
				ev.kind = ""
			}
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				ev.id, touched = resumableID(value), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 64); err == nil && value[0] != '+' {
				ev.retry = time.Duration(min(ms, uint64(maxRetry/time.Millisecond))) * time.Millisecond
			}
		case "":
			continue // a comment
		}
		size += len(line)
	}
}

// resumableID returns an id as it goes into a Last-Event-ID field; "" for one
// that cannot.
func resumableID(id []byte) string {
	if len(id) > maxEventID {
		return ""
	}
	for _, c := range id {
		if c < ' ' && c != '\t' || c == 0x7f {
			return ""
		}
	}
	return string(id)
}

// line returns the next line without its end, which may be LF, CR or CRLF. The
// bytes are good until the next call, or the caller's if they are owned. A line
// over the limit is an error.
func (e *eventReader) line(limit int) (line []byte, owned bool, err error) {
	if !e.begun {
		e.begun = true
		if bom, err := e.r.Peek(3); err == nil && string(bom) == "\xEF\xBB\xBF" {
			_, _ = e.r.Discard(3) // they were peeked
		}
	}
	var parts [][]byte // of a line that did not fit the reader's buffer
	before := 0        // bytes in parts
	seen := 0          // bytes in the buffer that have no line end
	for {
		chunk, err := e.peek(seen + 1)
		if err != nil {
			return nil, false, err
		}
		if e.afterCR {
			e.afterCR = false
			if chunk[0] == '\n' {
				_, _ = e.r.Discard(1)
				continue
			}
		}
		end := lineEnd(chunk[seen:])
		if end >= 0 {
			end += seen
			seen = end
		} else {
			seen = len(chunk)
		}
		if before+seen > limit {
			return nil, false, fmt.Errorf("%w of %d bytes", errEventSize, e.limit)
		}
		switch {
		case end >= 0:
			e.afterCR = chunk[end] == '\r'
			line = chunk[:end]
			if parts != nil {
				line = bytes.Join(append(parts, line), nil)
			}
			_, _ = e.r.Discard(end + 1) // keeps the bytes until the next read
			return line, parts != nil, nil
		case seen == e.r.Size():
			parts = append(parts, bytes.Clone(chunk))
			before += seen
			_, _ = e.r.Discard(seen)
			seen = 0
		}
	}
}

// lineEnd returns the position of the first LF or CR, -1 if there is none.
func lineEnd(b []byte) int {
	lf := bytes.IndexByte(b, '\n')
	if lf >= 0 {
		b = b[:lf]
	}
	if cr := bytes.IndexByte(b, '\r'); cr >= 0 {
		return cr
	}
	return lf
}

// peek returns what is buffered, reading if that is less than n bytes.
func (e *eventReader) peek(n int) ([]byte, error) {
	if e.r.Buffered() < n {
		if _, err := e.r.Peek(n); err != nil {
			return nil, err
		}
	}
	return e.r.Peek(e.r.Buffered())
}
