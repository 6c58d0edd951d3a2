package jsonrpc

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// Message is one JSON-RPC message: a request (Method and ID), a notification
// (Method alone), or a response (Result or Error, and the ID it answers).
type Message struct {
	ID     ID
	Method string
	Params Object // of a request or notification
	Result Object // of a response that is no error; may be any JSON value
	Error  *Error // of a response that is an error
}

// IsRequest reports whether the message wants an answer.
func (m *Message) IsRequest() bool { return m.Method != "" && !m.ID.IsZero() }

// IsNotification reports whether the message is a notification.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID.IsZero() }

// IsResponse reports whether the message answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" }

// ErrBatch says that the bytes are a JSON array, which is how JSON-RPC writes a
// batch. Only protocol version 2025-03-26 has batches.
var ErrBatch = &Error{Code: CodeInvalidRequest, Message: "a JSON array (batch) is not accepted here: send one message"}

// Parse reads one message. The message's values are slices of data, which must
// not change any more.
//
// The error is an *Error: CodeParse if data is not JSON, CodeInvalidRequest if
// it is JSON but not one message, CodeInvalidParams if params is not an object.
// The message then has the ID if it could be read, so that the error can be sent
// back under it.
func Parse(data []byte) (Message, error) {
	s := newScanner(data)
	defer s.release()
	switch s.dec.PeekKind() {
	case '{':
	case '[':
		return Message{}, ErrBatch
	default:
		if _, _, err := s.value(); err != nil {
			return Message{}, syntax(err)
		}
		return Message{}, Errorf(CodeInvalidRequest, "a message must be a JSON object")
	}
	if err := checkDepth(data); err != nil {
		return Message{}, Errorf(CodeInvalidRequest, "message is %v", err)
	}
	var e envelope
	if err := e.read(s); err != nil {
		return Message{ID: e.ID}, syntax(err)
	}
	if !s.atEnd() {
		return Message{ID: e.ID}, Errorf(CodeParse, "not valid JSON: %v", errTrailing)
	}
	if err := e.check(); err != nil {
		return Message{ID: e.ID, Method: e.Method}, err
	}
	return e.Message, nil
}

func syntax(err error) *Error {
	if se, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return Errorf(CodeParse, "not valid JSON at byte %d: %v", se.ByteOffset, se.Err)
	}
	return Errorf(CodeParse, "not valid JSON: %v", err)
}

// envelope is a Message while it is read. The first thing wrong with its
// meaning is kept in bad and reading goes on, to find the id.
type envelope struct {
	Message
	bad     *Error
	version bool // jsonrpc was "2.0"
	seen    uint // bit per member
	nullID  bool
}

const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
)

func (e *envelope) read(s *scanner) error {
	if _, err := s.dec.ReadToken(); err != nil {
		return err
	}
	for s.dec.PeekKind() != '}' {
		key, keyEnd, err := s.value()
		if err != nil {
			return err
		}
		if err := e.member(s, s.data[key:keyEnd]); err != nil {
			return err
		}
	}
	_, err := s.dec.ReadToken()
	return err
}

func (e *envelope) member(s *scanner, key []byte) error {
	name, _ := Text(key)
	bit := uint(0)
	switch name {
	case "jsonrpc":
		bit = hasVersion
	case "id":
		bit = hasID
	case "method":
		bit = hasMethod
	case "params":
		bit = hasParams
	case "result":
		bit = hasResult
	case "error":
		bit = hasError
	}
	if bit != 0 && e.seen&bit != 0 {
		e.fail(CodeInvalidRequest, "member %q stands twice", name)
	}
	e.seen |= bit
	if (bit == hasParams || bit == hasResult) && s.dec.PeekKind() == '{' {
		return e.object(s, bit)
	}
	start, end, err := s.value()
	if err != nil {
		return err
	}
	e.set(bit, s.data[start:end:end])
	return nil
}

// object indexes params, where a name may stand only once, or a result.
func (e *envelope) object(s *scanner, bit uint) error {
	obj, err := s.object(bit == hasParams)
	if err != nil {
		if _, dup := errors.AsType[*duplicateError](err); !dup && !errors.Is(err, errMembers) {
			return err
		}
		e.fail(CodeInvalidParams, "in params, %v", err)
	}
	if bit == hasParams {
		e.Params = obj
	} else {
		e.Result = obj
	}
	return nil
}

func (e *envelope) set(bit uint, v jsontext.Value) {
	switch bit {
	case hasVersion:
		e.version = string(v) == `"2.0"`
	case hasID:
		id, err := ParseID(v)
		if err != nil {
			e.nullID = v.Kind() == 'n'
			if !e.nullID {
				e.fail(CodeInvalidRequest, "%v", err)
			}
		}
		e.ID = id
	case hasMethod:
		method, ok := Text(v)
		if !ok || method == "" {
			e.fail(CodeInvalidRequest, "method must be a string that is not empty")
		}
		e.Method = method
	case hasParams:
		if v.Kind() != 'n' {
			e.fail(CodeInvalidParams, "params must be an object")
		}
	case hasResult:
		e.Result = Object{Raw: v}
	case hasError:
		e.Error = parseError(v)
	}
}

func (e *envelope) fail(code int, format string, args ...any) {
	if e.bad == nil {
		e.bad = Errorf(code, format, args...)
	}
}

// check applies the rules that hold between members.
func (e *envelope) check() error {
	if !e.version {
		e.fail(CodeInvalidRequest, `jsonrpc must be "2.0"`)
	}
	answer := e.seen & (hasResult | hasError)
	switch {
	case e.seen&hasMethod != 0 && answer != 0:
		e.fail(CodeInvalidRequest, "a message has either method, or result or error")
	case e.seen&hasMethod != 0 && e.nullID:
		e.fail(CodeInvalidRequest, "%v, not null", errID)
	case e.seen&hasMethod != 0:
	case answer == hasResult|hasError:
		e.fail(CodeInvalidRequest, "a response has either result or error")
	case answer == 0:
		e.fail(CodeInvalidRequest, "a message needs method, result or error")
	case answer == hasResult && e.ID.IsZero():
		e.fail(CodeInvalidRequest, "a result needs the id of its request")
	}
	if e.bad != nil {
		return e.bad
	}
	return nil
}
