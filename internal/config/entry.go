package config

import (
	"cmp"
	"net/textproto"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// draft is a server entry while it is read.
type draft struct {
	Server
	off            bool // said by any of the off switches
	neverSSE       bool // the URL came as "httpUrl"
	requestTimeout time.Duration
}

// entrySchema is the keys of a server entry.
func entrySchema() schema[draft] {
	return schema[draft]{
		fields: []field[draft]{
			{[]string{"type", "transportType", "transport", "protocol"}, readTransport},
			{[]string{"command"}, readCommand},
			{[]string{"args"}, readArgs},
			{[]string{"env"}, readEnv},
			{[]string{"inheritEnv", "inheritParentEnv"}, func(r *reader, m member, d *draft) { d.InheritEnv, _ = r.boolean(m) }},
			{[]string{"cwd", "workingDir", "working_dir", "workdir", "dir"}, readDir},
			{[]string{"url", "serverUrl"}, func(r *reader, m member, d *draft) { readURL(r, m, d) }},
			{[]string{"httpUrl"}, func(r *reader, m member, d *draft) { readURL(r, m, d); d.neverSSE = true }},
			{[]string{"headers", "http_headers"}, readHeaders},
			{[]string{"forwardHeaders"}, readForward},
			{[]string{"bearer"}, readBearer},
			{[]string{"oauth"}, readOAuth},
			{[]string{"auth"}, readAuth},
			{[]string{"caFile"}, func(r *reader, m member, d *draft) { readPath(r, m, &d.CAFile) }},
			{[]string{"disabled"}, readDisabled},
			{[]string{"enabled"}, readEnabled},
			{[]string{"options"}, readOptions},
			{[]string{"prefix"}, readPrefix},
			{[]string{"timeout"}, func(r *reader, m member, d *draft) { d.Timeout, _ = r.duration(m) }},
			{[]string{"requestTimeout", "call_tool_timeout"}, func(r *reader, m member, d *draft) { d.requestTimeout, _ = r.duration(m) }},
			{[]string{"connectTimeout", "connectionTimeout", "init_timeout", "ready_timeout"}, func(r *reader, m member, d *draft) { d.ConnectTimeout, _ = r.duration(m) }},
			{[]string{"scope"}, readScope},
			{[]string{"roots"}, func(r *reader, m member, d *draft) { d.Roots = readRoots(r, m) }},
		},
		silent: []string{
			"alwaysAllow", "autoApprove", "trust", "allowAllTools",
			"name", "title", "displayName", "description", "notes", "icon", "icons", "version", "gallery", "source", "registry",
			"tags", "groups", "created", "updated", "lastUpdated", "installed", "fromGalleryId", "isActive", "provider", "providerUrl", "logoUrl",
			"dev", "stderr", "restartOnExit", "maxRestarts", "restartDelay", "ping_timeout", "$schema",
		},
		inert: []string{
			"envFile", "envFilter", "headersHelper", "sandbox", "image", "ssh", "openapi",
			"tools", "includeTools", "excludeTools", "allowedTools", "disabledTools", "enabledTools", "enabled_tools", "disabled_tools",
			"toolFilter", "toolSelector", "toolDescriptionOverrides", "include_tags", "exclude_tags", "quarantined",
		},
	}
}

// readServer reads and checks one entry.
func readServer(e *entry, r *reader, settings Settings) Server {
	d := draft{Server: Server{Name: e.name, At: e.source.position(e.at), Scope: Shared}}
	if e.name == "" {
		r.fail(e.at, "", "a server needs a name")
	}
	if members, ok := r.object(member{at: e.at, value: e.value}); ok {
		entrySchema().read(r, members, &d)
		d.check(r, e.at)
	}
	if d.off {
		// Nobody wants to hear what is wrong with a server that is switched off.
		r.problems = slices.DeleteFunc(r.problems, func(p Problem) bool { return p.Severity == SeverityError })
	}
	if !d.off {
		d.Problem = r.failure
	}
	d.Disabled = d.off || d.Problem != nil
	d.Timeout = cmp.Or(d.requestTimeout, d.Timeout, settings.RequestTimeout)
	d.ConnectTimeout = cmp.Or(d.ConnectTimeout, settings.ConnectTimeout)
	if d.Roots == nil {
		d.Roots = settings.Roots
	}
	if d.URL != "" {
		d.CAFile = cmp.Or(d.CAFile, settings.CAFile)
	}
	return d.Server
}

// check looks at the entry as a whole and settles the transport. An entry
// whose fields are wrong already is not accused of what follows from it.
func (d *draft) check(r *reader, at int) {
	if r.failure != nil {
		return
	}
	switch {
	case d.Command == "" && d.URL == "":
		r.fail(at, "", `needs "command" (a program to start) or "url" (a server to connect to)`)
	case d.Command != "" && d.URL != "":
		r.fail(at, "", `has both "command" and "url"; it can only have one`)
	case d.Transport == Stdio && d.URL != "":
		r.fail(at, "", `is of type stdio, which needs "command", but has "url"`)
	case (d.Transport == HTTP || d.Transport == SSE) && d.Command != "":
		r.fail(at, "", `is of type %s, which needs "url", but has "command"`, d.Transport)
	}
	d.checkLogin(r, at)
	d.ForwardHeaders = slices.DeleteFunc(d.ForwardHeaders, func(name string) bool {
		set := slices.ContainsFunc(d.Headers, func(h Pair) bool { return h.Name == name })
		if set {
			r.warn(at, "forwardHeaders", "%s has a value in headers, which counts", name)
		}
		return set
	})
	if d.Transport != "" {
		return
	}
	switch {
	case d.Command != "":
		d.Transport = Stdio
	case !d.neverSSE && hasSSESegment(d.URL):
		d.Transport = SSE
	default:
		d.Transport = HTTP
	}
}

func hasSSESegment(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && slices.Contains(strings.Split(u.Path, "/"), "sse")
}

func readTransport(r *reader, m member, d *draft) {
	s, ok := r.literal(m)
	if !ok {
		return
	}
	switch strings.ToLower(s) {
	case "stdio":
		d.Transport = Stdio
	case "http", "streamable-http", "streamablehttp", "streamable_http", "streaming":
		d.Transport = HTTP
	case "sse":
		d.Transport = SSE
	case "auto", "":
		d.Transport = ""
	default:
		r.fail(m.value.StartOffset, m.field, "%s is not a transport; Roster knows stdio, http and sse", quote(s))
	}
}

func readCommand(r *reader, m member, d *draft) {
	if m.value.Value.Kind() == '[' {
		r.fail(m.value.StartOffset, m.field, `expected a string, the program alone; its arguments go into "args"`)
		return
	}
	written, ok := r.literal(m)
	if !ok || written == "" { // "" is what some programs write for none
		return
	}
	command, ok := r.expanded(m, written)
	if ok && strings.TrimSpace(command) == "" {
		r.fail(m.value.StartOffset, m.field, "the command is empty")
		return
	}
	d.Command = command
}

func readArgs(r *reader, m member, d *draft) {
	elements, _ := r.elements(m)
	d.Args = nil
	for _, e := range elements {
		if arg, ok := r.scalar(e); ok {
			d.Args = append(d.Args, arg)
		}
	}
}

func readEnv(r *reader, m member, d *draft) {
	var env pairs
	defer func() { d.Env = env.list }()
	if m.value.Value.Kind() == '[' {
		elements, _ := r.elements(m)
		for _, e := range elements {
			if name, value, ok := readAssignment(r, e); ok {
				env.set(r, e, name, value)
			}
		}
		return
	}
	members, _ := r.object(m)
	for _, e := range members {
		if e.value.Value.Kind() == 'n' {
			continue
		}
		if e.name == "" || strings.ContainsAny(e.name, "=\x00") {
			r.fail(e.at, e.field, `not the name of an environment variable`)
			continue
		}
		if value, ok := r.scalar(e); ok {
			env.set(r, e, e.name, value)
		}
	}
}

// readAssignment reads "K=V", or "K" for the value that Roster itself has.
func readAssignment(r *reader, m member) (name, value string, ok bool) {
	s, ok := r.literal(m)
	if !ok {
		return "", "", false
	}
	name, value, assigned := strings.Cut(s, "=")
	if name == "" || strings.Contains(name, "\x00") {
		r.fail(m.value.StartOffset, m.field, `expected "NAME=value" or "NAME"`)
		return "", "", false
	}
	if assigned {
		value, ok = r.expanded(m, value)
		return name, value, ok
	}
	if value, ok = r.expander.env.get(name); !ok {
		r.fail(m.value.StartOffset, m.field, "environment variable %s is not set", printable(name))
	}
	return name, value, ok
}

// pairs is a list of pairs in which each name stands once.
type pairs struct {
	list  []Pair
	index map[string]int
}

// set appends a pair, or replaces one of the same name with a warning.
func (p *pairs) set(r *reader, m member, name, value string) {
	if i, ok := p.index[name]; ok {
		r.warn(m.at, m.field, "%s stands twice; the later one wins", printable(name))
		p.list[i].Value = value
		return
	}
	if p.index == nil {
		p.index = make(map[string]int)
	}
	p.index[name] = len(p.list)
	p.list = append(p.list, Pair{name, value})
}

func readDir(r *reader, m member, d *draft) {
	dir, ok := r.text(m)
	switch {
	case !ok || dir == "":
		d.Dir = ""
	case filepath.IsAbs(dir):
		d.Dir = filepath.Clean(dir)
	default:
		if dir == "~" || strings.HasPrefix(dir, "~/") {
			r.warn(m.value.StartOffset, m.field, "~ is taken literally; for the home directory write ${userHome}")
		}
		d.Dir = filepath.Join(r.expander.folder, dir)
	}
}

// readURL takes care to say nothing of the URL: it may hold a token.
func readURL(r *reader, m member, d *draft) {
	written, ok := r.literal(m)
	if !ok || written == "" { // "" is what some programs write for none
		return
	}
	s, ok := r.expanded(m, written)
	if !ok {
		return
	}
	s = strings.TrimSpace(s)
	u, err := url.Parse(s)
	switch {
	case s == "":
		r.fail(m.value.StartOffset, m.field, "the URL is empty")
	case err != nil:
		r.fail(m.value.StartOffset, m.field, "not a valid URL; expected for example https://example.com/mcp")
	case u.Scheme != "http" && u.Scheme != "https":
		r.fail(m.value.StartOffset, m.field, "a URL must start with http:// or https://")
	case u.Hostname() == "":
		r.fail(m.value.StartOffset, m.field, "the URL has no host")
	default:
		d.URL = s
	}
}

func readHeaders(r *reader, m member, d *draft) {
	members, _ := r.object(m)
	var headers pairs
	for _, e := range members {
		if e.value.Value.Kind() == 'n' {
			continue
		}
		if !isToken(e.name) {
			r.fail(e.at, e.field, "not the name of an HTTP header")
			continue
		}
		value, ok := r.scalar(e)
		if !ok {
			continue
		}
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			r.fail(e.value.StartOffset, e.field, "the value of a header must not contain line breaks or other control characters")
			continue
		}
		headers.set(r, e, textproto.CanonicalMIMEHeaderKey(e.name), value)
	}
	d.Headers = headers.list
}

