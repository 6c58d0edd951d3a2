package registry

import (
	"errors"
	"fmt"
)

// ErrConflict is returned by [Set.Update] when other changes invalidated what
// its function had read, each of the many times that it was run. The set is
// unchanged by the call.
var ErrConflict = errors.New("registry: update kept running into other changes")

// DuplicateError says that an item was refused because its name is taken, in
// the set or by another item of the same call.
type DuplicateError struct {
	Name string // of the refused item, before Options.Fold
}

// Error names the item.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("registry: duplicate name %q", e.Name)
}
