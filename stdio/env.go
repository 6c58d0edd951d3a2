package stdio

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// passedVariables are the variables a child gets from its parent's environment: what
// programs need to find their files, their locale, the proxy and the certificate
// authorities of the network they are in. Names are compared as the system does.
var passedVariables = []string{
	"PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR",

	"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY",
	"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy",

	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "DENO_CERT",
}

// passedPrefixes are the beginnings of names that are passed as well.
var passedPrefixes = []string{"LC_", "XDG_"}

// passedWindows is what is passed besides on Windows, where hardly a program
// starts without.
var passedWindows = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "WINDIR", "COMSPEC", "PATHEXT", "OS",
	"APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "ALLUSERSPROFILE", "PUBLIC",
	"PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432",
	"COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432",
	"USERPROFILE", "USERNAME", "USERDOMAIN", "HOMEDRIVE", "HOMEPATH",
	"TEMP", "TMP", "COMPUTERNAME", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE",
}

// environment returns a child's environment: the variables of parent that are
// passed, or all of them, then those of own, which win. Of entries with the same
// name the last one counts.
func environment(parent, own []string, inheritAll bool) ([]string, error) {
	for _, entry := range own {
		name, _, ok := strings.Cut(entry, "=")
		if !ok || name == "" || strings.ContainsRune(entry, 0) {
			return nil, fmt.Errorf("environment entry %q is not of the form NAME=value", name)
		}
	}
	env := make([]string, 0, len(own)+32)
	at := make(map[string]int)
	add := func(entry string) {
		name := variableKey(variableName(entry))
		if i, ok := at[name]; ok {
			env[i] = entry
			return
		}
		at[name] = len(env)
		env = append(env, entry)
	}
	for _, entry := range parent {
		if inheritAll || passed(entry) {
			add(entry)
		}
	}
	for _, entry := range own {
		add(entry)
	}
	return env, nil
}

// passed reports whether a variable is one that a child gets unasked. Shell
// functions, which bash exports as values beginning with "()", are not.
func passed(entry string) bool {
	name := variableName(entry)
	if name == "" || strings.HasPrefix(entry[len(name):], "=()") {
		return false
	}
	key := variableKey(name)
	if slices.Contains(passedVariables, key) {
		return true
	}
	if runtime.GOOS == "windows" && slices.Contains(passedWindows, key) {
		return true
	}
	return slices.ContainsFunc(passedPrefixes, func(prefix string) bool {
		return strings.HasPrefix(key, prefix)
	})
}

// variableName returns the name of an entry. On Windows there are names that begin
// with "=".
func variableName(entry string) string {
	if i := strings.IndexByte(entry[min(1, len(entry)):], '='); i >= 0 {
		return entry[:i+1]
	}
	return ""
}

// variableKey returns the form of a name by which it is found.
func variableKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}

// lookupVariable returns a variable's value in an environment, empty if it is not
// there.
func lookupVariable(env []string, name string) string {
	for _, entry := range env {
		if key := variableName(entry); key != "" && variableKey(key) == variableKey(name) {
			return entry[len(key)+1:]
		}
	}
	return ""
}
