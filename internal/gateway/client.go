package gateway

import (
	"cmp"
	"context"
	"iter"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/internal/upstream"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// lists are what one client sees: the catalog, or with servers that run for each
// client apart the catalog as that client has it.
type lists interface {
	Ready() <-chan struct{}
	List(kind mcp.Kind, v mcp.Version, cursor *string) (jsontext.Value, error)
	Fingerprint(kind mcp.Kind, v mcp.Version) uint64
	FirstFingerprint(kind mcp.Kind, v mcp.Version) uint64
	Find(kind mcp.Kind, name string) (*catalog.Entry, bool)
	Each(kind mcp.Kind, f func(*catalog.Entry) bool)
	Matching(uri string) iter.Seq[*catalog.Entry]
}

// clients are those that have servers of their own, or may come to have.
type clients struct {
	tasks sync.WaitGroup // one for each that has a session

	mu     sync.Mutex // guards the fields below
	by     map[any]*own
	closed chan struct{}
}

// own is what one client has for itself: a session, or the principal of requests
// that stand alone.
type own struct {
	upstream.Client
	lists *catalog.Client
	// request stands for what no request of the client has caused; nil for one of
	// a stateless version, which cannot be told or asked anything.
	request *server.Request

	mu     sync.Mutex // guards the fields below
	strays *relay     // log messages that belong to no call; nil: there were none
	gone   bool       // the session has ended
	level  string     // of log messages that the session asked for; "": none
	begun  map[*upstream.Server]bool
	late   *time.Timer // ends the waiting for first lists
}

// sees returns the lists that the client of a request sees.
func (s *Source) sees(r *server.Request) lists {
	if !s.catalog.PerClient() {
		return s.catalog
	}
	return s.client(r).lists
}

// client returns what the client of a request has for itself.
func (s *Source) client(r *server.Request) *own {
	key := clientOf(r)
	s.clients.mu.Lock()
	c := s.clients.by[key]
	s.clients.mu.Unlock()
	if c != nil {
		return c
	}
	c = s.newClient(r)
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	if other := s.clients.by[key]; other != nil {
		c.lists.Leave()
		return other
	}
	select {
	case <-s.clients.closed: // it is for nothing but what happens now
		return c
	default:
	}
	if s.clients.by == nil {
		s.clients.by = make(map[any]*own)
	}
	s.clients.by[key] = c
	if r.Session != nil {
		closed := s.clients.closed
		s.clients.tasks.Go(func() { // ends with the session, at the latest with Close
			select {
			case <-r.Session.Done():
			case <-closed:
			}
			s.forget(key, c)
		})
	}
	return c
}

func (s *Source) newClient(r *server.Request) *own {
	c := &own{lists: s.catalog.Join(r.Principal), begun: make(map[*upstream.Server]bool)}
	c.Client = upstream.Client{
		ID: c, Principal: r.Principal, Name: cmp.Or(r.Principal, "anybody"), Capabilities: askableOf(r.Caller.Capabilities),
	}
	if r.Session == nil {
		return c
	}
	c.Done = r.Session.Done()
	c.Name = nameOf(r)
	if r.Caller.Version.Stateless() { // on pipes
		return c
	}
	c.request = &server.Request{Caller: r.Caller, Request: &jsonrpc.Request{
		Session: r.Session, Peer: r.Session.Peer, Principal: r.Principal,
	}}
	return c
}

// nameOf says of a session whose it is, without giving away its id, which is a
// secret.
func nameOf(r *server.Request) string {
	name := "a session"
	if info, err := jsonrpc.ParseObject(r.Caller.Info); err == nil {
		if text, _ := info.Text("name"); text != "" {
			name = "a session of " + text
		}
	}
	if r.Principal != "" {
		name += " for " + r.Principal
	}
	return name
}

// forget lets a client's session go.
func (s *Source) forget(key any, c *own) {
	s.clients.mu.Lock()
	delete(s.clients.by, key)
	s.clients.mu.Unlock()
	c.mu.Lock()
	if c.late != nil {
		c.late.Stop()
	}
	c.gone = true
	strays := c.strays
	c.mu.Unlock()
	c.lists.Leave()
	if strays != nil {
		strays.flush()
	}
}

// stray tells a session of a log message that belongs to none of its calls. It does
// not block.
func (c *own) stray(ctx context.Context, m *jsonrpc.Message) {
	if c.request == nil {
		return
	}
	c.mu.Lock()
	if c.strays == nil && !c.gone {
		c.strays = newRelay(ctx, c.request, c.wants)
	}
	strays := c.strays
	c.mu.Unlock()
	if strays != nil {
		strays.push(m.Method, m.Params)
	}
}

// end lets all sessions go.
func (c *clients) end() {
	c.mu.Lock()
	select {
	case <-c.closed:
	default:
		close(c.closed)
	}
	c.mu.Unlock()
	c.tasks.Wait()
}

// instance returns the server of a name that serves the client of a request.
func (s *Source) instance(r *server.Request, name string) (*upstream.Server, error) {
	srv := s.servers.Get(name)
	if srv == nil {
		return nil, &upstream.UnavailableError{Server: name, State: upstream.Disabled}
	}
	if !srv.PerClient() {
		return srv, nil
	}
	return srv.For(s.client(r).Client)
}

// begin starts those of the client's own servers that it has not had: it wants to
// know what they list. That is waited for until StartWait.
func (s *Source) begin(c *own) {
	for _, srv := range s.servers.All() {
		if !srv.PerClient() || !c.begins(srv, s.opts.StartWait) {
			continue
		}
		c.lists.Recall()
		if _, err := srv.For(c.Client); err != nil {
			c.lists.Heard(srv.Name())
		}
	}
}

// begins reports whether a server is to be started for the first time.
func (c *own) begins(srv *upstream.Server, wait time.Duration) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun[srv] {
		return false
	}
	c.begun[srv] = true
	if c.late == nil {
		c.late = time.AfterFunc(wait, c.lists.Open)
	}
	return true
}

