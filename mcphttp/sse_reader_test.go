package mcphttp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// readEvents reads a stream to its end.
func readEvents(r io.Reader, limit int) ([]event, error) {
	e := newEventReader(limit)
	e.reset(r, "", 0)
	var out []event
	for {
		ev, err := e.next()
		if err != nil {
			return out, err
		}
		out = append(out, ev)
	}
}

func show(events []event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, "[%q other=%v id=%q retry=%v]", ev.data, ev.kind != "", ev.id, ev.retry)
	}
	return b.String()
}

// naiveEvents is the standard's algorithm in its plainest form, over all of a
// stream at once.
func naiveEvents(stream string) []event {
	stream = strings.TrimPrefix(stream, "\uFEFF")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	var out []event
	var data []string
	var id, kept, kind string
	var retry time.Duration
	named := false
	for _, line := range lines[:len(lines)-1] { // the last has no end
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil || named {
				kept = id
				out = append(out, event{[]byte(strings.Join(data, "\n")), strings.TrimPrefix(kind, "message"), kept, retry})
			}
			data, named, kind = nil, false, ""
		case name == "data":
			data = append(data, value)
		case name == "event":
			kind = value
		case name == "id" && !strings.Contains(value, "\x00"):
			named, id = true, value
			if len(id) > maxEventID || strings.ContainsFunc(id, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
				id = ""
			}
		case name == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
			ms, err := strconv.ParseUint(value, 10, 64)
			if err == nil {
				retry = time.Duration(min(ms, uint64(maxRetry.Milliseconds()))) * time.Millisecond
			}
		}
	}
	return out
}

func TestEventReader(t *testing.T) {
	tests := []struct {
		name, stream, want string
	}{
		{"LF", "data: a\n\n", `["a" other=false id="" retry=0s]`},
		{"C-059 CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", `["a" other=false id="" retry=0s]["b" other=false id="" retry=0s]`},
		{"CR only", "data: a\r\rdata: b\r\r", `["a" other=false id="" retry=0s]["b" other=false id="" retry=0s]`},
		{"mixed ends", "data: a\r\n\ndata: b\n\r\n", `["a" other=false id="" retry=0s]["b" other=false id="" retry=0s]`},
		{"byte order mark", "\uFEFFdata: a\n\n", `["a" other=false id="" retry=0s]`},
		{"only one byte order mark", "\uFEFF\uFEFFdata: a\n\n", ``},
		{"C-061 several data lines", "data: {\ndata\ndata:}\n\n", `["{\n\n}" other=false id="" retry=0s]`},
		{"C-062 comments", ":\n\n: ping\n\n:x\ndata: a\n: between\n\n:\r", `["a" other=false id="" retry=0s]`},
		{"C-063 priming", "id: 0\nretry: 3000\ndata: \n\nid: 1\ndata: a\n\n", `["" other=false id="0" retry=3s]["a" other=false id="1" retry=3s]`},
		{"id alone", "id: 7\n\n", `["" other=false id="7" retry=0s]`},
		{"id taken back", "id: 7\ndata: a\n\nid\n\n", `["a" other=false id="7" retry=0s]["" other=false id="" retry=0s]`},
		{"id stays", "id: 7\ndata: a\n\ndata: b\n\n", `["a" other=false id="7" retry=0s]["b" other=false id="7" retry=0s]`},
		{"id with NUL", "id: 7\ndata: a\n\nid: 8\x00\ndata: b\n\n", `["a" other=false id="7" retry=0s]["b" other=false id="7" retry=0s]`},
		{"id that is no header value", "id: 7\x01\ndata: a\n\n", `["a" other=false id="" retry=0s]`},
		{"id too long", "id: " + strings.Repeat("x", maxEventID+1) + "\ndata: a\n\n", `["a" other=false id="" retry=0s]`},
		{"retry alone", "retry: 10\n\ndata: a\n\n", `["a" other=false id="" retry=10ms]`},
		{"retry that is none", "retry: +10\nretry: 1.5\nretry:\nretry: -1\ndata: a\n\n", `["a" other=false id="" retry=0s]`},
		{"retry too long", "retry: 18446744073709551615\ndata: a\n\n", `["a" other=false id="" retry=1h0m0s]`},
		{"type message", "event: message\ndata: a\n\n", `["a" other=false id="" retry=0s]`},
		{"other type", "event: ping\ndata: a\n\ndata: b\n\n", `["a" other=true id="" retry=0s]["b" other=false id="" retry=0s]`},
		{"type without data", "event: ping\n\ndata: b\n\n", `["b" other=false id="" retry=0s]`},
		{"no space, two spaces", "data:a\ndata:  b\n\n", `["a\n b" other=false id="" retry=0s]`},
		{"names are exact", "Data: a\n data: b\ndatas: c\n\n", ``},
		{"cut off", "data: a\n\nid: 9\ndata: b\n", `["a" other=false id="" retry=0s]`},
		{"empty", "", ``},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, way := range []struct {
				name string
				r    io.Reader
			}{
				{"at once", strings.NewReader(tt.stream)},
				{"byte by byte", iotest.OneByteReader(strings.NewReader(tt.stream))},
				{"end with data", iotest.DataErrReader(strings.NewReader(tt.stream))},
			} {
				got, err := readEvents(way.r, 1<<20)
				if show(got) != tt.want || !errors.Is(err, io.EOF) {
					t.Errorf("%s: got %s, %v\nwant %s", way.name, show(got), err, tt.want)
				}
			}
			if want := show(naiveEvents(tt.stream)); want != tt.want {
				t.Errorf("the naive reader has %s\nwant %s", want, tt.want)
			}
		})
	}
}

