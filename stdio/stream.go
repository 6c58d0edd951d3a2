package stdio

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
)

var _ jsonrpc.Stream = (*stream)(nil)

// stream is a jsonrpc.Stream over a source and a destination that may block for ever
// and cannot be interrupted, as a terminal cannot. ReadFrame and WriteFrames leave
// the blocking to goroutines of their own and return when the stream is closed.
type stream struct {
	frames chan readResult
	writer *Writer
	writes chan [][]byte // for pumpWrites; nil: WriteFrames writes itself
	wrote  chan error

	// direct is read by ReadFrame itself, from a source that Close can interrupt;
	// nil: pumpReads reads.
	direct *Reader
	source *output    // of direct
	readMu sync.Mutex // held by who reads it

	closeOnce sync.Once
	closed    chan struct{}
	interrupt func() // called once at Close: makes blocked reads and writes return, if it can
	reading   chan struct{}

	// ended, if not nil, replaces the error with which the source ended.
	ended func(err error) error
}

type readResult struct {
	frame []byte
	err   error
}

// newStream returns a stream. With drain, what comes after Close, or after a
// line over the limit, is read and thrown away until the source ends. With interruptible, writes to dst return after
// interrupt was called.
func newStream(src io.Reader, dst io.Writer, opts *ReaderOptions, drain, interruptible bool, interrupt func()) *stream {
	s := &stream{
		frames:    make(chan readResult),
		writer:    NewWriter(dst),
		closed:    make(chan struct{}),
		interrupt: interrupt,
		reading:   make(chan struct{}),
	}
	go s.pumpReads(src, NewReader(src, opts), drain) // ends with src, without drain at the first frame after Close
	if !interruptible {
		s.writes = make(chan [][]byte)
		s.wrote = make(chan error, 1)
		go s.pumpWrites() // ends with Close, once the write it is in returns
	}
	return s
}

func (s *stream) pumpReads(src io.Reader, r *Reader, drain bool) {
	defer close(s.reading)
	for open := true; open; {
		frame, err := r.ReadFrame()
		select {
		case s.frames <- readResult{frame, err}:
			open = err == nil
		case <-s.closed:
			open = false
		}
	}
	if drain {
		_, _ = io.Copy(io.Discard, src) // nobody is interested any more
	}
}

func (s *stream) pumpWrites() {
	for {
		select {
		case frames := <-s.writes:
			s.wrote <- s.writer.WriteFrames(frames)
		case <-s.closed:
			return
		}
	}
}

// ReadFrame returns the next frame.
func (s *stream) ReadFrame() ([]byte, error) {
	if s.direct != nil {
		return s.readDirect()
	}
	select {
	case r := <-s.frames:
		if r.err != nil && s.ended != nil {
			r.err = s.ended(r.err)
		}
		return r.frame, r.err
	case <-s.closed:
		return nil, os.ErrClosed
	}
}

func (s *stream) readDirect() ([]byte, error) {
	s.readMu.Lock()
	frame, err := s.direct.ReadFrame()
	s.readMu.Unlock()
	select {
	case <-s.closed:
		return nil, os.ErrClosed
	default:
	}
	if err != nil && s.ended != nil {
		err = s.ended(err)
	}
	return frame, err
}

// drain reads what comes after Close and throws it away, so that a child that
// still writes can end. It ends with the source.
func (s *stream) drain() {
	s.source.interrupt() // a read that waits
	s.readMu.Lock()
	defer s.readMu.Unlock()
	s.source.resume()
	_, _ = io.Copy(io.Discard, s.source) // nobody is interested any more
}

// WriteFrames writes frames. If it fails because the stream was closed, some of them
// may still be in use.
func (s *stream) WriteFrames(frames [][]byte) error {
	if s.writes == nil {
		return s.writer.WriteFrames(frames)
	}
	select {
	case s.writes <- frames:
	case <-s.closed:
		return os.ErrClosed
	}
	select {
	case err := <-s.wrote:
		return err
	case <-s.closed:
		return os.ErrClosed
	}
}

// Close makes ReadFrame and WriteFrames return. It does not wait.
func (s *stream) Close() error {
	s.closeOnce.Do(func() {
		close(s.closed)
		s.interrupt()
		if s.direct != nil {
			go s.drain() // ends when the child's output does, which the child's end makes sure of
		}
	})
	return nil
}

// childStream returns the stream over a child's pipes. Closing it stops the child.
func childStream(p *Process) *stream {
	opts := &ReaderOptions{MaxFrame: p.command.MaxFrame, Noise: p.command.Noise}
	if runtime.GOOS == "windows" || !p.stdout.interruptible() { // where closing a pipe does not end what is under way
		s := newStream(p.stdout, p.stdin, opts, true, false, p.Stop)
		s.ended = p.whyEnded
		return s
	}
	return &stream{
		direct: NewReader(p.stdout, opts), source: p.stdout, writer: NewWriter(p.stdin),
		closed: make(chan struct{}), interrupt: p.Stop, ended: p.whyEnded,
	}
}

// whyEnded returns why the process's output ended with err. A server may end by
// closing its output; it is then given a moment to exit.
func (p *Process) whyEnded(err error) error {
	if _, ok := errors.AsType[*FrameTooLongError](err); ok {
		return err
	}
	p.Stop()
	if waitFor(p.done, drainWait) {
		return p.err
	}
	return fmt.Errorf("%s closed its output: %w", p.command.Name, io.ErrUnexpectedEOF)
}

// pipeStream returns the stream over ends that are not ours to close, and what is to
// be called when ReadFrame and WriteFrames have returned for the last time.
func pipeStream(in io.Reader, out io.Writer, opts *ReaderOptions) (s *stream, release func()) {
	past := time.Unix(1, 0)
	reads, _ := in.(interface{ SetReadDeadline(time.Time) error })
	writes, _ := out.(interface{ SetWriteDeadline(time.Time) error })
	canRead := reads != nil && reads.SetReadDeadline(time.Time{}) == nil
	canWrite := writes != nil && writes.SetWriteDeadline(time.Time{}) == nil
	s = newStream(in, out, opts, false, canWrite, func() {
		if canRead {
			_ = reads.SetReadDeadline(past) // it worked before
		}
		if canWrite {
			_ = writes.SetWriteDeadline(past) // likewise
		}
	})
	return s, func() {
		_ = s.Close() // never fails
		if canRead {
			<-s.reading
			_ = reads.SetReadDeadline(time.Time{}) // likewise
		}
		if canWrite {
			_ = writes.SetWriteDeadline(time.Time{}) // likewise
		}
	}
}
