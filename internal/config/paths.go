package config

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// DefaultPath is where the configuration is if nobody says otherwise:
// roster/config.json in the directory of os.UserConfigDir, which is
// $XDG_CONFIG_HOME or ~/.config, on macOS ~/Library/Application Support, on
// Windows %AppData%. It fails if there is no home directory.
func DefaultPath() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the configuration: %w", err)
	}
	return filepath.Join(dir, "roster", "config.json"), nil
}

// StateDir is where state is kept if the configuration does not say it:
// $ROSTER_STATE_DIR, else $XDG_STATE_HOME/roster (if absolute), else
// ~/.local/state/roster, on Windows %LocalAppData%\roster. It fails if there
// is no home directory. Nothing is created.
func StateDir(env Lookup) (string, error) {
	if dir, _ := env.get("ROSTER_STATE_DIR"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir, _ := env.get("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "roster"), nil
	}
	if runtime.GOOS == "windows" {
		if dir, _ := env.get("LOCALAPPDATA"); dir != "" {
			return filepath.Join(dir, "roster"), nil
		}
	}
	home, err := userHome(env)
	if err != nil {
		return "", fmt.Errorf("find the state directory: %w", err)
	}
	return filepath.Join(home, ".local", "state", "roster"), nil
}

// stateDir is the directory to use, given the one that the files ask for.
func stateDir(env Lookup, configured string) string {
	if override, _ := env.get("ROSTER_STATE_DIR"); configured != "" && override == "" {
		return configured
	}
	dir, err := StateDir(env)
	if err != nil {
		return ""
	}
	return dir
}