// An event goes out as soon as its last byte is there: nothing waits for the
// LF that may follow a CR, or for more to come.
func TestEventReaderDoesNotWait(t *testing.T) {
	for _, stream := range []string{"data: a\n\n", "data: a\r\n\r", "data: a\r\r"} {
		pr, pw := io.Pipe()
		go func() { _, _ = io.WriteString(pw, stream) }() // ends when all of it is read
		e := newEventReader(100)
		e.reset(pr, "", 0)
		ev, err := e.next()
		if err != nil || string(ev.data) != "a" {
			t.Errorf("%q: got %q, %v", stream, ev.data, err)
		}
		_ = pr.Close()
	}
}

type endless struct{ unit string }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e.unit) <= len(p) {
		n += copy(p[n:], e.unit)
	}
	return n, nil
}

// TestEventReaderLimit is C-162: what never ends is cut off at the limit.
func TestEventReaderLimit(t *testing.T) {
	const limit = 100_000
	for name, r := range map[string]io.Reader{
		"a line":        io.MultiReader(strings.NewReader("data: "), endless{"x"}),
		"data lines":    endless{"data: x\n"},
		"empty lines":   endless{"data\n"},
		"unknown lines": endless{"x: y\n"},
		"a comment":     io.MultiReader(strings.NewReader(":"), endless{"x"}),
		"an id":         io.MultiReader(strings.NewReader("id:"), endless{"x"}),
	} {
		t.Run(name, func(t *testing.T) {
			counted := &counter{r: r}
			events, err := readEvents(counted, limit)
			if !errors.Is(err, errEventSize) || len(events) != 0 {
				t.Fatalf("got %d events, %v", len(events), err)
			}
			if counted.n > 3*limit {
				t.Errorf("read %d bytes", counted.n)
			}
		})
	}
	fits := "data: " + strings.Repeat("x", limit-6) + "\n\n"
	events, err := readEvents(strings.NewReader(fits+": "+strings.Repeat("x", limit-2)+"\n"+fits), limit)
	if len(events) != 2 || !errors.Is(err, io.EOF) {
		t.Errorf("at the limit: got %d events, %v", len(events), err)
	}
}

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

// What next returned stays as it is while the stream goes on.
func TestEventReaderDataIsTheReceivers(t *testing.T) {
	var stream bytes.Buffer
	var want []string
	for i := range 200 {
		line := strings.Repeat(strconv.Itoa(i%10), 1+i*i*3)
		want = append(want, line)
		fmt.Fprintf(&stream, "data: %s\n\n", line)
	}
	events, err := readEvents(iotest.HalfReader(&stream), 1<<20)
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for i, ev := range events {
		if string(ev.data) != want[i] {
			t.Fatalf("event %d changed", i)
		}
	}
	if len(events) != len(want) {
		t.Errorf("got %d events, want %d", len(events), len(want))
	}
}

// chunked yields a stream in pieces whose sizes repeat.
type chunked struct {
	data  []byte
	sizes []byte
	i     int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.data) == 0 {
		return 0, io.EOF
	}
	n := 1
	if len(c.sizes) > 0 {
		n += int(c.sizes[c.i%len(c.sizes)])
		c.i++
	}
	n = copy(p[:min(n, len(p))], c.data)
	c.data = c.data[n:]
	return n, nil
}

// FuzzEventReader compares with the naive reader, for any stream in any pieces.
func FuzzEventReader(f *testing.F) {
	for _, s := range []string{
		"data: a\r\n\r\n", "\uFEFFid: 1\rdata\r\r:\r", "event: x\nid\nretry: 5\n\n", "id: a\x00\n\n", "\r\n\n\rdata:\n\n",
	} {
		f.Add(s, []byte{0, 2})
	}
	f.Fuzz(func(t *testing.T, stream string, sizes []byte) {
		got, err := readEvents(&chunked{data: []byte(stream), sizes: sizes}, 1<<20)
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		want := naiveEvents(stream)
		if !slices.EqualFunc(got, want, func(a, b event) bool { return show([]event{a}) == show([]event{b}) }) {
			t.Errorf("got  %s\nwant %s", show(got), show(want))
		}
	})
}

func BenchmarkEventReader(b *testing.B) {
	for _, size := range []int{200, 1 << 20} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			stream := []byte("event: message\ndata: " + strings.Repeat("x", size) + "\n\n")
			e := newEventReader(64 << 20)
			r := bytes.NewReader(nil)
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				r.Reset(stream)
				e.reset(r, "", 0)
				if _, err := e.next(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
