//go:build unix

package state

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes a lock that ends with the process; ErrLocked if another has it.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// syncDir makes a file's new name last, as far as the disk can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync() // not all file systems can, and then there is nothing to do
		_ = d.Close()
	}
}
