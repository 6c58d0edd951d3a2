package clientfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrChanged says that a file is not what it was when it was read.
var ErrChanged = errors.New("the file was changed meanwhile")

// Read returns the content of a file; nothing, and no error, if there is none.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("%s is larger than %d MiB", path, maxBytes>>20)
	}
	return raw, nil
}

// Replace makes a file hold other bytes, at once: whoever reads it finds the old
// ones or the new, also if this process is killed meanwhile. The file keeps its
// mode, and a symbolic link stays one. A file that is not there yet is made for its
// owner only, with the directories that lead to it. If the file does not hold old
// any more, nothing is written and the error is [ErrChanged].
func Replace(path string, old, data []byte) (err error) {
	path, err = target(path)
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	} else if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.new")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(tmp.Name()))
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err = os.Chmod(tmp.Name(), mode); err != nil {
		return err
	}
	now, err := Read(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(now, old) {
		return fmt.Errorf("%s: %w", path, ErrChanged)
	}
	return os.Rename(tmp.Name(), path)
}

// target returns the file that a path leads to over symbolic links, also if it is
// not there yet.
func target(path string) (string, error) {
	const most = 40
	for range most {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			return path, nil //nolint:nilerr // what is not there is made there
		}
		link, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(filepath.Dir(path), link)
		}
		path = link
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}
