package stdio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mcp-roster/roster/stdio"
)

// chunks is a source that returns the given pieces, one per read.
type chunks [][]byte

func (c *chunks) Read(p []byte) (int, error) {
	for len(*c) > 0 && len((*c)[0]) == 0 {
		*c = (*c)[1:]
	}
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	(*c)[0] = (*c)[0][n:]
	return n, nil
}

// readAll reads frames until an error, which it returns, nil for io.EOF.
func readAll(t testing.TB, r *stdio.Reader) ([]string, error) {
	t.Helper()
	var frames []string
	for {
		frame, err := r.ReadFrame()
		if err == io.EOF {
			return frames, nil
		}
		if err != nil {
			if _, again := r.ReadFrame(); again != err {
				t.Errorf("the error after %v is %v, want the same", err, again)
			}
			return frames, err
		}
		frames = append(frames, string(frame))
	}
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReader(t *testing.T) {
	const (
		ping1 = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		ping2 = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	)
	tests := []struct {
		name  string
		in    string
		want  []string
		noise []string
		err   error
	}{
		{name: "empty"},
		{
			name: "C-033 multi-byte characters", in: string(fixture(t, "utf8_bytewise.jsonl")),
			want: []string{strings.TrimSuffix(string(fixture(t, "utf8_bytewise.jsonl")), "\n")},
		},
		{
			name: "C-034 banner and log lines", in: string(fixture(t, "noise_lines.txt")),
			want:  []string{`{"jsonrpc":"2.0","id":"@ID","result":{}}`},
			noise: []string{"+ File server ready", "INFO     [boot] telemetry off", "-- not json {"},
		},
		{
			name: "C-034 bracketed log lines", in: "[INFO] up\n[2026-07-28 10:00] \"x\"\n[\n [ {\"id\":1} ]\n[]\n",
			want:  []string{`[ {"id":1} ]`, `[]`},
			noise: []string{"[INFO] up", `[2026-07-28 10:00] "x"`, "["},
		},
		{name: "C-037 CRLF and blank lines", in: string(fixture(t, "crlf.jsonl")), want: []string{ping1, ping2}},
		{name: "C-037 white space", in: " \t\r\n\n \t" + ping1 + " \r\n\t\n", want: []string{ping1}},
		{name: "lone CR is no line end", in: "{\r}\n", want: []string{"{\r}"}},
		{name: "C-038 byte order mark first", in: string(fixture(t, "bom.jsonl")), want: []string{ping1, ping2}},
		{
			name: "C-038 byte order mark later", in: ping1 + "\n\ufeff" + ping2 + "\n",
			want: []string{ping1}, noise: []string{"\ufeff" + ping2},
		},
		{name: "C-038 two byte order marks", in: "\ufeff\ufeff" + ping1 + "\n", noise: []string{"\ufeff" + ping1}},
		{name: "C-038 byte order mark and nothing else", in: "\ufeff"},
		{name: "C-038 byte order mark and a blank line", in: "\ufeff\n" + ping1 + "\n", want: []string{ping1}},
		{name: "half a byte order mark", in: "\xef\xbb", noise: []string{"\xef\xbb"}},
		{name: "half a byte order mark and a line", in: "\xef\xbb\n{}\n", want: []string{"{}"}, noise: []string{"\xef\xbb"}},
		{
			name: "C-040 U+2028, U+2029 and U+0085", in: string(fixture(t, "u2028.jsonl")),
			want: []string{"{\"jsonrpc\":\"2.0\",\"id\":\"@ID\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\u2028b\u2029c\u0085d\"}]}}"},
		},
		{name: "C-046 half a line", in: ping1 + "\n" + ping2, want: []string{ping1}, err: io.ErrUnexpectedEOF},
		{name: "half a line of noise", in: ping1 + "\nbye", want: []string{ping1}, noise: []string{"bye"}},
		{name: "blank at the end", in: ping1 + "\n \r", want: []string{ping1}},
		{name: "long noise", in: strings.Repeat("n", 300) + "\n{}\n", want: []string{"{}"}, noise: []string{strings.Repeat("n", 256)}},
		{
			name: "noise larger than the buffer", in: "\ufeff" + strings.Repeat("n", 300<<10) + "\n{}\n",
			want: []string{"{}"}, noise: []string{strings.Repeat("n", 256)},
		},
		{name: "noise larger than the buffer, no end", in: strings.Repeat("n", 300<<10), noise: []string{strings.Repeat("n", 256)}},
		{
			name: "white space larger than the buffer, noise", in: strings.Repeat(" ", 70<<10) + "no\n{}\n",
			want: []string{"{}"}, noise: []string{"no"},
		},
		{
			name: "frame larger than the buffer after a mark", in: "\ufeff{" + strings.Repeat(" ", 300<<10) + "}\r\n{}\n",
			want: []string{"{" + strings.Repeat(" ", 300<<10) + "}", "{}"},
		},
		{name: "half a frame larger than the buffer", in: "{" + strings.Repeat(" ", 300<<10), err: io.ErrUnexpectedEOF},
	}
	feeds := map[string]func(string) io.Reader{
		"at once":         func(s string) io.Reader { return strings.NewReader(s) },
		"byte by byte":    func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
		"data with error": func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
	}
	for _, test := range tests {
		for feed, open := range feeds {
			t.Run(test.name+"/"+feed, func(t *testing.T) {
				var noise []string
				r := stdio.NewReader(open(test.in), &stdio.ReaderOptions{
					Noise: func(line []byte) { noise = append(noise, string(line)) },
				})
				got, err := readAll(t, r)
				if err != test.err {
					t.Errorf("error %v, want %v", err, test.err)
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("frames %.300q\nwant %.300q", got, test.want)
				}
				if !slices.Equal(noise, test.noise) {
					t.Errorf("noise %.300q\nwant %.300q", noise, test.noise)
				}
				if n := r.Skipped(); n != uint64(len(test.noise)) {
					t.Errorf("Skipped() = %d, want %d", n, len(test.noise))
				}
			})
		}
	}
}

// bigLine returns one result line of exactly size bytes, without its LF.
func bigLine(size int) string {
	const head, tail = `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"`, `"}]}}`
	return head + strings.Repeat("x", size-len(head)-len(tail)) + tail
}

// C-031: lines around common buffer sizes, and far beyond, arrive whole, and so
// does what follows them.
func TestReaderBigLine(t *testing.T) {
	for _, size := range []int{4095, 4096, 65_535, 65_536, 65_537, 131_071, 131_072, 131_073, 1 << 20, 20 << 20} {
		for _, end := range []string{"\n", "\r\n"} {
			t.Run(fmt.Sprintf("%d%q", size, end), func(t *testing.T) {
				big := bigLine(size)
				in := "{}" + end + big + end + `{"id":8}` + end
				got, err := readAll(t, stdio.NewReader(strings.NewReader(in), nil))
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, []string{"{}", big, `{"id":8}`}) {
					t.Errorf("%d frames, not the three written", len(got))
				}
			})
		}
	}
}

