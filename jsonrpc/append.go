package jsonrpc

import (
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func AppendString(dst []byte, s string) []byte {
	if plain(s) {
		dst = append(dst, '"')
		dst = append(dst, s...)
		return append(dst, '"')
	}
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return out
}

// plain reports whether a string is quoted as it stands.
func plain(s string) bool {
	for i := range len(s) {
		if isSpecial(s[i]) || s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// AppendRequest appends a request. A nil params is left out. With a zero id it
// is a notification.
func AppendRequest(dst []byte, id ID, method string, params jsontext.Value) []byte {
	return appendRequest(dst, id.text, method, params)
}

func appendRequest[T string | []byte](dst []byte, id T, method string, params jsontext.Value) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if len(id) > 0 {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id...)
	}
	dst = append(dst, `,"method":`...)
	dst = AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendNotification appends a notification. A nil params is left out.
func AppendNotification(dst []byte, method string, params jsontext.Value) []byte {
	return AppendRequest(dst, ID{}, method, params)
}

// AppendResult appends the response to the request with this id.
func AppendResult(dst []byte, id ID, result jsontext.Value) []byte {
	dst = AppendResultPrefix(dst, id)
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendResultPrefix appends what stands before the result in such a response;
// behind it comes a closing brace. It is for results too big to copy.
func AppendResultPrefix(dst []byte, id ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id.text...)
	return append(dst, `,"result":`...)
}

// AppendError appends an error response. A zero id, for a request whose id
// could not be read, is left out: the protocol has no null id.
func AppendError(dst []byte, id ID, e *Error) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if !id.IsZero() {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id.text...)
	}
	dst = append(dst, `,"error":`...)
	dst = e.append(dst)
	return append(dst, '}')
}
