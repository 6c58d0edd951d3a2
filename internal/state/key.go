package state

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const (
	keySize = 32 // bytes
	keyFile = "key"
)

// Key returns a secret of 32 random bytes that is the same for every process
// with this directory. The first one makes it.
func (s *Store) Key() ([]byte, error) { return keyIn(s.dir) }

// keyIn returns the key in the file of that name in a directory.
func keyIn(dir string) ([]byte, error) {
	file := filepath.Join(dir, keyFile)
	for range 2 {
		key, err := os.ReadFile(file)
		switch {
		case err == nil && len(key) == keySize:
			return key, nil
		case err == nil:
			return nil, fmt.Errorf("%s has %d bytes, must have %d: remove it, and a new one is made", file, len(key), keySize)
		case !errors.Is(err, os.ErrNotExist):
			return nil, err
		}
		if err := makeKey(dir, file); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s comes and goes", file)
}

// makeKey writes a new key, whole, unless one is there already.
func makeKey(dir, file string) error {
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	tmp, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // linked to its name by then
	_, err = tmp.Write(key)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Link(tmp.Name(), file)
}
