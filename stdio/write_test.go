package stdio_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/stdio"
)

// writes records each write.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func (w *writes) String() string { return strings.Join(*w, "") }

func TestWriter(t *testing.T) {
	const ping = `{"id":1,"method":"ping"}`
	tests := []struct {
		name, frame, want string
	}{
		{"plain", ping, ping + "\n"},
		{"line breaks between tokens", "{\r\n  \"a\":\n[1,\r2]\n}\n", `{  "a":[1,2]}` + "\n"},
		{"escapes are kept", "{\"a\":\"\\n\\\"\\\\\",\n\"b\":\"\\\\\"}", `{"a":"\n\"\\","b":"\\"}` + "\n"},
		{"Unicode line ends are kept", "{\"a\":\"\u2028\u2029\u0085\"\n}", "{\"a\":\"\u2028\u2029\u0085\"}\n"},
		{"line breaks in strings, which are not JSON", "{\"a\":\"x\ny\rz\",\n\"b\":\"\\\n\"}", `{"a":"x\ny\rz","b":"\\n"}` + "\n"},
		{"nothing", "", ""},
		{"only line breaks", "\r\n", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out writes
			if err := stdio.NewWriter(&out).WriteFrame([]byte(test.frame)); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want || len(out) > 1 {
				t.Errorf("wrote %q, want %q", out, test.want)
			}
		})
	}
}

// C-044: whatever the size, all of a frame and its line end are written when
// WriteFrame returns; small frames in one write.
func TestWriterSizes(t *testing.T) {
	for _, size := range []int{15 << 10, 16 << 10, 17 << 10, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20} {
		var out writes
		frame := bigLine(size)
		if err := stdio.NewWriter(&out).WriteFrame([]byte(frame)); err != nil {
			t.Fatal(err)
		}
		if out.String() != frame+"\n" {
			t.Errorf("%d bytes: wrote %d", size, len(out.String()))
		}
		if size < 64<<10 && len(out) != 1 || len(out) > 2 {
			t.Errorf("%d bytes: %d writes", size, len(out))
		}
	}
}

func TestWriterCoalesces(t *testing.T) {
	small, large := []byte(bigLine(1000)), []byte(bigLine(100_000))
	tests := []struct {
		name   string
		frames [][]byte
		writes int
	}{
		{"small ones share a write", [][]byte{small, small, small, small}, 1},
		{"a large one goes between", [][]byte{small, large, small, small}, 3},
		{"large ones", [][]byte{large, large}, 4},
		{"more than the buffer", bytesOf(100, small), 2},
		{"none", nil, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out writes
			if err := stdio.NewWriter(&out).WriteFrames(test.frames); err != nil {
				t.Fatal(err)
			}
			if len(out) != test.writes {
				t.Errorf("%d writes, want %d", len(out), test.writes)
			}
			var want strings.Builder
			for _, frame := range test.frames {
				want.Write(frame)
				want.WriteByte('\n')
			}
			if out.String() != want.String() {
				t.Error("the frames written are not those given, in order")
			}
		})
	}
}

func bytesOf(n int, frame []byte) [][]byte {
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = frame
	}
	return frames
}

// A frame of the caller is not changed, not even behind its end.
func TestWriterLeavesFrameAlone(t *testing.T) {
	memory := []byte("{\n}tail")
	if err := stdio.NewWriter(io.Discard).WriteFrame(memory[:3]); err != nil {
		t.Fatal(err)
	}
	if string(memory) != "{\n}tail" {
		t.Errorf("memory is now %q", memory)
	}
}

type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	f.n++
	return len(p) / 2, io.ErrClosedPipe
}

func TestWriterErrorIsFinal(t *testing.T) {
	dst := &failing{}
	w := stdio.NewWriter(dst)
	for range 2 {
		if err := w.WriteFrame([]byte("{}")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("error %v", err)
		}
	}
	if dst.n != 1 {
		t.Errorf("%d writes, want none after the one that failed", dst.n)
	}
}

// FuzzWriter checks that frames written are the frames read, but for line breaks.
func FuzzWriter(f *testing.F) {
	f.Add([]byte(`"a":1}`), []byte("\r\n\"a\": \"\\\"\"\n}"))
	f.Add([]byte("}"), []byte("\"a\":\"\n\"}"))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var out bytes.Buffer
		frames := [][]byte{append([]byte("{"), first...), append([]byte("{"), second...)}
		if err := stdio.NewWriter(&out).WriteFrames(frames); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(t, stdio.NewReader(&out, nil))
		if err != nil || len(got) != len(frames) {
			t.Fatalf("read %d frames and error %v", len(got), err)
		}
		for i, frame := range frames {
			if json.Valid(frame) {
				want := strings.NewReplacer("\r", "", "\n", "").Replace(string(frame))
				if got[i] != strings.TrimRight(want, " \t") {
					t.Fatalf("read %q, want %q", got[i], want)
				}
			} else if !bytes.ContainsAny(frame, "\r\n") && got[i] != strings.TrimRight(string(frame), " \t") {
				t.Fatalf("read %q, want %q", got[i], frame)
			}
		}
	})
}
