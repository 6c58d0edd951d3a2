package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// VersionError says that a server and this package have no protocol version in
// common.
type VersionError struct {
	Supported []string // the server's versions, as it listed them
}

func (e *VersionError) Error() string {
	ours := make([]string, 0, len(mcp.Versions()))
	for _, v := range mcp.Versions() {
		ours = append(ours, string(v))
	}
	theirs := strings.Join(e.Supported, ", ")
	if theirs == "" {
		theirs = "others, which it does not name"
	}
	return "no protocol version in common: the server speaks " + theirs + "; we speak " + strings.Join(ours, ", ")
}

// diedError says that the wire ended before the server had answered the first
// request.
type diedError struct{ err error }

func (e *diedError) Error() string { return e.err.Error() }
func (e *diedError) Unwrap() error { return e.err }

// dialError says that no wire could be opened, which tells nothing of eras.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// Connect opens a connection and finds out how the server wants to be spoken to
// (2026-07-28, basic/versioning, Backward Compatibility). It asks with
// server/discover first, unless Remembered says otherwise, and falls back to
// initialize where the rules of the wire say that the server knows no other way.
// A server that named its versions is never spoken to in another. Without a
// deadline in ctx it takes at most DefaultConnectTimeout.
func Connect(ctx context.Context, opts Options) (*Client, error) {
	opts = opts.withDefaults()
	if _, ok := ctx.Deadline(); !ok {
		limited, cancel := context.WithTimeout(ctx, DefaultConnectTimeout)
		defer cancel()
		ctx = limited
	}
	if v := opts.Remembered; v.Known() && !v.Stateless() {
		c, err := attempt(ctx, opts, (*Client).initializeLatest)
		switch {
		case err != nil && undecided(err):
			return nil, err
		case err == nil && (opts.RememberedInfo == nil || bytes.Equal(opts.RememberedInfo, c.info.Info)):
			return c, nil
		case err == nil:
			_ = c.Close() // it was only asked who it is
		}
	}
	c, err := attempt(ctx, opts, (*Client).detect)
	if died, ok := errors.AsType[*diedError](err); ok && !opts.HTTP {
		c, err = attempt(ctx, opts, (*Client).initializeLatest)
		if err != nil {
			err = before(err, died)
		}
	}
	return c, err
}

// before adds to an error what had gone wrong with server/discover, unless that
// is the same.
func before(err, probe error) error {
	if why := strings.TrimPrefix(probe.Error(), mcp.MethodDiscover+": "); strings.Contains(err.Error(), why) {
		return err
	}
	return fmt.Errorf("%w (before that, %s)", err, probe.Error())
}

// undecided reports whether a failure says nothing about the server's era.
func undecided(err error) bool {
	if _, ok := errors.AsType[*dialError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*diedError](err); ok {
		return false
	}
	switch judge(err) {
	case verdictNone:
		_, answered := errors.AsType[*answerError](err)
		return !answered
	default:
		return false
	}
}

// attempt opens a wire and has the beginning of the conversation on it.
func attempt(ctx context.Context, opts Options, begin func(*Client, context.Context) error) (*Client, error) {
	c := &Client{opts: opts}
	wire, err := opts.Dial(ctx, c.incoming())
	if err != nil {
		return nil, &dialError{err}
	}
	c.wire = wire
	if err := begin(c, ctx); err != nil {
		_ = wire.Close() // what went wrong is in err
		return nil, err
	}
	return c, nil
}

// verdict is what an answer to a request of a stateless version says of its
// server.
type verdict int

const (
	verdictNone     verdict = iota // nothing: the request may not have reached it
	verdictSessions                // it knows only versions that begin with initialize
	verdictVersions                // it is stateless, or at least names its versions
	verdictRefused                 // it is stateless, and refuses the request
)

// judge reads the verdict off an error. Status codes that are about the caller
// or about the moment say nothing, unless the body has an error that only a
// stateless server knows.
func judge(err error) verdict {
	answer, answered := errors.AsType[*jsonrpc.Error](err)
	if answered {
		switch answer.Code {
		case mcp.CodeUnsupportedVersion:
			return verdictVersions
		case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability:
			return verdictRefused
		}
	}
	if e, ok := errors.AsType[HTTPError](err); ok {
		switch status := e.HTTPStatus(); {
		case status == 401, status == 403, status == 429:
			return verdictNone
		case status >= 400 && status < 500:
			return verdictSessions
		default:
			return verdictNone
		}
	}
	if answered {
		return verdictSessions
	}
	return verdictNone
}

// detect begins with server/discover.
func (c *Client) detect(ctx context.Context) error {
	if c.opts.HTTP {
		result, err := c.discover(ctx, mcp.Latest)
		return c.settle(ctx, result, err)
	}
	return c.detectOnPipes(ctx)
}

func (c *Client) discover(ctx context.Context, v mcp.Version) (jsonrpc.Object, error) {
	call := c.outgoing(v, Request{Method: mcp.MethodDiscover})
	call.KeepOnCancel = true // an old server would not know what is meant
	return c.wire.Do(ctx, call)
}

