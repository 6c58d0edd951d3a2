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
// # What readers see
//
// Each list is one immutable view. A change of a server's list, with all that
// follows from it for others, is one step from a view to the next: no reader sees
// a part of it, and the pages and the fingerprint are those of the same view. An
// item that is in the view can be found by its name.
//
// # Walks
//
// A cursor names the position behind an item and the newest item when the walk
// began. So a walk returns each item that is there all the while exactly once,
// and none twice, whatever comes and goes, and it may go on after a restart. It
// ends with an error (-32602) only if the servers' order became another, or the
// order could not be saved.
//
// # Names
//
// The exposed name of a tool or prompt is prefix and own name, if that is free
// and [a-zA-Z0-9_-] within the length, else a mapped and shortened one with a
// digest of server and own name. Once given it stays, also while the item is
// gone. URIs are not rewritten: of servers with the same URI the first has it
// until it lists it no longer.
//
// # Start
//
// Until [Catalog.Open], new lists wait, so that names wanted by two servers are
// given in the order of the configuration and not of arrival.
//
// # Costs
//
// In what follows a block's list has n items, all blocks together N, and there
// are S servers. List of a first page that was asked for before is two loads;
// other pages cost a lookup more, and the first time the encoding of that page.
// Find is one lookup. Fingerprint is a load. Replace takes time in proportion to
// n for each kind that is given, and to S once if something changed; blocks of
// other servers are not touched. A list that is the same as the last one is
// hashed and nothing more.
package catalog

import (
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/internal/state"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/registry"
)

// Options configures a Catalog. The zero value is sensible.
type Options struct {
	// Store keeps what outlives the process; nil: nothing does. It is closed
	// after the last change of the catalog.
	Store *state.Store
	// NameLength is the most characters that an exposed name may have. 0: 50.
	// An item for which no name of that length is left is not listed.
	NameLength int
	// Page says where a list is cut into pages.
	Page mcp.PageLimits
	// Implementation is what pages for stateless versions name as the server,
	// an Implementation object. nil: it is left out.
	Implementation jsontext.Value
	// Logger gets what is wrong with lists. nil: nothing.
	Logger *slog.Logger
}

// ServerOptions is a configured server.
type ServerOptions struct {
	// Name is its name in the configuration. Of servers with the same name the
	// first counts.
	Name string
	// Key says how the server is reached: lists that were kept under another
	// key are not shown, while names are the server's however it is reached.
	Key string
	// Prefix goes before its items' names. nil: its name and "__". Characters
	// that no name may have become "_".
	Prefix *string
	// HTTP: the server is called over HTTP, where tools with invalid
	// x-mcp-header annotations must be left out.
	HTTP bool
	// PerClient: it runs for each client apart. Its lists are given to a Client;
	// who is none sees nothing of it.
	PerClient bool
}

// prefix is what goes before its items' names.
func (s ServerOptions) prefix() string {
	if s.Prefix != nil {
		return mapLegal(*s.Prefix)
	}
	return mapLegal(s.Name) + separator
}

// Catalog holds the lists of all servers. Its methods may be called
// concurrently.
type Catalog struct {
	opts   Options
	log    *slog.Logger
	opened chan struct{}
	first  [len(mcp.Kinds)][2]uint64 // fingerprints when opened was closed; read behind that

	views [len(mcp.Kinds)]atomic.Pointer[view]
	// exposed finds entries by exposed name. It gets what is new before the
	// view, and loses what is gone after.
	exposed [len(mcp.Kinds)]*registry.Set[*Entry]

	mu         sync.Mutex // makes one change at a time; guards the fields below, and the blocks' own
	blocks     []*block   // in order of place
	names      *names
	ordinals   *registry.Sequence
	epoch      uint64 // of the views: that of index, but while its order is being saved
	index      state.Index
	alone      bool            // index's epoch means nothing to other processes
	waiting    map[string]bool // servers without any list, not heard of yet
	early      map[string]Lists
	coming     *coming
	isOpen     bool
	pending    changes
	complaints []complaint
	watchers   map[*func()]struct{}
	clients    map[*Client]struct{}
	kin        map[string]*Client // see Client.kin
	known      map[known]*block   // what servers that run per client listed last
	recalled   map[known]bool     // what was looked for in the store
}

