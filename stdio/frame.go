package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
)

const (
	// DefaultMaxFrame is the longest frame a [Reader] accepts unless told otherwise: 64 MiB.
	DefaultMaxFrame = 64 << 20

	// readSize is how much is asked for in one read: what a Linux pipe holds.
	readSize = 64 << 10

	// pieceSize is the unit of memory in which a line is gathered that is longer than
	// readSize.
	pieceSize = 256 << 10

	// noiseSize is how much of a noise line the hook is shown.
	noiseSize = 256

	// maxEmptyReads is how often in a row a source may return neither bytes nor an error.
	maxEmptyReads = 100
)

// FrameTooLongError says that a peer sent a line longer than the limit. Where the
// next frame would begin is then unknown, so the stream is of no further use.
type FrameTooLongError struct {
	Limit int // the limit in force, in bytes
}

func (e *FrameTooLongError) Error() string {
	return fmt.Sprintf("frame is longer than %d bytes", e.Limit)
}

// ReaderOptions are the options of a [Reader]. The zero value is ready for use.
type ReaderOptions struct {
	// MaxFrame is the longest line in bytes, its line end not counted. Zero means
	// [DefaultMaxFrame]. It holds for noise too.
	MaxFrame int

	// Noise, if not nil, is called for each line that is not a message, with at most its
	// first 256 bytes. It runs on the goroutine that reads, so it must be quick; the
	// slice is valid during the call only.
	Noise func(line []byte)
}

// A Reader reads JSON lines: one frame per line, a line ends with LF or CR LF.
// Nothing else ends a line, neither a lone CR nor U+0085, U+2028 or U+2029. Blank
// lines are skipped, and so is a byte order mark at the very start of the stream.
//
// A line that does not begin like a JSON object, or like an array of them, is
// noise: a banner, or a log line that went to the wrong stream. Noise is counted,
// shown to the hook, and skipped. Whether a frame is valid JSON is not looked at.
//
// A Reader buffers at most 320 KiB beyond the frame it is reading. It is for one
// goroutine; only [Reader.Skipped] may be called from others.
type Reader struct {
	src   io.Reader
	max   int
	noise func([]byte)

	buf     []byte // read from src and not consumed: buf[start:end]
	start   int
	end     int
	scanned int // buf[start:scanned] holds no LF
	began   bool
	err     error // what the source said after buf[:end], or why the stream is given up

	skipped atomic.Uint64
}

// NewReader returns a Reader of src. opts may be nil.
func NewReader(src io.Reader, opts *ReaderOptions) *Reader {
	r := &Reader{src: src, max: DefaultMaxFrame}
	if opts != nil {
		r.noise = opts.Noise
		if opts.MaxFrame > 0 {
			r.max = opts.MaxFrame
		}
	}
	return r
}

// Skipped returns how many noise lines were skipped so far.
func (r *Reader) Skipped() uint64 { return r.skipped.Load() }

// ReadFrame returns the next frame, without its line end and without white space
// around it. The frame belongs to the caller.
//
// At the end of the stream the error is io.EOF, or io.ErrUnexpectedEOF if the stream
// ended within a frame; that half frame is discarded. A line over the limit gives a
// [*FrameTooLongError]. Every error is final.
func (r *Reader) ReadFrame() ([]byte, error) {
	for {
		line, owned, err := r.readLine()
		if err != nil {
			return nil, err
		}
		line = trimSpace(line)
		switch classify(line) {
		case lineBlank:
		case lineNoise:
			r.reportNoise(line)
		default:
			if owned {
				return line, nil
			}
			return bytes.Clone(line), nil
		}
	}
}

// readLine returns the next line without its LF. It is the caller's to keep if
// owned, else part of the buffer and valid until the next call. Noise that does not
// fit into the buffer is reported and skipped here.
func (r *Reader) readLine() (line []byte, owned bool, err error) {
	for {
		r.skipMark()
		if i := bytes.IndexByte(r.buf[r.scanned:r.end], '\n'); i >= 0 {
			line = r.buf[r.start : r.scanned+i]
			r.start = r.scanned + i + 1
			r.scanned = r.start
			if r.tooLong(line) {
				return nil, false, r.giveUp()
			}
			return line, false, nil
		}
		r.scanned = r.end
		switch {
		case r.err != nil:
			return nil, false, r.finish()
		case r.tooLong(r.buf[r.start:r.end]):
			return nil, false, r.giveUp()
		case r.end-r.start < readSize:
			r.fill()
		case classify(trimSpace(r.buf[r.start:r.end])) == lineNoise:
			if err := r.skipLine(); err != nil {
				return nil, false, err
			}
		default:
			line, err = r.readLongLine()
			return line, true, err
		}
	}
}

// fill reads once into the free part of the buffer, which is not full.
func (r *Reader) fill() {
	if r.buf == nil {
		r.buf = make([]byte, readSize)
	}
	if r.start > 0 && len(r.buf)-r.end < readSize/2 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.scanned -= r.start
		r.start = 0
	}
	r.end += r.read(r.buf[r.end:])
}