// settle acts on the answer to server/discover.
func (c *Client) settle(ctx context.Context, result jsonrpc.Object, err error) error {
	if err == nil {
		if info, ok := readDiscover(result); ok {
			return c.adopt(ctx, info)
		}
		return c.initialize(ctx, mcp.LatestSession)
	}
	switch judge(err) {
	case verdictVersions:
		supported := namedVersions(err)
		v, ok := mcp.Best(supported)
		switch {
		case !ok:
			return &VersionError{supported}
		case v.Stateless():
			return c.rediscover(ctx, v)
		}
		return c.initialize(ctx, v)
	case verdictRefused:
		return fmt.Errorf("server/discover: %w", err)
	case verdictSessions:
		if initErr := c.initialize(ctx, mcp.LatestSession); initErr != nil {
			return before(initErr, fmt.Errorf("%s: %w", mcp.MethodDiscover, err))
		}
		return nil
	}
	return c.wireError("server/discover", err)
}

// rediscover asks once more in a version that the server says it supports.
func (c *Client) rediscover(ctx context.Context, v mcp.Version) error {
	result, err := c.discover(ctx, v)
	if err != nil {
		return c.wireError("server/discover", err)
	}
	info, ok := readDiscover(result)
	if !ok {
		return &ResultError{mcp.MethodDiscover, "has no supportedVersions"}
	}
	return c.adopt(ctx, info)
}

// adopt takes the best version that a DiscoverResult offers.
func (c *Client) adopt(ctx context.Context, info ServerInfo) error {
	v, ok := mcp.Best(info.Supported)
	switch {
	case !ok:
		return &VersionError{info.Supported}
	case !v.Stateless():
		return c.initialize(ctx, v)
	}
	info.Version = v
	c.info = info
	return nil
}

// wireError names what was being done, and tells a connection that ended from
// other failures.
func (c *Client) wireError(doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	if _, answered := errors.AsType[*jsonrpc.Error](err); !answered && errors.Is(err, jsonrpc.ErrClosed) {
		return &diedError{err}
	}
	return err
}

// reply is what came back for a request that another goroutine sent.
type reply struct {
	result jsonrpc.Object
	err    error
}

// detectOnPipes asks with server/discover, and after ProbeTimeout of silence
// with initialize as well: a silent server may be one that drops what it does
// not know, or one that is slow to start. The answer to server/discover counts
// whenever it comes before the other.
func (c *Client) detectOnPipes(ctx context.Context) error {
	asked, giveUp := context.WithCancel(ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer giveUp()
	probe := make(chan reply, 1)
	asking.Go(func() { // ends when the server answers, or with asked
		result, err := c.discover(asked, mcp.Latest)
		probe <- reply{result, err}
	})
	silence := time.NewTimer(c.opts.ProbeTimeout)
	defer silence.Stop()
	select {
	case r := <-probe:
		return c.settle(ctx, r.result, r.err)
	case <-silence.C:
	}
	hello := make(chan reply, 1)
	asking.Go(func() { // likewise
		result, err := c.sendInitialize(asked, mcp.LatestSession)
		hello <- reply{result, err}
	})
	return c.settleBoth(ctx, probe, hello)
}

// settleBoth acts on the answers to server/discover and initialize when both
// are under way.
func (c *Client) settleBoth(ctx context.Context, probe, hello <-chan reply) error {
	var refused error // the answer to initialize
	var late <-chan time.Time
	for {
		select {
		case r := <-probe:
			done, err := c.settleLate(ctx, r)
			switch {
			case done:
				return err
			case refused != nil:
				return c.retryInitialize(ctx, mcp.LatestSession, refused)
			}
			probe = nil
		case r := <-hello:
			switch {
			case r.err == nil:
				return c.greeted(ctx, r.result, mcp.LatestSession)
			case probe == nil, judge(r.err) == verdictNone:
				return c.retryInitialize(ctx, mcp.LatestSession, r.err)
			}
			// A server that does not know initialize may yet know the other.
			refused, hello, late = r.err, nil, time.After(c.opts.ProbeTimeout)
		case <-late:
			return c.retryInitialize(ctx, mcp.LatestSession, refused)
		case <-ctx.Done():
			return fmt.Errorf("no answer to server/discover or initialize: %w", context.Cause(ctx))
		}
	}
}

// settleLate acts on an answer to server/discover that came after initialize
// was sent. It is not done if the answer says no more than that initialize was
// right.
func (c *Client) settleLate(ctx context.Context, r reply) (done bool, err error) {
	var supported []string
	if r.err == nil {
		info, ok := readDiscover(r.result)
		if !ok {
			return false, nil
		}
		supported = info.Supported
	} else {
		switch judge(r.err) {
		case verdictSessions:
			return false, nil
		case verdictVersions:
			supported = namedVersions(r.err)
		default:
			return true, c.wireError("server/discover", r.err)
		}
	}
	if v, ok := mcp.Best(supported); ok && !v.Stateless() {
		return false, nil
	}
	return true, c.settle(ctx, r.result, r.err)
}
