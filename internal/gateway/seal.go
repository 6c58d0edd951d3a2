package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// stateTime is how long a requestState may be used, and so how long a user may
// take to answer.
const stateTime = 10 * time.Minute

// Kinds of what a requestState of ours carries.
const (
	stateWrapped = 'w' // a server's own requestState
	stateParked  = 'p' // the id of a call that is still open
	stateNone    = 'n' // nothing: the server gave no requestState
	stateURL     = 'u' // nothing: a server with sessions wants a URL visited first
)

var errState = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
	"params.requestState is not one that was given out for this call, or it is too old: begin again without it")

var errNoKey = errors.New("the key for requestState has fewer than 32 bytes")

// state is what a requestState of ours says.
type state struct {
	kind    byte
	server  string // that the call went to
	content string
}

// sealer makes requestState that clients carry and cannot change: it is bound to
// who is calling and to what is called, and it ends (2026-07-28, basic/patterns/
// mrtr, Server Requirements). Any process with the same key reads it. What it says
// is not hidden from the client.
type sealer struct {
	key []byte
	now func() time.Time
}

// seal returns a requestState for the next try of a request.
func (s *sealer) seal(r *server.Request, st state) string {
	body := []byte{st.kind}
	body = binary.BigEndian.AppendUint64(body, uint64(s.now().Add(stateTime).Unix()))
	body = binary.BigEndian.AppendUint32(body, uint32(len(st.server)))
	body = append(append(body, st.server...), st.content...)
	return base64.RawURLEncoding.EncodeToString(append(s.mac(r, body), body...))
}

// open returns what seal put into the requestState of a request; a zero state if
// it has none.
func (s *sealer) open(r *server.Request) (state, error) {
	given := r.Params.Get("requestState")
	if given == nil {
		return state{}, nil
	}
	text, _ := jsonrpc.Text(given)
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	const head = 1 + 8 + 4
	if err != nil || len(raw) < sha256.Size+head {
		return state{}, errState
	}
	mac, body := raw[:sha256.Size], raw[sha256.Size:]
	if !hmac.Equal(mac, s.mac(r, body)) {
		return state{}, errState
	}
	rest, size := body[head:], binary.BigEndian.Uint32(body[9:])
	if s.now().Unix() > int64(binary.BigEndian.Uint64(body[1:])) || uint64(len(rest)) < uint64(size) {
		return state{}, errState
	}
	return state{kind: body[0], server: string(rest[:size]), content: string(rest[size:])}, nil
}

// mac authenticates a body together with the principal and the call it is for.
// Arguments count by what they say, not by how they are spelled.
func (s *sealer) mac(r *server.Request, body []byte) []byte {
	h := hmac.New(sha256.New, s.key)
	name, _ := r.Params.Text(mcp.NameMember(r.Method))
	for _, part := range [...]string{r.Principal, r.Method, name, string(canonical(r.Params.Get("arguments")))} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		_, _ = h.Write(size[:]) // a hash takes everything
		_, _ = h.Write([]byte(part))
	}
	_, _ = h.Write(body)
	return h.Sum(nil)
}

// canonical returns a JSON value in the form of RFC 8785, but with integers as
// they are, since big ones that differ must not become one; as it is if it has no
// such form.
func canonical(v []byte) []byte {
	c := jsontext.Value(slices.Clone(v))
	if err := c.Canonicalize(jsontext.CanonicalizeRawInts(false)); err != nil {
		return v
	}
	return c
}
