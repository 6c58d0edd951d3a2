package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/term"
)

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	if s, ok := stream.(*sink); ok {
		stream = s.w
	}
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// width returns how many characters a line of a terminal has.
func width(w io.Writer) int {
	const otherwise = 100
	if s, ok := w.(*sink); ok {
		w = s.w
	}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return otherwise
}

// style is an ANSI style.
type style string

const (
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// paint returns a text in a style, if w is a terminal on which colors are wanted.
func (p *program) paint(w io.Writer, s style, text string) string {
	if s == "" || !p.colors(w) {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// colors reports whether to use them: on terminals that have them, unless
// NO_COLOR is set.
func (p *program) colors(w io.Writer) bool {
	if v, _ := p.LookupEnv("NO_COLOR"); v != "" {
		return false
	}
	name, _ := p.LookupEnv("TERM")
	return isTerminal(w) && name != "dumb" && runtime.GOOS != "windows"
}

// progress tells on the terminal what a command waits for, once it has waited for
// a moment, and for how long.
func (p *program) progress(ctx context.Context, what func() string) (stop func()) {
	const patience, step = 400 * time.Millisecond, 100 * time.Millisecond
	if !isTerminal(p.Stderr) {
		return func() {}
	}
	start := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	var shown sync.WaitGroup
	shown.Go(func() { // ends with ctx
		tick := time.NewTicker(step)
		defer tick.Stop()
		drawn := false
		for {
			select {
			case <-ctx.Done():
				if drawn {
					write(p.Stderr, "\r\x1b[K")
				}
				return
			case <-tick.C:
			}
			if waited := time.Since(start); waited > patience {
				drawn = true
				text := shorten(clean(what()), width(p.Stderr)-12)
				writef(p.Stderr, "\r\x1b[K%s %s", text, p.paint(p.Stderr, dim, fmt.Sprintf("(%.1f s)", waited.Seconds())))
			}
		}
	})
	return func() { cancel(); shown.Wait() }
}
