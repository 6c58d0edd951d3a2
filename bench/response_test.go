package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

func TestResponseReader(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 10_000)
	type want struct {
		status int
		body   string
	}
	tests := []struct {
		name, in string
		want     []want
		err      error // of the call after the last response
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", []want{{200, "hello"}}, io.EOF},
		{
			"two", "HTTP/1.1 200 OK\r\ncontent-length:5\r\n\r\nhelloHTTP/1.1 404 Not Found\r\nCONTENT-LENGTH: 2 \r\n\r\nno",
			[]want{{200, "hello"}, {404, "no"}},
			io.EOF,
		},
		{"no body", "HTTP/1.1 202 Accepted\r\nDate: today\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", []want{{202, ""}, {200, ""}}, io.EOF},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx", []want{{200, "x"}}, io.EOF},
		{
			"long", "HTTP/1.1 200 OK\r\nContent-Length: 160000\r\n\r\n" + long + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
			[]want{{200, long}, {200, "x"}},
			io.EOF,
		},
		{
			"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=y\r\n, world\r\n\n\r\n0\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
			[]want{{200, "hello, world\r\n\n"}, {204, ""}},
			errAny,
		},
		{"trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n", []want{{200, "x"}}, io.EOF},
		{"empty", "", nil, io.EOF},
		{"cut off in head", "HTTP/1.1 200 OK\r\nConte", nil, io.ErrUnexpectedEOF},
		{"cut off in body", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", nil, io.ErrUnexpectedEOF},
		{"cut off in chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", nil, io.ErrUnexpectedEOF},
		{"not HTTP", "SSH-2.0-OpenSSH_9.6 hello\r\n\r\n", nil, errMalformed},
		{"bad status", "HTTP/1.1 2x0 OK\r\n\r\n", nil, errMalformed},
		{"bad length", "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", nil, errMalformed},
		{"too long", "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", nil, errMalformed},
		{"other coding", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", nil, errMalformed},
		{"bad chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", nil, errMalformed},
		{"chunk without end", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n", nil, errMalformed},
		{"endless head", "HTTP/1.1 200 OK\r\nA: " + strings.Repeat("x", 2*maxHead), nil, errMalformed},
	}
	// A connection may give any number of bytes at a time.
	readers := map[string]func(io.Reader) io.Reader{
		"whole":   func(r io.Reader) io.Reader { return r },
		"by byte": iotest.OneByteReader,
		"halves":  iotest.HalfReader,
		"early":   iotest.DataErrReader,
	}
	for _, tt := range tests {
		for by, reader := range readers {
			t.Run(tt.name+"/"+by, func(t *testing.T) {
				r := newResponseReader(reader(strings.NewReader(tt.in)))
				for i, want := range tt.want {
					got, err := r.next()
					if err != nil {
						t.Fatalf("response %d: %v", i, err)
					}
					if got.status != want.status || string(got.body) != want.body {
						t.Errorf("response %d: %d with %d bytes, want %d with %d", i, got.status, len(got.body), want.status, len(want.body))
					}
					if !bytes.HasPrefix(got.head, []byte("HTTP/1.1 ")) || !bytes.HasSuffix(got.head, []byte("\r\n\r\n")) {
						t.Errorf("response %d: head %q", i, got.head)
					}
				}
				if _, err := r.next(); tt.err != errAny && !errors.Is(err, tt.err) || err == nil {
					t.Errorf("at the end: %v, want %v", err, tt.err)
				}
			})
		}
	}
}

// errAny stands for any error.
var errAny = errors.New("any error")

func TestField(t *testing.T) {
	head := []byte("HTTP/1.1 200 OK\r\nX-Mcp-Session-Id: no\r\nMcp-Session-Id:  abc \r\nEmpty:\r\n\r\n")
	if got, ok := field(head, "mcp-session-id"); !ok || string(got) != "abc" {
		t.Errorf("mcp-session-id = %q, %v", got, ok)
	}
	if got, ok := field(head, "empty"); !ok || len(got) != 0 {
		t.Errorf("empty = %q, %v", got, ok)
	}
	if _, ok := field(head, "session-id"); ok {
		t.Error("found a field that is only the end of another's name")
	}
}

// FuzzResponseReader compares with net/http on what both accept.
func FuzzResponseReader(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"))
	f.Add([]byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole, wholeErr := newResponseReader(bytes.NewReader(in)).next()
		bits, bitsErr := newResponseReader(iotest.OneByteReader(bytes.NewReader(in))).next()
		if (wholeErr == nil) != (bitsErr == nil) || string(whole.body) != string(bits.body) {
			t.Fatalf("depends on how it is cut: %q %v, %q %v", whole.body, wholeErr, bits.body, bitsErr)
		}
		if wholeErr != nil {
			return
		}
		std, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(in)), nil)
		if err != nil || std.ContentLength < 0 && std.TransferEncoding == nil || std.Uncompressed {
			return
		}
		body, err := io.ReadAll(std.Body)
		if err == nil && whole.status == std.StatusCode && string(whole.body) != string(body) && std.StatusCode != 204 && std.StatusCode != 304 && std.StatusCode >= 200 {
			t.Errorf("body = %q, net/http has %q", whole.body, body)
		}
	})
}
