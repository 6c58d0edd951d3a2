package gateway

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/mcp-roster/roster/jsonrpc"
	"github.com/mcp-roster/roster/mcp"
	"github.com/mcp-roster/roster/server"
)

// stateTime is how long a requestState may be used.
const stateTime = 10 * time.Minute

// Kinds of what a requestState of ours carries.
const (
	stateWrapped = 'w' // a server's own requestState
	stateParked  = 'p' // the id of a call that is still open
	stateNone    = 'n' // nothing: the server gave no requestState
)

var errState = jsonrpc.Errorf(jsonrpc.CodeInvalidParams,
	"params.requestState is not one that was given out for this call, or it is too old: begin again without it")

// sealer makes requestState that clients carry and cannot change: it is bound to
// who is calling and to what is called, and it ends (2026-07-28, basic/patterns/
// mrtr, Server Requirements). Any process with the same key reads it.
type sealer struct {
	key []byte
	now func() time.Time
}

// seal returns a requestState with a content.
func (s *sealer) seal(r *server.Request, kind byte, content string) string {
	body := []byte{kind}
	body = binary.BigEndian.AppendUint64(body, uint64(s.now().Add(stateTime).Unix()))
	body = append(body, content...)
	return base64.RawURLEncoding.EncodeToString(append(s.mac(r, body), body...))
}

// open returns what seal put into the requestState of a request.
func (s *sealer) open(r *server.Request, state string) (kind byte, content string, err error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil || len(raw) < sha256.Size+1+8 {
		return 0, "", errState
	}
	mac, body := raw[:sha256.Size], raw[sha256.Size:]
	if !hmac.Equal(mac, s.mac(r, body)) {
		return 0, "", errState
	}
	if s.now().Unix() > int64(binary.BigEndian.Uint64(body[1:])) {
		return 0, "", errState
	}
	return body[0], string(body[9:]), nil
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

// canonical returns a JSON value in the form of RFC 8785, as it is if it has none.
func canonical(v []byte) []byte {
	c := jsonValue(slices.Clone(v))
	if err := c.Canonicalize(); err != nil {
		return v
	}
	return c
}

var errNoKey = errors.New("the key for requestState has fewer than 32 bytes")
