// Package state keeps what must outlive the process: the places of servers, the
// ordinals and names of what they list, their last good lists, and how each was
// last spoken to.
//
// A [Store] is a directory with one index file and two files per server, each
// written whole and moved into place, readable by its owner only. A file that
// cannot be understood is moved aside with a warning and counts as missing.
//
// # Saving
//
// Saving never waits for the disk: what was given last is written by a goroutine
// of the Store's, soon after, and at Close. [Store.Flush] waits for it. A file
// whose content would be what it is already is not written again. What could not
// be written is tried again with the next save.
//
// # Several processes
//
// One process at a time writes: the one that has the lock, which ends with the
// process however it ends. Another on the same directory reads, and keeps in
// memory what it would have written. When the writer has ended, it takes over:
// it gets the lock within a second of its next save, and then writes all of that,
// in place of what the former writer left in the same files. So what is kept is
// what the last process to write knew, never a mixture within one file.
package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// ErrReadOnly says that another process writes the state, or that nobody can.
var ErrReadOnly = errors.New("state is read only")

// ErrLocked says that another process has a lock.
var ErrLocked = errors.New("another process of this configuration has the lock")

// Lock takes the lock that a file stands for, which is made if it is missing. It
// ends with Close, and with the process. The error is ErrLocked if somebody else
// has it.
func Lock(file string) (io.Closer, error) {
	f, err := lockFile(file)
	if err != nil {
		return nil, err
	}
	return f, nil
}

const (
	// settle is how long the writer waits for more before it writes.
	settle = 200 * time.Millisecond
	// retry is how long it waits before it tries to get the lock once more.
	retry = time.Second
)

// Store is a directory of state. Its methods may be called concurrently.
type Store struct {
	dir      string
	log      *slog.Logger
	writable atomic.Bool
	wake     chan struct{}   // one slot: something is to be written
	flushes  chan chan error // answered by the writer
	closing  chan struct{}
	finished chan struct{}
	close    sync.Once

	mu    sync.Mutex // guards dirty
	dirty map[string]any

	// The writer's own.
	lock      *os.File // nil: somebody else writes, or nobody can
	contended bool     // somebody else does
	closeErr  error
}

// Open opens a directory, which is made, with mode 0700, if it is missing. If
// that is not allowed, or another process has the lock, the Store reads what is
// there and says so in a warning. A nil log takes nothing. Close ends the Store's
// goroutine.
func Open(dir string, log *slog.Logger) (*Store, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	err := makeDirs(dir)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errReadOnlyDisk) {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	s := &Store{
		dir: dir, log: log, wake: make(chan struct{}, 1), flushes: make(chan chan error),
		closing: make(chan struct{}), finished: make(chan struct{}),
		dirty: make(map[string]any),
	}
	if err == nil {
		err = s.acquire()
	}
	switch {
	case s.contended:
		log.Warn("state is read only until the other process of this configuration has ended", "dir", dir)
	case err != nil:
		log.Warn("state cannot be written and will not outlive this process", "dir", dir, "err", err)
	}
	go s.write() // ends with Close
	return s, nil
}

// Dir returns the store's directory.
func (s *Store) Dir() string { return s.dir }

// Writable reports whether this process is the one that writes. A process that
// is not may become it; one that is stays it.
func (s *Store) Writable() bool { return s.writable.Load() }

// Close writes what is not written yet and lets go of the directory. What is
// saved later is lost. Close may be called more than once.
func (s *Store) Close() error {
	s.close.Do(func() { close(s.closing) })
	<-s.finished
	return s.closeErr
}

// Index returns the index as last written; the zero Index if there is none.
func (s *Store) Index() Index {
	var x Index
	if !s.read(s.indexFile(), &x) {
		return Index{}
	}
	return x
}

// Server returns what was last written of a server, however it was reached
// then; false if there is nothing.
func (s *Store) Server(name string) (Server, bool) { return s.ServerOf(name, "") }

// ServerOf is Server for the lists that a server has for one principal.
func (s *Store) ServerOf(name, principal string) (Server, bool) {
	var v Server
	if !s.read(s.serverFile(name, principal), &v) || v.Name != name || v.Principal != principal {
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

// SaveIndex keeps the index. x must not change afterwards.
func (s *Store) SaveIndex(x Index) { s.save(s.indexFile(), x) }

// SaveServer keeps a server's lists. v must not change afterwards.
func (s *Store) SaveServer(v Server) { s.save(s.serverFile(v.Name, v.Principal), v) }

// SavePeer keeps how a server is spoken to. v must not change afterwards.
func (s *Store) SavePeer(v Peer) { s.save(s.peerFile(v.Name), v) }

// Flush waits until everything saved so far is on the disk. The error says what
// is not: ErrReadOnly if another process writes, fs.ErrClosed after Close.
func (s *Store) Flush() error {
	answer := make(chan error, 1)
	select {
	case s.flushes <- answer:
		return <-answer
	case <-s.finished:
		return fs.ErrClosed
	}
}

func (s *Store) indexFile() string { return filepath.Join(s.dir, "index.json") }

// serverFile names a server's file by a digest: names are any text.
func (s *Store) serverFile(name, principal string) string {
	if principal != "" {
		name = digest(name) + digest(principal)
	}
	return filepath.Join(s.dir, serverDir, digest(name)+".lists.json")
}

func (s *Store) peerFile(name string) string {
	return filepath.Join(s.dir, serverDir, digest(name)+".peer.json")
}