// readForward reads an allow-list. What is about one hop, about the protocol or
// about the client's own credentials is never passed on.
func readForward(r *reader, m member, d *draft) {
	d.ForwardHeaders = nil
	elements, _ := r.elements(m)
	for _, e := range elements {
		written, ok := r.text(e)
		if !ok {
			continue
		}
		name := textproto.CanonicalMIMEHeaderKey(written)
		switch {
		case !isToken(written):
			r.fail(e.at, e.field, "not the name of an HTTP header")
		case !forwardable(name):
			r.warn(e.at, e.field, "%s is never passed on to servers", name)
		case !slices.Contains(d.ForwardHeaders, name):
			d.ForwardHeaders = append(d.ForwardHeaders, name)
		}
	}
}

func forwardable(name string) bool {
	for _, prefix := range []string{"Mcp-", "Proxy-", "Content-", "Accept", "Sec-", "Access-Control-", "X-Forwarded-", "If-"} {
		if strings.HasPrefix(name, prefix) {
			return false
		}
	}
	switch name {
	case "Authorization", "Cookie", "Set-Cookie", "X-Api-Key", "Api-Key", "Host", "Connection", "Keep-Alive", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Via", "Forwarded", "Expect", "Range", "Origin", "Referer", "Last-Event-Id", "Date",
		"Www-Authenticate", "Idempotency-Key", "X-Idempotency-Key", "User-Agent":
		return false
	}
	return true
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c)
	})
}

func readDisabled(r *reader, m member, d *draft) {
	disabled, _ := r.boolean(m)
	d.off = d.off || disabled
}

func readEnabled(r *reader, m member, d *draft) {
	enabled, ok := r.boolean(m)
	d.off = d.off || ok && !enabled
}

func readOptions(r *reader, m member, d *draft) {
	members, _ := r.object(m)
	schema[draft]{
		fields: []field[draft]{{[]string{"disabled"}, readDisabled}},
		silent: []string{"panicIfInvalid", "logEnabled"},
		inert:  []string{"toolFilter", "authTokens"},
	}.read(r, members, d)
}

func readPrefix(r *reader, m member, d *draft) {
	if prefix, ok := r.literal(m); ok {
		d.Prefix = &prefix
	}
}

func readScope(r *reader, m member, d *draft) {
	s, ok := r.literal(m)
	if !ok {
		return
	}
	switch scope := Scope(s); scope {
	case Shared, PerClient:
		d.Scope = scope
	default:
		r.fail(m.value.StartOffset, m.field, `%s is not a scope; it is "shared" or "client"`, quote(s))
	}
}
