package config

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shortestSecret is the length, in bytes, from which a value is hidden: shorter
// ones stand in many a word by chance.
const shortestSecret = 6

// Secrets finds the values of a server's entry that nobody but the server may
// see in what the server says: those of its environment variables and headers,
// of its URL's user and query, and of arguments that set something (NAME=value,
// Name: value, what follows --token and the like; not paths) or look like a key. Values
// shorter than 6 bytes are not looked for. The zero Secrets, and a nil one, find
// nothing. It does not change and may be used from any goroutine.
type Secrets struct {
	replacer *strings.Replacer // nil: there are none
}

// Secrets returns the server's.
func (s Server) Secrets() *Secrets {
	var c secretCollector
	for _, e := range s.Env {
		c.add(e.Value)
	}
	for _, h := range s.Headers {
		c.add(h.Value)
	}
	if s.Bearer != nil {
		c.add(s.Bearer.Token)
		c.addArgs(s.Bearer.Command)
	}
	if s.OAuth != nil {
		c.add(s.OAuth.ClientSecret)
		c.add(s.OAuth.PrivateKey)
		if a := s.OAuth.Assertion; a != nil {
			c.add(a.Token)
			c.addArgs(a.Command)
		}
	}
	c.addURL(s.URL)
	c.addArgs(s.Args)
	return c.secrets(s.Name)
}

// Hide returns text with the secrets replaced by "[hidden]".
func (s *Secrets) Hide(text string) string {
	if s == nil || s.replacer == nil {
		return text
	}
	return s.replacer.Replace(text)
}

// secretCollector gathers values in all the forms in which they may be told.
type secretCollector struct{ values []string }

func (c *secretCollector) add(value string) {
	if _, token, ok := strings.Cut(value, " "); ok { // as in "Bearer token"
		c.forms(strings.TrimSpace(token))
	}
	c.forms(strings.TrimSpace(value))
	for line := range strings.Lines(value) { // as in a key file
		c.forms(strings.TrimSpace(line))
	}
	c.addURL(value)
}

func (c *secretCollector) forms(value string) {
	c.values = append(c.values, value, url.QueryEscape(value), url.PathEscape(value), strings.Trim(strconv.Quote(value), `"`))
}

// addURL adds what is secret in text that is a URL.
func (c *secretCollector) addURL(text string) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return
	}
	if u.User != nil {
		password, _ := u.User.Password()
		c.forms(u.User.Username())
		c.forms(password)
		c.forms(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password)))
		c.values = append(c.values, u.User.String())
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			value = name
		}
		c.values = append(c.values, value)
		if plain, err := url.QueryUnescape(value); err == nil {
			c.forms(plain)
		}
	}
}

// secretFlag matches an option whose value is the next argument and no one's
// business; setting, an argument that sets something to what is behind it;
// opaque, one that is a key rather than a word, a package or a path.
var (
	secretFlag = regexp.MustCompile(`(?i)^--?[\w-]*(key|token|secret|pass|pwd|auth|credential|bearer|header)[\w-]*$|^-H$`)
	setting    = regexp.MustCompile(`^(?:[\w.-]+=|[\w-]{2,}:)\s*([^/\s].*)$`)
	opaque     = regexp.MustCompile(`^[\w+=-]*[0-9][\w+=-]*$`)
)

func (c *secretCollector) addArgs(args []string) {
	const longWord = 20
	for i, arg := range args {
		if m := setting.FindStringSubmatch(strings.TrimLeft(arg, "-")); m != nil {
			c.add(m[1])
		}
		if i > 0 && secretFlag.MatchString(args[i-1]) || len(arg) >= longWord && opaque.MatchString(arg) {
			c.add(arg)
		}
		c.addURL(arg)
	}
}

// secrets returns what was gathered, but for what is no secret: the server's
// name stands everywhere.
func (c *secretCollector) secrets(name string) *Secrets {
	values := slices.DeleteFunc(c.values, func(v string) bool { return len(v) < shortestSecret || v == name })
	if len(values) == 0 {
		return &Secrets{}
	}
	slices.SortStableFunc(values, func(a, b string) int { return len(b) - len(a) }) // the longest counts
	var pairs []string
	for _, v := range slices.Compact(values) {
		pairs = append(pairs, v, hidden)
	}
	return &Secrets{strings.NewReplacer(pairs...)}
}
