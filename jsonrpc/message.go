package jsonrpc

import "bytes"

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
// it is JSON but not one message (or nested beyond MaxDepth), CodeInvalidParams
// if params is not an object. The message then has the ID and the Method if
// they could be read, so that the error can be sent back under that id. If data
// was meant as a response, Error is set too, and is what to tell the caller that
// waits for it.
func Parse(data []byte) (Message, error) {
	e := envelope{scanner: scanner{data: data}}
	err := e.parse()
	if err == nil {
		return e.message(), nil
	}
	m := Message{ID: e.ID, Method: e.Method}
	if e.seen&hasMethod == 0 && (e.seen&(hasResult|hasError) != 0 || e.whole) {
		m.Error = Errorf(CodeInternal, "the peer's answer cannot be read: %s", err.Message)
	}
	return m, err
}

// parse reads data. It sets ID and Method as far as they could be read.
func (e *envelope) parse() *Error {
	if len(e.data) > maxMessage {
		return Errorf(CodeInvalidRequest, "message is longer than %d bytes", maxMessage)
	}
	at := e.space(0)
	kind := byte(0)
	if at < len(e.data) {
		kind = e.data[at]
	}
	if kind == '{' {
		at = e.members(at)
	} else {
		at = e.value(at, 0)
	}
	if at >= 0 {
		at = e.end(at)
	}
	e.setText()
	switch {
	case at < 0:
		return &Error{Code: CodeParse, Message: e.err.Error()}
	case kind == '[':
		return ErrBatch
	case kind != '{':
		return Errorf(CodeInvalidRequest, "a message must be a JSON object")
	}
	e.whole = true
	return e.check()
}

// envelope is a Message while it is read. The first thing wrong with its
// meaning is kept in bad and reading goes on, to find the id.
type envelope struct {
	scanner
	ID      ID
	Method  string
	id      []byte // as it stands; nil: absent, null, or not an id
	method  []byte // as it stands, quotes and all
	params  Object
	result  Object
	error   *Error
	bad     *Error // without an id, this is about the id if there is one at all
	seen    uint   // bit per member
	version bool   // jsonrpc was "2.0"
	nullID  bool
	whole   bool // read to its end
}

const (
	hasVersion = 1 << iota
	hasID
	hasMethod
	hasParams
	hasResult
	hasError
)

func (e *envelope) message() Message {
	return Message{ID: e.ID, Method: e.Method, Params: e.params, Result: e.result, Error: e.error}
}

// members reads the object that starts at i.
func (e *envelope) members(i int) int {
	i, more := e.open(i, '}')
	for more {
		end, v := e.name(i)
		if v < 0 {
			return v
		}
		if i = e.member(e.data[i:end], v); i < 0 {
			return i
		}
		i, more = e.next(i, '}')
	}
	return i
}

// member reads the value at i of the member with this name.
func (e *envelope) member(quoted []byte, i int) int {
	bit := memberBit(quoted)
	if bit != 0 && e.seen&bit != 0 {
		e.fail(CodeInvalidRequest, "member %s stands twice", quoted)
		if bit == hasID { // which of them?
			e.id = nil
			return e.value(i, 1)
		}
	}
	e.seen |= bit
	if bit >= hasParams && e.is(i, '{') {
		return e.object(bit, i)
	}
	end := e.value(i, 1)
	if end >= 0 && bit != 0 {
		e.set(bit, e.data[i:end:end])
	}
	return end
}

func memberBit(quoted []byte) uint {
	if bytes.IndexByte(quoted, '\\') >= 0 {
		quoted = AppendString(nil, unescape(quoted))
	}
	switch string(quoted) {
	case `"jsonrpc"`:
		return hasVersion
	case `"id"`:
		return hasID
	case `"method"`:
		return hasMethod
	case `"params"`:
		return hasParams
	case `"result"`:
		return hasResult
	case `"error"`:
		return hasError
	}
	return 0
}

// object reads params, where a name may stand only once, a result, or an error.
func (e *envelope) object(bit uint, i int) int {
	obj, end := e.index(i, 2)
	if end < 0 {
		return end
	}
	switch bit {
	case hasParams:
		e.params = obj
		if err := obj.check(); err != nil {
			e.fail(CodeInvalidParams, "in params, %v", err)
		}
		e.indexMeta(i)
	case hasResult:
		e.result = obj
		if obj.tooMany() {
			e.fail(CodeInvalidRequest, "in result, %v", errMembers)
		}
	case hasError:
		e.error = peerError(obj)
	}
	return end
}

// indexMeta indexes the member _meta of the params that start at i, since
// everybody on a request's way looks into it. What is wrong with it is for the one
// to say who needs it.
func (e *envelope) indexMeta(i int) {
	at := e.params.Find(metaMember)
	if at < 0 {
		return
	}
	start := i + e.params.Member(at).Start
	if !e.is(start, '{') {
		return
	}
	if meta, end := e.index(start, 3); end >= 0 && meta.check() == nil {
		e.params.meta = &meta
	}
}

func (e *envelope) set(bit uint, v []byte) {
	switch bit {
	case hasVersion:
		e.version = string(v) == `"2.0"`
	case hasID:
		e.nullID = v[0] == 'n'
		switch {
		case isID(v):
			e.id = v
		case !e.nullID:
			e.bad = Errorf(CodeInvalidRequest, "%v", errID)
		}
	case hasMethod:
		if v[0] != '"' || len(v) == 2 {
			e.fail(CodeInvalidRequest, "method must be a string that is not empty")
			return
		}
		e.method = v
	case hasParams:
		if v[0] != 'n' {
			e.fail(CodeInvalidParams, "params must be an object")
		}
	case hasResult:
		e.result = Object{Raw: v}
	case hasError:
		e.error = &Error{Code: CodeInternal, Data: v, Message: "the peer answered with an error that is not an object"}
	}
}

// setText makes the strings of the message, in one allocation if it can.
func (e *envelope) setText() {
	if bytes.IndexByte(e.method, '\\') >= 0 {
		e.ID = ID{string(e.id)}
		e.Method = unescape(e.method)
		return
	}
	var buf [64]byte
	text := string(append(append(buf[:0], e.id...), e.method...))
	e.ID = ID{text[:len(e.id)]}
	if e.method != nil {
		e.Method = text[len(e.id)+1 : len(text)-1]
	}
}

func (e *envelope) fail(code int, format string, args ...any) {
	if e.bad == nil {
		e.bad = Errorf(code, format, args...)
	}
}

// check applies the rules that hold for the whole.
func (e *envelope) check() *Error {
	if e.deep {
		e.fail(CodeInvalidRequest, "message is %v", errDepth)
	}
	if !e.version {
		e.fail(CodeInvalidRequest, `jsonrpc must be "2.0"`)
	}
	answer := e.seen & (hasResult | hasError)
	switch {
	case e.seen&hasMethod != 0 && answer != 0:
		e.fail(CodeInvalidRequest, "a message has either method, or result or error")
	case e.seen&hasMethod != 0 && e.nullID:
		e.bad = Errorf(CodeInvalidRequest, "%v, not null", errID)
	case e.seen&hasMethod != 0:
	case answer == hasResult|hasError:
		e.fail(CodeInvalidRequest, "a response has either result or error")
	case answer == 0:
		e.fail(CodeInvalidRequest, "a message needs method, result or error")
	case answer == hasResult && e.id == nil:
		e.fail(CodeInvalidRequest, "a result needs the id of its request")
	}
	return e.bad
}
