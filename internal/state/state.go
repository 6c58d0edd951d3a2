// Package state keeps what must outlive the process: the places of servers, the
// ordinals and names of what they list, their last good lists, and how each was
// last spoken to.
//
// A [Store] is a directory with one index file and one file per server, each
// written whole and moved into place, readable by its owner only. A file that
// cannot be read is moved aside with a warning and counts as missing. One process
// at a time writes; a second one on the same directory only reads.
//
// Saving never waits for the disk: what was given last is written by a goroutine
// of the Store's, soon after, and at Close.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// format is the version of the files; others are not read.
const format = 1

// Index is what concerns all servers together.
type Index struct {
	// Epoch counts the reorderings of the places: positions of one epoch mean
	// nothing in another.
	Epoch uint64 `json:"epoch"`
	// Ordinals is a number that no ordinal given out so far exceeds.
	Ordinals uint64 `json:"ordinals"`
	// Places has the servers in order. A removed one keeps its place.
	Places []Place `json:"places"`
}

// Place is where a server stands among the others: at the greater At the later.
type Place struct {
	Server string `json:"server"`
	At     uint64 `json:"at"`
}

// Server is what is kept of one server's lists.
type Server struct {
	Name string `json:"name"`
	// Key says how the server is reached; what was kept under another key is
	// of another server.
	Key string `json:"key"`
	// Prefix is what its exposed names begin with.
	Prefix string `json:"prefix"`
	// Lists has, by kind, the last good list; nil: there never was one.
	Lists map[string][]Item `json:"lists"`
	// Names has the exposed names given to items that are gone, by kind and the
	// server's own name, so that nobody else gets them.
	Names map[string]map[string]string `json:"names,omitempty"`
}

// Peer is what is kept of how a server is spoken to.
type Peer struct {
	Name string `json:"name"`
	Key  string `json:"key"` // as in Server
	// Version is the protocol version last spoken.
	Version string `json:"version,omitempty"`
	// Info and Capabilities are the JSON objects it described itself with.
	Info         string `json:"info,omitempty"`
	Capabilities string `json:"capabilities,omitempty"`
	Instructions string `json:"instructions,omitempty"`
}

// Item is one listed item.
type Item struct {
	Ordinal uint64 `json:"ordinal"`
	// Name is the exposed one; empty if it is the item's own.
	Name string `json:"name,omitempty"`
	// Raw is the definition as the server wrote it, to the byte.
	Raw string `json:"raw"`
}

// Store is a directory of state. Its methods may be called concurrently.
type Store struct {
	dir      string
	log      *slog.Logger
	lock     *os.File      // nil: somebody else writes
	wake     chan struct{} // one slot
	closing  chan struct{}
	finished chan struct{}

	mu    sync.Mutex // guards dirty
	dirty map[string]any
}

// settle is how long the writer waits for more before it writes.
const settle = 200 * time.Millisecond

// Open opens a directory, made if it is missing with mode 0700.
func Open(dir string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(filepath.Join(dir, "servers"), 0o700); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	s := &Store{
		dir: dir, log: log, wake: make(chan struct{}, 1),
		closing: make(chan struct{}), finished: make(chan struct{}), dirty: make(map[string]any),
	}
	lock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		log.Warn("state is read only: another process with this configuration writes it", "dir", dir, "err", err)
	}
	s.lock = lock
	go s.write() // ends with Close
	return s, nil
}

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// Writable reports whether this process is the one that writes.
func (s *Store) Writable() bool { return s.lock != nil }

// Close writes what is not written yet and lets go of the directory.
func (s *Store) Close() error {
	close(s.closing)
	<-s.finished
	if s.lock == nil {
		return nil
	}
	return s.lock.Close()
}

// Index returns the index as last written; the zero Index if there is none.
func (s *Store) Index() Index {
	var x Index
	s.read(s.indexFile(), &x)
	return x
}

// Server returns what is kept of a server that is reached as key says; false if
// there is nothing.
func (s *Store) Server(name, key string) (Server, bool) {
	var v Server
	if !s.read(s.serverFile(name), &v) || v.Name != name || v.Key != key {
		return Server{}, false
	}
	return v, true
}

// Peer returns how a server that is reached as key says was last spoken to;
// false if that is not known.
func (s *Store) Peer(name, key string) (Peer, bool) {
	var v Peer
	if !s.read(s.peerFile(name), &v) || v.Name != name || v.Key != key {
		return Peer{}, false
	}
	return v, true
}

// SavePeer keeps how a server is spoken to. v must not change afterwards.
func (s *Store) SavePeer(v Peer) { s.save(s.peerFile(v.Name), v) }

// SaveIndex keeps the index. x must not change afterwards.
func (s *Store) SaveIndex(x Index) { s.save(s.indexFile(), x) }

// SaveServer keeps a server. v must not change afterwards.
func (s *Store) SaveServer(v Server) { s.save(s.serverFile(v.Name), v) }

func (s *Store) indexFile() string { return filepath.Join(s.dir, "index.json") }

// serverFile names a server's file by a digest: names are any text.
func (s *Store) serverFile(name string) string {
	return filepath.Join(s.dir, "servers", digest(name)+".lists.json")
}

func (s *Store) peerFile(name string) string {
	return filepath.Join(s.dir, "servers", digest(name)+".peer.json")
}

func (s *Store) save(file string, v any) {
	if s.lock == nil {
		return
	}
	s.mu.Lock()
	s.dirty[file] = v
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write is the writer.
func (s *Store) write() {
	defer close(s.finished)
	for {
		select {
		case <-s.wake:
			select {
			case <-time.After(settle):
			case <-s.closing:
			}
			s.flush()
		case <-s.closing:
			s.flush()
			return
		}
	}
}

func (s *Store) flush() {
	s.mu.Lock()
	dirty := s.dirty
	s.dirty = make(map[string]any)
	s.mu.Unlock()
	for file, v := range dirty {
		if err := replace(file, v); err != nil {
			s.log.Error("state not saved", "file", file, "err", err)
		}
	}
}

// envelope is a file's content.
type envelope struct {
	Format int             `json:"format"`
	Value  json.RawMessage `json:"value"`
}

// replace writes a file whole and moves it into place.
func replace(file string, v any) (err error) {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	data, err := json.Marshal(envelope{format, value})
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(file), ".new-*") // has mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	if _, err = tmp.Write(data); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err = tmp.Sync(); err != nil {
		return errors.Join(err, tmp.Close())
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// read fills v from a file; false if there is none that can be read. What is
// there and cannot be read is moved aside.
func (s *Store) read(file string, v any) bool {
	data, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err == nil {
		var e envelope
		err = json.Unmarshal(data, &e)
		if err == nil && e.Format != format {
			err = fmt.Errorf("format %d, expected %d", e.Format, format)
		}
		if err == nil {
			err = json.Unmarshal(e.Value, v)
		}
	}
	if err == nil {
		return true
	}
	aside := file + ".damaged"
	if s.lock != nil {
		if err := os.Rename(file, aside); err != nil {
			aside = "not moved: " + err.Error()
		}
	}
	s.log.Warn("state file cannot be read and counts as missing", "file", file, "err", err, "moved", aside)
	return false
}