// wants reports whether the client wants a log message that belongs to no call.
func (c *own) wants(params jsonrpc.Object) bool {
	c.mu.Lock()
	least := cmp.Or(c.level, defaultLevel)
	c.mu.Unlock()
	return severe(params, least)
}

// Listed takes the lists of a server that runs for one client.
func (s *Source) Listed(client upstream.Client, name string, lists catalog.Lists) {
	if c, ok := client.ID.(*own); ok {
		c.lists.Replace(name, lists)
	}
}

// Heard says that such a server was tried and has no lists now.
func (s *Source) Heard(client upstream.Client, name string) {
	if c, ok := client.ID.(*own); ok {
		c.lists.Heard(name)
	}
}

// NotificationFor takes what a server that runs for one client says on its own;
// see Notification.
func (s *Source) NotificationFor(ctx context.Context, client upstream.Client, name string, m *jsonrpc.Message) {
	c, ok := client.ID.(*own)
	if !ok {
		return
	}
	if m.Method == mcp.MethodMessage {
		c.stray(ctx, m)
		return
	}
	s.told(ctx, target{name, c}, m)
}

// Begun takes a server that has been started for one client: it is asked for what
// the client watches there.
func (s *Source) Begun(client upstream.Client, srv *upstream.Server) {
	if c, ok := client.ID.(*own); ok {
		s.watches.renew(target{srv.Name(), c}, srv)
	}
}

// rootsChanged tells those servers of a client's own that the client's roots have
// changed. Others do not know them.
func (s *Source) rootsChanged(ctx context.Context, r *server.Request) {
	if !s.catalog.PerClient() {
		return
	}
	c := s.client(r)
	ctx, cancel := context.WithTimeout(ctx, notifyTime)
	defer cancel()
	for _, srv := range s.servers.All() {
		if one := srv.Of(c); srv.PerClient() && one != nil {
			_ = one.Notify(ctx, r.Method, r.Params.Raw) // a server that is gone asks when it is back
		}
	}
}

// AskFor answers a request of a server that runs for one client and that no call
// of the client has provably caused: the client's session is asked.
func (s *Source) AskFor(ctx context.Context, client upstream.Client, srv *upstream.Server, q *jsonrpc.Request) (jsontext.Value, error) {
	c, ok := client.ID.(*own)
	if !ok || c.request == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidRequest,
			"%s: the client cannot be asked anything but during its calls, and it is not clear which of these this is about", q.Method)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stateTime, errUnanswered)
	defer cancel()
	return s.ask(ctx, srv, c.request, q.Method, q.Params)
}
