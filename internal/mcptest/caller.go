package mcptest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
)

// Caller is a client of one protocol version that shows the bytes of what it
// gets. Its methods may be called from any goroutine.
type Caller struct {
	Version mcp.Version
	// Notes are the notifications that came, on whatever stream.
	Notes *Notes

	wire    callerWire
	ids     sync.Mutex // guards id
	id      int
	session string // of HTTP, set before it is used
}

// callerWire sends one request and returns the frame of its response.
type callerWire interface {
	exchange(ctx context.Context, c *Caller, m *jsonrpc.Message) (frame []byte, err error)
	notify(ctx context.Context, c *Caller, m *jsonrpc.Message) error
	listen(ctx context.Context, c *Caller, filter string) (*Listening, error)
}

// Answer is the response to a request: the raw members of its frame.
type Answer struct{ ID, Result, Error string }

// Code returns the code of an error answer, 0 if it is none.
func (a Answer) Code() int {
	obj, err := jsonrpc.ParseObject(jsontext.Value(a.Error))
	if err != nil {
		return 0
	}
	n, _ := strconv.Atoi(string(obj.Get("code")))
	return n
}

// Cursor returns the nextCursor of a list result, raw; "" if there is none.
func (a Answer) Cursor() string {
	obj, _ := jsonrpc.ParseObject(jsontext.Value(a.Result))
	return string(obj.Get("nextCursor"))
}

// Items returns the raw items of a list result.
func (a Answer) Items(k mcp.Kind) []string {
	obj, err := jsonrpc.ParseObject(jsontext.Value(a.Result))
	if err != nil {
		return nil
	}
	list, _ := jsonrpc.Elements(obj.Get(k.Field()))
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}

// Raw sends a request with params as they are written, under an id as it is
// written, and returns the answer.
func (c *Caller) Raw(ctx context.Context, id, method, params string) (Answer, error) {
	key, err := jsonrpc.ParseID(jsontext.Value(id))
	if err != nil {
		return Answer{}, err
	}
	m := &jsonrpc.Message{ID: key, Method: method}
	if m.Params, err = c.params(params); err != nil {
		return Answer{}, err
	}
	frame, err := c.wire.exchange(ctx, c, m)
	if err != nil {
		return Answer{}, fmt.Errorf("%s: %w", method, err)
	}
	obj, err := jsonrpc.ParseObject(frame)
	if err != nil {
		return Answer{}, fmt.Errorf("%s: answered with %s: %w", method, frame, err)
	}
	a := Answer{string(obj.Get("id")), string(obj.Get("result")), string(obj.Get("error"))}
	if a.ID != id {
		return a, fmt.Errorf("%s: the answer to id %s has id %q: %s", method, id, a.ID, frame)
	}
	return a, nil
}

// Call sends a request under an id of its own.
func (c *Caller) Call(ctx context.Context, method, params string) (Answer, error) {
	c.ids.Lock()
	c.id++
	id := c.id
	c.ids.Unlock()
	return c.Raw(ctx, strconv.Itoa(id), method, params)
}

// Notify sends a notification with params as they are written.
func (c *Caller) Notify(ctx context.Context, method, params string) error {
	obj, err := c.params(params)
	if err != nil {
		return err
	}
	return c.wire.notify(ctx, c, &jsonrpc.Message{Method: method, Params: obj})
}

// Walk lists a kind to its end and returns the results of all pages, raw.
func (c *Caller) Walk(ctx context.Context, k mcp.Kind, between func()) ([]Answer, error) {
	var pages []Answer
	params := "{}"
	for range 10_000 {
		a, err := c.Call(ctx, k.ListMethod(), params)
		if err != nil {
			return pages, err
		}
		if a.Error != "" {
			return pages, fmt.Errorf("page %d: %s", len(pages)+1, a.Error)
		}
		pages = append(pages, a)
		cursor := a.Cursor()
		if cursor == "" {
			return pages, nil
		}
		params = `{"cursor":` + cursor + `}`
		if between != nil {
			between()
		}
	}
	return pages, fmt.Errorf("%s does not end", k.ListMethod())
}

