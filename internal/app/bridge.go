package app

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcp-roster/roster/internal/admin"
	"github.com/mcp-roster/roster/internal/config"
	"github.com/mcp-roster/roster/internal/state"
)

// A client on pipes is served over a connection of the operator's socket that begins
// as an HTTP request and goes on as JSON lines.
const (
	bridgePath = "/stdio"
	bridgeWire = "roster-stdio" // the protocol that is switched to
	// fingerprintHeader has the fingerprint of the configuration as the one who asks
	// reads it: it must be that of the gateway.
	fingerprintHeader = "Roster-Configuration"
	// briefHeader says that the gateway ends with a client of its own.
	briefHeader = "Roster-Brief"
)

// ErrTaken says that another gateway of the configuration runs.
var ErrTaken = state.ErrLocked

// OtherConfigError says that the gateway that runs has read another configuration
// from the same files, as happens if the environment has other values for variables.
type OtherConfigError struct{ Reason string }

func (e *OtherConfigError) Error() string { return e.Reason }

// Seat is a connection over which a gateway serves one client, as JSON lines.
type Seat struct {
	net.Conn
	// Brief: the gateway ends with a client of its own.
	Brief bool

	reader *bufio.Reader
}

// Read reads what the gateway writes.
func (s *Seat) Read(p []byte) (int, error) { return s.reader.Read(p) }

// CloseWrite says that nothing more will be written.
func (s *Seat) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Conn.Close()
}

// Join asks the gateway that runs with a configuration to serve a client. The error
// is an *OtherConfigError if it has read another one, else that there is none.
func Join(ctx context.Context, cfg *config.Config, files []string) (*Seat, error) {
	const within = 5 * time.Second
	conn, err := admin.Dial(ctx, stateDir(cfg, files))
	if err != nil {
		return nil, err
	}
	seat, err := join(conn, cfg, within)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return seat, nil
}

func join(conn net.Conn, cfg *config.Config, within time.Duration) (*Seat, error) {
	if err := conn.SetDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	_, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s: %s\r\nContent-Length: 0\r\n\r\n",
		bridgePath, bridgeWire, fingerprintHeader, cfg.Fingerprint())
	if err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return &Seat{Conn: conn, Brief: resp.Header.Get(briefHeader) != "", reader: reader}, conn.SetDeadline(time.Time{})
	}
	defer resp.Body.Close()
	var failure admin.Failure
	const most = 64 << 10
	_ = json.NewDecoder(io.LimitReader(resp.Body, most)).Decode(&failure) // without it there is the status
	if resp.StatusCode == http.StatusConflict {
		return nil, &OtherConfigError{failure.Error}
	}
	return nil, fmt.Errorf("the gateway answered %s %s", resp.Status, failure.Error)
}

// bridge serves a client whose messages come over a connection to the operator's
// socket, until that or the gateway ends.
func (a *App) bridge(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != bridgeWire {
		admin.Fail(w, http.StatusUpgradeRequired, "this is for 'roster serve --stdio'")
		return
	}
	if !a.sameConfig(r) {
		admin.Fail(w, http.StatusConflict, "the gateway that runs has another configuration from the same files: "+
			"the variables in them have other values there")
		return
	}
	a.serving.Add(1) // the server whose handler this is runs, and counts, too
	defer a.serving.Done()
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		admin.Fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	defer a.seats.leave(conn)
	if !a.seats.take(conn) {
		return
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		a.log.Debug("client on pipes not served", "err", err)
		return
	}
	brief := ""
	if a.opts.Brief {
		brief = briefHeader + ": 1\r\n"
	}
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n%s\r\n", bridgeWire, brief); err != nil {
		return
	}
	if err := a.ServeStdio(a.base, buffered.Reader, conn); err != nil {
		a.log.Debug("a client on pipes has ended", "err", err)
	}
}

// seats are the connections of clients on pipes.
type seats struct {
	mu     sync.Mutex // guards the fields below
	taken  map[net.Conn]struct{}
	closed bool
}

// take notes a connection; false if there are to be none any more.
func (s *seats) take(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if s.taken == nil {
		s.taken = make(map[net.Conn]struct{})
	}
	s.taken[c] = struct{}{}
	return true
}

func (s *seats) leave(c net.Conn) {
	_ = c.Close() // its client has been served, or finds another gateway
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, c)
}

// close cuts all connections. Their clients are told nothing, since they go on with
// another gateway.
func (s *seats) close() {
	s.mu.Lock()
	s.closed = true
	all := slices.Collect(maps.Keys(s.taken))
	s.mu.Unlock()
	for _, c := range all {
		_ = c.Close() // for good
	}
}

// sameConfig reports whether who asks has read the configuration that runs. If not,
// the files may have changed just now.
func (a *App) sameConfig(r *http.Request) bool {
	asked := r.Header.Get(fingerprintHeader)
	if a.running.Load().config.Fingerprint() == asked {
		return true
	}
	_, err := a.Reload(r.Context())
	return err == nil && a.running.Load().config.Fingerprint() == asked
}
