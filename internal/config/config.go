// Package config reads Roster's configuration: the server map that other MCP
// programs already write, plus a "roster" object with settings of our own.
//
// # Files
//
// A file is JSON, with comments and trailing commas allowed, in UTF-8 (a byte
// order mark and CRLF are fine). Servers stand in one of these shapes:
//
//	{"mcpServers": {"name": {...}}}             Claude, Cursor, Windsurf, Cline, ...
//	{"servers":    {"name": {...}}}             VS Code
//	{"mcpServers": [{"name": "name", ...}]}     mcpproxy
//
// The order of the servers is the order of the file, and it matters: lists are
// served in it. Several files are merged in order. A server in a later file
// replaces one of the same name as a whole, in the place of the earlier one;
// the keys of "roster" are merged one by one. The same holds for a name that
// stands twice in one file: the later one wins. All of this is warned about.
//
// # Server entries
//
// An entry has either "command" (with "args", "env", "cwd") or "url" (with
// "headers"). The transport is "type"; without it, a command means stdio, a URL
// whose path has a segment "sse" means sse, and any other URL http.
//
//	type            stdio, http, sse; also streamable-http, streamableHttp,
//	                streamable_http, streaming (all http) and auto;
//	                also spelled transportType, transport, protocol
//	command         program to start, looked up in the PATH; no shell is involved
//	args            list of arguments
//	env             object, or list of "K=V" and "K" (K as Roster has it)
//	inheritEnv      pass all of Roster's environment; also inheritParentEnv
//	cwd             working directory; also workingDir, working_dir, workdir, dir
//	url             also serverUrl; httpUrl is a URL that is never sse
//	headers         object; also http_headers
//	forwardHeaders  names of fields of clients' requests that the server gets, too
//	bearer          token, or {"env": NAME}, {"file": path}, {"keyring": name} or
//	                {"command": [program, argument, ...]}
//	oauth           true (as the server says), false (never), or an object with clientId,
//	                clientSecret, clientMetadataUrl, privateKey, algorithm, issuer, scopes, redirectUri or
//	                redirectPort (callbackPort), grant, assertion (as bearer)
//	auth            {"type": "bearer", "token"}, {"type": "header", "header", "value"}, or
//	                {"type": "oauth"} with the keys of oauth; also client_id and the like
//	caFile          certificates to trust beside the system's, PEM
//	disabled: true  or enabled: false, or options.disabled: true
//	prefix          name prefix of what the server offers; "" is none; default its name
//	timeout         for a request; also requestTimeout and call_tool_timeout, which win
//	connectTimeout  also connectionTimeout, init_timeout, ready_timeout
//	scope           shared (default) or client
//	roots           folders to tell the server of: paths or file: URIs; default roster.roots
//
// A variable in env may be any, LD_PRELOAD, NODE_OPTIONS and the like among them:
// whoever writes the file may run any command anyway. Read no file that others
// can write.
//
// A duration is a string with a unit as Go writes it ("30s", "1m30s"), or a
// number of milliseconds, whatever the field. Zero means the default; the
// longest is 24 hours. A size is a number of bytes or a string such as "8MiB".
// A relative "cwd" counts from the workspace folder (see below). A null is the
// same as leaving the key out.
//
// # Variables
//
// In command, args, values of env and headers, url, cwd, and in the strings of
// "roster", a reference is replaced, once; what it yields is never looked at
// again. Keys are never touched.
//
//	${VAR} ${env:VAR}            environment variable of Roster; it must be set
//	${VAR:-text} ${env:VAR:-text} the text, if the variable is unset or empty
//	${file:path}                 content of a file, without the line breaks at its end
//	${userHome}                  home directory
//	${workspaceFolder}           folder of the configuration file, or the one above
//	                             if that is .vscode, .cursor or the like
//	${workspaceFolderBasename}   last element of it
//	${cwd}                       working directory of Roster
//	${pathSeparator} ${/}        / or \
//
// $${ is a literal ${. A $ that is not followed by { is a literal $. References
// do not nest. A relative path in ${file:path} counts from the workspace folder.
//
// # What can go wrong
//
// A file that cannot be read or is not JSON makes [Load] fail. Anything wrong
// inside one server's entry is a [Problem] that keeps this server from running
// and no other. Keys nobody knows are warnings. Neither problems, nor the
// printed or logged form of a [Server], contain values of environment variables,
// headers, arguments, or the query or user part of a URL.
package config