// List returns the raw items of a whole list.
func (c *Caller) List(ctx context.Context, k mcp.Kind) ([]string, error) {
	pages, err := c.Walk(ctx, k, nil)
	var items []string
	for _, p := range pages {
		items = append(items, p.Items(k)...)
	}
	return items, err
}

// params gives params what the version wants in them.
func (c *Caller) params(text string) (jsonrpc.Object, error) {
	obj, err := jsonrpc.ParseObject(jsontext.Value(text))
	if err != nil || !c.Version.Stateless() {
		return obj, err
	}
	return jsonrpc.ParseObject(mcp.SetCaller(obj, mcp.Caller{
		Version: c.Version, Info: jsontext.Value(`{"name":"caller","version":"1"}`), Capabilities: jsontext.Value("{}"),
	}))
}

// begin has the handshake of versions that have one.
func (c *Caller) begin(ctx context.Context) error {
	if c.Version.Stateless() {
		return nil
	}
	a, err := c.Call(ctx, mcp.MethodInitialize, `{"protocolVersion":"`+string(c.Version)+`","capabilities":{},"clientInfo":{"name":"caller","version":"1"}}`)
	if err != nil {
		return err
	}
	obj, err := jsonrpc.ParseObject(jsontext.Value(a.Result))
	if err != nil {
		return fmt.Errorf("initialize: %s", a.Error)
	}
	if v, _ := obj.Text("protocolVersion"); v != string(c.Version) {
		return fmt.Errorf("initialize with %s: the server speaks %s", c.Version, v)
	}
	return c.wire.notify(ctx, c, &jsonrpc.Message{Method: mcp.MethodInitialized})
}

// End deletes the session of a caller over HTTP.
func (c *Caller) End(ctx context.Context) error {
	resp, err := c.wire.(*overHTTP).request(ctx, c, http.MethodDelete, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("DELETE: %s", resp.Status)
	}
	return nil
}

// CloseIdle closes the connections that a caller over HTTP does not use.
func (c *Caller) CloseIdle() {
	if w, ok := c.wire.(*overHTTP); ok {
		w.client.CloseIdleConnections()
	}
}

// Listen has the server tell of changes of its lists until ctx ends. It returns
// when the server has begun to.
func (c *Caller) Listen(ctx context.Context) (*Listening, error) {
	return c.wire.listen(ctx, c, `{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}`)
}

// Listening is a stream of notifications that is open.
type Listening struct {
	done chan struct{}
	// Set when Done is closed:
	last Answer // of a subscription
	err  error
}

// Done is closed when the stream has ended.
func (l *Listening) Done() <-chan struct{} { return l.done }

// End says how a stream ended: with nil if in an orderly way, and with an answer
// if it was one of a subscription.
func (l *Listening) End() (Answer, error) { return l.last, l.err }

// Notes collects notifications.
type Notes struct {
	mu   sync.Mutex // guards the fields below
	all  []jsonrpc.Message
	news chan struct{} // closed and replaced when one comes
}

func (n *Notes) add(m jsonrpc.Message) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, m)
	if n.news != nil {
		close(n.news)
		n.news = nil
	}
}

// Count returns how many came of a method.
func (n *Notes) Count(method string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.countLocked(method)
}

func (n *Notes) countLocked(method string) int {
	found := 0
	for i := range n.all {
		if n.all[i].Method == method {
			found++
		}
	}
	return found
}

// Wait waits until at least want came of a method.
func (n *Notes) Wait(ctx context.Context, method string, want int) error {
	for {
		n.mu.Lock()
		have := n.countLocked(method)
		if n.news == nil {
			n.news = make(chan struct{})
		}
		news := n.news
		n.mu.Unlock()
		if have >= want {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d %s came: %w", have, want, method, context.Cause(ctx))
		}
	}
}

// overHTTP is the wire of a Caller over HTTP.
type overHTTP struct {
	url    string
	key    string // a bearer token; "": none
	client *http.Client
}

// CallHTTP returns a Caller over HTTP that has begun its session, if its version
// has those. The test ends its connections.
func CallHTTP(t testing.TB, url string, v mcp.Version) *Caller {
	t.Helper()
	return CallHTTPAs(t, url, v, "")
}

