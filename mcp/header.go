package mcp

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// Header fields of the Streamable HTTP transport, under their canonical names.
const (
	HeaderVersion     = "Mcp-Protocol-Version"
	HeaderMethod      = "Mcp-Method"
	HeaderName        = "Mcp-Name"
	HeaderSession     = "Mcp-Session-Id"
	HeaderLastEvent   = "Last-Event-Id"
	HeaderParamPrefix = "Mcp-Param-"
)

const (
	sentinelStart = "=?base64?"
	sentinelEnd   = "?="
)

// EncodeHeader returns a value as it goes into an Mcp-Name or Mcp-Param header:
// itself if it is plain ASCII, else base64 between sentinels (2026-07-28,
// basic/transports/streamable-http, Value Encoding).
func EncodeHeader(value string) string {
	if plain(value) {
		return value
	}
	return sentinelStart + base64.StdEncoding.EncodeToString([]byte(value)) + sentinelEnd
}

func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 0x20 && c != '\t' || c > 0x7E {
			return false
		}
	}
	return s == strings.Trim(s, " \t") && !(strings.HasPrefix(s, sentinelStart) && strings.HasSuffix(s, sentinelEnd))
}

// isSentinel reports whether there is room for base64 between the sentinels. One
// that shares its question mark with the other is plain text for a reader, but
// not written as such, since other readers may see it otherwise.
func isSentinel(s string) bool {
	return len(s) >= len(sentinelStart)+len(sentinelEnd) &&
		strings.HasPrefix(s, sentinelStart) && strings.HasSuffix(s, sentinelEnd)
}

// DecodeHeader returns the value that a header field carries. It refuses bytes
// that a header must not have, and broken base64.
func DecodeHeader(field string) (string, error) {
	for i := range len(field) {
		if c := field[i]; c < 0x20 && c != '\t' || c > 0x7E {
			return "", errors.New("has characters other than visible ASCII, space and tab")
		}
	}
	if !isSentinel(field) {
		return field, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(field[len(sentinelStart) : len(field)-len(sentinelEnd)])
	if err != nil {
		return "", errors.New("has broken base64 between its sentinels")
	}
	if !utf8.Valid(b) {
		return "", errors.New("is base64 of bytes that are not UTF-8")
	}
	return string(b), nil
}

// NameMember returns the member of a method's params that the Mcp-Name header
// repeats; "" for methods that have no such header.
func NameMember(method string) string {
	switch method {
	case MethodToolsCall, MethodPromptsGet:
		return "name"
	case MethodResourcesRead:
		return "uri"
	case MethodTasksGet, MethodTasksUpdate, MethodTasksCancel:
		return "taskId"
	}
	return ""
}
