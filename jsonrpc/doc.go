// Package jsonrpc reads and writes JSON-RPC 2.0 messages without decoding
// what they carry, and runs them over a stream of frames.
//
// A [Message] is read in one pass over its bytes by [Parse]: the envelope is
// checked, and the top-level members of params or result are indexed in an
// [Object], which stays a slice of the bytes that came. Nothing below that
// level is decoded, so numbers, escapes, key order and unknown fields leave as
// they arrived. The Append functions write messages the same way, by copying.
//
//	m, err := jsonrpc.Parse(frame)
//	if err != nil {
//		reply = jsonrpc.AppendError(nil, m.ID, jsonrpc.AsError(err))
//	}
//	name := m.Params.Get("name") // raw JSON, nil if absent
//
// A [Handler] answers requests; the packages that own a wire call it, and the
// program behind it does not know which wire a [Request] came on. A [Conn]
// carries both directions over a [Stream], such as a pipe.
//
// Names of members are matched exactly, as JSON compares strings; a name that
// stands twice in an envelope or in params is refused, because two readers of
// such a message can disagree on what it says.
//
// Values of this package that have been published are never written to again;
// a Conn and a Session may be used from any number of goroutines.
package jsonrpc
