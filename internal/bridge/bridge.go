// Package bridge passes messages between one client on pipes and the gateway that
// serves it.
//
// Messages pass as they are, in order, both ways. When the gateway ends, the client
// stays: [Run] asks for another one, and tells it what the client has said to the
// first and counts on: that it has begun a session, its log level, which resources
// it watches. Requests that were under way are sent once more if that cannot do
// harm, as those for lists; the others, calls of tools among them, are answered with
// an error. Questions of the former gateway are taken back.
//
// Two goroutines work at a time, one for each direction.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/mcp-roster/roster/stdio"
)

// Conn is a connection to a gateway, which reads and writes JSON lines.
type Conn interface {
	io.ReadWriteCloser
	// CloseWrite says that nothing more will be written.
	CloseWrite() error
}

// Options configures Run. Connect is required.
type Options struct {
	// Connect returns a gateway: the first, and another one each time that one has
	// ended. ctx is for the search alone, not for the connection. Its error ends Run.
	Connect func(ctx context.Context) (Conn, error)
	// Logger is told when a gateway has ended. nil: nobody is.
	Logger *slog.Logger
}

const (
	// finishTime is how long the gateway may take to answer what came before the end
	// of the client's messages.
	finishTime = 2 * time.Second
	// stuckTime is how long the client may take for its last message.
	stuckTime = 500 * time.Millisecond
)

// errLost says that the gateway has ended.
var errLost = errors.New("the gateway has ended")

// Run serves the client that writes to in and reads from out, until in ends (nil),
// ctx does (its cause), no gateway is to be had, or the pipes fail. One goroutine may
// stay in a read of in or a write to out that cannot be interrupted.
func Run(ctx context.Context, in io.Reader, out io.Writer, opts Options) error {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bridge{opts: opts, out: stdio.NewWriter(out), frames: make(chan read), over: make(chan struct{}), talk: newTalk()}
	go b.readClient(ctx, in) // ends with in, or at the first message after ctx
	for again := false; ; again = true {
		conn, err := b.connect(ctx)
		if err != nil {
			return errors.Join(err, b.fail(b.talk.end()))
		}
		if conn == nil {
			return b.fail(b.talk.end())
		}
		err = b.serve(ctx, conn, again)
		if !errors.Is(err, errLost) {
			return err
		}
		opts.Logger.Warn("the gateway that served this client has ended; looking for another", "err", err)
		if err := b.fail(b.talk.lose()); err != nil {
			return err
		}
	}
}

// bridge is one client.
type bridge struct {
	opts   Options
	out    *stdio.Writer // used by the reader of the gateway, and when there is none
	frames chan read
	over   chan struct{} // closed when the client says no more
	talk   *talk
}

// read is a message of the client, or the end.
type read struct {
	frame []byte
	err   error
}

func (b *bridge) readClient(ctx context.Context, in io.Reader) {
	r := stdio.NewReader(in, nil)
	for {
		frame, err := r.ReadFrame()
		if err != nil {
			close(b.over)
		}
		select {
		case b.frames <- read{frame, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// connect returns a gateway; nil if the client has ended before there was one.
func (b *bridge) connect(ctx context.Context) (Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	connected := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { // ends when connected is closed
		select {
		case <-b.over:
			cancel()
		case <-connected:
		}
	})
	conn, err := b.opts.Connect(ctx)
	close(connected)
	watcher.Wait()
	defer cancel()
	if err != nil {
		select {
		case <-b.over:
			return nil, nil
		default:
		}
	}
	return conn, err
}

// fail tells the client what has become of requests and questions.
func (b *bridge) fail(frames [][]byte) error {
	if err := b.out.WriteFrames(frames); err != nil {
		return fmt.Errorf("write to the client: %w", err)
	}
	return nil
}

// serve uses a gateway until it or the client ends.
func (b *bridge) serve(ctx context.Context, conn Conn, again bool) error {
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	sent := &counter{w: conn}
	gateway := stdio.NewWriter(sent)
	var why error // of the reader's end; set when gone is closed
	gone := make(chan struct{})
	refusals := make(chan []byte)
	stop := make(chan struct{})
	go func() { // ends with conn, and when stop is closed
		defer close(gone)
		why = b.readGateway(conn, refusals, stop)
	}()
	defer func() {
		close(stop)
		_ = conn.Close() // why it ended is known
		select {
		case <-gone:
		case <-ctx.Done():
			b.await(gone)
		}
	}()
	if again {
		if gateway.WriteFrames(b.talk.resume()) != nil {
			return errLost
		}
	}
	for {
		var frame []byte
		select {
		case r := <-b.frames:
			if r.err != nil {
				return b.finish(ctx, conn, gone, r.err)
			}
			if !b.talk.fromClient(r.frame) {
				continue
			}
			frame = r.frame
		case frame = <-refusals:
		case <-gone:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return why
		}
		before := sent.n
		if gateway.WriteFrame(frame) != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if sent.n == before {
				b.talk.unsent(frame)
			}
			return errLost
		}
	}
}

// counter counts what was written.
type counter struct {
	w io.Writer
	n int
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	return n, err
}

// await waits for the reader of a gateway, but not for long: it may be stuck in a
// write to a client that does not read.
func (b *bridge) await(gone <-chan struct{}) {
	select {
	case <-gone:
	case <-time.After(stuckTime):
	}
}

// finish lets the gateway answer what the client has said before it ended.
func (b *bridge) finish(ctx context.Context, conn Conn, gone <-chan struct{}, end error) error {
	if !errors.Is(end, io.EOF) {
		return fmt.Errorf("read from the client: %w", end)
	}
	if conn.CloseWrite() != nil {
		return nil // the gateway is gone, as the client is
	}
	select {
	case <-gone:
	case <-time.After(finishTime):
	case <-ctx.Done():
	}
	return nil
}

// readGateway passes on what the gateway says, until it ends: errLost, or an error
// of the client's pipe.
func (b *bridge) readGateway(conn Conn, refusals chan<- []byte, stop <-chan struct{}) error {
	r := stdio.NewReader(conn, nil)
	for {
		frame, err := r.ReadFrame()
		if err != nil {
			return fmt.Errorf("%w: %w", errLost, err)
		}
		pass, refusal := b.talk.fromGateway(frame)
		if refusal != nil {
			select {
			case refusals <- refusal:
			case <-stop:
			}
		}
		if !pass {
			continue
		}
		if err := b.out.WriteFrame(frame); err != nil {
			return fmt.Errorf("write to the client: %w", err)
		}
	}
}
