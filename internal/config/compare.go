package config

import (
	"reflect"
	"slices"
	"strings"
)

// Changes are what is different in a configuration that takes the place of
// another. Servers are named in the order of the new one, those that go in that of
// the old.
type Changes struct {
	// Added servers run now and did not before, be it because they are new or
	// because they were switched on; Removed the other way round.
	Added, Removed []string
	// Restarted servers are reached or run in another way: they must be started
	// anew.
	Restarted []string
	// Adjusted servers have changed in what takes effect while they run.
	Adjusted []string
	// Reordered: servers that run in both are in another order.
	Reordered bool
	// Settings are keys of "roster" whose change has no effect on a gateway that
	// runs.
	Settings []string
}

// Servers reports whether there are changes of servers.
func (c Changes) Servers() bool {
	return len(c.Added)+len(c.Removed)+len(c.Restarted)+len(c.Adjusted) > 0 || c.Reordered
}

// Compare says what is different in next.
func Compare(old, next *Config) Changes {
	var c Changes
	before, now := enabled(old), enabled(next)
	var kept []string // of old, in the order of next
	for _, s := range next.Servers {
		switch was, ok := before[s.Name]; {
		case s.Disabled:
		case !ok:
			c.Added = append(c.Added, s.Name)
		default:
			kept = append(kept, s.Name)
			if !reflect.DeepEqual(was.fixed(), s.fixed()) {
				c.Restarted = append(c.Restarted, s.Name)
			} else if !reflect.DeepEqual(was.placeless(), s.placeless()) {
				c.Adjusted = append(c.Adjusted, s.Name)
			}
		}
	}
	var stayed []string // in the order of old
	for _, s := range old.Servers {
		if s.Disabled {
			continue
		}
		if _, ok := now[s.Name]; ok {
			stayed = append(stayed, s.Name)
		} else {
			c.Removed = append(c.Removed, s.Name)
		}
	}
	c.Reordered = !slices.Equal(stayed, kept)
	c.Settings = compareSettings(old.Roster, next.Roster)
	return c
}

func enabled(c *Config) map[string]Server {
	out := make(map[string]Server)
	for _, s := range c.Servers {
		if !s.Disabled {
			out[s.Name] = s
		}
	}
	return out
}

// placeless is the server wherever it stands in a file.
func (s Server) placeless() Server {
	s.At = Position{}
	return s
}

// fixed is the server without what can change while it runs. A field that is not
// named here is one for which it must be started anew.
func (s Server) fixed() Server {
	s = s.placeless()
	s.Prefix = nil
	return s
}

// live reports whether changes of a field of Settings take effect while the
// gateway runs: it is the default of a field of servers, or asked when it is needed.
func live(field string) bool {
	switch field {
	case "RequestTimeout", "ConnectTimeout", "CAFile", "Roots", "StartupWait":
		return true
	}
	return false
}

// compareSettings returns the keys of settings that are different and cannot
// change while the gateway runs.
func compareSettings(old, next Settings) []string {
	var out []string
	a, b := reflect.ValueOf(old), reflect.ValueOf(next)
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		if !live(name) && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			out = append(out, key(name))
		}
	}
	return out
}

// key is how a field of Settings is written in a file: "TLSCert" is "tlsCert".
func key(field string) string {
	n := 1
	for n < len(field) && field[n] >= 'A' && field[n] <= 'Z' && (n+1 == len(field) || field[n+1] >= 'A' && field[n+1] <= 'Z') {
		n++
	}
	return strings.ToLower(field[:n]) + field[n:]
}
