package mcphttp

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// gatherPair returns the two ends of a connection, the first as Gather accepts it.
func gatherPair(t *testing.T) (*gatherConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	c, err := Gather(l).Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c.(*gatherConn), client
}

// TestGatherConn keeps writes back until they are released, in order, though
// the memory of short ones is used again.
func TestGatherConn(t *testing.T) {
	c, client := gatherPair(t)
	short, long := []byte("short"), bytes.Repeat([]byte("long"), maxCopied)
	for round := range 2 { // the second uses the memory of the first again
		c.holding = true
		for _, p := range [][]byte{short, long, short} {
			copied := p
			if len(p) <= maxCopied {
				copied = bytes.Clone(p)
			}
			if n, err := c.Write(copied); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
			if len(p) <= maxCopied {
				clear(copied)
			}
		}
		if len(c.held) != 3 {
			t.Errorf("round %d: %d writes are kept back, want 3", round, len(c.held))
		}
		c.release()
		if n, err := c.Write([]byte("!")); n != 1 || err != nil { // nothing is kept back any more
			t.Fatal(n, err)
		}
		want := string(short) + string(long) + string(short) + "!"
		got := make([]byte, len(want))
		if err := client.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(client, got); err != nil || string(got) != want {
			t.Fatalf("round %d: %v, got %d bytes that differ", round, err, len(got))
		}
	}
}

// TestGatherConnFails has a release that fails half-way: nothing comes behind it.
func TestGatherConnFails(t *testing.T) {
	c, _ := gatherPair(t)
	c.holding = true
	if _, err := c.Write(make([]byte, 64<<20)); err != nil { // more than the buffers of a connection take
		t.Fatal(err)
	}
	if err := c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	c.release()
	if n, err := c.Write([]byte("more")); err == nil {
		t.Errorf("%d bytes were written behind half a response", n)
	}
}
