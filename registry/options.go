package registry

import "hash/maphash"

// Options say how a set handles its items. Name is required, the zero value
// of everything else is sensible. The functions run outside the set's lock
// and may be called by several goroutines at once; they may use the set.
type Options[T any] struct {
	// Name returns the name of an item. It is called once for an item that
	// is added or removed, and what it returns then is what counts.
	Name func(T) string

	// Fold maps a name to the key by which names are compared, for example
	// a URI to its normal form. Equal names must have equal keys. Nil: the
	// name itself.
	Fold func(name string) string

	// Same reports whether two values are the same instance; Remove asks it.
	// Nil: a == b, and false for values that Go cannot compare, such as
	// structs with slices in them.
	Same func(a, b T) bool

	// Equal reports whether two values have the same content, so that
	// replacing one by the other changes nothing. Nil: Same.
	Equal func(a, b T) bool

	// Ordinals is where the set takes its ordinals from; sets may share it.
	// Nil: a sequence of its own, which starts at 1.
	Ordinals *Sequence
}

// withDefaults returns o with no field left nil, but for Fold.
func (o Options[T]) withDefaults() Options[T] {
	if o.Name == nil {
		panic("registry: Options.Name is nil") //nolint:forbidigo // a mistake in the program, found on its first run
	}
	if o.Same == nil {
		o.Same = identical[T]
	}
	if o.Equal == nil {
		o.Equal = o.Same
	}
	if o.Ordinals == nil {
		o.Ordinals = new(Sequence)
	}
	return o
}

// identical is a == b, and false if a dynamic type has no ==, which Go only
// finds out by panicking.
func identical[T any](a, b T) (same bool) {
	defer func() {
		if recover() != nil {
			same = false
		}
	}()
	return any(a) == any(b)
}

// keys turns names into keys. It is shared by a set and its snapshots.
type keys struct {
	fold func(string) string // or nil
	seed maphash.Seed
}

// of returns the key of a name, and the key's hash. It runs user code.
func (k *keys) of(name string) (key string, hash uint64) {
	if k.fold != nil {
		name = k.fold(name)
	}
	return name, maphash.String(k.seed, name)
}
