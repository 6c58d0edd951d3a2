package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/mcp-roster/roster/internal/config"
)

// Controls are what an operator can have done.
type Controls struct {
	// Reload has the configuration read again; Plan says what that would do. An
	// error may be a *RefusedError.
	Reload  func(ctx context.Context) (config.Changes, error)
	Plan    func() (config.Changes, error)
	Journal *Journal
}

// RefusedError says why a configuration is not taken over: what ran before runs on.
type RefusedError struct{ Problems []Problem }

func (e *RefusedError) Error() string {
	text := ""
	for i, p := range e.Problems {
		if i > 0 {
			text += "\n"
		}
		text += p.String()
	}
	return text
}

// Outcome is what a reload has done, or would do.
type Outcome struct {
	Added     []string `json:"added,omitempty"`
	Removed   []string `json:"removed,omitempty"`
	Restarted []string `json:"restarted,omitempty"`
	Adjusted  []string `json:"adjusted,omitempty"`
	Reordered bool     `json:"reordered,omitempty"`
	// NeedRestart are keys of "roster" that differ from those with which the
	// gateway was started, and count from its next start.
	NeedRestart []string `json:"needRestart,omitempty"`
	// Problems are why nothing changes.
	Problems []Problem `json:"problems,omitempty"`
}

// Failure is what a control answers that could not be done.
type Failure struct {
	Error string `json:"error"`
}

// RegisterControls adds the routes that change something or tell more than others
// may know. They are for the operator's socket alone.
//
//	POST /reload                  reads the configuration again; answers an Outcome
//	GET  /plan                    the Outcome that would have
//	POST /servers/{name}/restart  connects anew; answers the Server as it was
//	GET  /logs                    lines of the journal, a JSON object each; with
//	                              ?server=NAME those of one, with ?follow=1 without end
func (s *Source) RegisterControls(mux *http.ServeMux, c Controls) {
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, r *http.Request) {
		changes, err := c.Reload(r.Context())
		s.outcome(w, changes, err)
	})
	mux.HandleFunc("GET /plan", func(w http.ResponseWriter, _ *http.Request) {
		changes, err := c.Plan()
		s.outcome(w, changes, err)
	})
	mux.HandleFunc("POST /servers/{name}/restart", s.restart)
	mux.HandleFunc("GET /logs", func(w http.ResponseWriter, r *http.Request) { s.logs(w, r, c.Journal) })
}

func (s *Source) outcome(w http.ResponseWriter, c config.Changes, err error) {
	refused, ok := errors.AsType[*RefusedError](err)
	switch {
	case ok:
		object(w, Outcome{Problems: refused.Problems})
	case err != nil:
		Fail(w, http.StatusServiceUnavailable, err.Error())
	default:
		object(w, Outcome{
			Added: c.Added, Removed: c.Removed, Restarted: c.Restarted, Adjusted: c.Adjusted, Reordered: c.Reordered, NeedRestart: c.Settings,
		})
	}
}

func (s *Source) restart(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	servers := s.Running().Servers
	i := slices.IndexFunc(servers, func(c Configured) bool { return c.Name == name })
	if i < 0 {
		Fail(w, http.StatusNotFound, "there is no server "+quote(name))
		return
	}
	before := s.server(servers[i])
	srv := s.Servers.Get(name)
	if srv == nil {
		Fail(w, http.StatusConflict, "server "+quote(name)+" is switched off in the configuration, or wrong there")
		return
	}
	srv.Restart()
	object(w, before)
}

func quote(s string) string {
	text, _ := json.Marshal(s) // any string can be
	return string(text)
}

// Fail answers that something could not be done, with a Failure.
func Fail(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(Failure{why}) // the client may be gone
}

func (s *Source) logs(w http.ResponseWriter, r *http.Request, j *Journal) {
	server := r.FormValue("server")
	if server != "" && !slices.ContainsFunc(s.Running().Servers, func(c Configured) bool { return c.Name == server }) {
		Fail(w, http.StatusNotFound, "there is no server "+quote(server))
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc := json.NewEncoder(w)
	out := http.NewResponseController(w)
	var at uint64
	for {
		lines, next, news := j.After(at, server)
		for _, l := range lines {
			if enc.Encode(l) != nil {
				return
			}
		}
		at = next
		if r.FormValue("follow") == "" || news == nil || out.Flush() != nil {
			return
		}
		select {
		case <-news:
		case <-r.Context().Done():
			return
		}
	}
}
