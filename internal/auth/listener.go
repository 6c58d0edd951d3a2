package auth

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// listener is where a browser comes back to after a login (RFC 8252, section
// 7.3).
type listener struct {
	redirect string // its URL
	server   *http.Server
	serving  sync.WaitGroup
}

// defaultRedirect has the port that the system chooses.
const defaultRedirect = "http://127.0.0.1:0/callback"

// listen opens the listener that the configuration names; "": at the port that
// was registered, if it is free, or else at any.
func listen(configured, registered string, callback func(context.Context, url.Values) error) (*listener, error) {
	for _, raw := range []string{configured, registered, defaultRedirect} {
		if raw == "" {
			continue
		}
		l, err := listenAt(raw, callback)
		if err == nil || raw == configured {
			return l, err
		}
	}
	return nil, errors.New("no port on loopback is free")
}

// CheckRedirect reports whether a login may end at a URL: http on loopback.
func CheckRedirect(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || !isLoopback(u.Hostname()) || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return errors.New("expected http on loopback, such as http://127.0.0.1:8765/callback")
	}
	return nil
}

func listenAt(raw string, callback func(context.Context, url.Values) error) (*listener, error) {
	if err := CheckRedirect(raw); err != nil {
		return nil, err
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, err
	}
	host := u.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	socket, err := net.Listen("tcp", net.JoinHostPort(host, u.Port()))
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the end of the login: %w", err)
	}
	_, port, err := net.SplitHostPort(socket.Addr().String())
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	u.Host = net.JoinHostPort(u.Hostname(), port)
	l := &listener{redirect: u.String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+u.EscapedPath(), func(w http.ResponseWriter, r *http.Request) {
		err := callback(context.WithoutCancel(r.Context()), r.URL.Query()) // the code is good only once
		page(w, err)
	})
	l.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	l.serving.Go(func() { _ = l.server.Serve(socket) }) // ends with close
	return l, nil
}

// close lets a page that is being written get to its end.
func (l *listener) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second) //nolint:forbidigo // the caller's may have ended, and the page is the answer to it
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		_ = l.server.Close()
	}
	l.serving.Wait()
}

// page tells the user how the login ended.
func page(w http.ResponseWriter, err error) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	title, text := "Logged in", "You are logged in. You can close this page."
	if err != nil {
		title, text = "Not logged in", "You are not logged in: "+err.Error()
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = fmt.Fprintf(w, "<!doctype html><title>%s - Roster</title><style>body{font:1.1em sans-serif;margin:4em auto;max-width:40em}</style>"+
		"<h1>%s</h1><p>%s</p>\n", title, title, html.EscapeString(text)) // the browser may be gone
}