// flood never ends, and counts what was taken from it.
type flood struct {
	first string
	fill  byte
	taken int
}

func (f *flood) Read(p []byte) (int, error) {
	n := copy(p, f.first)
	f.first = f.first[n:]
	for i := n; i < len(p); i++ {
		p[i] = f.fill
	}
	f.taken += len(p)
	return len(p), nil
}

func TestReaderLimit(t *testing.T) {
	for _, limit := range []int{10, 100, 65_535, 65_536, 65_537, 200_000} {
		frame := func(size int) string { return "{" + strings.Repeat(" ", size-2) + "}" }
		for _, end := range []string{"\n", "\r\n"} {
			t.Run(fmt.Sprintf("%d%q", limit, end), func(t *testing.T) {
				opts := &stdio.ReaderOptions{MaxFrame: limit}
				got, err := readAll(t, stdio.NewReader(strings.NewReader(frame(limit)+end+"{}"+end), opts))
				if err != nil || len(got) != 2 {
					t.Errorf("at the limit: %d frames and error %v, want 2 and none", len(got), err)
				}
				got, err = readAll(t, stdio.NewReader(strings.NewReader("{}"+end+frame(limit+1)+end+"{}"+end), opts))
				var tooLong *stdio.FrameTooLongError
				if !errors.As(err, &tooLong) || tooLong.Limit != limit {
					t.Errorf("over the limit: error %v", err)
				}
				if len(got) != 1 {
					t.Errorf("over the limit: %d frames, want the one before", len(got))
				}
			})
		}
		for _, first := range []string{`{"a":"`, "noise", "", "[INFO"} {
			t.Run(fmt.Sprintf("%d/flood after %q", limit, first), func(t *testing.T) {
				source := &flood{first: first, fill: ' '}
				_, err := readAll(t, stdio.NewReader(source, &stdio.ReaderOptions{MaxFrame: limit}))
				var tooLong *stdio.FrameTooLongError
				if !errors.As(err, &tooLong) {
					t.Fatalf("error %v", err)
				}
				if allowed := limit + 128<<10; source.taken > allowed {
					t.Errorf("took %d bytes, want at most %d", source.taken, allowed)
				}
			})
		}
	}
}