// read reads at least one byte into p, or sets r.err.
func (r *Reader) read(p []byte) int {
	for range maxEmptyReads {
		n, err := r.src.Read(p)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("read frame: %w", err)
			}
			r.err = err
			return n
		}
		if n > 0 {
			return n
		}
	}
	r.err = fmt.Errorf("read frame: %w", io.ErrNoProgress)
	return 0
}

// readLongLine reads the rest of a line of which the first part fills the buffer,
// and returns the line in memory of its own. It gathers pieces and joins them at
// the end: the length is not known before, and growing copies more.
func (r *Reader) readLongLine() ([]byte, error) {
	pieces := [][]byte{bytes.Clone(r.buf[r.start:r.end])}
	size := r.end - r.start
	for {
		r.start, r.end, r.scanned = 0, 0, 0
		if errors.Is(r.err, io.EOF) {
			r.err = io.ErrUnexpectedEOF
		}
		if r.err != nil {
			return nil, r.finish()
		}
		piece := make([]byte, 0, pieceSize)
		for len(piece) < cap(piece) && r.err == nil {
			fresh := piece[len(piece):min(len(piece)+readSize, cap(piece))]
			fresh = fresh[:r.read(fresh)]
			if i := bytes.IndexByte(fresh, '\n'); i >= 0 {
				r.end = copy(r.buf, fresh[i+1:])
				return r.join(append(pieces, piece[:len(piece)+i]))
			}
			piece = piece[:len(piece)+len(fresh)]
			if size += len(fresh); size > r.max+1 {
				return nil, r.giveUp()
			}
		}
		pieces = append(pieces, piece)
	}
}

// join joins the pieces of a line.
func (r *Reader) join(pieces [][]byte) ([]byte, error) {
	line := bytes.Join(pieces, nil)
	if r.tooLong(line) {
		return nil, r.giveUp()
	}
	return line, nil
}

// skipLine reports the noise line of which the first part fills the buffer, and
// discards the rest of it.
func (r *Reader) skipLine() error {
	first := r.buf[r.start:r.end]
	r.reportNoise(trimSpace(first))
	size := len(first)
	for {
		r.start, r.end, r.scanned = 0, 0, 0
		if r.err != nil {
			return r.finish()
		}
		r.end = r.read(r.buf)
		i := bytes.IndexByte(r.buf[:r.end], '\n')
		if i >= 0 {
			r.start, r.scanned = i+1, i+1
			return nil
		}
		if size += r.end; size > r.max+1 {
			return r.giveUp()
		}
	}
}

// skipMark skips the byte order mark at the start of the stream, once enough of it
// is known.
func (r *Reader) skipMark() {
	const mark = "\xef\xbb\xbf"
	if r.began || r.end == 0 {
		return
	}
	head := string(r.buf[:min(r.end, len(mark))])
	if head != mark && strings.HasPrefix(mark, head) {
		return
	}
	r.began = true
	if head == mark {
		r.start, r.scanned = len(mark), len(mark)
	}
}

// tooLong reports whether a line is over the limit. A CR at its end may be half of
// the line's end and does not count.
func (r *Reader) tooLong(line []byte) bool {
	if len(line) <= r.max {
		return false
	}
	return len(line) > r.max+1 || line[len(line)-1] != '\r'
}

func (r *Reader) giveUp() error {
	r.err = &FrameTooLongError{Limit: r.max}
	r.buf, r.start, r.end, r.scanned = nil, 0, 0, 0
	return r.err
}

// finish ends the stream: it discards the unfinished line and returns the final
// error.
func (r *Reader) finish() error {
	if errors.Is(r.err, io.EOF) {
		line := trimSpace(r.buf[r.start:r.end])
		switch classify(line) {
		case lineBlank:
		case lineNoise:
			r.reportNoise(line)
		default:
			r.err = io.ErrUnexpectedEOF
		}
	}
	r.buf, r.start, r.end, r.scanned = nil, 0, 0, 0
	return r.err
}

func (r *Reader) reportNoise(line []byte) {
	r.skipped.Add(1)
	if r.noise != nil {
		r.noise(line[:min(len(line), noiseSize)])
	}
}

type lineKind int

const (
	lineBlank lineKind = iota
	lineFrame
	lineNoise
)

// classify tells what a line without white space around it is. An array is a frame
// only if it is empty or its first element is an object, as in a batch: log lines
// like to begin with "[INFO]" or "[2026-07-28 ...]".
func classify(line []byte) lineKind {
	if len(line) == 0 {
		return lineBlank
	}
	switch line[0] {
	case '{':
		return lineFrame
	case '[':
		rest := bytes.TrimLeft(line[1:], " \t\r")
		if len(rest) > 0 && (rest[0] == '{' || rest[0] == ']') {
			return lineFrame
		}
	}
	return lineNoise
}

// trimSpace trims what JSON calls white space.
func trimSpace(line []byte) []byte { return bytes.Trim(line, " \t\r\n") }
