// Package gateway is the request path: it looks up which server a client's
// request is for, puts in the server's own name, passes the request on, and hands
// back what the server answered.
//
// A [Source] is a server.Source over the catalog and the upstream servers. A
// request runs on its caller's goroutine all the way: one lookup, one splice of the
// params, the upstream call.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// Options configures a Source.
type Options struct {
	// Implementation names this gateway to clients.
	Implementation jsontext.Value
	// Key authenticates the requestState that clients carry: at least 32 secret
	// bytes, the same in every process that may get a request back.
	Key []byte
	// StartWait is how long a client's first list waits for servers that run for
	// each client apart. 0: 10 s.
	StartWait time.Duration
	// Instructions returns what is said to clients of all servers together.
	// nil: nothing.
	Instructions func() string
	// Login returns a URL at which the login to a server begins; "": the user of
	// a client cannot be sent to one. nil: nobody can.
	Login func(ctx context.Context, server string) (url string, err error)
}

// Source serves what all upstream servers offer. Its methods may be called
// concurrently.
type Source struct {
	catalog *catalog.Catalog
	servers *upstream.Set
	opts    Options
	sealer  sealer
	parked  parked
	watches watches
	level   level
	links   links
	// questions and visits are how to find who may speak about a question.
	questions questions
	visits    visits
	clients   clients
}

// New returns a source.
func New(c *catalog.Catalog, servers *upstream.Set, opts Options) (*Source, error) {
	if len(opts.Key) < 32 {
		return nil, errNoKey
	}
	if opts.StartWait == 0 {
		opts.StartWait = 10 * time.Second
	}
	return &Source{clients: clients{closed: make(chan struct{})}, catalog: c, servers: servers, opts: opts, sealer: sealer{key: opts.Key, now: time.Now}}, nil
}

// Close gives up the calls that wait for answers of their clients. Requests that
// run must have ended or been cancelled.
func (s *Source) Close() {
	s.parked.end()
	s.clients.end()
	s.visits.tasks.Wait()
}

// capabilities are declared whatever is connected, since servers come and go
// and a client asks only once.
const capabilities = `{"completions":{},"logging":{},"prompts":{"listChanged":true},` +
	`"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}}`

// Info describes the gateway; see server.Source.
func (s *Source) Info() server.Info {
	info := server.Info{
		Implementation: s.opts.Implementation,
		Capabilities:   jsontext.Value(capabilities),
	}
	if s.opts.Instructions != nil {
		info.Instructions = s.opts.Instructions()
	}
	return info
}

// List returns a page of the catalog. The first list after the start waits for
// servers that were never seen before, until the catalog opens.
func (s *Source) List(ctx context.Context, r *server.Request, kind mcp.Kind, cursor *string) (jsontext.Value, error) {
	all, err := s.ready(ctx, r)
	if err != nil {
		return nil, err
	}
	page, err := all.List(kind, r.Caller.Version, cursor)
	if cursor == nil {
		s.stale(r, kind)
	}
	return page, err
}

// stale has lists walked again that have grown old.
func (s *Source) stale(r *server.Request, kind mcp.Kind) {
	s.servers.Stale(kind)
	if !s.catalog.PerClient() {
		return
	}
	c := s.client(r)
	for _, srv := range s.servers.All() {
		if one := srv.Of(c); srv.PerClient() && one != nil {
			one.Stale(kind)
		}
	}
}

// ready waits until the lists of a request's client can be read, and returns them.
func (s *Source) ready(ctx context.Context, r *server.Request) (lists, error) {
	if !s.catalog.PerClient() {
		return s.catalog, readable(ctx, s.catalog)
	}
	c := s.client(r)
	s.begin(c)
	return c.lists, readable(ctx, c.lists)
}

