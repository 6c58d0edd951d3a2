package cli

import (
	"log/slog"
	"slices"

	"github.com/mcp-roster/roster/internal/config"
)

var levelNames = []string{"debug", "info", "warn", "error"}

func parseLevel(name string) (slog.Level, error) {
	var level slog.Level
	if !slices.Contains(levelNames, name) {
		hint := ""
		if near, ok := config.Nearest(name, levelNames); ok {
			hint = ": did you mean " + near + "?"
		}
		return level, usagef("--log-level must be debug, info, warn or error, not %q%s", name, hint)
	}
	err := level.UnmarshalText([]byte(name))
	return level, err
}

// logger returns a logger to standard error, at the level of --log-level or else
// at the one given here; "": it logs nothing.
func (p *program) logger(otherwise string) (*slog.Logger, error) {
	name := p.logLevel
	if name == "" {
		name = otherwise
	}
	if name == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	level, err := parseLevel(name)
	if err != nil {
		return nil, err
	}
	return slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: level})), nil
}
