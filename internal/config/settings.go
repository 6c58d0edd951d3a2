package config

import (
	"net"
	"path/filepath"
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
			{[]string{"stateDir"}, readStateDir},
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

func readStateDir(r *reader, m member, s *Settings) {
	dir, ok := r.text(m)
	if !ok || dir == "" {
		return
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(r.expander.folder, dir)
	}
	s.StateDir = filepath.Clean(dir)
}
