package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// A responseReader reads HTTP/1.1 responses off a connection, one after the
// other, into a buffer that it keeps: bodies of declared length are not copied
// and nothing is allocated once the buffer is large enough. It knows as much of
// HTTP as the answers of an honest server to POST and DELETE need.
type responseReader struct {
	from       io.Reader
	buf        []byte
	start, end int    // what of buf was read and not yet returned
	joined     []byte // the body of the last chunked response
}

// A response is valid until the next one is read.
type response struct {
	status int
	head   []byte // status line and header fields, with the empty line
	body   []byte
}

const (
	maxHead = 64 << 10
	maxBody = 64 << 20
)

var errMalformed = errors.New("malformed response")

func newResponseReader(from io.Reader) *responseReader {
	return &responseReader{from: from, buf: make([]byte, 32<<10)}
}

// next reads one response. After an error the connection is of no more use.
func (r *responseReader) next() (response, error) {
	n, err := r.readUntil(0, "\r\n\r\n", maxHead)
	if err != nil {
		return response{}, fmt.Errorf("read head: %w", err)
	}
	head := r.buf[r.start : r.start+n]
	if len(head) < len("HTTP/1.1 200\r\n") || string(head[:7]) != "HTTP/1." {
		return response{}, fmt.Errorf("read status line: %w", errMalformed)
	}
	status, ok := atoi(head[9:12])
	if !ok {
		return response{}, fmt.Errorf("read status line: %w", errMalformed)
	}
	var total int
	var body []byte
	if coding, ok := field(head, "transfer-encoding"); ok {
		if !bytes.EqualFold(coding, []byte("chunked")) {
			return response{}, fmt.Errorf("transfer coding %q: %w", coding, errMalformed)
		}
		if total, err = r.readChunks(n); err != nil {
			return response{}, fmt.Errorf("read chunks: %w", err)
		}
		body = r.joined
	} else {
		length, err := contentLength(head)
		if err != nil {
			return response{}, err
		}
		total = n + length
		if err := r.need(total); err != nil {
			return response{}, fmt.Errorf("read body: %w", err)
		}
		body = r.buf[r.start+n : r.start+total]
	}
	resp := response{status: status, head: r.buf[r.start : r.start+n], body: body}
	r.start += total
	return resp, nil
}

// readChunks reads a chunked body, which begins at off after r.start, into
// r.joined. It returns where it ends.
func (r *responseReader) readChunks(off int) (int, error) {
	r.joined = r.joined[:0]
	for {
		next, err := r.readUntil(off, "\r\n", 1<<10)
		if err != nil {
			return 0, err
		}
		size, ok := chunkSize(r.buf[r.start+off : r.start+next-2])
		if !ok || len(r.joined)+size > maxBody {
			return 0, fmt.Errorf("chunk size: %w", errMalformed)
		}
		if size == 0 {
			return r.readTrailer(next)
		}
		off = next + size + 2
		if err := r.need(off); err != nil {
			return 0, err
		}
		r.joined = append(r.joined, r.buf[r.start+next:r.start+next+size]...)
		if string(r.buf[r.start+off-2:r.start+off]) != "\r\n" {
			return 0, fmt.Errorf("chunk end: %w", errMalformed)
		}
	}
}

// readTrailer reads up to the empty line and returns where it ends.
func (r *responseReader) readTrailer(off int) (int, error) {
	for {
		next, err := r.readUntil(off, "\r\n", maxHead)
		if err != nil || next == off+2 {
			return next, err
		}
		off = next
	}
}

// readUntil reads until mark stands after off, both counted from r.start, and
// returns where mark ends.
func (r *responseReader) readUntil(off int, mark string, limit int) (int, error) {
	for from := off; ; {
		have := r.end - r.start
		if from < have {
			if i := bytes.Index(r.buf[r.start+from:r.end], []byte(mark)); i >= 0 {
				return from + i + len(mark), nil
			}
			from = max(off, have-len(mark)+1)
		}
		if have-off > limit {
			return 0, fmt.Errorf("no end after %d bytes: %w", limit, errMalformed)
		}
		if err := r.need(have + 1); err != nil {
			return 0, err
		}
	}
}

// need reads until at least n bytes stand after r.start. It may move them.
func (r *responseReader) need(n int) error {
	if r.start+n > len(r.buf) {
		to := r.buf
		if n > len(to) {
			to = make([]byte, max(n, 2*len(to)))
		}
		r.end = copy(to, r.buf[r.start:r.end])
		r.buf, r.start = to, 0
	}
	for r.end-r.start < n {
		m, err := r.from.Read(r.buf[r.end:])
		r.end += m
		if m > 0 {
			continue
		}
		if errors.Is(err, io.EOF) && r.end > r.start {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// field returns the value of the first header field of a name, which is given
// in lower case.
func field(head []byte, name string) ([]byte, bool) {
	for {
		i := bytes.IndexByte(head, '\n')
		if i < 0 {
			return nil, false
		}
		head = head[i+1:]
		if len(head) <= len(name) || head[len(name)] != ':' || !equalLower(head[:len(name)], name) {
			continue
		}
		value, _, _ := bytes.Cut(head[len(name)+1:], []byte("\r\n"))
		return bytes.TrimSpace(value), true
	}
}

func equalLower(b []byte, lower string) bool {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// contentLength returns the declared length; none means no body.
func contentLength(head []byte) (int, error) {
	value, ok := field(head, "content-length")
	if !ok {
		return 0, nil
	}
	n, ok := atoi(value)
	if !ok || n > maxBody {
		return 0, fmt.Errorf("content length %q: %w", value, errMalformed)
	}
	return n, nil
}

// chunkSize reads the line before a chunk: hexadecimal, then perhaps an
// extension.
func chunkSize(line []byte) (int, bool) {
	digits, _, _ := bytes.Cut(line, []byte(";"))
	digits = bytes.TrimSpace(digits)
	if len(digits) == 0 || len(digits) > 7 {
		return 0, false
	}
	n := 0
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | int(c)
	}
	return n, true
}
