package config

import (
	"fmt"
	"strings"
)

// Position is a place in a file. Line and Column start at 1; a column is a
// character, not a byte.
type Position struct {
	File         string
	Line, Column int
}

func (p Position) String() string {
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Severity is what a Problem leads to.
type Severity int

// The severities.
const (
	// SeverityError: the server does not run or, if the problem names no
	// server, the setting is ignored.
	SeverityError Severity = iota
	// SeverityWarning: nothing but the warning.
	SeverityWarning
)

func (s Severity) String() string {
	if s == SeverityWarning {
		return "warning"
	}
	return "error"
}

// Problem is something in a file that its author should know. It holds no
// secrets.
type Problem struct {
	// File is the path as it was given to Load.
	File string
	// Line and Column start at 1.
	Line, Column int
	// Server is the name of the entry, or "" outside of the server map.
	Server string
	// Field is the key in the entry, such as "cwd", "args[2]" or "env.TOKEN",
	// or "" for the entry as a whole. Outside of the server map it is the path
	// of the key, such as "roster.listen".
	Field    string
	Severity Severity
	Message  string
}

// String is the problem on one line, with its place in front.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: %s: ", p.File, p.Line, p.Column, p.Severity)
	if p.Server != "" {
		fmt.Fprintf(&b, "server %s: ", quote(p.Server))
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// SyntaxError says why a file is not a configuration at all. It holds no
// secrets.
type SyntaxError struct {
	Position
	// Message says what was expected and what was found.
	Message string
}

func (e *SyntaxError) Error() string {
	return e.Position.String() + ": " + e.Message
}

// quote quotes s for a message, shortened if it is long.
func quote(s string) string {
	const most = 64
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return fmt.Sprintf("%q", s)
}
