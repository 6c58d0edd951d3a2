package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// coalesceSize is how many bytes of small frames are gathered for one write.
const coalesceSize = 64 << 10

// ErrLineBreak says that a frame has a line break within a string, where JSON does
// not allow one. The frame was not written.
var ErrLineBreak = errors.New("line break within a JSON string")

// A Writer writes frames as JSON lines, each ended by a single LF. A frame must be
// one JSON value; line breaks in it that stand outside strings are left out, all
// other bytes are written as they are.
//
// Nothing is held back: when a method returns, all was handed to the underlying
// writer. A Writer is for one goroutine.
type Writer struct {
	dst io.Writer
	buf []byte
	err error // why a write failed; the stream may end within a frame
}

// NewWriter returns a Writer to dst.
func NewWriter(dst io.Writer) *Writer { return &Writer{dst: dst} }

// WriteFrame writes one frame. See [Writer.WriteFrames].
func (w *Writer) WriteFrame(frame []byte) error { return w.WriteFrames(frame) }

// WriteFrames writes frames in order, as few writes as that allows: frames up to
// 64 KiB share one, larger ones are not copied. It does not keep the frames.
//
// A frame for which [Compact] fails is left out, the others are written, and the
// error wraps [ErrLineBreak]. Any other error is one of the underlying writer and
// final: the peer may have got half a frame.
func (w *Writer) WriteFrames(frames ...[]byte) error {
	if w.err != nil {
		return w.err
	}
	var refused error
	for _, frame := range frames {
		frame, err := Compact(frame)
		if err != nil {
			refused = fmt.Errorf("write frame: %w", err)
			continue
		}
		if len(frame) == 0 {
			continue
		}
		if err := w.add(frame); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	return refused
}

// add puts a frame and its LF into the buffer, or writes the frame past it if it is
// large: then only the LF goes there, to be written with what follows.
func (w *Writer) add(frame []byte) error {
	if len(w.buf)+len(frame)+1 > coalesceSize {
		if err := w.flush(); err != nil {
			return err
		}
	}
	if len(frame)+1 > coalesceSize {
		if err := w.write(frame); err != nil {
			return err
		}
		frame = nil
	}
	w.buf = append(w.buf, frame...)
	w.buf = append(w.buf, '\n')
	return nil
}

func (w *Writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	err := w.write(w.buf)
	w.buf = w.buf[:0]
	return err
}

func (w *Writer) write(p []byte) error {
	n, err := w.dst.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("write frame: %w", err)
	}
	return w.err
}

// Compact returns a JSON value without the line breaks (CR and LF) that stand
// outside its strings. A value that has none is returned as it is, else the result
// is a copy. A line break within a string is refused with [ErrLineBreak].
func Compact(frame []byte) ([]byte, error) {
	if bytes.IndexByte(frame, '\n') < 0 && bytes.IndexByte(frame, '\r') < 0 {
		return frame, nil
	}
	out := make([]byte, 0, len(frame))
	inString := false
	for i := 0; i < len(frame); i++ {
		switch c := frame[i]; {
		case c == '\n' || c == '\r':
			if inString {
				return nil, ErrLineBreak
			}
			continue
		case c == '"':
			inString = !inString
		case c == '\\' && inString && i+1 < len(frame) && frame[i+1] >= ' ':
			out = append(out, c)
			i++
		}
		out = append(out, frame[i])
	}
	return out, nil
}
