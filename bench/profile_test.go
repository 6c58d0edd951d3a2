package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestProfileRoster(t *testing.T) {
	state, err := os.MkdirTemp("", "bench") // short enough for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	file := filepath.Join(t.TempDir(), "cpu.pgo")
	if err := profileRoster(t.Context(), state, time.Second, file); err == nil || !strings.Contains(err.Error(), "0 gateways") {
		t.Errorf("without a gateway: %v", err)
	}
	if err := os.Mkdir(filepath.Join(state, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(state, "x", "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("of " + r.FormValue("seconds") + " s"))
	})
	server := &http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	if err := profileRoster(t.Context(), state, 2500*time.Millisecond, file); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(file); string(got) != "of 2 s" {
		t.Errorf("%q, %v", got, err)
	}
	_ = server.Close()
	<-ended
}
