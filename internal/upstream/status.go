package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-roster/roster/mcp"
)

// State is how a server is.
type State string

// The states.
const (
	Starting State = "starting" // being connected or listed
	Ready    State = "ready"
	Degraded State = "degraded" // connected, but a list is not known to be whole
	Down     State = "down"     // not connected; NextTry says when it is tried
	Disabled State = "disabled" // switched off, or stopped
	Idle     State = "idle"     // runs for each client apart, and for none now
	// NeedsLogin is Down because the server wants a login that only a user can do.
	NeedsLogin State = "needs login"
)

// LoginError is an error of a wire whose server wants a login that only a user
// can do.
type LoginError interface {
	error
	NeedsLogin() (server string)
}

// Status is what is known of a server at one moment.
type Status struct {
	Name  string
	State State
	Since time.Time // when State began
	// Version is the protocol version of the connection, else of the last one;
	// "": there was none.
	Version mcp.Version
	// LastErr is the last failure to connect or of a connection; it stays
	// until a connection is there.
	LastErr error
	NextTry time.Time // zero: no attempt is planned
	// Restarts counts connections behind the first.
	Restarts int
	Kinds    [len(mcp.Kinds)]KindStatus
	InFlight int // requests that run
	Queued   int // requests that wait
	// Clients has those that run for one client each.
	Clients []ClientStatus
}

// KindStatus is what is known of one list.
type KindStatus struct {
	Count    int       // items in the last list
	ListedAt time.Time // when the last walk ended that gave a list
	Err      error     // why the last walk gave none, or may have missed items
	Warnings []string
}

// UnavailableError says that a server is not connected. It does not wrap LastErr,
// which may be what the server answered to another request.
type UnavailableError struct {
	Server  string
	State   State
	LastErr error     // may be nil
	NextTry time.Time // zero: not planned
}

func (e *UnavailableError) Error() string {
	if login, ok := errors.AsType[LoginError](e.LastErr); ok && e.State == NeedsLogin {
		return login.Error()
	}
	text := fmt.Sprintf("server %q is %s", e.Server, e.State)
	if e.LastErr != nil {
		text += ": " + e.LastErr.Error()
	}
	if !e.NextTry.IsZero() {
		text += fmt.Sprintf("; it is tried again in %v", max(time.Until(e.NextTry), 0).Round(time.Second/10))
	}
	return text
}

// TimeoutError says that a server did not answer in time. It is a
// context.DeadlineExceeded.
type TimeoutError struct {
	Server string
	Method string
	After  time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("server %q did not answer %s within %v", e.Server, e.Method, e.After)
}

// Unwrap returns context.DeadlineExceeded.
func (e *TimeoutError) Unwrap() error { return context.DeadlineExceeded }

// BusyError says that too many requests wait for a server.
type BusyError struct {
	Server   string
	InFlight int
	Queued   int
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("server %q is busy: %d requests run and %d wait; try again later", e.Server, e.InFlight, e.Queued)
}

// CallError says that a request failed on its way to the server or back. The
// server may have acted on it.
type CallError struct {
	Server string
	Method string
	Err    error
}

func (e *CallError) Error() string {
	why := strings.TrimPrefix(e.Err.Error(), e.Method+": ") // some errors name it themselves
	return fmt.Sprintf("server %q: %s: %s", e.Server, e.Method, why)
}

// Unwrap returns Err.
func (e *CallError) Unwrap() error { return e.Err }
