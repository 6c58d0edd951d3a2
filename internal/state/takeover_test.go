package state

import (
	"testing"
	"testing/synctest"
	"time"
)

// A process that could not get the lock gets it soon after it is free, without
// being asked to, since it has something to write.
func TestTakesOverByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		first, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		second.SaveIndex(Index{Epoch: 2})
		time.Sleep(10 * time.Second)
		if second.Writable() {
			t.Error("two write")
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		time.Sleep(settle + retry + time.Millisecond)
		synctest.Wait()
		if !second.Writable() || second.Index().Epoch != 2 {
			t.Errorf("writable %v, index %+v", second.Writable(), second.Index())
		}
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	})
}
