package admin

import (
	"slices"
	"sync"
	"time"
)

// journalSize is how much text is kept of each server, in bytes.
const journalSize = 64 << 10

// Where a line of a Journal comes from.
const (
	FromStderr = "stderr" // the server wrote it
	FromEvent  = "event"  // it happened to the server
)

// Line is a line of a Journal.
type Line struct {
	Time   time.Time `json:"time"`
	Server string    `json:"server"`
	From   string    `json:"from"`
	Text   string    `json:"text"`
	seq    uint64
}

// Journal keeps what happened to servers and what they wrote to standard error,
// the last 64 KiB of each. The zero Journal is empty. Its methods may be called
// concurrently.
type Journal struct {
	mu     sync.Mutex // guards the fields below
	seq    uint64
	by     map[string]*ring
	news   chan struct{} // closed when a line comes; nil: nobody waits
	closed bool
}

// ring has the lines of one server.
type ring struct {
	lines []Line
	size  int
}

// Add adds a line. Nobody may see secrets in it.
func (j *Journal) Add(server, from, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.by == nil {
		j.by = make(map[string]*ring)
	}
	r := j.by[server]
	if r == nil {
		r = &ring{}
		j.by[server] = r
	}
	j.seq++
	r.lines = append(r.lines, Line{time.Now(), server, from, text, j.seq})
	r.size += len(text) + 1
	gone := 0
	for r.size > journalSize && gone < len(r.lines)-1 {
		r.size -= len(r.lines[gone].Text) + 1
		gone++
	}
	if gone > 0 {
		r.lines = slices.Clone(r.lines[gone:])
	}
	j.wakeLocked()
}

func (j *Journal) wakeLocked() {
	if j.news != nil {
		close(j.news)
		j.news = nil
	}
}

// Keep forgets servers that are not among these.
func (j *Journal) Keep(servers []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name := range j.by {
		if !slices.Contains(servers, name) {
			delete(j.by, name)
		}
	}
}

// Close ends all waiting for lines.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	j.wakeLocked()
}

// After returns the lines that came after the position seq, in order, and the
// position behind them; of one server or, if that is "", of all. news is closed when
// another line comes; it is nil if none will.
func (j *Journal) After(seq uint64, server string) (lines []Line, next uint64, news <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for name, r := range j.by {
		if server != "" && name != server {
			continue
		}
		i, _ := slices.BinarySearchFunc(r.lines, seq+1, func(l Line, at uint64) int { return int(l.seq) - int(at) })
		lines = append(lines, r.lines[i:]...)
	}
	slices.SortFunc(lines, func(a, b Line) int { return int(a.seq) - int(b.seq) })
	if j.closed {
		return lines, j.seq, nil
	}
	if j.news == nil {
		j.news = make(chan struct{})
	}
	return lines, j.seq, j.news
}
