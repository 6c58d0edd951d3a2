package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

const (
	maxDuration = 24 * time.Hour // that a file may ask for
	maxProblems = 100            // of one entry, or of a file outside of entries
)

// reader reads the values of one server entry, or of the settings, and takes
// down what is wrong with them.
type reader struct {
	source   *source
	expander expander
	server   string // name of the entry, or ""
	problems []Problem
	failure  *Problem // the first error
}

// report takes down a problem, unless there are too many; the first error has
// always a place.
func (r *reader) report(severity Severity, at int, field, message string) {
	first := severity == SeverityError && r.failure == nil
	if r.full() && !first {
		return
	}
	if len(r.problems) == maxProblems && !first {
		severity, field, message = SeverityWarning, "", "there are more problems than these"
	}
	p := r.source.position(at)
	problem := Problem{
		File: p.File, Line: p.Line, Column: p.Column,
		Server: r.server, Field: field, Severity: severity, Message: message,
	}
	if first {
		r.failure = &problem
	}
	r.problems = append(r.problems, problem)
}

func (r *reader) full() bool { return len(r.problems) > maxProblems }

func (r *reader) fail(at int, field, format string, args ...any) {
	r.report(SeverityError, at, field, fmt.Sprintf(format, args...))
}

func (r *reader) warn(at int, field, format string, args ...any) {
	r.report(SeverityWarning, at, field, fmt.Sprintf(format, args...))
}

// member is a key of an object with its value, or an element of an array with
// the name that messages give it.
type member struct {
	name  string // key, without quotes
	field string // path of it from the entry
	at    int    // offset of the key
	value hujson.Value
}

// members returns the members of an object, in order. Of a key that stands
// more than once, the last value is taken, in the first place, with a warning.
func (r *reader) members(object *hujson.Object, path string) []member {
	var members []member
	index := make(map[string]int, len(object.Members))
	for _, m := range object.Members {
		name := m.Name.Value.(hujson.Literal).String()
		next := member{name: name, field: join(path, name), at: m.Name.StartOffset, value: m.Value}
		if i, ok := index[name]; ok {
			r.warn(next.at, next.field, "this key stands twice, at %s and %s; the later one wins",
				r.source.position(members[i].at), r.source.position(next.at))
			members[i] = next
			continue
		}
		index[name] = len(members)
		members = append(members, next)
	}
	return members
}

func join(path, name string) string {
	name = printable(name)
	if path == "" {
		return name
	}
	return path + "." + name
}

// printable returns name as it is if it can stand in a message without quotes.
func printable(name string) string {
	if q := quote(name); q != `"`+name+`"` || strings.ContainsAny(name, " :") {
		return q
	}
	return name
}

// object returns the members of a value that must be an object.
func (r *reader) object(m member) ([]member, bool) {
	object, ok := m.value.Value.(*hujson.Object)
	if !ok {
		r.wrongType(m, "an object")
		return nil, false
	}
	return r.members(object, m.field), true
}

// elements returns the elements of a value that must be an array.
func (r *reader) elements(m member) ([]member, bool) {
	array, ok := m.value.Value.(*hujson.Array)
	if !ok {
		r.wrongType(m, "an array")
		return nil, false
	}
	return elements(array, m.field), true
}

func elements(array *hujson.Array, path string) []member {
	members := make([]member, len(array.Elements))
	for i, v := range array.Elements {
		members[i] = member{field: path + "[" + strconv.Itoa(i) + "]", at: v.StartOffset, value: v}
	}
	return members
}

func (r *reader) wrongType(m member, want string) {
	r.fail(m.value.StartOffset, m.field, "expected %s, found %s", want, kind(m.value))
}

// literal returns a string without looking for references in it.
func (r *reader) literal(m member) (string, bool) {
	if m.value.Value.Kind() != '"' {
		r.wrongType(m, "a string")
		return "", false
	}
	return m.value.Value.(hujson.Literal).String(), true
}

// text returns a string with its references replaced.
func (r *reader) text(m member) (string, bool) {
	s, ok := r.literal(m)
	if !ok {
		return "", false
	}
	return r.expanded(m, s)
}

// scalar is text that may also be written as a number or a boolean, which
// count as they are spelled.
func (r *reader) scalar(m member) (string, bool) {
	switch m.value.Value.Kind() {
	case '"':
		return r.text(m)
	case '0', 't', 'f':
		return string(m.value.Value.(hujson.Literal)), true
	}
	r.wrongType(m, "a string")
	return "", false
}

func (r *reader) expanded(m member, s string) (string, bool) {
	s, err := r.expander.expand(s)
	if err != nil {
		r.fail(m.value.StartOffset, m.field, "%v", err)
		return "", false
	}
	if strings.Contains(s, "\x00") {
		r.fail(m.value.StartOffset, m.field, "the value contains a NUL character")
		return "", false
	}
	return s, true
}

