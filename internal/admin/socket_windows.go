package admin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// place is the content of the file that says where a gateway listens, on a port of
// the loopback interface. Who may read the file may use the gateway.
type place struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

func placeFile(dir string) string { return filepath.Join(dir, "control.json") }

// Listen listens where only those who may read the state directory can connect. The
// caller must have made sure that no other process listens. Close of the listener
// removes the file that says where.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := place{l.Addr().String(), rand.Text()}
	data, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(placeFile(dir), data, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &tokenListener{l, p.Token, placeFile(dir)}, nil
}

// tokenListener takes connections that begin with a token.
type tokenListener struct {
	net.Listener
	token, file string
}

func (l *tokenListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tokenConn{Conn: c, token: l.token}, nil
}

func (l *tokenListener) Close() error {
	_ = os.Remove(l.file) // whoever reads it will find nobody there
	return l.Listener.Close()
}

// tokenConn is closed unless the first that is read of it is the token.
type tokenConn struct {
	net.Conn
	token string
	once  sync.Once
	err   error
}

func (c *tokenConn) Read(p []byte) (int, error) {
	c.once.Do(func() {
		got := make([]byte, len(c.token))
		if _, c.err = io.ReadFull(c.Conn, got); c.err == nil && subtle.ConstantTimeCompare(got, []byte(c.token)) != 1 {
			c.err = errors.Join(errors.New("no token"), c.Close())
		}
	})
	if c.err != nil {
		return 0, c.err
	}
	return c.Conn.Read(p)
}

// Dial connects to the gateway with a state directory.
func Dial(ctx context.Context, dir string) (net.Conn, error) {
	data, err := os.ReadFile(placeFile(dir))
	if err != nil {
		return nil, err
	}
	var p place
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", placeFile(dir), err)
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, err
	}
	const within = 5 * time.Second
	_ = c.SetWriteDeadline(time.Now().Add(within)) // a connection that is open takes it
	if _, err := io.WriteString(c, p.Token); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, c.SetWriteDeadline(time.Time{})
}
