// Package registry keeps an ordered set of named items that many goroutines
// read while some of them change it: the tools, prompts, resources and
// templates of a server, or whatever else is listed in the order in which it
// was registered.
//
//	tools := registry.New(registry.Options[*Tool]{
//		Name: func(t *Tool) string { return t.Name },
//	})
//	stop := tools.OnChange(func(registry.Change) { announce() })
//	defer stop()
//
//	err := tools.Add(weather, search)      // all or none
//	tool, ok := tools.Get("weather")       // no lock, no allocation
//	for i, entry := range tools.Snapshot().All() {
//		fmt.Println(i, entry.Ordinal, entry.Name)
//	}
//
// # Order
//
// Items are listed in the order in which they were added. Every item gets an
// ordinal when it is added; ordinals only grow and are never used again, so a
// place in the list can be named by an ordinal ([Snapshot.After]) and stays
// meaningful when items come and go. An item that others can see never moves.
// An item that was removed and added again is a newcomer: it goes to the end.
// An item that is given a new value ([Batch.Set], [Set.Replace]) keeps its
// place and its ordinal.
//
// # Names
//
// An item is known by the name it had when it was added, for as long as it is
// in the set, whatever became of the item since. Names are compared after
// [Options.Fold], which never affects the order.
//
// # Concurrency
//
// Everything in this package may be used by any number of goroutines at once,
// except a [Batch], which belongs to the function it was given to.
//
// A set is one atomic pointer to an immutable version. Get, Len and Snapshot
// read it without a lock and never wait. List and lookup are two views of the
// same version: no reader finds an item by name that the list of that moment
// does not have, and none sees a part of an Add, a Replace or an Update.
// Successful changes happen one after the other, at a single point each, at
// which ordinals are given out.
//
// The functions in Options, the function given to Update, and listeners run
// outside the lock, on the goroutine of the call that needed them. They may
// use the set. What they said about an entry is checked again at the moment
// of the change: if another change got in between, they are asked again, so
// a result always rests on what the set really held.
//
// Values are handed out as they were handed in. Who keeps pointers in a set
// must not edit what they point to while others may read it.
//
// # Events
//
// A listener is told after a change succeeded, once for each call that
// changed something, or once for all calls within a scope opened by
// [Set.Defer]. Calls that changed nothing are silent. Events of concurrent
// changes may arrive in any order; the set already holds the change that an
// event speaks of, and possibly later ones.
//
// # Limits
//
// A set lives in memory and has no bound of its own: whoever adds items that
// others sent counts them first. Old snapshots stay valid, and keep their
// items alive, for as long as they are held. The set itself may keep removed
// items alive until later changes, at most about as many as it lists.
package registry
