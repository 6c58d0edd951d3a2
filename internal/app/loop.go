package app

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
)

// A configuration that was copied from a client's may have an entry for the
// gateway itself. Served, it would list its own list, longer each time, or start
// itself without end. Two marks give it away.
const (
	// loopHeader is on all requests of a gateway over HTTP: its id.
	loopHeader = "Roster-Gateway"
	// loopVariable is in the environment of all children: the state directories
	// of the gateways above them, as in PATH.
	loopVariable = "ROSTER_INSIDE"
)

var errLoop = errors.New("this gateway was started by a gateway of the same configuration: remove the entry that starts roster itself")

// checkLoop fails if a gateway with this state directory is above us.
func checkLoop(dir string) error {
	if slices.Contains(filepath.SplitList(os.Getenv(loopVariable)), dir) {
		return errLoop
	}
	return nil
}

// inside returns the variable for a child of the gateway with this state
// directory.
func inside(dir string) string {
	above := os.Getenv(loopVariable)
	if above != "" {
		above += string(filepath.ListSeparator)
	}
	return loopVariable + "=" + above + dir
}

// refuseLoop answers the gateway's own requests with what is wrong with them.
func (a *App) refuseLoop(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(loopHeader) == a.id {
			http.Error(w, "this is the gateway itself: remove the entry with its URL", http.StatusLoopDetected)
			return
		}
		next.ServeHTTP(w, r)
	})
}
