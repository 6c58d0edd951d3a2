//go:build unix

package admin

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// maxSocket is how long the path of a socket may be, in bytes. The system with the
// least allows 104 with the zero byte at the end.
const maxSocket = 100

func socketFile(dir string) string { return filepath.Join(dir, "control.sock") }

// Listen listens on the socket in a state directory, which only its owner may use.
// A socket that is there counts as left over: the caller must have made sure that
// no other process listens. Close of the listener removes it.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	file := socketFile(dir)
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	path, done, err := shortPath(file)
	if err != nil {
		return nil, err
	}
	defer done()
	l, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // path may be gone by then
	if err := os.Chmod(file, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(file))
	}
	return &socket{l, file}, nil
}

// socket is a listener that removes its file.
type socket struct {
	net.Listener
	file string
}

func (s *socket) Close() error {
	_ = os.Remove(s.file) // first, while nobody else has the name
	return s.Listener.Close()
}

// Dial connects to the gateway with a state directory.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	path, done, err := shortPath(socketFile(dir))
	if err != nil {
		return nil, err
	}
	defer done()
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// shortPath returns a path of a socket that is not too long for the system: through
// a link that done removes if need be.
func shortPath(file string) (path string, done func(), err error) {
	if len(file) <= maxSocket {
		return file, func() {}, nil
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "roster-")
	if err == nil && len(dir)+len("/d/")+len(filepath.Base(file)) > maxSocket {
		_ = os.Remove(dir) // it is empty
		dir, err = os.MkdirTemp("/tmp", "roster-")
	}
	if err != nil {
		return "", nil, err
	}
	link := filepath.Join(dir, "d")
	done = func() {
		_, _ = os.Remove(link), os.Remove(dir) // what stays is empty
	}
	if err := os.Symlink(filepath.Dir(file), link); err != nil {
		done()
		return "", nil, err
	}
	return filepath.Join(link, filepath.Base(file)), done, nil
}
