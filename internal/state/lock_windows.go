package state

import (
	"errors"
	"os"
	"syscall"
)

// lockFile opens a file that nobody else may open until it is closed; ErrLocked
// if another has it.
func lockFile(name string) (*os.File, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	const (
		notShared        = 0
		sharingViolation = syscall.Errno(32)
	)
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, notShared, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), name), nil
}

// syncDir has nothing to do: a rename lasts.
func syncDir(string) {}
