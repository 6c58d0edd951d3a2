package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
)

// contentJSON is shared by all responses; nobody writes to it.
var contentJSON = []string{"application/json"}

// readBody appends the body of req to buf. The body must declare its length.
func readBody(req *http.Request, buf []byte) ([]byte, error) {
	n := int(req.ContentLength)
	if n < 0 {
		return buf, fmt.Errorf("read body: no length")
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(req.Body, buf); err != nil {
		return buf, fmt.Errorf("read body: %w", err)
	}
	return buf, nil
}

// writeJSON answers with a body of known length. A caller that has gone is
// noticed by nobody, and need not be.
func writeJSON(w http.ResponseWriter, body ...[]byte) {
	n := 0
	for _, b := range body {
		n += len(b)
	}
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["Content-Length"] = []string{strconv.Itoa(n)}
	for _, b := range body {
		_, _ = w.Write(b)
	}
}

// serve answers with h on a loopback port, which it tells on standard error
// the way the gateway does, until standard input ends: so it does not outlive
// the process that started it.
func serve(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(os.Stderr, "listening url=http://%s/mcp\n", l.Addr())
	srv := &http.Server{Handler: h}
	// Ends with Close below.
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = srv.Close()
	if err := <-failed; err != http.ErrServerClosed {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
