package mcphttp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

var (
	// errNoAnswer is for a stream that ended too soon.
	errNoAnswer = errors.New("stream closed before the response")
	// errMessage is for what should have been a message.
	errMessage = errors.New("the server's message is invalid")
)

// intake takes the messages that come on one stream: that of a call, or that of
// a session.
type intake struct {
	conn    *Conn
	session *session
	id      jsonrpc.ID    // of the call; zero on a session's stream
	call    *jsonrpc.Call // likewise nil
	result  jsonrpc.Message

	lastEvent string // from which to resume; "": not possible
	retry     time.Duration
	count     int // of the events taken
}

// stream reads the response stream of a call and reports whether it is open
// behind the answer. One that breaks off in a session is resumed if the server
// gave the means, and again as long as that brings anything new.
func (in *intake) stream(ctx context.Context, body io.Reader) (open bool, err error) {
	open, err = in.events(body)
	if open {
		return true, nil
	}
	found, why := false, ""
	for n := 0; !found && in.resumable(err); n++ {
		from := in.lastEvent
		if !sleep(ctx, max(in.retry, time.Duration(n)*time.Second)) {
			break
		}
		var failure error
		if found, failure, err = in.resume(ctx); failure != nil {
			why = fmt.Sprintf(", and not resumed: %v", failure)
			break
		}
		if in.lastEvent == from {
			break
		}
	}
	switch {
	case found:
		return false, nil
	case errors.Is(err, io.EOF):
		return false, fmt.Errorf("%w%s", errNoAnswer, why)
	case in.broken(err):
		return false, fmt.Errorf("%w%s: %w", errNoAnswer, why, err)
	}
	return false, err
}

// resumable reports whether a stream that ended so may go on.
func (in *intake) resumable(err error) bool {
	return in.session != nil && in.lastEvent != "" && in.broken(err)
}

// broken reports whether a stream has ended, and not a message in it been wrong.
func (in *intake) broken(err error) bool {
	return err != nil && !errors.Is(err, errMessage) && !errors.Is(err, errEventSize)
}

// resume reads the rest of a stream (2025-11-25, basic/transports, Resumability
// and Redelivery). failure says why it cannot be had, err how it ended.
func (in *intake) resume(ctx context.Context) (found bool, failure, err error) {
	resp, failure := in.conn.get(ctx, in.session, in.lastEvent)
	if failure != nil {
		return false, failure, io.EOF
	}
	defer func() { _ = resp.Body.Close() }()
	found, err = in.events(resp.Body)
	return found, nil, err
}

// events takes the events of a stream until the call is answered or it ends.
func (in *intake) events(body io.Reader) (found bool, err error) {
	r, _ := in.conn.readers.Get().(*eventReader)
	if r == nil {
		r = newEventReader(in.conn.opts.MaxMessage)
	}
	defer in.conn.readers.Put(r)
	r.reset(body, in.lastEvent, in.retry)
	defer r.reset(nil, "", 0)
	for {
		ev, err := r.next()
		if err != nil {
			return false, err
		}
		in.count++
		in.lastEvent, in.retry = ev.id, ev.retry
		if ev.kind != "" || len(bytes.TrimSpace(ev.data)) == 0 {
			continue // no message: it may have an id, from which to resume
		}
		if found, err := in.take(ev.data); found || err != nil {
			return found, err
		}
	}
}

// take handles the message or messages in one event or body, and reports whether
// the answer to the call was among them.
func (in *intake) take(data []byte) (found bool, err error) {
	if data = bytes.TrimSpace(data); len(data) == 0 || data[0] != '[' {
		return in.message(data)
	}
	items, err := jsonrpc.Elements(data)
	if err != nil {
		return false, in.invalid(&jsonrpc.Message{}, jsonrpc.Errorf(jsonrpc.CodeParse, "not valid JSON: %v", err))
	}
	for _, item := range items {
		one, err := in.message(item)
		if err != nil {
			return false, err
		}
		found = found || one
	}
	return found, nil
}

// message handles one message.
func (in *intake) message(data []byte) (found bool, err error) {
	m, err := jsonrpc.Parse(data)
	switch {
	case err != nil:
		return false, in.invalid(&m, err)
	case m.IsResponse():
		// A server that could not read the id answers an error without one; on
		// the stream of a call it can only mean that call.
		if in.call == nil || m.ID != in.id && !(m.ID.IsZero() && m.Error != nil) {
			in.conn.opts.Logger.Debug("response to nothing dropped", "id", m.ID.String())
			return false, nil
		}
		in.result = m
		return true, nil
	}
	if m.Method == mcp.MethodCanceled && in.session != nil {
		in.session.cancelAsk(m.Params)
	}
	if in.call != nil && in.call.Message != nil {
		in.call.Message(&m)
	} else if m.IsNotification() {
		in.conn.opts.Notification(&m)
	}
	if m.IsRequest() {
		in.ask(&m)
	}
	return false, nil
}

// invalid handles what is not a message. On the stream of a call it may be the
// answer, unless it was seen to be something else.
func (in *intake) invalid(m *jsonrpc.Message, err error) error {
	if in.call != nil && m.Method == "" {
		return fmt.Errorf("%w: %s", errMessage, err.Error()) // err is not the server's own
	}
	in.conn.opts.Logger.Debug("message dropped", "err", err)
	return nil
}
