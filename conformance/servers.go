package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// programs are the binaries under test and beside it.
type programs struct {
	roster  string
	server  string // the example server
	client  string // the driver of our client
	foreign string // the conformance server of the Go SDK
}

// running are servers that have been started.
type running []*process

// stop stops them, the last one first.
func (r *running) stop() {
	for i := len(*r) - 1; i >= 0; i-- {
		(*r)[i].stop()
	}
}

// example starts our example server.
func (p *programs) example(ctx context.Context, r *running) (url string, err error) {
	return r.start(ctx, "the example server", regexp.MustCompile(`^listening on (http://\S+)`), p.server)
}

// reference starts the SDK's server over HTTP, which has one mode for versions with
// sessions and one for those without.
func (p *programs) reference(ctx context.Context, r *running, stateless bool) (url string, err error) {
	for range 3 { // somebody may be faster to take the address
		var addr string
		if addr, err = freeAddress(); err != nil {
			return "", err
		}
		var srv *process
		if srv, _, err = start(ctx, "the SDK's server", nil, p.foreign, "-http", addr, fmt.Sprintf("-stateless=%t", stateless)); err != nil {
			return "", err
		}
		url = "http://" + addr + "/"
		if err = srv.answers(ctx, url); err == nil {
			*r = append(*r, srv)
			return url, nil
		}
		srv.stop()
	}
	return "", err
}

// gateway starts roster with one server, whose names it leaves as they are.
// server has the members of the server's entry in the configuration file.
func (p *programs) gateway(ctx context.Context, r *running, dir string, server map[string]any) (url string, err error) {
	server["prefix"] = ""
	data, err := json.MarshalIndent(map[string]any{
		"mcpServers": map[string]any{"c": server},
		"roster":     map[string]any{"stateDir": filepath.Join(dir, "state")},
	}, "", "  ")
	if err != nil {
		return "", err
	}
	config := filepath.Join(dir, "roster.json")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(config, data, 0o600)); err != nil {
		return "", err
	}
	return r.start(ctx, "roster", regexp.MustCompile(`listening.*url="?(http://[^\s"]+)`),
		p.roster, "serve", "--config", config, "--listen", "127.0.0.1:0")
}

func (r *running) start(ctx context.Context, name string, ready *regexp.Regexp, program string, args ...string) (url string, err error) {
	srv, url, err := start(ctx, name, ready, program, args...)
	if err != nil {
		return "", err
	}
	*r = append(*r, srv)
	return url, nil
}
