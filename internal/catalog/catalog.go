// Package catalog turns what servers list into what clients see: one list of
// each kind, in an order that lasts, under names that last, encoded once.
//
// A [Catalog] has a block per configured server. [Catalog.Replace] gives it a
// server's new lists; everything else reads, without a lock, what was published
// last. Items keep their place while they are there: the order is that of the
// servers' places, and inside a block that in which items were first seen. The
// order, the names and the last good lists survive a restart through the state
// store.
//
// Until [Catalog.Open], lists of servers that were never seen before wait, so
// that names wanted by two of them are given in the order of the configuration
// and not of arrival.
package catalog

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// Options configures a Catalog. The zero value is sensible.
type Options struct {
	// Store keeps what outlives the process; nil: nothing does.
	Store *state.Store
	// NameLength is the most characters that an exposed name may have. 0: 50.
	NameLength int
	// Page says where a list is cut into pages.
	Page mcp.PageLimits
	// Implementation is what pages for stateless versions name as the server.
	Implementation jsontext.Value
	// Logger gets what is wrong with lists. nil: nothing.
	Logger *slog.Logger
}

// ServerOptions is a configured server.
type ServerOptions struct {
	Name string
	// Key says how the server is reached; see state.Server.
	Key string
	// Prefix goes before its items' names. nil: its name and "__".
	Prefix *string
	// HTTP: the server is called over HTTP, where tools with invalid
	// x-mcp-header annotations must be left out.
	HTTP bool
}

// List is a server's list of one kind.
type List struct {
	Items    []jsontext.Value // definitions as it wrote them, in its order
	TTL      time.Duration    // how long it may be kept; 0: not said
	Degraded bool             // it is known not to be the whole list
}

// Lists are a server's new lists; a nil one has not changed.
type Lists [len(mcp.Kinds)]*List

// Entry is one item that clients see.
type Entry struct {
	Server string
	Kind   mcp.Kind
	// Own is the server's own name for it: what is sent to the server.
	Own string
	// Exposed is the name that clients see.
	Exposed string
	// Definition is what clients see.
	Definition mcp.Definition
	// Params are a tool's arguments that are repeated in headers.
	Params []mcp.ParamHeader

	raw jsontext.Value // as the server wrote it
}

// HasParam reports whether a header field repeats one of a tool's arguments.
func (e *Entry) HasParam(field string) bool {
	return slices.ContainsFunc(e.Params, func(p mcp.ParamHeader) bool {
		return strings.EqualFold(field, mcp.HeaderParamPrefix+p.Name)
	})
}

// Catalog holds the lists of all servers.
type Catalog struct {
	opts     Options
	log      *slog.Logger
	ordinals *registry.Sequence
	epoch    uint64
	// exposed finds entries by exposed name; published with the blocks.
	exposed [len(mcp.Kinds)]*registry.Set[*Entry]
	pages   [len(mcp.Kinds)][2]pageCache
	opened  chan struct{}

	blocks atomic.Pointer[[]*block] // in order of place

	mu       sync.Mutex // makes one change at a time; guards the fields below
	names    *names
	index    state.Index
	waiting  map[string]bool // servers without any list, not heard of yet
	early    map[string]Lists
	isOpen   bool
	watchers map[*func()]struct{}
}

// New returns a catalog of the servers, given in the order of the configuration,
// with the lists that the store remembers.
func New(servers []ServerOptions, opts Options) *Catalog {
	if opts.NameLength == 0 {
		opts.NameLength = 50
	}
	opts.Page = opts.Page.WithDefaults()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{
		opts: opts, log: opts.Logger, names: newNames(opts.NameLength),
		opened: make(chan struct{}), waiting: make(map[string]bool),
		early: make(map[string]Lists), watchers: make(map[*func()]struct{}),
	}
	configured := make([]string, len(servers))
	for i, s := range servers {
		configured[i] = s.Name
	}
	if opts.Store != nil {
		c.index = opts.Store.Index()
	}
	c.index = arrange(c.index, configured)
	c.epoch = c.index.Epoch
	c.ordinals = registry.NewSequence(c.index.Ordinals)
	for _, k := range mcp.Kinds {
		c.exposed[k] = registry.New(registry.Options[*Entry]{
			Name: func(e *Entry) string { return e.Exposed },
			Fold: folds[k],
		})
	}
	c.load(servers)
	return c
}

