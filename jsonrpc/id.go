package jsonrpc

import (
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// ID is the id of a request as it was written: a JSON string or integer. The
// zero ID is absent, which is what makes a message a notification. IDs compare
// with == by spelling; use [ID.Key] where "a" and "\u0061" must be the same.
type ID struct{ text string }

// IntID returns the id for the integer n.
func IntID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// StringID returns the id for the string s.
func StringID(s string) ID {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // s is not UTF-8: the quoted form has replacement characters
		b, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return ID{string(b)}
}

var errID = errors.New("id must be a string or an integer")

// ParseID reads an id. It refuses null, fractions, exponents, and anything
// that is not a string or a number. Any number of digits is kept.
func ParseID(v jsontext.Value) (ID, error) {
	switch v.Kind() {
	case '"':
		return ID{string(v)}, nil
	case '0':
		for _, c := range v {
			if c != '-' && (c < '0' || c > '9') {
				return ID{}, errID
			}
		}
		return ID{string(v)}, nil
	}
	return ID{}, errID
}

// IsZero reports whether there is no id.
func (id ID) IsZero() bool { return id.text == "" }

// Raw returns the id's JSON text, nil for an absent one.
func (id ID) Raw() jsontext.Value {
	if id.text == "" {
		return nil
	}
	return jsontext.Value(id.text)
}

// String returns the id's JSON text, for logs and messages.
func (id ID) String() string { return id.text }

// Int returns the id as an integer, and whether it is one that fits.
func (id ID) Int() (int64, bool) {
	if id.text == "" || id.text[0] == '"' {
		return 0, false
	}
	n, err := strconv.ParseInt(id.text, 10, 64)
	return n, err == nil
}

// Key returns a form of the id that is equal for equal ids however they are
// spelled, and different for a string and a number.
func (id ID) Key() string {
	if id.text == "" || id.text[0] != '"' || strings.IndexByte(id.text, '\\') < 0 {
		return id.text
	}
	s, err := jsontext.AppendUnquote(nil, id.text)
	if err != nil {
		return id.text
	}
	return `"` + string(s) + `"`
}
