package jsonrpc

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Error codes of the JSON-RPC 2.0 specification, section 5.1.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error is the error member of a response. One that came from a peer keeps the
// bytes it came in and is written back as those bytes.
type Error struct {
	Code    int
	Message string
	Data    jsontext.Value // nil: no data member

	raw jsontext.Value // as a peer wrote it
}

// Errorf returns an Error with a code and a formatted message.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Error returns the message with its code.
func (e *Error) Error() string { return e.Message + " (" + strconv.Itoa(e.Code) + ")" }

// FromPeer reports whether the error was read off a message, not made here.
func (e *Error) FromPeer() bool { return e.raw != nil }

// Recode returns a copy of the error with another code that is written anew.
func (e *Error) Recode(code int) *Error {
	return &Error{Code: code, Message: e.Message, Data: e.Data}
}

// AsError returns the *Error in err's chain, or an internal error that says
// what err says.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeInternal, Message: err.Error()}
}

// peerError reads an error object. One without what JSON-RPC wants of it
// becomes an internal error that says so, since its receiver still waits for an
// answer.
func peerError(obj Object) *Error {
	code, ok := errorCode(obj.Get("code"))
	text, isText := obj.Text("message")
	if !ok || !isText || obj.tooMany() {
		return &Error{
			Code: CodeInternal, Data: obj.Raw,
			Message: "the peer answered with an error without an integer code and a message",
		}
	}
	return &Error{Code: code, Message: text, Data: obj.Get("data"), raw: obj.Raw}
}

// errorCode reads an integer, also one that is spelled 1.0 or 1e3.
func errorCode(v jsontext.Value) (int, bool) {
	if n, err := strconv.Atoi(string(v)); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(v), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > math.MaxInt32 {
		return 0, false
	}
	return int(f), true
}

func (e *Error) append(dst []byte) []byte {
	if e.raw != nil {
		return append(dst, e.raw...)
	}
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendString(dst, e.Message)
	if e.Data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, e.Data...)
	}
	return append(dst, '}')
}
