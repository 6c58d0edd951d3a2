package jsonrpc

import (
	"errors"
	"fmt"
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

// parseError reads an error member. What is not an error object by JSON-RPC's
// rules becomes an internal error that says so, since its receiver still waits
// for an answer.
func parseError(v jsontext.Value) *Error {
	obj, err := ParseObject(v)
	if err != nil {
		return Errorf(CodeInternal, "the peer answered with an error that is not an object")
	}
	code, err := strconv.Atoi(string(obj.Get("code")))
	msg := obj.Get("message")
	if err != nil || msg.Kind() != '"' {
		return &Error{
			Code: CodeInternal, Data: v,
			Message: "the peer answered with an error without an integer code and a message",
		}
	}
	text, _ := jsontext.AppendUnquote(nil, msg) // was validated with the envelope
	return &Error{Code: code, Message: string(text), Data: obj.Get("data"), raw: v}
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
