package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// profileRoster takes a CPU profile of the gateway with a state directory, over its
// control socket, and writes it to a file.
func profileRoster(ctx context.Context, state string, d time.Duration, file string) (err error) {
	sockets, err := filepath.Glob(filepath.Join(state, "*", "control.sock"))
	if err != nil || len(sockets) != 1 {
		return fmt.Errorf("take profile: %d gateways have a control socket in %s, want one", len(sockets), state)
	}
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", sockets[0])
	}}}
	url := fmt.Sprintf("http://roster/debug/pprof/profile?seconds=%d", max(int(d.Seconds()), 1))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("take profile: %w", err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("take profile: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("take profile: %s", resp.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("take profile: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, resp.Body); err != nil {
		return fmt.Errorf("take profile: %w", err)
	}
	return nil
}