func (r *reader) boolean(m member) (value, ok bool) {
	switch m.value.Value.Kind() {
	case 't', 'f':
		return m.value.Value.(hujson.Literal).Bool(), true
	}
	r.wrongType(m, "true or false")
	return false, false
}

// duration returns a duration that is not negative and at most maxDuration.
func (r *reader) duration(m member) (time.Duration, bool) {
	at := m.value.StartOffset
	var d time.Duration
	switch m.value.Value.Kind() {
	case '"':
		s := m.value.Value.(hujson.Literal).String()
		parsed, err := time.ParseDuration(s)
		if err != nil {
			hint := ""
			if _, err := strconv.ParseFloat(s, 64); err == nil {
				hint = ": the unit is missing"
			}
			r.fail(at, m.field, `%s is not a duration%s; write for example "30s" or "2m", or a number of milliseconds`, quote(s), hint)
			return 0, false
		}
		d = parsed
	case '0':
		ms, _ := strconv.ParseFloat(string(m.value.Value.(hujson.Literal)), 64) // infinite if out of range
		ms = min(max(ms, -1), 1+float64(maxDuration/time.Millisecond))
		d = time.Duration(ms * float64(time.Millisecond))
		if 0 < d && d < time.Second {
			r.warn(at, m.field, `a number counts milliseconds, so this is %v; for seconds write "%[2]ss"`, d, m.value.Value.(hujson.Literal))
		}
	default:
		r.wrongType(m, `a duration such as "30s", or a number of milliseconds`)
		return 0, false
	}
	if d < 0 || d > maxDuration {
		r.fail(at, m.field, "a duration must be between 0 and %d hours", maxDuration/time.Hour)
		return 0, false
	}
	return d, true
}

// count returns a whole number between least and most.
func (r *reader) count(m member, least, most int) (int, bool) {
	n, err := -1, error(nil)
	if m.value.Value.Kind() == '0' {
		n, err = strconv.Atoi(string(m.value.Value.(hujson.Literal)))
	}
	if m.value.Value.Kind() != '0' || err != nil || n < least || n > most {
		r.fail(m.value.StartOffset, m.field, "expected a whole number between %d and %d", least, most)
		return 0, false
	}
	return n, true
}

// size returns a number of bytes between least and most.
func (r *reader) size(m member, least, most int) (int, bool) {
	if m.value.Value.Kind() != '"' {
		return r.count(m, least, most)
	}
	s := strings.TrimSpace(m.value.Value.(hujson.Literal).String())
	unit := 1
	for i, suffix := range []string{"KiB", "MiB", "GiB"} {
		if number, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = strings.TrimSpace(number), 1<<(10*(i+1))
		}
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > most/unit || n*unit < least {
		r.fail(m.value.StartOffset, m.field, `expected a number of bytes between %d and %d, such as 65536, "64KiB" or "8MiB"`, least, most)
		return 0, false
	}
	return n * unit, true
}

// field is a key that objects of one sort may have, and how it is read into T.
type field[T any] struct {
	names []string // canonical name first
	read  func(r *reader, m member, into *T)
}

// schema is all the keys that objects of one sort may have.
type schema[T any] struct {
	fields []field[T]
	// silent keys are those of other programs that make no difference here.
	silent []string
	// inert keys are those of other programs that would make a difference,
	// but do not: their authors are told.
	inert []string
}

// read reads the members it knows into T, in order, and warns of the others.
func (s schema[T]) read(r *reader, members []member, into *T) {
	seen := make(map[string]member)
	for _, m := range members {
		i := slices.IndexFunc(s.fields, func(f field[T]) bool { return slices.Contains(f.names, m.name) })
		switch {
		case i >= 0 && m.value.Value.Kind() == 'n': // as if it were not there
		case i >= 0:
			f := s.fields[i]
			if other, ok := seen[f.names[0]]; ok {
				r.warn(m.at, m.field, "this says again what %s says at %s; the later one wins", other.field, r.source.position(other.at))
			}
			seen[f.names[0]] = m
			f.read(r, m, into)
		case slices.Contains(s.silent, m.name):
		case slices.Contains(s.inert, m.name):
			r.warn(m.at, m.field, "this key of another program has no effect here")
		case r.full(): // spares the search for a suggestion
		default:
			r.warn(m.at, m.field, "unknown key%s", suggest(m.name, s.names()))
		}
	}
}

func (s schema[T]) names() []string {
	var names []string
	for _, f := range s.fields {
		names = append(names, f.names...)
	}
	return names
}
