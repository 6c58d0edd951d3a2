package mcphttp

import (
	"context"
	"net"
	"net/http"
)

// Gather wraps a listener of TCP connections so that a response of more than a few
// KiB leaves in one write, and the client is woken once. Without it net/http
// writes what fits into its buffer of 4 KiB first and the rest behind it. The
// http.Server needs [GatherContext] as its ConnContext. Connections of other kinds
// are left as they are.
func Gather(l net.Listener) net.Listener { return gatherListener{l} }

// GatherContext is for the ConnContext of an http.Server whose listener Gather has
// wrapped.
func GatherContext(ctx context.Context, c net.Conn) context.Context {
	if g, ok := c.(*gatherConn); ok {
		return context.WithValue(ctx, gatherKey{}, g)
	}
	return ctx
}

type gatherKey struct{}

type gatherListener struct{ net.Listener }

// Accept implements net.Listener.
func (l gatherListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		return &gatherConn{TCPConn: tcp}, err
	}
	return c, err
}

// gatherConn is a connection that keeps writes back while it is asked to. Only the
// goroutine that writes a response writes and asks.
type gatherConn struct {
	*net.TCPConn
	holding bool
	small   []byte      // what was kept of short writes
	held    net.Buffers // all that is kept back, in order
}

// maxCopied is the longest write of which a copy is kept: net/http's buffer, which
// is used again. Longer writes are parts of the response itself.
const maxCopied = 4 << 10

// Write implements net.Conn.
func (c *gatherConn) Write(p []byte) (int, error) {
	if !c.holding {
		return c.TCPConn.Write(p)
	}
	if len(p) <= maxCopied {
		at := len(c.small)
		c.small = append(c.small, p...)
		c.held = append(c.held, c.small[at:])
	} else {
		c.held = append(c.held, p)
	}
	return len(p), nil
}

// release writes what was kept back. If that fails the connection is closed: half a
// response may have left, behind which nothing else must come.
func (c *gatherConn) release() {
	c.holding = false
	held := c.held
	if _, err := held.WriteTo(c.TCPConn); err != nil {
		_ = c.Close() // the next read or write tells
	}
	clear(c.held)
	c.held, c.small = c.held[:0], c.small[:0]
}

// gather runs write, which writes a whole response of some size, so that it leaves
// in one go if the connection can do that.
func gather(w http.ResponseWriter, r *http.Request, size int, write func()) {
	const small = 3 << 10 // with its header it fits into one write anyway
	c, ok := r.Context().Value(gatherKey{}).(*gatherConn)
	if size <= small || !ok {
		write()
		return
	}
	c.holding = true
	defer c.release()
	write()
	_ = http.NewResponseController(w).Flush() // unsupported: the end of the request does
}