func readable(ctx context.Context, all lists) error {
	select {
	case <-all.Ready():
		return nil
	default:
	}
	select {
	case <-all.Ready():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Fingerprint identifies a list's content; see server.Source.
func (s *Source) Fingerprint(r *server.Request, kind mcp.Kind) uint64 {
	return s.sees(r).Fingerprint(kind, r.Caller.Version)
}

// Ready is closed when the first lists are there; see server.StartingSource.
func (s *Source) Ready(r *server.Request) <-chan struct{} { return s.sees(r).Ready() }

// FirstFingerprint identifies a list as it was then; see server.StartingSource.
func (s *Source) FirstFingerprint(r *server.Request, kind mcp.Kind) uint64 {
	return s.sees(r).FirstFingerprint(kind, r.Caller.Version)
}

// Watch tells of changes of the catalog; see server.Source.
func (s *Source) Watch(signal func()) (stop func()) { return s.catalog.Watch(signal) }

// ParamHeaders returns the arguments of a tool that HTTP clients repeat in
// headers; see server.ParamSource.
func (s *Source) ParamHeaders(r *server.Request, tool string) []mcp.ParamHeader {
	e, ok := s.sees(r).Find(mcp.Tools, tool)
	if !ok {
		return nil
	}
	return e.Params
}

// Do passes a request on to the server that it is for; see server.Source.
func (s *Source) Do(ctx context.Context, r *server.Request) (jsonrpc.Object, error) {
	switch r.Method {
	case mcp.MethodToolsCall:
		return s.callTool(ctx, r)
	case mcp.MethodPromptsGet:
		return s.getPrompt(ctx, r)
	case mcp.MethodResourcesRead:
		return s.readResource(ctx, r)
	case mcp.MethodComplete:
		return s.complete(ctx, r)
	}
	return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method not found: %s", r.Method)
}

// find returns the entry that a request names in its params.
func (s *Source) find(ctx context.Context, r *server.Request, kind mcp.Kind) (*catalog.Entry, error) {
	name, ok := r.Params.Text("name")
	if !ok {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.name must be a string")
	}
	if e, ok := s.sees(r).Find(kind, name); ok {
		return e, nil
	}
	all, err := s.ready(ctx, r)
	if err != nil {
		return nil, err
	}
	if e, ok := all.Find(kind, name); ok {
		return e, nil
	}
	return nil, s.unknown(all, kind, name)
}

// unknown is the error for a name that is not listed: it says which listed names
// are close, and which servers could not be asked for theirs.
func (s *Source) unknown(all lists, kind mcp.Kind, name string) error {
	text := fmt.Sprintf("unknown %s %q", strings.TrimSuffix(kind.String(), "s"), name)
	if near := nearest(all, kind, name); len(near) > 0 {
		text += ": did you mean " + strings.Join(near, ", ") + "?"
	}
	var silent, locked []string
	for _, srv := range s.servers.All() {
		switch _, known := srv.Info(); {
		case srv.Status().State == upstream.NeedsLogin:
			locked = append(locked, srv.Name())
		case !known:
			silent = append(silent, srv.Name())
		}
	}
	if len(silent) > 0 {
		text += " (not connected yet: " + strings.Join(silent, ", ") + ")"
	}
	if len(locked) > 0 {
		text += " (not logged in: " + strings.Join(locked, ", ") + "; see 'roster auth login')"
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", text)
}

// callTool passes a tools/call on. That the server cannot be reached is a
// result for the model to read, not an error of the protocol.
func (s *Source) callTool(ctx context.Context, r *server.Request) (jsonrpc.Object, error) {
	e, err := s.find(ctx, r, mcp.Tools)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	result, err := s.forward(ctx, e.Server, r, e.Rename(), otherParams(e, r))
	if text, ok := unreachable(err); ok {
		return toolError(text)
	}
	return result, err
}

// otherParams returns the Mcp-Param headers that a client sent for parameters
// unknown here, which are passed on; those that are known are made anew for the
// call to the server.
func otherParams(e *catalog.Entry, r *server.Request) map[string]string {
	var header map[string]string
	for name, values := range r.Header {
		if !strings.HasPrefix(name, mcp.HeaderParamPrefix) || len(values) != 1 || e.HasParam(name) {
			continue
		}
		if header == nil {
			header = make(map[string]string)
		}
		header[name] = values[0]
	}
	return header
}

func (s *Source) getPrompt(ctx context.Context, r *server.Request) (jsonrpc.Object, error) {
	e, err := s.find(ctx, r, mcp.Prompts)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	return s.plain(ctx, e.Server, r, e.Rename())
}

// complete passes completion/complete on to the owner of the prompt or template
// that it is about.
func (s *Source) complete(ctx context.Context, r *server.Request) (jsonrpc.Object, error) {
	ref, err := jsonrpc.ParseObject(r.Params.Get("ref"))
	if err != nil {
		return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.ref: %v", err)
	}
	kind, member := mcp.Prompts, "name"
	switch t, _ := ref.Text("type"); t {
	case "ref/prompt":
	case "ref/resource":
		kind, member = mcp.Templates, "uri"
	default:
		return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, `params.ref.type must be "ref/prompt" or "ref/resource"`)
	}
	name, _ := ref.Text(member)
	all, err := s.ready(ctx, r)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	e, ok := all.Find(kind, name)
	if !ok && kind == mcp.Templates { // a ref may also name a plain resource
		e, ok = all.Find(mcp.Resources, name)
	}
	if !ok {
		return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params.ref.%s: nothing is listed under %q", member, name)
	}
	var edits []mcp.Edit
	if e.Own != name {
		edits = []mcp.Edit{{Name: "ref", Value: mcp.Splice(ref, mcp.Edit{Name: member, Value: mcp.String(e.Own)})}}
	}
	return s.plain(ctx, e.Server, r, edits)
}

// plain forwards a request for which an unreachable server is an error.
func (s *Source) plain(ctx context.Context, name string, r *server.Request, edits []mcp.Edit) (jsonrpc.Object, error) {
	result, err := s.forward(ctx, name, r, edits, nil)
	if text, ok := unreachable(err); ok {
		return jsonrpc.Object{}, jsonrpc.Errorf(jsonrpc.CodeInternal, "%s", text)
	}
	return result, err
}

// forward makes the call, with edits of the client's params.
func (s *Source) forward(ctx context.Context, name string, r *server.Request, edits []mcp.Edit, header map[string]string) (jsonrpc.Object, error) {
	srv, err := s.instance(r, name)
	if err != nil {
		return jsonrpc.Object{}, err
	}
	if err := checkLevel(r.Caller); err != nil {
		return jsonrpc.Object{}, err
	}
	caller := r.Caller
	if s.level.ask(&caller) {
		s.tellLevel()
	}
	if r.Caller.LogLevel != "" {
		if err := srv.Leveled(ctx); err != nil {
			return jsonrpc.Object{}, err
		}
	}
	result, err := s.exchange(ctx, srv, r, upstream.Request{
		Method: r.Method, Params: r.Params, Edits: edits, Caller: caller, Header: forwarded(srv.Forwards(), r.Header, header),
	})
	if err != nil {
		return s.sendToLogin(ctx, r, name, err)
	}
	s.links.note(r, name, result)
	return result, nil
}

// splice edits an object and indexes the result.
func splice(o jsonrpc.Object, edits ...mcp.Edit) (jsonrpc.Object, error) {
	out, err := jsonrpc.ParseObject(mcp.Splice(o, edits...))
	if err != nil {
		return out, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params: %v", err)
	}
	return out, nil
}

// unreachable returns what to say when a server could not be asked, or did not
// answer; false for an error that the server itself answered, and for a caller
// that has gone.
func unreachable(err error) (string, bool) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, jsonrpc.ErrCanceled) {
		return "", false
	}
	_, away := errors.AsType[*upstream.UnavailableError](err) // which may wrap the answer to another request
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered && !away {
		return "", false
	}
	return err.Error(), true
}

// toolError returns a tool result that says what went wrong.
func toolError(text string) (jsonrpc.Object, error) {
	out := append([]byte(`{"content":[{"type":"text","text":`), mcp.String(text)...)
	return jsonrpc.ParseObject(append(out, `}],"isError":true}`...))
}
