package jsonrpc_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/mcp-roster/roster/jsonrpc"
)

// memStream is one end of a pair of in-memory streams. Like a pipe it holds
// only so much: size frames, then a writer waits for the reader.
type memStream struct {
	in    <-chan []byte
	out   chan<- []byte
	eof   <-chan struct{} // the other end writes no more
	shut  chan struct{}   // closed to tell that to the other end
	close chan struct{}
	once  sync.Once
	hung  sync.Once

	mu       sync.Mutex
	writeErr error // guarded by mu: what every write returns
}

// memPipe returns the two ends of a stream that holds size frames each way.
func memPipe(size int) (a, b *memStream) {
	ab, ba := make(chan []byte, size), make(chan []byte, size)
	aShut, bShut := make(chan struct{}), make(chan struct{})
	a = &memStream{in: ba, out: ab, eof: bShut, shut: aShut, close: make(chan struct{})}
	b = &memStream{in: ab, out: ba, eof: aShut, shut: bShut, close: make(chan struct{})}
	return a, b
}

func (s *memStream) ReadFrame() ([]byte, error) {
	select {
	case f := <-s.in:
		return f, nil
	default:
	}
	select {
	case f := <-s.in:
		return f, nil
	case <-s.close:
		return nil, os.ErrClosed
	case <-s.eof:
	}
	select {
	case f := <-s.in: // written before the end
		return f, nil
	default:
		return nil, io.EOF
	}
}

func (s *memStream) WriteFrames(frames [][]byte) error {
	s.mu.Lock()
	err := s.writeErr
	s.mu.Unlock()
	if err != nil {
		return err
	}
	for _, f := range frames {
		select {
		case s.out <- append([]byte(nil), f...):
		case <-s.close:
			return os.ErrClosed
		}
	}
	return nil
}

// breakWrites makes later writes fail; reads go on.
func (s *memStream) breakWrites(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writeErr = err
}

// hangUp ends what this end sends; it still reads.
func (s *memStream) hangUp() { s.hung.Do(func() { close(s.shut) }) }

func (s *memStream) Close() error {
	s.once.Do(func() { close(s.close) })
	s.hangUp()
	return nil
}

// send writes one frame from a test.
func (s *memStream) send(t *testing.T, frame string) {
	t.Helper()
	if err := s.WriteFrames([][]byte{[]byte(frame)}); err != nil {
		t.Errorf("writing %s: %v", frame, err)
	}
}

// receive reads one frame in a test.
func (s *memStream) receive(t *testing.T) jsonrpc.Message {
	t.Helper()
	frame, err := s.ReadFrame()
	if err != nil {
		t.Fatalf("reading: %v", err)
	}
	m, err := jsonrpc.Parse(frame)
	if err != nil {
		t.Fatalf("reading %s: %v", frame, err)
	}
	return m
}

// lineStream carries frames as lines over a reader and a writer.
type lineStream struct {
	r   *bufio.Reader
	w   io.WriteCloser
	src io.Closer
	buf []byte
}

// osPipe returns two ends joined by operating system pipes.
func osPipe(tb testing.TB) (a, b jsonrpc.Stream) {
	tb.Helper()
	r1, w1, err1 := os.Pipe()
	r2, w2, err2 := os.Pipe()
	if err := errors.Join(err1, err2); err != nil {
		tb.Fatal(err)
	}
	return newLineStream(r1, w2), newLineStream(r2, w1)
}

// ioPipe returns two ends joined by pipes that hold nothing: a write waits
// until all of it was read.
func ioPipe() (a, b jsonrpc.Stream) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return newLineStream(r1, w2), newLineStream(r2, w1)
}

func newLineStream(r io.ReadCloser, w io.WriteCloser) *lineStream {
	return &lineStream{r: bufio.NewReaderSize(r, 64<<10), w: w, src: r}
}

func (s *lineStream) ReadFrame() ([]byte, error) {
	line, err := s.r.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	return line[:len(line)-1], nil
}

func (s *lineStream) WriteFrames(frames [][]byte) error {
	s.buf = s.buf[:0]
	for _, f := range frames {
		s.buf = append(append(s.buf, f...), '\n')
	}
	_, err := s.w.Write(s.buf)
	return err
}

func (s *lineStream) Close() error { return errors.Join(s.w.Close(), s.src.Close()) }
