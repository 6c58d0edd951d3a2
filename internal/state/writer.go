package state

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// save notes what a file is to hold.
func (s *Store) save(file string, v any) {
	s.mu.Lock()
	s.dirty[file] = v
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// acquire tries to become the process that writes.
func (s *Store) acquire() error {
	lock, err := lockFile(filepath.Join(s.dir, "lock"))
	s.contended = errors.Is(err, ErrLocked)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	s.lock = lock
	s.removeTemporary()
	s.writable.Store(true)
	return nil
}

// write is the writer. It waits a little after a save for those that follow,
// and longer while another process has the lock.
func (s *Store) write() {
	defer close(s.finished)
	var due <-chan time.Time // nil: nothing is to be written
	for {
		select {
		case <-s.wake:
			if due == nil {
				due = time.After(settle)
			}
		case <-due:
			due = nil
			if err := s.flush(); errors.Is(err, ErrLocked) {
				due = time.After(retry)
			}
		case answer := <-s.flushes:
			answer <- s.flush()
		case <-s.closing:
			s.closeErr = s.finish()
			return
		}
	}
}

// finish is the end of the writer.
func (s *Store) finish() error {
	err := s.flush()
	if errors.Is(err, ErrReadOnly) {
		return nil
	}
	return errors.Join(err, s.lock.Close())
}

// flush writes what is not written yet, the index first, since what the other
// files hold rests on it. What cannot be written waits for the next time.
func (s *Store) flush() error {
	if s.lock == nil && s.contended && s.acquire() == nil {
		s.log.Info("the other process has ended; this one writes the state now", "dir", s.dir)
	}
	if s.lock == nil && s.contended {
		return fmt.Errorf("%w: %w", ErrReadOnly, ErrLocked)
	}
	if s.lock == nil {
		return ErrReadOnly
	}
	s.mu.Lock()
	dirty := s.dirty
	s.dirty = make(map[string]any)
	s.mu.Unlock()

	files := slices.Sorted(maps.Keys(dirty))
	if i := slices.Index(files, s.indexFile()); i > 0 {
		files[0], files[i] = files[i], files[0]
	}
	var errs []error
	for _, file := range files {
		if err := writeFile(file, dirty[file]); err != nil {
			s.log.Error("state not saved", "file", file, "err", err)
			errs = append(errs, err)
			s.putBack(file, dirty[file])
		}
	}
	return errors.Join(errs...)
}

// putBack keeps what could not be written, unless there is newer.
func (s *Store) putBack(file string, v any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, newer := s.dirty[file]; !newer {
		s.dirty[file] = v
	}
}
