package main

import "bytes"

// member returns the bounds of the value of the top-level member key of the
// JSON object in msg. It finds where things are and checks nothing more: msg
// is taken to be valid, and a key written with escapes is not recognised.
func member(msg []byte, key string) (start, end int, ok bool) {
	i := skipSpace(msg, 0)
	if i >= len(msg) || msg[i] != '{' {
		return 0, 0, false
	}
	for i++; ; i++ {
		i = skipSpace(msg, i)
		if i >= len(msg) || msg[i] != '"' {
			return 0, 0, false
		}
		nameStart := i + 1
		if i = skipString(msg, i); i < 0 {
			return 0, 0, false
		}
		name := msg[nameStart : i-1]
		i = skipSpace(msg, i)
		if i >= len(msg) || msg[i] != ':' {
			return 0, 0, false
		}
		start = skipSpace(msg, i+1)
		if end = skipValue(msg, start); end <= start {
			return 0, 0, false
		}
		if string(name) == key {
			return start, end, true
		}
		i = skipSpace(msg, end)
		if i >= len(msg) || msg[i] != ',' {
			return 0, 0, false
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at b[i], or -1 if
// it does not end.
func skipString(b []byte, i int) int {
	for i++; ; i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		k := i
		for b[k-1] == '\\' {
			k--
		}
		// The opening quote stops the loop above, so the run of backslashes
		// is inside the string; an even run escapes itself, not the quote.
		if (i-k)%2 == 0 {
			return i + 1
		}
	}
}

// skipValue returns the index after the value that begins at b[i], or -1 if it
// does not end.
func skipValue(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		return skipNested(b, i)
	}
	for i < len(b) {
		switch b[i] {
		case ',', '}', ']', ' ', '\n', '\r', '\t':
			return i
		}
		i++
	}
	return -1
}

// skipNested is skipValue for an object or array.
func skipNested(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
