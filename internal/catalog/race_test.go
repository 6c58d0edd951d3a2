package catalog_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mcp-roster/roster/internal/catalog"
	"github.com/mcp-roster/roster/mcp"
)

// untilDone runs readers over and over while write runs, each at least once.
func untilDone(t *testing.T, write func(), readers ...func() error) {
	t.Helper()
	var done atomic.Bool
	var began, ended sync.WaitGroup
	for _, read := range readers {
		began.Add(1)
		ended.Go(func() { // ends when write has ended, or with its first error
			first := true
			for first || !done.Load() {
				err := read()
				if first {
					began.Done()
					first = false
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	began.Wait()
	write()
	done.Store(true)
	ended.Wait()
}

// C-023: while 50 tools are replaced by 50 others, each list has the old or the
// new ones, whole, and what it has can be found; those of another server are
// always there.
func TestSeeds4_08_ReadersSeeWholeLists(t *testing.T) {
	c := open(servers("a", "b"), catalog.Options{})
	sets := [2]catalog.Lists{}
	for i := range sets {
		var tools []string
		for j := range 50 {
			tools = append(tools, fmt.Sprintf("set%d-%d", i, j))
		}
		sets[i] = toolsNamed(tools...)
	}
	c.Replace("a", sets[0])
	c.Replace("b", toolsNamed("steady"))
	whole := func() error {
		var n [2]int
		steady := false
		c.Each(mcp.Tools, func(e *catalog.Entry) bool {
			switch {
			case strings.HasPrefix(e.Own, "set0"):
				n[0]++
			case strings.HasPrefix(e.Own, "set1"):
				n[1]++
			default:
				steady = true
			}
			return true
		})
		if !steady || n != [2]int{50, 0} && n != [2]int{0, 50} {
			return fmt.Errorf("of the sets %v are listed, of the other server %v", n, steady)
		}
		return nil
	}
	paged := func() error {
		raw, err := c.List(mcp.Tools, mcp.Latest, nil)
		if err != nil {
			return err
		}
		zero, one := strings.Count(string(raw), `"a__set0`), strings.Count(string(raw), `"a__set1`)
		if zero+one != 50 || zero*one != 0 || !strings.Contains(string(raw), "b__steady") {
			return fmt.Errorf("a page has %d and %d", zero, one)
		}
		return nil
	}
	steady := func() error {
		if e, ok := c.Find(mcp.Tools, "b__steady"); !ok || e.Server != "b" {
			return fmt.Errorf("found %+v", e)
		}
		return nil
	}
	untilDone(t, func() {
		for i := range 200 {
			c.Replace("a", sets[(i+1)%2])
		}
	}, whole, paged, steady)
}

// A URI that goes from one server to another is in every list.
func TestURIIsHandedOver(t *testing.T) {
	c := open(servers("a", "b"), catalog.Options{})
	c.Replace("a", resourcesAt("x:1"))
	c.Replace("b", resourcesAt("x:1"))
	listed := func() error {
		n := 0
		c.Each(mcp.Resources, func(e *catalog.Entry) bool {
			n++
			return true
		})
		if _, ok := c.Find(mcp.Resources, "x:1"); n != 1 || !ok {
			return fmt.Errorf("listed %d times, found %v", n, ok)
		}
		return nil
	}
	untilDone(t, func() {
		for range 200 {
			for _, s := range []string{"a", "b"} {
				c.Replace(s, resourcesAt())
				c.Replace(s, resourcesAt("x:1"))
			}
		}
	}, listed)
}

// When a fingerprint has become another, so has the list: who is told of a
// change and lists does not get what was before, of whichever change.
func TestFingerprintIsThatOfTheList(t *testing.T) {
	c := open(servers("a"), catalog.Options{})
	var mu sync.Mutex
	seen := make(map[uint64]string) // list by fingerprint
	consistent := func() error {
		before := c.Fingerprint(mcp.Tools, mcp.Latest)
		raw, err := c.List(mcp.Tools, mcp.Latest, nil)
		if err != nil || before != c.Fingerprint(mcp.Tools, mcp.Latest) {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if old, ok := seen[before]; ok && old != string(raw) {
			return fmt.Errorf("fingerprint %x of %s and of %s", before, old, raw)
		}
		seen[before] = string(raw)
		return nil
	}
	untilDone(t, func() {
		for i := range 300 {
			// A list never comes back, since ordinals are not in a single page.
			c.Replace("a", toolsNamed(fmt.Sprint("t", i)))
		}
	}, consistent, consistent)
}

// Everything may be called at once.
func TestConcurrentUse(t *testing.T) {
	store := openStore(t, t.TempDir())
	ids := []string{"a", "b", "c", "d"}
	c := catalog.New(servers(ids...), catalog.Options{Store: store, Page: mcp.PageLimits{Items: 3}})
	read := func() error {
		for _, k := range mcp.Kinds {
			var cursor *string
			for range 5 {
				_, next, _ := page(t, c, k, mcp.Latest, cursor)
				if cursor = next; next == nil {
					break
				}
			}
			c.Each(k, func(e *catalog.Entry) bool { return e.Kind == k })
			c.Find(k, "a__t1")
			c.Fingerprint(k, mcp.LatestSession)
		}
		return nil
	}
	report := func() error {
		for _, s := range ids {
			if _, ok := c.Report(s); !ok {
				return fmt.Errorf("no report on %s", s)
			}
		}
		c.Waiting()
		c.Watch(func() {})()
		return nil
	}
	untilDone(t, func() {
		var writers sync.WaitGroup
		for w, s := range ids {
			writers.Go(func() { // ends after its rounds
				for i := range 60 {
					lists := toolsNamed(fmt.Sprint("t", i%7), fmt.Sprint("u", w))
					lists[mcp.Resources] = resourcesAt("x:shared", fmt.Sprintf("x:%d", i%3))[mcp.Resources]
					c.Replace(s, lists)
					c.Heard(s)
					c.Open()
				}
			})
		}
		writers.Wait()
	}, read, read, report)
	var want []string
	for w, s := range ids {
		want = append(want, fmt.Sprintf("%s__u%d", s, w), s+"__t3") // of the last round
	}
	wantNames(t, c, mcp.Tools, want...)
}