import "time"

// Config is a whole configuration: everything defaulted, checked and expanded.
type Config struct {
	// Servers are in file order; a server that several files have stands where
	// it stood first. Those that must not run are here too, see Server.Disabled.
	Servers []Server

	// Roster holds the global settings.
	Roster Settings
}

// Server is one entry of the server map. Its printed, logged and JSON forms
// show no more than its name, its transport and where it is.
type Server struct {
	// Name is the key in the server map. It is never empty in a server that may run.
	Name string

	// Transport says which of the fields below apply: Command, Args, Env,
	// InheritEnv and Dir to Stdio, URL, Headers and CAFile to HTTP and SSE.
	Transport Transport

	// Command is the program, as written: a name to look up in the PATH of the
	// child, or a path, which if relative counts from Dir.
	Command string
	// Args are the arguments, without the command.
	Args []string
	// Env is set in the child, in file order, each name once.
	Env []Pair
	// InheritEnv passes all of Roster's own environment, not just the basics.
	InheritEnv bool
	// Dir is the child's working directory, absolute, or "" for Roster's own.
	// Load does not look whether it exists.
	Dir string

	// URL is absolute, with scheme http or https.
	URL string
	// CAFile is a PEM file, absolute, with certificates to trust beside the
	// system's; Settings.CAFile if the entry has none.
	CAFile string
	// Headers are sent with every request, in file order, each name once and
	// in its canonical form.
	Headers []Pair
	// ForwardHeaders are the fields of clients' requests, in their canonical form,
	// that the server gets with their calls.
	ForwardHeaders []string
	// Bearer is the token that requests carry; nil: none.
	Bearer *Bearer
	// OAuth says how to log in; nil: as the server says when it wants it.
	OAuth *OAuth

	// Disabled servers are not run: the file says so, or Problem does.
	Disabled bool
	// Problem is the first error in this entry, or nil. The fields of a
	// server with a problem are not complete.
	Problem *Problem

	// Prefix replaces the server's name in the names of what it offers. Nil
	// is the name itself, "" no prefix.
	Prefix *string

	// Timeout bounds a request, Settings.RequestTimeout if the entry has none.
	Timeout time.Duration
	// ConnectTimeout bounds connecting, Settings.ConnectTimeout if the entry has none.
	ConnectTimeout time.Duration

	// Scope says whether clients share the server.
	Scope Scope
	// Roots are URIs of folders that a server which clients share is told to work
	// in when it asks; Settings.Roots if the entry has none. Nil: it is told that
	// there are no roots. One that runs for each client asks its client.
	Roots []string

	// At is where the entry starts. It says nothing about the server: leave
	// it out when comparing.
	At Position
}

// Transport is how a server is spoken to.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // JSON lines over the pipes of a child process
	HTTP  Transport = "http"  // streamable HTTP
	SSE   Transport = "sse"   // HTTP with server-sent events, of 2024-11-05
)

// Scope is how clients share a server.
type Scope string

// The scopes.
const (
	Shared    Scope = "shared" // one for all clients
	PerClient Scope = "client" // one for each
)

// Pair is an environment variable or a header. Its printed, logged and JSON
// forms leave the value out.
type Pair struct {
	Name, Value string
}

// Lookup returns the value of an environment variable and whether it is set,
// as os.LookupEnv does. A nil Lookup knows no variable.
type Lookup func(name string) (value string, ok bool)

func (l Lookup) get(name string) (string, bool) {
	if l == nil {
		return "", false
	}
	return l(name)
}
