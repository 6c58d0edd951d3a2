package clientfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"github.com/tailscale/hujson"
)

// backupSuffix is what the name of a copy ends with.
const backupSuffix = ".before-roster"

// Change is what [Client.Connect] or [Client.Disconnect] did to a file.
type Change struct {
	Changed bool
	Backup  string // the copy of the file as it was before; "" if there is none
}

// Connect writes an entry for Roster, under a name, into a client's file. Before
// the first time it copies the file, as FILE.before-roster; that copy stays until
// Disconnect. A file that is not there is made.
func (c Client) Connect(path, name string, entry []byte) (Change, error) {
	var done Change
	err := again(func() error {
		done = Change{}
		old, err := Read(path)
		if err != nil {
			return err
		}
		f, err := c.parse(path, old)
		if err != nil {
			return err
		}
		was, connected := f.Entry(name)
		if connected && Same(was, entry) {
			return nil
		}
		if err := f.Set(name, entry); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		backup, _ := c.backup(path)
		if !connected || backup == nil {
			if done.Backup, err = copyFile(path, old); err != nil {
				return fmt.Errorf("copy %s before it is changed: %w", path, err)
			}
		}
		done.Changed = true
		return Replace(path, old, f.Bytes())
	})
	return done, err
}

// Same reports whether two JSON values differ only in how they are laid out.
func Same(a, b []byte) bool {
	x, errX := Plain(a)
	y, errY := Plain(b)
	if errX != nil || errY != nil {
		return false
	}
	var v, w any
	return json.Unmarshal(x, &v) == nil && json.Unmarshal(y, &w) == nil && reflect.DeepEqual(v, w)
}

// Disconnect takes the entry of that name out of a client's file. If nothing else
// has changed since Connect the file is as it was before, to the byte; else only
// the entry goes, and what stood there before in its place comes back.
func (c Client) Disconnect(path, name string) (Change, error) {
	var done Change
	err := again(func() error {
		done = Change{}
		now, err := Read(path)
		if err != nil {
			return err
		}
		f, err := c.parse(path, now)
		if err != nil {
			return err
		}
		if _, ok := f.Entry(name); !ok {
			return nil
		}
		backup, original := c.backup(path)
		done.Changed = true
		restored, err := f.without(name, backup)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(restored) == 0 && original == nil {
			err = os.Remove(path)
		} else {
			err = Replace(path, now, restored)
		}
		if err != nil {
			return err
		}
		if bytes.Equal(restored, original) && original != nil {
			return os.Remove(path + backupSuffix)
		}
		if original != nil {
			done.Backup = path + backupSuffix
		}
		return nil
	})
	return done, err
}

// without returns the text without an entry, given what it was before there was
// one; nil if that is not known.
func (f *File) without(name string, before *File) ([]byte, error) {
	entry, _ := f.Entry(name)
	if empty, err := Parse(f.format(), f.servers, nil); before == nil && err == nil {
		if empty.Set(name, bytes.Clone(entry)) == nil && bytes.Equal(empty.Bytes(), f.Bytes()) {
			return nil, nil // there was no file
		}
	}
	if before != nil {
		was := before.Bytes()
		if err := before.Set(name, bytes.Clone(entry)); err == nil && bytes.Equal(before.Bytes(), f.Bytes()) {
			return was, nil
		}
		var err error
		if before, err = Parse(f.format(), f.servers, was); err != nil {
			return nil, err
		}
		if old, ok := before.Entry(name); ok {
			err := f.Set(name, old)
			return f.Bytes(), err
		}
	}
	if err := f.Remove(name); err != nil {
		return nil, err
	}
	if before != nil && len(f.Names()) == 0 {
		if _, ok := before.At(f.servers); !ok {
			if err := f.RemoveAt(f.servers); err != nil {
				return nil, err
			}
		}
	}
	return f.Bytes(), nil
}

func (f *File) format() Format {
	if _, ok := f.text.(*tomlText); ok {
		return TOML
	}
	return JSON
}

func (c Client) parse(path string, raw []byte) (*File, error) {
	f, err := Parse(c.Format, c.Servers, raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// backup returns the copy that was made of a file, and its bytes; nil if there is
// none that can be read.
func (c Client) backup(path string) (*File, []byte) {
	raw, err := os.ReadFile(path + backupSuffix)
	if err != nil {
		return nil, nil
	}
	f, err := c.parse(path, raw)
	if err != nil {
		return nil, nil
	}
	return f, raw
}

// Plain returns JSON without comments and trailing commas.
func Plain(value []byte) ([]byte, error) {
	if tooDeep(value) {
		return nil, errTooDeep
	}
	return hujson.Standardize(append(bytes.Clone(value), '\n'))
}

// copyFile keeps a copy of a file beside it, with its mode; "" if there is no file.
func copyFile(path string, content []byte) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		// Nothing was there: a copy of another time would say otherwise.
		if err := os.Remove(path + backupSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		return "", nil
	}
	if err != nil {
		return "", err
	}
	old, err := Read(path + backupSuffix)
	if err != nil {
		return "", err
	}
	if err := Replace(path+backupSuffix, old, content); err != nil {
		return "", err
	}
	return path + backupSuffix, os.Chmod(path+backupSuffix, info.Mode().Perm())
}

// again repeats an edit of a file that somebody else changed meanwhile.
func again(edit func() error) error {
	const attempts = 5
	var err error
	for range attempts {
		if err = edit(); !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return err
}
