package app

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/state"
)

const (
	// takeover is how often a gateway looks whether the one that commands use has
	// ended.
	takeover = time.Second
	// yieldPath asks a gateway that ends with its client to leave the socket to the
	// one that asks; aside is how long it then leaves it alone.
	yieldPath = "/yield"
	aside     = 3 * takeover
)

// socketLock is the outcome of an attempt to get the lock of a socket: only who has
// it listens there.
type socketLock struct {
	lock io.Closer // nil: not got
	err  error
}

// lockSocket tries to get the lock of the socket in a state directory.
func lockSocket(dir string) (l socketLock) {
	const private = 0o700
	if l.err = os.MkdirAll(dir, private); l.err == nil {
		l.lock, l.err = state.Lock(filepath.Join(dir, "control.lock"))
	}
	return l
}

// taken reports whether another gateway has the lock.
func (l socketLock) taken() bool { return errors.Is(l.err, state.ErrLocked) }

func (l socketLock) release() {
	if l.lock != nil {
		_ = l.lock.Close() // it ends with the process, too
	}
}

// door is the listener of the socket, while this gateway has it.
type door struct {
	mu     sync.Mutex // guards the fields below
	l      net.Listener
	closed bool // for good
}

func (d *door) open(l net.Listener) {
	d.mu.Lock()
	d.l = l
	closed := d.closed
	d.mu.Unlock()
	if closed {
		_ = l.Close() // nobody has come yet
	}
}

// shut ends the listening: connections that are there go on.
func (d *door) shut(forGood bool) {
	d.mu.Lock()
	l := d.l
	d.l, d.closed = nil, d.closed || forGood
	d.mu.Unlock()
	if l != nil {
		_ = l.Close() // who comes late finds another gateway
	}
}

// announce has commands find this gateway, now or as soon as no other one of its
// configuration is found that goes before it. What it starts ends with Close.
func (a *App) announce(socket socketLock) {
	l := a.listenLocally(&socket)
	if socket.taken() {
		a.log.Info("commands go on using the gateway of this configuration that ran before")
	}
	a.tasks.Go(func() { // ends with Close, or when the socket cannot be had
		for {
			if l != nil {
				a.serveLocally(l)
				socket.release()
				socket.err = state.ErrLocked // by who has asked for it
				if !a.idle(aside) {
					return
				}
			}
			for l = nil; l == nil; l = a.listenLocally(&socket) {
				if !socket.taken() || !a.idle(takeover) {
					return
				}
				if !a.opts.Brief {
					a.claim()
				}
				socket = lockSocket(a.store.Dir())
			}
		}
	})
}

// idle lets time pass; false if the gateway closes.
func (a *App) idle(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.reloading.closing:
		return false
	}
}

// listenLocally listens on the socket if its lock is ours.
func (a *App) listenLocally(socket *socketLock) net.Listener {
	if socket.taken() {
		return nil
	}
	var l net.Listener
	if socket.err == nil {
		l, socket.err = admin.Listen(a.base, a.store.Dir())
	}
	if socket.err != nil {
		socket.release()
		a.log.Warn("commands will not find this gateway", "err", socket.err)
		return nil
	}
	a.door.open(l)
	return l
}

// claim asks the gateway that commands find to leave the socket to this one, which
// does not end with a client.
func (a *App) claim() {
	const within = time.Second
	ctx, cancel := context.WithTimeout(a.base, within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+yieldPath, nil)
	if err != nil {
		return
	}
	transport := admin.Transport(a.store.Dir())
	defer transport.CloseIdleConnections()
	asker := http.Client{Transport: transport}
	if resp, err := asker.Do(req); err == nil { // else it may have ended
		_ = resp.Body.Close() // the status is all there is, and does not matter
	}
}

// yield leaves the socket to another gateway if this one ends with its client.
func (a *App) yield(w http.ResponseWriter, _ *http.Request) {
	if !a.opts.Brief {
		admin.Fail(w, http.StatusConflict, "this gateway does not end with a client")
		return
	}
	a.door.shut(false)
	w.WriteHeader(http.StatusNoContent)
}
