package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const (
	// format is the version of the files; others are not read.
	format = 1
	// serverDir has the files of servers.
	serverDir = "servers"
	// temporary is what the names of files begin with that are not in place yet.
	temporary = ".new-"
	// private is the mode of the directories.
	private = 0o700
)

// errReadOnlyDisk is what making something on such a disk fails with.
const errReadOnlyDisk = syscall.EROFS

// envelope is a file's content.
type envelope struct {
	Format int             `json:"format"`
	Value  json.RawMessage `json:"value"`
}

// makeDirs makes the directories that are missing, and those that are there
// private to their owner.
func makeDirs(dir string) error {
	servers := filepath.Join(dir, serverDir)
	if err := os.MkdirAll(servers, private); err != nil {
		return err
	}
	if runtime.GOOS == "windows" {
		return nil
	}
	return errors.Join(os.Chmod(dir, private), os.Chmod(servers, private))
}

// removeTemporary removes what a process that was killed while it wrote has
// left.
func (s *Store) removeTemporary() {
	for _, dir := range [...]string{s.dir, filepath.Join(s.dir, serverDir)} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			s.log.Debug("state directory not cleaned", "dir", dir, "err", err)
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), temporary) {
				if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
					s.log.Debug("temporary file not removed", "file", e.Name(), "err", err)
				}
			}
		}
	}
}

// writeFile makes a file hold v, unless it does already.
func writeFile(file string, v any) error {
	value, err := json.Marshal(v)
	if err != nil {
		return err
	}
	data := fmt.Appendf(nil, `{"format":%d,"value":%s}`+"\n", format, value)
	if old, err := os.ReadFile(file); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return replace(file, data)
}

// replace writes a file whole and moves it into place, so that whoever reads
// it, and whenever the process is killed, finds the old content or the new.
func replace(file string, data []byte) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(file), temporary+"*") // has mode 0600
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
	if err = os.Rename(tmp.Name(), file); err != nil {
		return err
	}
	syncDir(filepath.Dir(file))
	return nil
}

// read fills v from a file; false if there is none that can be read.
func (s *Store) read(file string, v any) bool {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		s.log.Warn("state file cannot be read and counts as missing", "file", file, "err", err)
		return false
	}
	if err = decode(data, v); err == nil {
		return true
	}
	moved := ""
	if s.Writable() {
		moved = file + ".damaged"
		if err := os.Rename(file, moved); err != nil {
			moved = "not moved: " + err.Error()
		}
	}
	s.log.Warn("state file cannot be understood and counts as missing", "file", file, "err", err, "moved", moved)
	return false
}

func decode(data []byte, v any) error {
	var e envelope
	if err := json.Unmarshal(data, &e); err != nil {
		return err
	}
	if e.Format != format {
		return fmt.Errorf("format %d, expected %d", e.Format, format)
	}
	return json.Unmarshal(e.Value, v)
}
