package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/mcp-roster/roster/internal/app"
	"github.com/mcp-roster/roster/internal/bridge"
)

const (
	// joinStep is how often a gateway is looked for.
	joinStep = 50 * time.Millisecond
	// joinTime is how long one is waited for that has started, or is ending, and
	// does not serve yet or any more; then a second one is started.
	joinTime = 10 * time.Second
	// returnTime is how long a gateway is waited for that has ended and is likely to
	// be started again.
	returnTime = 5 * time.Second
)

// seats finds gateways that serve a client on pipes: one that runs, or else one that
// it starts in this process.
type seats struct {
	prog *program
	opts serveOptions
	log  *slog.Logger

	stop    func()   // ends the command
	lasting bool     // the last gateway did not depend on a client
	own     *app.App // nil: not started
	unwatch func()   // of own
}

// serveBridged serves the client on standard input and output by whichever gateway of
// the configuration runs.
func (p *program) serveBridged(ctx context.Context, o serveOptions, log *slog.Logger) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &seats{prog: p, opts: o, log: log, stop: stop}
	first, err := s.find(ctx)
	switch {
	case err != nil:
	case first == nil:
		err = s.own.ServeStdio(ctx, p.Stdin, p.Stdout)
	default:
		err = bridge.Run(ctx, p.Stdin, p.Stdout, bridge.Options{Logger: log, Connect: func(ctx context.Context) (bridge.Conn, error) {
			if conn := first; conn != nil {
				first = nil
				return conn, nil
			}
			return s.connect(ctx)
		}})
	}
	if ctx.Err() != nil {
		err = nil
	}
	if err == nil {
		log.Info("stopping")
	}
	return errors.Join(err, s.close())
}

// connect returns a connection to a gateway.
func (s *seats) connect(ctx context.Context) (bridge.Conn, error) {
	if s.own != nil {
		return nil, errors.New("the gateway in this process has ended")
	}
	conn, err := s.find(ctx)
	if conn != nil || err != nil {
		return conn, err
	}
	in, toGateway := io.Pipe()
	fromGateway, out := io.Pipe()
	ctx = context.WithoutCancel(ctx)
	go func() { // ends with the connection
		err := s.own.ServeStdio(ctx, in, out)
		_ = in.CloseWithError(io.ErrClosedPipe) // a pipe in memory
		_ = out.CloseWithError(err)             // likewise; nil is the end
	}()
	return &seat{fromGateway, toGateway}, nil
}

// find returns a connection to a gateway that runs, or nil if it has started one.
func (s *seats) find(ctx context.Context) (bridge.Conn, error) {
	began := time.Now()
	s.opts.alone = true
	for {
		conf, err := s.prog.load()
		if err != nil {
			return nil, err
		}
		seat, err := app.Join(ctx, conf.Config, conf.files)
		if err == nil {
			s.lasting = !seat.Brief
			s.log.Info("served by the gateway that runs already; --no-bridge starts another one")
			return seat, nil
		}
		if other, ok := errors.AsType[*app.OtherConfigError](err); ok {
			s.log.Warn("starting servers for this client alone", "reason", other.Reason)
			s.opts.alone = false
		}
		if waited := time.Since(began); !s.opts.alone || !s.lasting || waited > returnTime {
			s.opts.alone = s.opts.alone && waited < joinTime
			a, err := s.prog.startServing(ctx, s.opts, conf, s.log, "")
			if err == nil {
				s.own, s.unwatch = a, s.prog.hangups(context.WithoutCancel(ctx), a, s.stop)
				return nil, nil
			}
			if !errors.Is(err, app.ErrTaken) {
				return nil, err
			}
		}
		select {
		case <-time.After(joinStep):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *seats) close() error {
	if s.own == nil {
		return nil
	}
	s.unwatch()
	return s.own.Close()
}

// seat is a connection to the gateway in this process.
type seat struct {
	*io.PipeReader
	in *io.PipeWriter
}

func (s *seat) Write(p []byte) (int, error) { return s.in.Write(p) }

// CloseWrite says that nothing more will be written.
func (s *seat) CloseWrite() error { return s.in.Close() }

// Close ends the connection.
func (s *seat) Close() error { return errors.Join(s.in.Close(), s.PipeReader.Close()) }
