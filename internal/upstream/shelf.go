package upstream

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/mcp-roster/roster/client"
)

// tripsToBelieve is how often in a row a walk must be ended by a guard, with the
// same items, before its list replaces one that is known to be whole.
const tripsToBelieve = 3

// shelf has what is known of one kind and decides which walks to believe.
type shelf struct {
	list     *client.List // the last that was published; nil: none
	err      error        // what was wrong with the last walk
	listedAt time.Time    // when the last walk ended that gave a list
	// tripped is the list of the last walk if a guard ended it, times how often
	// in a row that gave the same.
	tripped *client.List
	times   int
	pause   *backoff.ExponentialBackOff
	due     time.Time // when to walk again after a failure; zero: not
}

func newShelf(list *client.List, first, most time.Duration) shelf {
	return shelf{list: list, pause: newBackoff(first, most)}
}

// put takes the outcome of a walk. It returns the list to publish, nil if that
// is none or the same as before.
func (sh *shelf) put(list *client.List, err error, now time.Time) *client.List {
	sh.err, sh.due = err, time.Time{}
	walkErr, ok := errors.AsType[*client.WalkError](err)
	switch {
	case err == nil:
		sh.tripped, sh.times = nil, 0
		sh.pause.Reset()
		return sh.publish(list, now)
	case !ok || walkErr.Trip == "":
		sh.tripped, sh.times = nil, 0
		sh.retry(now)
		return nil
	}
	if sh.tripped != nil && sameItems(sh.tripped, list) {
		sh.times++
	} else {
		sh.tripped, sh.times = list, 1
	}
	believed := sh.times >= tripsToBelieve
	if !believed {
		sh.retry(now)
	}
	if believed || sh.list == nil || sh.list.Tripped != "" {
		return sh.publish(list, now)
	}
	return nil
}

func (sh *shelf) publish(list *client.List, now time.Time) *client.List {
	sh.listedAt = now
	if sh.list != nil && sh.list.Tripped == list.Tripped && sh.list.Hints == list.Hints &&
		sh.list.HasTTL == list.HasTTL && sameItems(sh.list, list) {
		return nil
	}
	sh.list = list
	return list
}

func (sh *shelf) retry(now time.Time) {
	sh.due = now.Add(sh.pause.NextBackOff())
}

// renew forgets the failures of the last connection.
func (sh *shelf) renew() {
	sh.pause.Reset()
	sh.tripped, sh.times, sh.due = nil, 0, time.Time{}
}

func sameItems(a, b *client.List) bool {
	return slices.EqualFunc(a.Items, b.Items, func(x, y jsontext.Value) bool { return bytes.Equal(x, y) })
}

// minTTL is the shortest time for which a list is believed to be fresh,
// whatever its server says; staleAfter is for servers that say nothing.
const (
	minTTL     = 5 * time.Second
	staleAfter = 60 * time.Second
)

// expires returns when the list is worth another look if somebody asks for it.
// told: the server says when it changes. Zero: it does not expire.
func (sh *shelf) expires(told bool) time.Time {
	switch {
	case sh.list != nil && sh.list.Hints.TTL > 0:
		return sh.listedAt.Add(max(sh.list.Hints.TTL, minTTL))
	case told:
		return time.Time{}
	}
	return sh.listedAt.Add(staleAfter)
}
