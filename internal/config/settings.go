package config

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// Settings are the keys of the "roster" object, which are named as the fields
// here, with a small first letter. Load fills in the defaults.
type Settings struct {
	// Listen is the address to serve HTTP on, host:port; default 127.0.0.1:7678.
	Listen string
	// StartupWait is how long first lists are waited for after the start;
	// default 10 s.
	StartupWait time.Duration
	// RequestTimeout bounds a request to a server that has no timeout of its
	// own; default 5 min.
	RequestTimeout time.Duration
	// ConnectTimeout bounds connecting to a server that has no timeout of its
	// own for it; default 60 s.
	ConnectTimeout time.Duration
	// PageItems is the most items on one page of a list, 1 to 1,000,000;
	// default 2,000.
	PageItems int
	// PageBytes is the size at which a page is cut, 1 KiB to 1 GiB; default 8 MiB.
	PageBytes int
	// NameLength is the most characters in an exposed name, 16 to 128;
	// default 50.
	NameLength int
	// StateDir is where state is kept: $ROSTER_STATE_DIR, else the file's
	// stateDir (if relative, from the workspace folder), else StateDir. It is
	// empty if there is no home directory.
	StateDir string

	// SSE says whether HTTP+SSE of 2024-11-05 is served, too; default true.
	SSE bool
	// Keys are the keys that callers must have one of. Nil, and not just empty:
	// none is asked for.
	Keys []APIKey
	// AllowedHosts are values of the Host header field that are answered beside
	// loopback names: a name, a name with a port, or "*".
	AllowedHosts []string
	// AllowedOrigins are origins of web pages that may call, beside those of
	// loopback, such as "https://app.example.com".
	AllowedOrigins []string
	// TLSCert and TLSKey are PEM files, absolute, with which HTTPS is served; both
	// or none.
	TLSCert, TLSKey string
	// CAFile is a PEM file, absolute, with certificates to trust beside the
	// system's, towards servers that have no caFile of their own.
	CAFile string
	// Roots are URIs of folders that servers without roots of their own are told
	// to work in. Nil: they are told of none.
	Roots []string
	// TokenStore is where the key of the store of tokens is: "keyring" (of the
	// operating system), "file", or "" for the keyring where there is one.
	TokenStore string
}

// APIKey is a key that a caller may have: the SHA-256 of it.
type APIKey struct {
	Name   string
	SHA256 [sha256.Size]byte
}

// DefaultSettings are those of an empty "roster" object, but for StateDir,
// which depends on the environment.
func DefaultSettings() Settings {
	return Settings{
		Listen:         "127.0.0.1:7678",
		StartupWait:    10 * time.Second,
		RequestTimeout: 5 * time.Minute,
		ConnectTimeout: time.Minute,
		PageItems:      2000,
		PageBytes:      8 << 20,
		NameLength:     50,
		SSE:            true,
	}
}

