package mcptest

import (
	"io"
	"sync"
)

// Pipe returns the two ends of a connection in memory, each a jsonrpc.Stream.
// Frames that one end writes are read at the other, in order; up to 64 wait. A
// closed end reads as an orderly end of the stream at the other, once what was
// written has been read.
func Pipe() (a, b *End) {
	ab, ba := make(chan []byte, 64), make(chan []byte, 64)
	a = &End{in: ba, out: ab, closed: make(chan struct{})}
	b = &End{in: ab, out: ba, closed: make(chan struct{})}
	a.peer, b.peer = b, a
	return a, b
}

// End is one end of a Pipe.
type End struct {
	in     <-chan []byte
	out    chan<- []byte
	peer   *End
	once   sync.Once
	closed chan struct{}
}

// ReadFrame returns the next frame.
func (e *End) ReadFrame() ([]byte, error) {
	select {
	case f := <-e.in:
		return f, nil
	default:
	}
	select {
	case f := <-e.in:
		return f, nil
	case <-e.closed:
		return nil, io.ErrClosedPipe
	case <-e.peer.closed:
	}
	select { // what was written before the end
	case f := <-e.in:
		return f, nil
	default:
		return nil, io.EOF
	}
}

// WriteFrames writes copies of frames.
func (e *End) WriteFrames(frames [][]byte) error {
	for _, f := range frames {
		select {
		case e.out <- append([]byte(nil), f...):
		case <-e.closed:
			return io.ErrClosedPipe
		case <-e.peer.closed:
			return io.ErrClosedPipe
		}
	}
	return nil
}

// Close closes the end.
func (e *End) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}
