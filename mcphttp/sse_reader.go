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
	data  []byte // lines joined by LF; the receiver's
	id    string // the last id seen on the stream, this event's included
	retry time.Duration
}

// errEventSize is for an event that does not end within the limit.
var errEventSize = errors.New("an event of the stream is larger than the limit")

// eventReader reads a stream of server-sent events (WHATWG HTML, section 9.2).
// It is our own because the message in an event must stay bytes that are copied
// once, because events that have only an id matter to a client that resumes,
// and because an endless event must be cut off while it is read.
type eventReader struct {
	r       *bufio.Reader
	limit   int
	begun   bool
	id      string
	retry   time.Duration
	afterCR bool
}

func newEventReader(r io.Reader, limit int) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next returns the next event that has data, or an id and nothing else. io.EOF is
// the end of the stream; an event that the end cuts off is dropped, as the
// standard says.
func (e *eventReader) next() (event, error) {
	var data []byte
	lines, touched := 0, false
	size := 0
	for {
		line, err := e.line(e.limit - size)
		if err != nil {
			return event{}, err
		}
		size += len(line)
		if len(line) == 0 {
			if lines > 0 || touched {
				return event{data: data, id: e.id, retry: e.retry}, nil
			}
			size = 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		value = bytes.TrimPrefix(value, []byte{' '})
		switch string(name) {
		case "data":
			if lines > 0 {
				data = append(data, '\n')
			}
			data = append(data, value...)
			lines++
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.id, touched = string(value), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
}

// line returns the next line without its end, which may be LF, CR or CRLF. The
// bytes are good until the next call. A line over the limit is an error.
func (e *eventReader) line(limit int) ([]byte, error) {
	if !e.begun {
		e.begun = true
		if bom, err := e.r.Peek(3); err == nil && string(bom) == "\xEF\xBB\xBF" {
			_, _ = e.r.Discard(3) // they were peeked
		}
	}
	var long []byte // what did not fit the reader's buffer
	for {
		chunk, err := e.peek()
		if err != nil {
			return nil, err
		}
		if e.afterCR {
			e.afterCR = false
			if chunk[0] == '\n' {
				_, _ = e.r.Discard(1)
				continue
			}
		}
		i := bytes.IndexByte(chunk, '\n')
		if j := bytes.IndexByte(chunk[:max(i, 0)], '\r'); i < 0 || j >= 0 {
			if i < 0 {
				j = bytes.IndexByte(chunk, '\r')
			}
			i = j
		}
		if i < 0 {
			if len(long)+len(chunk) > limit {
				return nil, fmt.Errorf("%w of %d bytes", errEventSize, e.limit)
			}
			long = append(long, chunk...)
			_, _ = e.r.Discard(len(chunk))
			continue
		}
		if len(long)+i > limit {
			return nil, fmt.Errorf("%w of %d bytes", errEventSize, e.limit)
		}
		e.afterCR = chunk[i] == '\r'
		line := chunk[:i]
		if long != nil {
			line = append(long, line...)
		}
		_, _ = e.r.Discard(i + 1) // keeps the bytes until the next read
		return line, nil
	}
}

// peek returns what is buffered, reading if nothing is.
func (e *eventReader) peek() ([]byte, error) {
	if e.r.Buffered() == 0 {
		if _, err := e.r.Peek(1); err != nil {
			return nil, err
		}
	}
	return e.r.Peek(e.r.Buffered())
}
