package admin

import (
	"errors"
	"time"

	"github.com/mcp-roster/roster/internal/config"
)

// Configuration says which configuration runs, and what became of a later one.
type Configuration struct {
	Files []string `json:"files"`
	// Watched says that the files are read again by themselves when they change.
	Watched bool `json:"watched"`
	// Read is when what runs was read.
	Read time.Time `json:"read"`
	// Refused is what is wrong with the files as they are now, because of which
	// what ran before runs on.
	Refused *Refused `json:"refused,omitempty"`
	// NeedRestart are the keys of "roster" that have changed and count from the
	// next start.
	NeedRestart []string `json:"needRestart,omitempty"`
}

// Refused says why files were not taken over.
type Refused struct {
	At       time.Time `json:"at"`
	Problems []Problem `json:"problems"`
}

// Problem is something that is wrong with the configuration. What is not known of
// where it is, is left out.
type Problem struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Severity string `json:"severity"`
	Server   string `json:"server,omitempty"`
	Field    string `json:"field,omitempty"`
	Message  string `json:"message"`
}

// String is the problem on one line, with its place in front if that is known.
func (p Problem) String() string {
	if p.File == "" {
		return p.Message
	}
	return config.Problem{
		File: p.File, Line: p.Line, Column: p.Column, Server: p.Server, Field: p.Field, Message: p.Message,
	}.String()
}

// ProblemOf returns a problem of the configuration as it is reported.
func ProblemOf(p config.Problem) Problem {
	return Problem{p.File, p.Line, p.Column, p.Severity.String(), p.Server, p.Field, p.Message}
}

// ProblemsOf returns what an error of config.Load says.
func ProblemsOf(err error) []Problem {
	if list, ok := err.(interface{ Unwrap() []error }); ok {
		var out []Problem
		for _, e := range list.Unwrap() {
			out = append(out, ProblemsOf(e)...)
		}
		return out
	}
	if e, ok := errors.AsType[*config.SyntaxError](err); ok {
		return []Problem{{File: e.File, Line: e.Line, Column: e.Column, Severity: config.SeverityError.String(), Message: e.Message}}
	}
	return []Problem{{Severity: config.SeverityError.String(), Message: err.Error()}}
}
