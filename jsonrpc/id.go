package jsonrpc

import (
	"bytes"
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

// StringID returns the id for the string s. Bytes that are not UTF-8 become
// U+FFFD.
func StringID(s string) ID {
	return ID{string(AppendString(nil, s))}
}

var errID = errors.New("id must be a string or an integer")

// ParseID reads an id. It refuses null, fractions, exponents, and anything
// that is not a string or a number. Any number of digits is kept. v must be one
// JSON value without white space around it, as those of an Object are.
func ParseID(v jsontext.Value) (ID, error) {
	if !isID(v) {
		return ID{}, errID
	}
	return ID{string(v)}, nil
}

// isID reports whether a JSON value is a string or an integer.
func isID(v jsontext.Value) bool {
	switch v.Kind() {
	case '"':
		return true
	case '0':
		return !bytes.ContainsAny(v, ".eE")
	}
	return false
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
