package config

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"strings"
)

// hidden stands for a value that must not be shown.
const hidden = "[hidden]"

// place says where the server is without giving away a secret: the last element
// of the command, or the URL without user, query and fragment.
func (s Server) place() string {
	if s.Command != "" {
		return s.Command[strings.LastIndexAny(s.Command, `/\`)+1:]
	}
	u, err := url.Parse(s.URL)
	if err != nil || s.URL == "" {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// String is the server's name, transport and place, without secrets.
func (s Server) String() string {
	return strings.TrimSpace(s.Name + " " + string(s.Transport) + " " + s.place())
}

// GoString is String: %#v is no way around it.
func (s Server) GoString() string { return s.String() }

// LogValue logs the server without secrets.
func (s Server) LogValue() slog.Value {
	key := "command"
	if s.Command == "" {
		key = "url"
	}
	return slog.GroupValue(
		slog.String("name", s.Name),
		slog.String("transport", string(s.Transport)),
		slog.String(key, s.place()),
	)
}

// MarshalJSON writes the server as it is logged, without secrets, so that a
// log handler that writes JSON finds none inside of other values either.
func (s Server) MarshalJSON() ([]byte, error) {
	view := struct {
		Name      string `json:"name"`
		Transport string `json:"transport,omitempty"`
		Command   string `json:"command,omitempty"`
		URL       string `json:"url,omitempty"`
	}{Name: s.Name, Transport: string(s.Transport)}
	if s.Command != "" {
		view.Command = s.place()
	} else {
		view.URL = s.place()
	}
	return json.Marshal(view)
}

// String is the name, without the value.
func (p Pair) String() string { return p.Name + "=" + hidden }

// GoString is String.
func (p Pair) GoString() string { return p.String() }

// LogValue is String.
func (p Pair) LogValue() slog.Value { return slog.StringValue(p.String()) }

// MarshalJSON writes String.
func (p Pair) MarshalJSON() ([]byte, error) { return json.Marshal(p.String()) }
