package admin

import (
	"encoding/json"
	"net/http"
)

// Register adds the routes that probes and operators ask:
//
//	/livez               200 as long as the process answers
//	/readyz              200 once lists are complete or waited for long enough, else 503
//	/healthz, /health    200 with the state of the whole, 503 while starting
//	/status              everything but the items, as JSON
//	/items               whose each listed item is, as JSON; see Items. With
//	                     ?name=NAME only those of that name
func (s *Source) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-s.Catalog.Ready():
			text(w, http.StatusOK, "ok")
		default:
			text(w, http.StatusServiceUnavailable, string(Starting))
		}
	})
	health := func(w http.ResponseWriter, _ *http.Request) {
		st := s.Status()
		code := http.StatusOK
		if st.Health == Starting {
			code = http.StatusServiceUnavailable
		}
		w.Header().Set("X-Health-Status", string(st.Health))
		w.Header().Set("X-Service-Version", st.Version)
		text(w, code, string(st.Health))
	}
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /health", health)
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { object(w, s.Status()) })
	mux.HandleFunc("GET /items", func(w http.ResponseWriter, r *http.Request) { object(w, s.Items(r.FormValue("name"))) })
}

func object(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	_ = enc.Encode(v) // the client may be gone
}

func text(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body + "\n")) // the client may be gone
}