// settingsSchema is the keys of "roster". What is wrong, or a duration of zero,
// leaves the field as it was.
func settingsSchema() schema[Settings] {
	duration := func(name string, pick func(*Settings) *time.Duration) field[Settings] {
		return field[Settings]{[]string{name}, func(r *reader, m member, s *Settings) {
			if d, ok := r.duration(m); ok && d != 0 {
				*pick(s) = d
			}
		}}
	}
	return schema[Settings]{
		fields: []field[Settings]{
			{[]string{"listen"}, readListen},
			duration("startupWait", func(s *Settings) *time.Duration { return &s.StartupWait }),
			duration("requestTimeout", func(s *Settings) *time.Duration { return &s.RequestTimeout }),
			duration("connectTimeout", func(s *Settings) *time.Duration { return &s.ConnectTimeout }),
			{[]string{"pageItems"}, func(r *reader, m member, s *Settings) {
				if n, ok := r.count(m, 1, 1_000_000); ok {
					s.PageItems = n
				}
			}},
			{[]string{"pageBytes"}, func(r *reader, m member, s *Settings) {
				if n, ok := r.size(m, 1<<10, 1<<30); ok {
					s.PageBytes = n
				}
			}},
			{[]string{"nameLength"}, func(r *reader, m member, s *Settings) {
				if n, ok := r.count(m, 16, 128); ok {
					s.NameLength = n
				}
			}},
			{[]string{"stateDir"}, func(r *reader, m member, s *Settings) { readPath(r, m, &s.StateDir) }},
			{[]string{"sse"}, func(r *reader, m member, s *Settings) {
				if on, ok := r.boolean(m); ok {
					s.SSE = on
				}
			}},
			{[]string{"keys"}, readKeys},
			{[]string{"allowedHosts"}, func(r *reader, m member, s *Settings) { s.AllowedHosts = readTexts(r, m) }},
			{[]string{"allowedOrigins"}, func(r *reader, m member, s *Settings) { s.AllowedOrigins = readTexts(r, m) }},
			{[]string{"tlsCert"}, func(r *reader, m member, s *Settings) { readPath(r, m, &s.TLSCert) }},
			{[]string{"tlsKey"}, func(r *reader, m member, s *Settings) { readPath(r, m, &s.TLSKey) }},
			{[]string{"caFile"}, func(r *reader, m member, s *Settings) { readPath(r, m, &s.CAFile) }},
			{[]string{"roots"}, func(r *reader, m member, s *Settings) { s.Roots = readRoots(r, m) }},
			{[]string{"tokenStore"}, func(r *reader, m member, s *Settings) {
				switch where, ok := r.literal(m); {
				case !ok || where == "auto":
				case where == "keyring", where == "file":
					s.TokenStore = where
				default:
					r.fail(m.value.StartOffset, m.field, `%s is not a token store; it is "auto", "keyring" or "file"`, quote(where))
				}
			}},
		},
	}
}

func readListen(r *reader, m member, s *Settings) {
	listen, ok := r.text(m)
	if !ok {
		return
	}
	_, port, err := net.SplitHostPort(listen)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		r.fail(m.value.StartOffset, m.field, `expected an address with a port, such as "127.0.0.1:7678"`)
		return
	}
	s.Listen = listen
}

// readPath reads a path, which if relative counts from the workspace folder.
func readPath(r *reader, m member, into *string) {
	path, ok := r.text(m)
	if !ok || path == "" {
		return
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.expander.folder, path)
	}
	*into = filepath.Clean(path)
}

func readTexts(r *reader, m member) []string {
	var texts []string
	list, _ := r.elements(m)
	for _, e := range list {
		if s, ok := r.text(e); ok && s != "" {
			texts = append(texts, s)
		}
	}
	return texts
}

// readKeys reads the keys of callers. One that is wrong is nobody's: keys are
// asked for all the same.
func readKeys(r *reader, m member, s *Settings) {
	s.Keys = []APIKey{}
	list, _ := r.elements(m)
	for _, e := range list {
		members, ok := r.object(e)
		if !ok {
			continue
		}
		var d keyDraft
		schema[keyDraft]{fields: []field[keyDraft]{
			{[]string{"name"}, func(r *reader, m member, d *keyDraft) { d.Name, _ = r.text(m) }},
			{[]string{"sha256"}, readHash},
		}}.read(r, members, &d)
		switch {
		case d.wrong:
		case d.Name == "":
			r.fail(e.at, e.field, `a key needs a "name", which says whose it is`)
		case slices.ContainsFunc(s.Keys, func(k APIKey) bool { return k.Name == d.Name }):
			r.fail(e.at, e.field, "another key has the name %s; this one is left out", quote(d.Name))
		case !d.hashed:
			r.fail(e.at, e.field, `a key needs "sha256"; 'roster key new' makes both`)
		default:
			s.Keys = append(s.Keys, d.APIKey)
		}
	}
}

// keyDraft is an entry of "keys" while it is read.
type keyDraft struct {
	APIKey
	hashed, wrong bool
}

// readHash says nothing of the value: it may be the key itself.
func readHash(r *reader, m member, d *keyDraft) {
	text, ok := r.text(m)
	if !ok {
		d.wrong = true
		return
	}
	sum, err := hex.DecodeString(text)
	if err != nil || len(sum) != len(d.SHA256) {
		r.fail(m.value.StartOffset, m.field, "expected 64 hexadecimal digits, the SHA-256 of a key; 'roster key new' makes them")
		d.wrong = true
		return
	}
	copy(d.SHA256[:], sum)
	d.hashed = true
}