// CallHTTPAs is CallHTTP with a bearer token.
func CallHTTPAs(t testing.TB, url string, v mcp.Version, key string) *Caller {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := &Caller{Version: v, Notes: &Notes{}, wire: &overHTTP{url, key, &http.Client{Transport: transport}}}
	if err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// Frame sends a message as it is over HTTP, in the caller's session, and returns
// the body of the response.
func (c *Caller) Frame(ctx context.Context, frame string) (string, error) {
	w, ok := c.wire.(*overHTTP)
	if !ok {
		return "", errors.New("not over HTTP")
	}
	resp, err := w.post(ctx, c, http.MethodPost, &jsonrpc.Message{}, []byte(frame))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func (w *overHTTP) request(ctx context.Context, c *Caller, method string, m *jsonrpc.Message) (*http.Response, error) {
	if m == nil {
		return w.post(ctx, c, method, m, nil)
	}
	return w.post(ctx, c, method, m, jsonrpc.AppendRequest(nil, m.ID, m.Method, m.Params.Raw))
}

func (w *overHTTP) post(ctx context.Context, c *Caller, method string, m *jsonrpc.Message, frame []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url, bytes.NewReader(frame))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	if w.key != "" {
		req.Header.Set("Authorization", "Bearer "+w.key)
	}
	if c.session != "" {
		req.Header.Set(mcp.HeaderSession, c.session)
	}
	if c.Version.HasVersionHeader() && (m == nil || m.Method != mcp.MethodInitialize) {
		req.Header.Set(mcp.HeaderVersion, string(c.Version))
	}
	if c.Version.Stateless() && m != nil {
		req.Header.Set(mcp.HeaderMethod, m.Method)
		if name, ok := m.Params.Text(mcp.NameMember(m.Method)); ok {
			req.Header.Set(mcp.HeaderName, mcp.EncodeHeader(name))
		}
	}
	return w.client.Do(req)
}

func (w *overHTTP) exchange(ctx context.Context, c *Caller, m *jsonrpc.Message) ([]byte, error) {
	resp, err := w.request(ctx, c, http.MethodPost, m)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if m.Method == mcp.MethodInitialize {
		c.session = resp.Header.Get(mcp.HeaderSession)
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return io.ReadAll(resp.Body)
	}
	return c.readEvents(resp.Body, m.ID)
}

// readEvents reads a stream until the answer to id, or its end.
func (c *Caller) readEvents(body io.Reader, id jsonrpc.ID) ([]byte, error) {
	in := bufio.NewReader(body)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil, err
		}
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: "))
		if !ok {
			continue
		}
		m, err := jsonrpc.Parse(data)
		switch {
		case err != nil:
			return nil, fmt.Errorf("event %s: %w", data, err)
		case m.IsNotification():
			c.Notes.add(m)
		case m.IsResponse() && m.ID.Key() == id.Key():
			return data, nil
		}
	}
}

func (w *overHTTP) notify(ctx context.Context, c *Caller, m *jsonrpc.Message) error {
	resp, err := w.request(ctx, c, http.MethodPost, m)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("%s: HTTP status %d", m.Method, resp.StatusCode)
	}
	return nil
}

func (w *overHTTP) listen(ctx context.Context, c *Caller, filter string) (*Listening, error) {
	var m *jsonrpc.Message
	method := http.MethodGet
	id := jsonrpc.ID{}
	if c.Version.Stateless() {
		params, err := c.params(filter)
		if err != nil {
			return nil, err
		}
		id, _ = jsonrpc.ParseID(jsontext.Value(`"listen"`))
		m, method = &jsonrpc.Message{ID: id, Method: mcp.MethodListen, Params: params}, http.MethodPost
	}
	resp, err := w.request(ctx, c, method, m)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		return nil, fmt.Errorf("listening: HTTP status %d: %s", resp.StatusCode, body)
	}
	l := &Listening{done: make(chan struct{})}
	go func() { // ends with the stream or ctx
		defer close(l.done)
		defer resp.Body.Close()
		frame, err := c.readEvents(resp.Body, id)
		l.end(frame, err, m == nil)
	}()
	if m != nil {
		err = c.Notes.Wait(ctx, mcp.MethodAcknowledged, 1)
	}
	return l, err
}

