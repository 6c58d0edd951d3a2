package admin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-roster/roster/internal/admin"
)

// TestJournal_Bounded writes more than is kept: the last lines are there, in order.
func TestJournal_Bounded(t *testing.T) {
	var j admin.Journal
	long := strings.Repeat("x", 1000)
	for i := range 300 {
		j.Add("a", admin.FromStderr, fmt.Sprintf("%03d %s", i, long))
		if i%100 == 0 {
			j.Add("b", admin.FromEvent, fmt.Sprint(i))
		}
	}
	lines, at, news := j.After(0, "a")
	if len(lines) < 60 || len(lines) > 65 || !strings.HasPrefix(lines[len(lines)-1].Text, "299 ") {
		t.Errorf("%d lines, the last is %.10s", len(lines), lines[len(lines)-1].Text)
	}
	all, _, _ := j.After(0, "")
	if len(all) != len(lines)+3 || all[0].Server != "b" {
		t.Errorf("%d lines of both, the first is of %s", len(all), all[0].Server)
	}
	if more, _, _ := j.After(at, ""); more != nil {
		t.Errorf("more lines: %v", more)
	}
	j.Add("b", admin.FromEvent, "last")
	<-news
	if more, _, _ := j.After(at, ""); len(more) != 1 || more[0].Text != "last" {
		t.Errorf("what came since: %v", more)
	}
	j.Keep([]string{"b"})
	if lines, _, _ := j.After(0, "a"); lines != nil {
		t.Errorf("%d lines of a server that is gone", len(lines))
	}
	_, _, news = j.After(0, "")
	j.Close()
	<-news
	if _, _, news := j.After(0, ""); news != nil {
		t.Error("more is to come of a journal that is closed")
	}
}
