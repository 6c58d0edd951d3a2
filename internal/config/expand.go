package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

const maxReferencedBytes = 1 << 20 // of a file in ${file:path}

// expander replaces references in strings, see "Variables" in the package
// documentation. Its errors contain names, never values.
type expander struct {
	env    Lookup
	folder string // ${workspaceFolder}
}

func (x expander) expand(s string) (string, error) {
	var out strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			out.WriteString(s)
			return out.String(), nil
		}
		if i > 0 && s[i-1] == '$' { // $${
			out.WriteString(s[:i-1] + "${")
			s = s[i+2:]
			continue
		}
		out.WriteString(s[:i])
		reference, rest, ok := strings.Cut(s[i+2:], "}")
		if !ok {
			return "", errors.New(`"${" without "}"; for a literal "${" write "$${"`)
		}
		if strings.Contains(reference, "${") {
			return "", errors.New(`references do not nest: "${" inside of "${...}"`)
		}
		value, err := x.resolve(reference)
		if err != nil {
			return "", err
		}
		out.WriteString(value)
		s = rest
	}
}

// resolve returns the value of what stands between the braces.
func (x expander) resolve(reference string) (string, error) {
	if value, ok, err := x.predefined(reference); ok || err != nil {
		return value, err
	}
	if isName(reference) {
		return x.variable(reference, "", false)
	}
	if name, text, ok := strings.Cut(reference, ":-"); ok && isName(name) {
		return x.variable(name, text, true)
	}
	space, rest, ok := strings.Cut(reference, ":")
	if !ok || !isName(space) {
		return "", errors.New(`not a reference that Roster knows; for a literal "${" write "$${"`)
	}
	switch space {
	case "env":
		name, text, hasDefault := strings.Cut(rest, ":-")
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return "", errors.New("${env:...} without the name of a variable")
		}
		return x.variable(name, text, hasDefault)
	case "file":
		return x.file(rest)
	case "keyring":
		return "", errors.New("${keyring:...} is not available yet; use ${file:path} or an environment variable, ${NAME}")
	case "input":
		return "", errors.New("${input:...} is not available yet: nobody is asked for a value; use an environment variable, ${NAME}, or ${file:path}")
	default:
		return "", fmt.Errorf(`${%s:...} is not a reference that Roster knows; for a literal "${" write "$${"`, printable(space))
	}
}

func (x expander) variable(name, text string, hasDefault bool) (string, error) {
	value, ok := x.env.get(name)
	switch {
	case hasDefault && value == "":
		return text, nil
	case !ok:
		return "", fmt.Errorf("environment variable %s is not set; set it, or give a default: ${%[1]s:-text}", printable(name))
	}
	return value, nil
}

// predefined returns the value of a name that is not taken from the
// environment, and whether it is one.
func (x expander) predefined(name string) (string, bool, error) {
	switch name {
	case "userHome":
		home, err := userHome(x.env)
		return home, true, err
	case "workspaceFolder":
		return x.folder, true, nil
	case "workspaceFolderBasename":
		return filepath.Base(x.folder), true, nil
	case "cwd":
		dir, err := os.Getwd()
		if err != nil {
			return "", true, fmt.Errorf("${cwd}: %w", err)
		}
		return dir, true, nil
	case "pathSeparator", "/":
		return string(filepath.Separator), true, nil
	}
	return "", false, nil
}

func (x expander) file(path string) (string, error) {
	if path == "" {
		return "", errors.New("${file:...} without a path")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(x.folder, path)
	}
	// Looking first keeps a pipe that nobody writes to from blocking us.
	info, err := os.Stat(path)
	if err != nil {
		return "", fileError(path, err)
	}
	if !info.Mode().IsRegular() {
		return "", fileError(path, errors.New("not a regular file"))
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fileError(path, err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxReferencedBytes+1))
	if err != nil {
		return "", fileError(path, err)
	}
	if len(content) > maxReferencedBytes {
		return "", fileError(path, fmt.Errorf("larger than %d MiB", maxReferencedBytes>>20))
	}
	return strings.TrimRight(string(content), "\r\n"), nil
}

func fileError(path string, err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	return fmt.Errorf("${file:...}: cannot read %q: %w", path, err)
}

// userHome is os.UserHomeDir over env.
func userHome(env Lookup) (string, error) {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if home, _ := env.get(name); home != "" {
		return home, nil
	}
	return "", fmt.Errorf("no home directory: environment variable %s is not set", name)
}

// isName reports whether s may stand as the name of a variable by itself.
func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || '9' < c) {
			return false
		}
	}
	return s != ""
}