// end notes how a stream ended; that of a session ends with the stream itself.
func (l *Listening) end(frame []byte, err error, session bool) {
	if obj, e := jsonrpc.ParseObject(frame); e == nil {
		l.last = Answer{string(obj.Get("id")), string(obj.Get("result")), string(obj.Get("error"))}
	}
	if l.err = err; session && errors.Is(err, io.EOF) {
		l.err = nil
	}
}

// onPipes is the wire of a Caller over a pair of pipes.
type onPipes struct {
	out     io.Writer
	writing sync.Mutex // held while a frame is written

	mu      sync.Mutex // guards the fields below
	pending map[string]chan []byte
	ended   chan struct{}
}

// CallPipes returns a Caller over pipes to a server that serve runs, which has
// begun its session, if its version has those. The test ends the pipes and waits
// for serve.
func CallPipes(t testing.TB, v mcp.Version, serve func(ctx context.Context, in io.Reader, out io.Writer) error) *Caller {
	t.Helper()
	serverIn, out := io.Pipe()
	in, serverOut := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() { // ends with the pipes, or ctx
		defer close(served)
		_ = serve(ctx, serverIn, serverOut) // the test says what is wrong with it
		_ = serverOut.Close()
	}()
	w := &onPipes{out: out, pending: make(map[string]chan []byte), ended: make(chan struct{})}
	c := &Caller{Version: v, Notes: &Notes{}, wire: w}
	go w.read(c, in) // ends with the pipe
	t.Cleanup(func() {
		_ = out.Close()
		<-served
		cancel()
		<-w.ended
	})
	if err := c.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *onPipes) read(c *Caller, in io.Reader) {
	defer close(w.ended)
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		line = bytes.TrimSuffix(line, []byte("\n"))
		m, err := jsonrpc.Parse(line)
		switch {
		case err != nil:
			panic("mcptest: " + string(line) + ": " + err.Error())
		case m.IsNotification():
			c.Notes.add(m)
		case m.IsResponse():
			w.mu.Lock()
			reply := w.pending[m.ID.Key()]
			delete(w.pending, m.ID.Key())
			w.mu.Unlock()
			if reply != nil {
				reply <- slices.Clone(line)
			}
		}
	}
}

func (w *onPipes) write(m *jsonrpc.Message) error {
	w.writing.Lock()
	defer w.writing.Unlock()
	_, err := w.out.Write(append(jsonrpc.AppendRequest(nil, m.ID, m.Method, m.Params.Raw), '\n'))
	return err
}

func (w *onPipes) send(m *jsonrpc.Message) (<-chan []byte, error) {
	reply := make(chan []byte, 1)
	w.mu.Lock()
	w.pending[m.ID.Key()] = reply
	w.mu.Unlock()
	return reply, w.write(m)
}

func (w *onPipes) exchange(ctx context.Context, _ *Caller, m *jsonrpc.Message) ([]byte, error) {
	reply, err := w.send(m)
	if err != nil {
		return nil, err
	}
	select {
	case frame := <-reply:
		return frame, nil
	case <-w.ended:
		return nil, io.ErrUnexpectedEOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (w *onPipes) notify(_ context.Context, _ *Caller, m *jsonrpc.Message) error { return w.write(m) }

func (w *onPipes) listen(ctx context.Context, c *Caller, filter string) (*Listening, error) {
	l := &Listening{done: make(chan struct{})}
	if !c.Version.Stateless() {
		go func() { // ends with the pipes
			<-w.ended
			close(l.done)
		}()
		return l, nil
	}
	params, err := c.params(filter)
	if err != nil {
		return nil, err
	}
	id, _ := jsonrpc.ParseID(jsontext.Value(`"listen"`))
	reply, err := w.send(&jsonrpc.Message{ID: id, Method: mcp.MethodListen, Params: params})
	if err != nil {
		return nil, err
	}
	go func() { // ends with the pipes or the subscription
		defer close(l.done)
		select {
		case frame := <-reply:
			l.end(frame, nil, false)
		case <-w.ended:
			l.err = io.ErrUnexpectedEOF
		}
	}()
	return l, c.Notes.Wait(ctx, mcp.MethodAcknowledged, 1)
}