// New returns a catalog of the servers, given in the order of the configuration,
// with the lists that the store remembers. It waits until the order is saved, so
// that cursors may outlive the process; if that fails they do not.
func New(servers []ServerOptions, opts Options) *Catalog {
	if opts.NameLength <= 0 {
		opts.NameLength = 50
	}
	opts.Page = opts.Page.WithDefaults()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Catalog{
		opts: opts, log: opts.Logger, names: newNames(opts.NameLength),
		opened:  make(chan struct{}),
		waiting: make(map[string]bool), early: make(map[string]Lists),
		watchers: make(map[*func()]struct{}),
		clients:  make(map[*Client]struct{}), kin: make(map[string]*Client), known: make(map[known]*block), recalled: make(map[known]bool),
	}
	for _, k := range mcp.Kinds {
		c.exposed[k] = registry.New(registry.Options[*Entry]{
			Name: func(e *Entry) string { return e.Exposed },
			Fold: folds[k],
		})
	}
	servers = c.distinct(servers)
	c.makeBlocks(servers)
	remembered := c.remembered(servers)
	c.change(func() {
		c.restoreLocked(c.blocks, remembered)
		for _, k := range mcp.Kinds {
			c.pending.views[k] = true
		}
		c.openIfHeardLocked()
	})
	return c
}

// makeBlocks makes an empty block for each server, in its place.
func (c *Catalog) makeBlocks(servers []ServerOptions) {
	if c.opts.Store != nil {
		c.index = c.opts.Store.Index()
	}
	c.ordinals = registry.NewSequence(min(c.index.Ordinals, maxOrdinal))
	c.arrange(servers)
	c.epoch = c.index.Epoch
	places := placesOf(c.index)
	for _, s := range servers {
		if !s.PerClient {
			c.waiting[s.Name] = true
		}
		c.blocks = append(c.blocks, newBlock(s, places[s.Name], c.ordinals))
	}
}

// distinct returns the servers without those whose name another one before them
// has.
func (c *Catalog) distinct(servers []ServerOptions) []ServerOptions {
	seen := make(map[string]bool, len(servers))
	var out []ServerOptions
	for _, s := range servers {
		if seen[s.Name] {
			c.log.Warn("two servers have the same name; the first one counts", "server", s.Name)
			continue
		}
		seen[s.Name] = true
		out = append(out, s)
	}
	return out
}

// blockLocked returns a server's block; nil if there is none.
func (c *Catalog) blockLocked(server string) *block {
	for _, b := range c.blocks {
		if b.Name == server {
			return b
		}
	}
	return nil
}

// change makes a change under the lock and publishes it. It reports whether a
// fingerprint is another now. Logs and watchers come after the lock.
func (c *Catalog) change(f func()) (changed bool) {
	changed, complaints, signals := c.changeLocked(f)
	c.logAll(complaints)
	for _, signal := range signals {
		signal()
	}
	return changed
}

func (c *Catalog) changeLocked(f func()) (changed bool, complaints []complaint, signals []func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	changed = c.publishLocked()
	complaints, c.complaints = c.complaints, nil
	if changed {
		for f := range c.watchers {
			signals = append(signals, *f)
		}
	}
	return changed, complaints, signals
}

// Replace gives a server's new lists: whole ones, or marked as degraded. Items
// that are the same keep entry and place, newcomers go to the end of the block.
// It reports whether a Fingerprint is another now; false for an unknown server.
func (c *Catalog) Replace(server string, lists Lists) (changed bool) {
	return c.change(func() {
		b, wait := c.blockLocked(server), c.coming.has(server)
		switch {
		case wait || b != nil && !b.PerClient && !c.isOpen:
			c.early[server] = lists.over(c.early[server])
		case b != nil && b.PerClient: // see Client.Replace
		case b != nil:
			c.applyLocked(b, lists)
		}
		c.heardLocked(server)
	})
}

// Watch has signal called after each change that clients can see, until stop is
// called; a signal that is on its way may come after. It must not block.
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

// Find returns the entry under an exposed name or a URI. It takes no lock.
func (c *Catalog) Find(kind mcp.Kind, name string) (*Entry, bool) { return c.exposed[kind].Get(name) }

// Each calls f for the entries of a kind, in order, until it returns false. All
// are of one view. It takes no lock.
func (c *Catalog) Each(kind mcp.Kind, f func(*Entry) bool) {
	c.views[kind].Load().each(f)
}

// Matching yields the templates of which a URI is an expansion (RFC 6570), in
// order.
func (c *Catalog) Matching(uri string) iter.Seq[*Entry] { return matching(c, uri) }

func matching(all interface {
	Each(mcp.Kind, func(*Entry) bool)
}, uri string,
) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		all.Each(mcp.Templates, func(e *Entry) bool {
			return e.template == nil || e.template.Match(uri) == nil || yield(e)
		})
	}
}
