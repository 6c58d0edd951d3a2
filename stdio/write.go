package stdio

import (
	"bytes"
	"fmt"
	"io"
)

// coalesceSize is how many bytes of small frames are gathered for one write.
const coalesceSize = 64 << 10

// A Writer writes frames as JSON lines, each ended by a single LF. A frame must be
// one JSON value; line breaks in it (CR and LF) that stand outside strings are left
// out, all other bytes are written as they are. Within strings JSON has no line
// breaks; where there is one all the same, it is written as an escape, so that no
// frame is ever two lines.
//
// Nothing is held back: when a method returns, all was handed to the underlying
// writer. A Writer is for one goroutine.
type Writer struct {
	dst io.Writer
	buf []byte
	one [1][]byte // what WriteFrame hands to WriteFrames
	err error     // why a write failed; the stream may end within a frame
}

// NewWriter returns a Writer to dst.
func NewWriter(dst io.Writer) *Writer { return &Writer{dst: dst} }

// WriteFrame writes one frame. See [Writer.WriteFrames].
func (w *Writer) WriteFrame(frame []byte) error {
	w.one[0] = frame
	err := w.WriteFrames(w.one[:])
	w.one[0] = nil
	return err
}

// WriteFrames writes frames in order, in as few writes as that allows: frames up to
// 64 KiB share one, larger ones are not copied. Empty frames are passed over. It
// does not keep the frames. An error is the underlying writer's and final: the peer
// may have got half a frame.
func (w *Writer) WriteFrames(frames [][]byte) error {
	if w.err != nil {
		return w.err
	}
	for _, frame := range frames {
		if frame = oneLine(frame); len(frame) == 0 {
			continue
		}
		if err := w.add(frame); err != nil {
			return err
		}
	}
	return w.flush()
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

// oneLine returns a JSON value without line breaks. One that has none is returned as
// it is, else the result is a copy.
func oneLine(frame []byte) []byte {
	if bytes.IndexByte(frame, '\n') < 0 && bytes.IndexByte(frame, '\r') < 0 {
		return frame
	}
	out := make([]byte, 0, len(frame))
	inString := false
	for i := 0; i < len(frame); i++ {
		c := frame[i]
		switch {
		case c == '\n' && inString:
			out = append(out, `\n`...)
			continue
		case c == '\r' && inString:
			out = append(out, `\r`...)
			continue
		case c == '\n' || c == '\r':
			continue
		case c == '"':
			inString = !inString
		case c == '\\' && inString && i+1 < len(frame) && frame[i+1] >= ' ':
			out = append(out, c)
			i++
		}
		out = append(out, frame[i])
	}
	return out
}
