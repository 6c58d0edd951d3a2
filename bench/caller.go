package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// A caller is one client with one kept-alive connection, which repeats one
// request. It is not safe for concurrent use, but one goroutine may send while
// another receives.
type caller struct {
	conn    net.Conn
	in      *responseReader
	to      requester
	request *request
	lastID  int64
	bodyLen int // of every answer, once the first was checked
}

var errWrongAnswer = errors.New("wrong answer")

// dial connects a caller, within limit for all that it will do, and opens a
// session if the server wants one. Its ids begin after base.
func dial(ctx context.Context, t *target, e era, base int64, limit time.Duration) (*caller, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.host)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", t.name, err)
	}
	c := &caller{conn: conn, in: newResponseReader(conn), lastID: firstID + base}
	c.to = requester{host: t.host, path: t.path, era: e}
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("set deadline: %w", err)
	}
	if e == session && t.sessions {
		if err := c.open(); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("open session with %s: %w", t.name, err)
		}
	}
	return c, nil
}

// open performs the handshake of the session era.
func (c *caller) open() error {
	if _, err := c.conn.Write(c.to.initialize().bytes); err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	resp, err := c.in.next()
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if resp.status != http.StatusOK {
		return fmt.Errorf("initialize: status %d: %w", resp.status, errWrongAnswer)
	}
	id, _ := field(resp.head, "mcp-session-id")
	c.to.session = string(id)
	if _, err := c.conn.Write(c.to.initialized()); err != nil {
		return fmt.Errorf("initialized: %w", err)
	}
	if resp, err = c.in.next(); err != nil {
		return fmt.Errorf("initialized: %w", err)
	}
	if resp.status != http.StatusAccepted {
		return fmt.Errorf("initialized: status %d: %w", resp.status, errWrongAnswer)
	}
	return nil
}

// close ends the session, if there is one, and the connection.
func (c *caller) close() {
	if c.to.session != "" {
		if _, err := c.conn.Write(c.to.end()); err == nil {
			_, _ = c.in.next()
		}
	}
	_ = c.conn.Close()
}

// call sends the request once and waits for its answer.
func (c *caller) call() error {
	if err := c.send(); err != nil {
		return err
	}
	return c.receive()
}

func (c *caller) send() error {
	c.lastID++
	c.request.setID(c.lastID)
	if _, err := c.conn.Write(c.request.bytes); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// receive reads the answer to the last request. An answer is right if it has
// the request's id and the length of the one that was looked at closely.
func (c *caller) receive() error {
	resp, err := c.in.next()
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	a, b, ok := member(resp.body, "id")
	if resp.status != http.StatusOK || !ok || string(resp.body[a:b]) != string(c.request.id()) ||
		c.bodyLen != 0 && len(resp.body) != c.bodyLen {
		return fmt.Errorf("%w to id %s: status %d, %d bytes (not %d): %.200s",
			errWrongAnswer, c.request.id(), resp.status, len(resp.body), c.bodyLen, resp.body)
	}
	c.bodyLen = len(resp.body)
	return nil
}

// prepare sets the request to repeat to that of a scenario and sends it once.
// An answer as long as bodyLen is taken to be right; if that is 0, it is checked
// in every detail.
func (c *caller) prepare(sc scenario, tool string, tools, bodyLen int) error {
	if sc.kind == kindList {
		c.request = c.to.list()
	} else {
		c.request = c.to.call(tool, sc.bytes)
	}
	c.bodyLen = bodyLen
	if bodyLen != 0 {
		return c.call()
	}
	if err := c.send(); err != nil {
		return err
	}
	resp, err := c.in.next()
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	c.bodyLen = len(resp.body)
	return checkAnswer(resp, sc, tools)
}

// checkAnswer says what is wrong with the first answer of a scenario.
func checkAnswer(resp response, sc scenario, tools int) error {
	var reply struct {
		Result struct {
			Content []struct{ Text string }
			Tools   []struct{ Name string }
		}
	}
	if resp.status != http.StatusOK {
		return fmt.Errorf("status %d: %w: %.300s", resp.status, errWrongAnswer, resp.body)
	}
	if err := json.Unmarshal(resp.body, &reply); err != nil {
		return fmt.Errorf("%w: %w: %.300s", errWrongAnswer, err, resp.body)
	}
	if sc.kind == kindList {
		names := map[string]bool{}
		for _, tool := range reply.Result.Tools {
			names[tool.Name] = true
		}
		if len(names) != tools || len(reply.Result.Tools) != tools {
			return fmt.Errorf("%w: %d tools with %d names, not %d", errWrongAnswer, len(reply.Result.Tools), len(names), tools)
		}
		return nil
	}
	if content := reply.Result.Content; len(content) != 1 || content[0].Text != string(text(sc.bytes)) {
		return fmt.Errorf("%w: not the text that was asked for: %.300s", errWrongAnswer, resp.body)
	}
	return nil
}