// load makes the blocks and fills them with what the store remembers.
func (c *Catalog) load(servers []ServerOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var blocks []*block
	saved := make(map[string]state.Server)
	for _, s := range servers {
		b := newBlock(s, c.index.Places[indexOf(c.index.Places, s.Name)].At, c.ordinals)
		blocks = append(blocks, b)
		c.waiting[s.Name] = true
		if c.opts.Store != nil {
			if v, ok := c.opts.Store.Server(s.Name, s.Key); ok {
				saved[s.Name] = v
				if v.Prefix == b.prefix {
					c.claimLocked(v)
				}
			}
		}
	}
	slices.SortStableFunc(blocks, func(a, b *block) int { return compare(a.place, b.place) })
	c.blocks.Store(&blocks)
	for _, b := range blocks {
		if v, ok := saved[b.Name]; ok {
			c.restoreLocked(b, v)
			delete(c.waiting, b.Name)
		}
	}
	c.reserveLocked()
	c.openIfHeardLocked()
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Ready is closed once every server that was never seen before has been heard
// of, or waited for long enough.
func (c *Catalog) Ready() <-chan struct{} { return c.opened }

// Heard says that a server was tried and has no list to give now; a first list
// need not wait for it.
func (c *Catalog) Heard(server string) {
	c.mu.Lock()
	delete(c.waiting, server)
	opens := c.openIfHeardLocked()
	c.mu.Unlock()
	if opens {
		c.announce()
	}
}

// Open ends the waiting for servers that were never seen before.
func (c *Catalog) Open() {
	c.mu.Lock()
	clear(c.waiting)
	opens := c.openIfHeardLocked()
	c.mu.Unlock()
	if opens {
		c.announce()
	}
}

// Waiting returns the servers that a first list waits for, in order.
func (c *Catalog) Waiting() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, b := range *c.blocks.Load() {
		if c.waiting[b.Name] {
			out = append(out, b.Name)
		}
	}
	return out
}

// openIfHeardLocked publishes the lists that came early, in the order of the
// servers, when none is waited for any more.
func (c *Catalog) openIfHeardLocked() (opens bool) {
	if c.isOpen || len(c.waiting) > 0 {
		return false
	}
	c.isOpen = true
	for _, b := range *c.blocks.Load() {
		if lists, ok := c.early[b.Name]; ok {
			c.applyLocked(b, lists)
		}
	}
	c.early = nil
	close(c.opened)
	return true
}

// Replace gives a server's new lists: whole ones, or marked as degraded. Items
// that are the same keep entry and place. It reports whether anything that
// clients see has changed.
func (c *Catalog) Replace(server string, lists Lists) bool {
	c.mu.Lock()
	b := c.block(server)
	if b == nil {
		c.mu.Unlock()
		return false
	}
	delete(c.waiting, server)
	changed := false
	if c.isOpen {
		changed = c.applyLocked(b, lists)
	} else {
		c.early[server] = lists.over(c.early[server])
		changed = c.openIfHeardLocked()
	}
	c.mu.Unlock()
	if changed {
		c.announce()
	}
	return changed
}

// over returns the lists with those that have not changed taken from old.
func (l Lists) over(old Lists) Lists {
	for k := range l {
		if l[k] == nil {
			l[k] = old[k]
		}
	}
	return l
}

func (c *Catalog) block(server string) *block {
	for _, b := range *c.blocks.Load() {
		if b.Name == server {
			return b
		}
	}
	return nil
}

// Watch has signal called after each change that clients can see, until stop is
// called. It must not block.
func (c *Catalog) Watch(signal func()) (stop func()) {
	key := &signal
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watchers[key] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, key)
	}
}

func (c *Catalog) announce() {
	c.mu.Lock()
	signals := make([]func(), 0, len(c.watchers))
	for f := range c.watchers {
		signals = append(signals, *f)
	}
	c.mu.Unlock()
	for _, signal := range signals {
		signal()
	}
}

// Find returns the entry under an exposed name or a URI. It takes no lock.
func (c *Catalog) Find(kind mcp.Kind, name string) (*Entry, bool) { return c.exposed[kind].Get(name) }

// Each calls f for the entries of a kind, in order, until it returns false.
func (c *Catalog) Each(kind mcp.Kind, f func(*Entry) bool) {
	for _, b := range *c.blocks.Load() {
		for _, e := range b.sets[kind].Snapshot().All() {
			if !f(e.Value) {
				return
			}
		}
	}
}

// warn logs what is wrong with a server's list.
func (c *Catalog) warn(b *block, k mcp.Kind, note Note) {
	c.log.Warn("left out of a list", "list", k.String(), "server", b.Name, "name", note.Name, "reason", note.Reason)
}