func TestReaderSourceErrors(t *testing.T) {
	broken := errors.New("broken")
	got, err := readAll(t, stdio.NewReader(io.MultiReader(strings.NewReader("{}\n{"), iotest.ErrReader(broken)), nil))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("got %q and %v, want one frame and %v", got, err, broken)
	}
	_, err = readAll(t, stdio.NewReader(idle{}, nil))
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that returns nothing: %v, want %v", err, io.ErrNoProgress)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

// Frames belong to the caller: reading on does not change them.
func TestReaderOwnership(t *testing.T) {
	big := bigLine(100_000)
	r := stdio.NewReader(strings.NewReader("{\"id\":1}\n"+big+"\n{\"id\":2}\n"), nil)
	var frames [][]byte
	for range 3 {
		frame, err := r.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, frame)
	}
	for i, want := range []string{`{"id":1}`, big, `{"id":2}`} {
		if string(frames[i]) != want {
			t.Errorf("frame %d changed", i)
		}
	}
	_ = append(frames[0], "overwritten"...)
	if string(frames[2]) != `{"id":2}` {
		t.Error("frames share memory")
	}
}

func TestReaderAllocations(t *testing.T) {
	line := []byte(bigLine(500) + "\n")
	r := stdio.NewReader(&loop{line: line}, nil)
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.ReadFrame(); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations per frame, want 1", n)
	}
}

// loop returns a line again and again.
type loop struct {
	line []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		c := copy(p[n:], l.line[l.at:])
		n += c
		l.at = (l.at + c) % len(l.line)
	}
	return n, nil
}

func FuzzReader(f *testing.F) {
	for _, name := range []string{"bom.jsonl", "crlf.jsonl", "noise_lines.txt", "u2028.jsonl", "utf8_bytewise.jsonl"} {
		f.Add(fixture(f, name), []byte{1, 2, 3}, 40)
	}
	f.Add([]byte("\xef\xbb\xbf\n{}\r\n[1]\n[{}]\n{"), []byte{1, 1, 1, 5}, 3)
	f.Fuzz(func(t *testing.T, in, cuts []byte, limit int) {
		type outcome struct {
			frames, noise []string
			err           string
		}
		read := func(src io.Reader) outcome {
			var o outcome
			r := stdio.NewReader(src, &stdio.ReaderOptions{
				MaxFrame: limit,
				Noise:    func(line []byte) { o.noise = append(o.noise, string(line)) },
			})
			frames, err := readAll(t, r)
			o.frames = frames
			if err != nil {
				o.err = err.Error()
			}
			return o
		}
		whole := read(bytes.NewReader(in))
		var pieces chunks
		rest := in
		for _, cut := range cuts {
			n := min(int(cut), len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		pieces = append(pieces, rest)
		split := read(&pieces)
		if !slices.Equal(whole.frames, split.frames) || !slices.Equal(whole.noise, split.noise) || whole.err != split.err {
			t.Fatalf("split at %v:\n%q\nwhole:\n%q", cuts, split, whole)
		}
		for _, frame := range whole.frames {
			if strings.ContainsRune(frame, '\n') || frame == "" || frame[0] != '{' && frame[0] != '[' {
				t.Fatalf("bad frame %q", frame)
			}
		}
	})
}

func BenchmarkReader(b *testing.B) {
	for _, size := range []int{200, 4 << 10, 60 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := stdio.NewReader(&loop{line: []byte(bigLine(size) + "\n")}, nil)
			b.SetBytes(int64(size + 1))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.ReadFrame(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
