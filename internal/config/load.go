package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Load reads the files, merges them in order, and looks variables up in env.
// Without files it returns the defaults.
//
// The error joins what is wrong with files as a whole: a *[SyntaxError] for
// one that is not a configuration, an error that wraps fs.ErrNotExist for one
// that is not there. The configuration is nil then. The problems are about
// single servers and keys, see [Problem]; those of servers that a later file
// replaces are not reported, nor errors in servers that are switched off. Of
// one entry at most about 100 are reported.
func Load(paths []string, env Lookup) (*Config, []Problem, error) {
	return load(paths, env, readSource)
}

// LoadEdited is [Load], if the file at one of the paths held that text: what an
// edit would lead to before it is written.
func LoadEdited(paths []string, env Lookup, edited string, text []byte) (*Config, []Problem, error) {
	return load(paths, env, func(path string) (*source, error) {
		if path == edited {
			return newSource(path, text)
		}
		return readSource(path)
	})
}

func load(paths []string, env Lookup, read func(path string) (*source, error)) (*Config, []Problem, error) {
	var sources []*source
	var errs []error
	for _, path := range paths {
		s, err := read(path)
		sources, errs = append(sources, s), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}

	l := loader{env: env, index: make(map[string]int), folded: make(map[string]int)}
	config := &Config{Roster: DefaultSettings()}
	for _, s := range sources {
		errs = append(errs, l.collect(s, &config.Roster))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, err
	}
	config.Roster.StateDir = stateDir(env, config.Roster.StateDir)
	for _, e := range l.entries {
		r := l.reader(e.source)
		r.server = e.name
		config.Servers = append(config.Servers, readServer(e, r, config.Roster))
		l.problems = append(l.problems, r.problems...)
	}
	return config, l.problems, nil
}

// loader merges the files.
type loader struct {
	env      Lookup
	entries  []*entry       // in order of first appearance
	index    map[string]int // of entries, by name
	folded   map[string]int // of entries, by name in lower case
	problems []Problem
}

// entry is a server entry that is not read yet.
type entry struct {
	name   string
	source *source
	at     int // offset of the name, or of the entry if it has none
	value  hujson.Value
}

func (l *loader) reader(s *source) *reader {
	return &reader{source: s, expander: expander{env: l.env, folder: s.folder}}
}

// collect takes the settings and the server entries of one file.
func (l *loader) collect(s *source, settings *Settings) error {
	r := l.reader(s)
	defer func() { l.problems = append(l.problems, r.problems...) }()
	useful := false
	var names []string
	for _, m := range r.members(s.root, "") {
		names = append(names, m.name)
		switch m.name {
		case "roster":
			useful = true
			if members, ok := r.object(m); ok {
				settingsSchema().read(r, members, settings)
			}
		case "mcpServers", "servers":
			useful = true
			if err := l.collectServers(r, m); err != nil {
				return err
			}
		case "serverDefaults", "mcpTemplates":
			r.warn(m.at, m.field, "this key of another program has no effect here")
		}
	}
	if !useful {
		r.warn(s.start, "", `no servers here: expected a key "mcpServers"%s`, misspelled(names))
	}
	return nil
}

// misspelled returns a hint if one of the names was meant to be the server map.
func misspelled(names []string) string {
	for _, name := range names {
		if suggest(name, []string{"mcpServers", "servers", "mcp_servers", "mcp-servers"}) != "" {
			return ", found " + quote(name)
		}
	}
	return ""
}

// collectServers takes the entries of a server map, or of a list of servers.
func (l *loader) collectServers(r *reader, m member) error {
	switch value := m.value.Value.(type) {
	case *hujson.Object:
		for _, e := range value.Members {
			name := e.Name.Value.(hujson.Literal).String()
			l.add(r, &entry{name: name, source: r.source, at: e.Name.StartOffset, value: e.Value})
		}
	case *hujson.Array:
		for _, e := range elements(value, m.field) {
			l.addElement(r, e)
		}
	default:
		if m.value.Value.Kind() != 'n' {
			return r.source.errorAt(m.value.StartOffset, fmt.Sprintf("%s: expected an object or an array of servers, found %s", m.name, kind(m.value)))
		}
	}
	return nil
}

// addElement takes an element of a list of servers, which names itself.
func (l *loader) addElement(r *reader, e member) {
	object, ok := e.value.Value.(*hujson.Object)
	if !ok {
		r.wrongType(e, "an object")
		return
	}
	i := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool {
		return m.Name.Value.(hujson.Literal).String() == "name"
	})
	if i < 0 || object.Members[i].Value.Value.Kind() != '"' {
		r.fail(e.at, e.field, `a server in a list needs a "name", a string; it is left out`)
		return
	}
	name := object.Members[i].Value.Value.(hujson.Literal).String()
	l.add(r, &entry{name: name, source: r.source, at: e.at, value: e.value})
}

// add puts an entry into its place. It warns of a name that is there already,
// and of one that is different only to a computer.
func (l *loader) add(r *reader, e *entry) {
	r.server = e.name
	defer func() { r.server = "" }()
	here := e.source.position(e.at)
	folded := strings.ToLower(e.name)
	if i, ok := l.index[e.name]; ok {
		other := l.entries[i]
		there := other.source.position(other.at)
		if other.source == e.source {
			r.warn(e.at, "", "this name stands twice, at %s and %s; the later one wins", there, here)
		} else {
			r.warn(e.at, "", "the entry at %s replaces the one at %s", here, there)
		}
		l.entries[i] = e
		return
	}
	if i, ok := l.folded[folded]; ok {
		other := l.entries[i]
		r.warn(e.at, "", "this name, at %s, differs only in case from %s at %s; both are kept", here, quote(other.name), other.source.position(other.at))
	}
	l.index[e.name] = len(l.entries)
	l.folded[folded] = len(l.entries)
	l.entries = append(l.entries, e)
}
