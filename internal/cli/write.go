package cli

import (
	"fmt"
	"io"
)

// sink is a writer that remembers its first error, so that who prints need not
// look at each: Run does in the end.
type sink struct {
	w   io.Writer
	err error
}

// Write writes unless a write has failed before.
func (s *sink) Write(b []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(b)
	s.err = err
	return n, err
}

// write, writeln and writef print to a sink, or to standard error, about which
// there is nobody to complain to.
func write(w io.Writer, args ...any) {
	_, _ = fmt.Fprint(w, args...)
}

func writeln(w io.Writer, args ...any) {
	_, _ = fmt.Fprintln(w, args...)
}

func writef(w io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(w, format, args...)
}
